#include "net/http_answer.h"

#include <fmt/format.h>

#include <array>

namespace cotenant::net {

std::string http_date(std::time_t now) {
  constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

ports::HttpResponse error_response(int status, base::ErrorCode code, std::string_view message) {
  std::string escaped;
  for (const char c : message) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  ports::HttpResponse response;
  response.status = status;
  response.headers.push_back({"Content-Type", "application/json"});
  response.body =
      fmt::format(R"({{"__type":"{}","message":"{}"}})", base::error_name(code), escaped);
  return response;
}

ports::HttpRequest to_request(
    const boost::beast::http::request<boost::beast::http::string_body>& message) {
  ports::HttpRequest request;
  request.method = message.method_string();
  request.target = message.target();
  for (const auto& field : message) {
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  return request;
}

}  // namespace cotenant::net
