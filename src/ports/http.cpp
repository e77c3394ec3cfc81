#include "ports/http.h"

#include <algorithm>
#include <cctype>

namespace cotenant::ports {

namespace {

const HttpHeader* find_header(const std::vector<HttpHeader>& headers, std::string_view name) {
  const auto same_letter = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  for (const HttpHeader& header : headers) {
    if (std::equal(header.name.begin(), header.name.end(), name.begin(), name.end(), same_letter)) {
      return &header;
    }
  }
  return nullptr;
}

}  // namespace

std::string_view header_value(const std::vector<HttpHeader>& headers, std::string_view name) {
  const HttpHeader* header = find_header(headers, name);
  return header == nullptr ? std::string_view() : std::string_view(header->value);
}

bool has_header(const std::vector<HttpHeader>& headers, std::string_view name) {
  return find_header(headers, name) != nullptr;
}

}  // namespace cotenant::ports
