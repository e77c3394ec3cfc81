// Checks on what goes into an HTTP message, so that no header or target can end a line early and
// smuggle in another message. Pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "ports/http.h"

namespace cotenant::net {

// Errors: kInvalidParameter, naming the part.
base::Status check_request(const ports::HttpRequest& request);
base::Status check_headers(const std::vector<ports::HttpHeader>& headers);

// True for headers that the connection's owner sets: Content-Length, Transfer-Encoding, Connection.
bool is_framing_header(std::string_view name);

bool equal_ignoring_case(std::string_view left, std::string_view right);

}  // namespace cotenant::net
