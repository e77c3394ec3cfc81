// Reads documents of ours (agent messages, records) strictly where it matters, with errors that name
// the member by its path. Private to codec.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/limits.h"
#include "base/result.h"
#include "codec/json.h"
#include "codec/utf8.h"

namespace cotenant::codec {

// Reads members of one object. The first error is kept, so that a caller reads all it wants and
// asks once; its text names the member by its path ("tasks[0].containers[1].status").
class JsonReader {
 public:
  JsonReader(const Json& json, std::string path, std::optional<base::Error>& error)
      : json_(json), path_(std::move(path)), error_(error) {
    if (!json_.is_object()) wrong(path_.empty() ? "the frame" : path_, "an object", json_);
  }

  std::string text(std::string_view name, bool required, std::size_t max_bytes = 65536) {
    const Json* member = find(name, required);
    if (member == nullptr) return {};
    if (!member->is_string()) return wrong(at(name), "a string", *member), std::string();
    if (member->as_string().size() > max_bytes) {
      refuse(fmt::format("{}: has {} bytes; at most {} are allowed", at(name),
                         member->as_string().size(), max_bytes));
      return {};
    }
    if (required && member->as_string().empty()) refuse(at(name) + ": must not be empty");
    return member->as_string();
  }

  // An id or a name that ends in labels and in names of the container engine.
  std::string name(std::string_view member_name) {
    std::string value = text(member_name, true, base::limits::kNameChars);
    if (!error_ && !base::is_ecs_name(value)) {
      refuse(fmt::format("{}: '{}' must be 1 to 255 letters, digits, - and _", at(member_name),
                         shortened(value)));
    }
    return value;
  }

  std::optional<std::int64_t> number(std::string_view name, bool required, std::int64_t min,
                                     std::int64_t max) {
    const Json* member = find(name, required);
    if (member == nullptr) return std::nullopt;
    if (!member->is_integer()) {
      wrong(at(name), "an integer", *member);
      return std::nullopt;
    }
    const std::int64_t value = member->as_integer();
    if (value < min || value > max) {
      refuse(fmt::format("{}: {} is not in {}..{}", at(name), value, min, max));
      return std::nullopt;
    }
    return value;
  }

  bool flag(std::string_view name, bool fallback) {
    const Json* member = find(name, false);
    if (member == nullptr) return fallback;
    if (!member->is_bool()) return wrong(at(name), "true or false", *member), fallback;
    return member->as_bool();
  }

  // Calls `visit(element, path)` for each element of the array.
  template <class Visit>
  void each(std::string_view name, bool required, std::size_t max, Visit visit) {
    const Json* member = find(name, required);
    if (member == nullptr) return;
    if (!member->is_array()) return wrong(at(name), "an array", *member);
    const Json::Array& elements = member->as_array();
    if (elements.size() > max) {
      return refuse(fmt::format("{}: has {} elements; at most {} are allowed", at(name),
                                elements.size(), max));
    }
    for (std::size_t i = 0; i < elements.size() && !error_; ++i) {
      visit(elements[i], fmt::format("{}[{}]", at(name), i));
    }
  }

  std::vector<std::string> texts(std::string_view name) {
    std::vector<std::string> values;
    each(name, false, kManyElements, [&](const Json& element, const std::string& path) {
      if (!element.is_string()) return wrong(path, "a string", element);
      values.push_back(element.as_string());
    });
    return values;
  }

  std::map<std::string, std::string> text_map(std::string_view name) {
    std::map<std::string, std::string> values;
    const Json* member = find(name, false);
    if (member == nullptr) return values;
    if (!member->is_object()) return wrong(at(name), "an object", *member), values;
    for (const Json::Member& entry : member->as_object()) {
      if (!entry.value.is_string()) {
        wrong(fmt::format("{}[\"{}\"]", at(name), shortened(entry.name)), "a string", entry.value);
        break;
      }
      values[entry.name] = entry.value.as_string();
    }
    return values;
  }

  // The object member of that name; null pointer where there is none.
  const Json* object(std::string_view name, bool required) {
    const Json* member = find(name, required);
    if (member == nullptr) return nullptr;
    if (!member->is_object()) return wrong(at(name), "an object", *member), nullptr;
    return member;
  }

  void wrong(const std::string& path, std::string_view want, const Json& got) {
    refuse(fmt::format("{}: must be {}, not {}", path, want, got.kind_name()));
  }

  void refuse(std::string message) {
    if (!error_) error_ = base::Error{base::ErrorCode::kProtocol, std::move(message)};
  }

  std::string at(std::string_view name) const {
    return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
  }

  std::optional<base::Error>& error() { return error_; }

  // More than any frame of base::limits::kAgentFrameBytes needs.
  static constexpr std::size_t kManyElements = 100000;

 private:
  const Json* find(std::string_view name, bool required) {
    if (error_) return nullptr;
    const Json* member = json_.find(name);
    if (member == nullptr && required) refuse(at(name) + ": is missing");
    return member;
  }

  const Json& json_;
  const std::string path_;
  std::optional<base::Error>& error_;
};

}  // namespace cotenant::codec
