#include "adapters/process_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/unique_fd.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;

base::Error watch_error(const std::string& folder, std::string_view what) {
  return {ErrorCode::kUnavailable, fmt::format("process runtime: watch {}: {}", folder, what)};
}

}  // namespace

base::Status watch_process_folder(const std::string& folder, const std::function<void()>& on_change,
                                  std::stop_token stop) {
  const base::UniqueFd events(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  constexpr std::uint32_t kMask = IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE_SELF;
  if (!events || ::inotify_add_watch(events.get(), folder.c_str(), kMask | IN_ONLYDIR) < 0) {
    return fail(watch_error(folder, std::strerror(errno)));
  }
  const base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return fail(watch_error(folder, std::strerror(errno)));
  const std::stop_callback on_stop(stop, [&] {
    const std::uint64_t one = 1;
    if (::write(wake.get(), &one, sizeof one) < 0) return;  // it is counted already
  });
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> polled{{{events.get(), POLLIN, 0}, {wake.get(), POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) {
      return fail(watch_error(folder, std::strerror(errno)));
    }
    alignas(inotify_event) std::array<char, 4096> buffer;
    bool changed = false;
    ssize_t count = 0;
    while ((count = ::read(events.get(), buffer.data(), buffer.size())) > 0) {
      changed = true;
      for (ssize_t at = 0; at < count;) {
        inotify_event event;
        std::memcpy(&event, buffer.data() + at, sizeof event);
        if ((event.mask & (IN_DELETE_SELF | IN_IGNORED)) != 0) {
          return fail(watch_error(folder, "it was removed"));
        }
        at += static_cast<ssize_t>(sizeof event) + event.len;
      }
    }
    if (changed) on_change();
  }
  return {};
}

}  // namespace cotenant::adapters
