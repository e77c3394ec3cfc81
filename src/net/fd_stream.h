// A connected socket as a ports::ByteStream.
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "ports/byte_stream.h"

namespace cotenant::net {

// `early`: what was received already.
std::unique_ptr<ports::ByteStream> make_fd_stream(base::UniqueFd socket, std::string early);

}  // namespace cotenant::net
