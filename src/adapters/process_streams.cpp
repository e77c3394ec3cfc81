#include "adapters/process_streams.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>

#include "adapters/process_exec.h"
#include "adapters/process_lock.h"
#include "adapters/process_log.h"
#include "base/private_file.h"
#include "base/unique_fd.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using base::UniqueFd;

// Followers look so often for more.
constexpr std::chrono::milliseconds kFollowPoll{100};

// From where the descriptor stands to the end; true when there was something.
bool read_to_end(int fd, ProcessLogFeed& feed, const std::stop_token& stop) {
  std::array<char, 64 * 1024> buffer;
  bool any = false;
  while (!stop.stop_requested()) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count <= 0) break;
    any = true;
    feed.feed({buffer.data(), static_cast<std::size_t>(count)});
  }
  return any;
}

bool wait_or_stop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, stop, kFollowPoll, [] { return false; });
  return !stop.stop_requested();
}

// It runs, or has not begun: there may be more.
bool may_print(const std::string& folder) {
  if (read_process_exit(folder)) return false;
  return is_process_locked(folder).value_or(false) || !read_process_state(folder);
}

// What came after `file`, which was moved; the newest of it. None: there is nothing yet.
UniqueFd read_on(const std::string& folder, std::int64_t files_max, const UniqueFd& file,
                 ProcessLogFeed& feed, const std::stop_token& stop) {
  std::vector<UniqueFd> files = open_process_logs(folder, files_max);
  if (files.empty()) return UniqueFd();
  auto next = files.begin();
  if (file) {
    // Between our last look and the move it may have got more; from now on it does not.
    read_to_end(file.get(), feed, stop);
    const auto ours = std::find_if(files.begin(), files.end(), [&](const UniqueFd& each) {
      return is_same_process_log(each, file);
    });
    if (ours != files.end()) next = std::next(ours);
  }
  if (next == files.end()) return UniqueFd();
  for (; std::next(next) != files.end(); ++next) read_to_end(next->get(), feed, stop);
  return std::move(*next);
}

void follow(const std::string& folder, std::int64_t files_max, UniqueFd file, ProcessLogFeed& feed,
            const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const bool more_may_come = may_print(folder);  // asked first: what it printed last is read
    if (file && read_to_end(file.get(), feed, stop)) continue;
    if (!file || !is_newest_process_log(file, folder)) {
      if (UniqueFd next = read_on(folder, files_max, file, feed, stop)) {
        file = std::move(next);
        continue;
      }
    }
    if (!more_may_come || !wait_or_stop(stop)) return;
  }
}

}  // namespace

Result<ProcessConfig> ProcessStreams::config(const std::string& id) const {
  const base::Error missing{ErrorCode::kNotFound, fmt::format("No such container: {}", id)};
  if (!is_process_id(id)) return fail(missing);
  const std::string path = folder_ + "/" + id + "/config.json";
  const auto text = base::read_private_file(path);
  if (!text) return fail(text.error());
  if (!*text) return fail(missing);
  return decode_process_config(**text);
}

Status ProcessStreams::logs(const std::string& id, const ports::LogRequest& request,
                            const ports::OnOutput& on_output, std::stop_token stop) {
  const Result<ProcessConfig> known = config(id);
  if (!known) return fail(known.error());
  const std::string folder = folder_ + "/" + id;
  std::vector<UniqueFd> files = open_process_logs(folder, known->log_files);
  std::int64_t skip_lines = 0;
  if (request.tail) {
    ports::LogRequest all;
    const ports::OnOutput nobody;
    ProcessLogFeed counter(all, 0, nobody);
    for (const UniqueFd& file : files) {
      read_to_end(file.get(), counter, stop);
      ::lseek(file.get(), 0, SEEK_SET);
    }
    skip_lines = std::max<std::int64_t>(0, counter.lines() - *request.tail);
  }
  ProcessLogFeed feed(request, skip_lines, on_output);
  for (const UniqueFd& file : files) read_to_end(file.get(), feed, stop);
  if (!request.follow) return {};
  follow(folder, known->log_files, files.empty() ? UniqueFd() : std::move(files.back()), feed,
         stop);
  return {};
}

Result<std::unique_ptr<ports::ExecSession>> ProcessStreams::exec(
    const std::string& id, const ports::ExecRequest& request) {
  const Result<ProcessConfig> known = config(id);
  if (!known) return fail(known.error());
  return exec_beside_process(*known, folder_ + "/" + id, request);
}

}  // namespace cotenant::adapters
