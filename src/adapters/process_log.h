// Reads what the program of a container of the `process` runtime has printed (shim/log_file.h): lines
// "<RFC 3339 time> stdout|stderr F|P <text>", P where the line goes on in the next one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "ports/container_streams.h"

namespace cotenant::adapters {

// The files that there are, oldest first; none is left out because of a rotation meanwhile. Once open, a
// rotation does not move them under a reader, and nothing is added to one that was moved.
std::vector<base::UniqueFd> open_process_logs(const std::string& folder, std::int64_t files_max);

// Whether the shim writes (or has last written) to this one.
bool is_newest_process_log(const base::UniqueFd& file, const std::string& folder);
bool is_same_process_log(const base::UniqueFd& one, const base::UniqueFd& other);

// Turns a log's bytes, in any pieces, into the program's output. One thread.
class ProcessLogFeed {
 public:
  // `skip_lines`: so many of the first are left out.
  ProcessLogFeed(const ports::LogRequest& request, std::int64_t skip_lines,
                 const ports::OnOutput& on_output)
      : request_(request), skip_lines_(skip_lines), on_output_(on_output) {}

  void feed(std::string_view bytes);
  std::int64_t lines() const { return lines_; }  // that have come to their end

 private:
  void take(std::string_view entry);
  void flush();

  const ports::LogRequest request_;
  std::int64_t skip_lines_;
  const ports::OnOutput& on_output_;
  std::string rest_;     // of an entry that is not whole yet
  std::string pending_;  // of one stream
  ports::OutputStream stream_ = ports::OutputStream::kStdout;
  bool in_line_[2] = {false, false};
  std::int64_t lines_ = 0;
};

}  // namespace cotenant::adapters
