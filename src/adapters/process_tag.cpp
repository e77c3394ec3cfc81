#include "adapters/process_tag.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <optional>

#include "adapters/names_in_folder.h"
#include "base/process_identity.h"
#include "base/unique_fd.h"

namespace cotenant::adapters {
namespace {

// One that forks meanwhile may be missed at the first look.
constexpr int kLooks = 3;

std::optional<pid_t> pid_in(const std::string& name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

// Through a handle: between the look and the signal the pid may change its owner.
bool kill_if_tagged(pid_t pid, const std::string& container_id) {
  if (base::start_environment(pid, kProcessTag) != container_id) return false;
  const base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process || base::start_environment(pid, kProcessTag) != container_id) return false;
  return ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0;
}

}  // namespace

void kill_tagged_processes(const std::string& container_id) {
  for (int look = 0; look < kLooks; ++look) {
    bool any = false;
    for (const std::string& name : names_in_folder("/proc")) {
      const auto pid = pid_in(name);
      if (pid && kill_if_tagged(*pid, container_id)) any = true;
    }
    if (!any) return;
  }
}

}  // namespace cotenant::adapters
