// Where a request comes from: the first line of defence, also where there is no authentication.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ports/http.h"

namespace cotenant::server {

// "localhost", 127.0.0.0/8 or [::1], with or without a port; also a bare ::1.
bool is_loopback_host(std::string_view host);

// Refuses a request with an Origin header (a browser's), or, for a server on loopback, with a Host
// that is not loopback (DNS rebinding). Errors: kAccessDenied.
base::Status check_request_origin(const ports::HttpRequest& request, bool is_on_loopback = true);

}  // namespace cotenant::server
