#include "codec/no_nul.h"

#include <fmt/format.h>

#include "codec/invalid.h"

namespace cotenant::codec {

base::Status check_no_nul(const Json& json, const std::string& path) {
  if (json.is_string() && json.as_string().find('\0') != std::string::npos) {
    return invalid(path, "must not contain the character NUL");
  }
  if (json.is_array()) {
    for (std::size_t i = 0; i < json.as_array().size(); ++i) {
      auto status = check_no_nul(json.as_array()[i], fmt::format("{}[{}]", path, i));
      if (!status) return status;
    }
  }
  if (json.is_object()) {
    for (const Json::Member& member : json.as_object()) {
      if (auto status = check_no_nul(member.value, path + "." + member.name); !status)
        return status;
    }
  }
  return {};
}

}  // namespace cotenant::codec
