#include "adapters/process_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "base/rfc3339.h"

namespace cotenant::adapters {
namespace {

// Longer than any that the shim writes; beyond it the file is not the shim's.
constexpr std::size_t kEntryBytesMax = 64 * 1024;

std::string_view take_word(std::string_view& text) {
  const std::size_t blank = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, blank);
  text.remove_prefix(std::min(blank + 1, text.size()));
  return word;
}

// A rotation takes microseconds, and another one needs a file full of output first.
constexpr int kOpenAttempts = 10;

struct LogIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const LogIdentity&) const = default;
};

// Of a file that is open no other has the inode.
std::optional<LogIdentity> identity_of(const base::UniqueFd& file) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return std::nullopt;
  return LogIdentity{info.st_dev, info.st_ino};
}

std::vector<base::UniqueFd> open_once(const std::string& folder, std::int64_t files_max) {
  std::vector<base::UniqueFd> files;
  for (std::int64_t number = files_max - 1; number >= 0; --number) {
    const std::string path =
        number == 0 ? folder + "/log" : fmt::format("{}/log.{}", folder, number);
    base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

bool is_newest_process_log(const base::UniqueFd& file, const std::string& folder) {
  struct stat named {};
  return ::stat((folder + "/log").c_str(), &named) == 0 &&
         identity_of(file) == LogIdentity{named.st_dev, named.st_ino};
}

bool is_same_process_log(const base::UniqueFd& one, const base::UniqueFd& other) {
  return identity_of(one) && identity_of(one) == identity_of(other);
}

std::vector<base::UniqueFd> open_process_logs(const std::string& folder, std::int64_t files_max) {
  std::vector<base::UniqueFd> files;
  for (int attempt = 0; attempt < kOpenAttempts; ++attempt) {
    files = open_once(folder, files_max);
    if (files.empty() || is_newest_process_log(files.back(), folder)) break;
  }
  return files;
}

void ProcessLogFeed::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      if (rest_.size() + bytes.size() <= kEntryBytesMax) rest_.append(bytes);
      break;
    }
    rest_.append(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
    take(rest_);
    rest_.clear();
  }
  flush();
}

void ProcessLogFeed::take(std::string_view entry) {
  const std::string_view time = take_word(entry);
  const std::string_view name = take_word(entry);
  const std::string_view mark = take_word(entry);
  if (mark != "F" && mark != "P") return;  // torn by a full disk
  const auto stream =
      name == "stderr" ? ports::OutputStream::kStderr : ports::OutputStream::kStdout;
  bool& in_line = in_line_[stream == ports::OutputStream::kStderr ? 1 : 0];
  const bool goes_on = std::exchange(in_line, mark == "P");
  const std::int64_t number = lines_;
  if (mark == "F") ++lines_;
  if (number < skip_lines_) return;
  if (request_.since_ms > 0 && base::parse_rfc3339(time).value_or(0) < request_.since_ms) return;
  if (stream != stream_) flush();
  stream_ = stream;
  if (request_.timestamps && !goes_on) pending_.append(time).append(" ");
  pending_.append(entry);
  if (mark == "F") pending_ += '\n';
}

void ProcessLogFeed::flush() {
  if (pending_.empty()) return;
  if (on_output_) on_output_(stream_, pending_);
  pending_.clear();
}

}  // namespace cotenant::adapters
