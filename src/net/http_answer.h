// Private to net's .cpp files: small pieces of the HTTP server's answers, and a request as the
// application sees it.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <ctime>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ports/http.h"

namespace cotenant::net {

// IMF-fixdate (RFC 9110, 5.6.7), which SDKs use to correct their clock when they sign.
std::string http_date(std::time_t now);

// An error in the shape that ECS clients read. `message` is our own text, without control
// characters.
ports::HttpResponse error_response(int status, base::ErrorCode code, std::string_view message);

// Everything but body and peer.
ports::HttpRequest to_request(
    const boost::beast::http::request<boost::beast::http::string_body>& message);

}  // namespace cotenant::net
