#include "json_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace cotenant::test {
namespace {

using codec::Json;

constexpr std::size_t kShownBytes = 2000;

std::string shown(const Json& value) {
  std::string text = value.dump();
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return text;
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_variable(std::string_view text) {
  return text.size() > 1 && text[0] == '$' &&
         std::all_of(text.begin() + 1, text.end(), is_name_char);
}

// "~a~~b": every part must be in the text.
bool holds_parts(std::string_view text, std::string_view parts) {
  constexpr std::string_view kBetween = "~~";
  for (;;) {
    const std::size_t at = parts.find(kBetween);
    if (text.find(parts.substr(0, at)) == std::string_view::npos) return false;
    if (at == std::string_view::npos) return true;
    parts.remove_prefix(at + kBetween.size());
  }
}

class Matcher {
 public:
  explicit Matcher(Variables variables) : variables_(std::move(variables)) {}

  base::Status match(const Json& wanted, const Json& came, const std::string& path) {
    if (wanted.is_string()) return match_string(wanted.as_string(), came, path);
    if (wanted.is_object()) return match_object(wanted, came, path);
    if (wanted.is_array()) return match_array(wanted, came, path);
    if (wanted.is_number() && came.is_number()) {
      if (wanted.as_double() == came.as_double()) return {};
    } else if (wanted == came) {
      return {};
    }
    return differs(wanted, came, path);
  }

  Variables take_variables() { return std::move(variables_); }

 private:
  static base::Status differs(const Json& wanted, const Json& came, const std::string& path) {
    return base::fail(base::ErrorCode::kClient,
                      fmt::format("{}: came {}\n  wanted {}", path.empty() ? "the reply" : path,
                                  shown(came), shown(wanted)));
  }

  base::Status match_string(const std::string& wanted, const Json& came, const std::string& path) {
    if (wanted == "?") return {};
    if (!came.is_string()) return differs(Json(wanted), came, path);
    if (is_variable(wanted)) {
      const auto [at, fresh] = variables_.try_emplace(wanted.substr(1), came.as_string());
      if (fresh || at->second == came.as_string()) return {};
      return differs(Json(fmt::format("{} = {}", wanted, at->second)), came, path);
    }
    auto text = substitute(wanted, variables_);
    if (!text) return base::fail(base::ErrorCode::kClient, path + ": " + text.error().message);
    const bool same = text->size() > 1 && (*text)[0] == '~'
                          ? holds_parts(came.as_string(), std::string_view(*text).substr(1))
                          : *text == came.as_string();
    return same ? base::Status() : differs(Json(*text), came, path);
  }

  base::Status match_object(const Json& wanted, const Json& came, const std::string& path) {
    if (!came.is_object()) return differs(wanted, came, path);
    for (const Json::Member& member : wanted.as_object()) {
      const std::string below = path.empty() ? member.name : path + "." + member.name;
      const Json* value = came.find(member.name);
      if (member.value.is_null()) {
        if (value != nullptr) return differs(Json("no such member"), *value, below);
        continue;
      }
      if (value == nullptr) return differs(member.value, Json("nothing"), below);
      if (auto status = match(member.value, *value, below); !status) return status;
    }
    return {};
  }

  base::Status match_array(const Json& wanted, const Json& came, const std::string& path) {
    if (!came.is_array()) return differs(wanted, came, path);
    const Json::Array& wants = wanted.as_array();
    const Json::Array& comes = came.as_array();
    if (!wants.empty() && wants.front() == Json("~")) {
      for (std::size_t i = 1; i < wants.size(); ++i) {
        if (auto status = match_any(wants[i], came, path); !status) return status;
      }
      return {};
    }
    if (wants.size() != comes.size()) {
      return base::fail(base::ErrorCode::kClient,
                        fmt::format("{}: came {} elements, wanted {}: {}", path, comes.size(),
                                    wants.size(), shown(came)));
    }
    for (std::size_t i = 0; i < wants.size(); ++i) {
      auto status = match(wants[i], comes[i], fmt::format("{}[{}]", path, i));
      if (!status) return status;
    }
    return {};
  }

  base::Status match_any(const Json& wanted, const Json& came, const std::string& path) {
    for (const Json& element : came.as_array()) {
      Matcher attempt(variables_);
      if (attempt.match(wanted, element, path)) {
        variables_ = attempt.take_variables();
        return {};
      }
    }
    return base::fail(base::ErrorCode::kClient, fmt::format("{}: no element is {}\n  came {}", path,
                                                            shown(wanted), shown(came)));
  }

  Variables variables_;
};

}  // namespace

base::Status match_json(const Json& wanted, const Json& came, Variables& variables) {
  Matcher matcher(variables);
  auto status = matcher.match(wanted, came, "");
  if (status) variables = matcher.take_variables();
  return status;
}

base::Result<std::string> substitute(const std::string& text, const Variables& variables) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '$') {
      while (end < text.size() && is_name_char(text[end])) ++end;
    }
    if (end == at + 1) {
      out += text[at++];
      continue;
    }
    const std::string name = text.substr(at + 1, end - at - 1);
    const auto found = variables.find(name);
    if (found == variables.end()) {
      return base::fail(base::ErrorCode::kClient, fmt::format("${} has no value yet", name));
    }
    out += found->second;
    at = end;
  }
  return out;
}

}  // namespace cotenant::test
