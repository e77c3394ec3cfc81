// A connection that carries bytes both ways. Implemented by net/.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cotenant::ports {

// Blocking calls; one thread may read while another writes, any thread may close. Errors:
// kUnavailable (closed by us), kIo.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // What is there, at least one byte; false at the end.
  virtual base::Result<bool> read(std::string& piece) = 0;
  virtual base::Status write(std::string_view bytes) = 0;  // all of them
  virtual base::Status end_writing() = 0;                  // the peer reads the end
  // Calls that wait return.
  virtual void close() = 0;
};

}  // namespace cotenant::ports
