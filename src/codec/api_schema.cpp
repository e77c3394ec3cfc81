#include "codec/api_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "codec/api_bounds.h"
#include "codec/utf8.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using base::Status;

enum class Direction { kRequest, kResponse };

// Inside it unknown members are refused.
constexpr std::string_view kStrictMember = "resourceRequirements";

const Shape& shape_at(std::size_t index) {
  return api_shapes()[index];
}

bool is_structure(const Shape& shape) {
  return shape.kind == ShapeKind::kStructure || shape.kind == ShapeKind::kUnion;
}

bool has_kind(const Json& value, ShapeKind kind) {
  switch (kind) {
    case ShapeKind::kStructure:
    case ShapeKind::kUnion:
    case ShapeKind::kMap:
      return value.is_object();
    case ShapeKind::kList:
      return value.is_array();
    case ShapeKind::kString:
      return value.is_string();
    case ShapeKind::kInteger:
    case ShapeKind::kLong:
      return value.is_integer();
    case ShapeKind::kDouble:
    case ShapeKind::kTimestamp:
      return value.is_number();
    case ShapeKind::kBoolean:
      return value.is_bool();
  }
  return false;
}

// What a value of the shape looks like, in words.
std::string describe_wanted(const Shape& shape) {
  switch (shape.kind) {
    case ShapeKind::kStructure:
    case ShapeKind::kUnion:
    case ShapeKind::kMap:
      return "an object";
    case ShapeKind::kList:
      return "an array";
    case ShapeKind::kString:
      if (shape.enum_values.empty()) return "a string";
      return fmt::format("one of {}", fmt::join(shape.enum_values, ", "));
    case ShapeKind::kInteger:
    case ShapeKind::kLong:
      return "an integer, without fraction or exponent";
    case ShapeKind::kDouble:
      return "a number";
    case ShapeKind::kTimestamp:
      return "a number, seconds since 1970";
    case ShapeKind::kBoolean:
      return "true or false";
  }
  return "";
}

std::string quoted(std::string_view text) {
  return Json(shortened(text)).dump();
}

// What a client sent, short enough for a message.
std::string describe_value(const Json& value) {
  if (value.is_string()) return quoted(value.as_string());
  if (value.is_array() || value.is_object()) return std::string(value.kind_name());
  return value.dump();
}

const ShapeMember* find_member(const Shape& shape, std::string_view name) {
  const auto at = std::find_if(shape.members.begin(), shape.members.end(),
                               [&](const ShapeMember& member) { return member.name == name; });
  return at == shape.members.end() ? nullptr : &*at;
}

bool equal_ignoring_case(std::string_view left, std::string_view right) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : int{c}; };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

// "between 1 and 10", "at least 1", "at most 10". A size has no use for "at least 0".
std::string describe_range(std::int64_t min, std::int64_t max, bool is_size) {
  const bool has_min = min != kUnstatedMin && !(is_size && min <= 0);
  if (max == kUnstatedMax) return fmt::format("at least {}", min);
  if (!has_min) return fmt::format("at most {}", max);
  return fmt::format("between {} and {}", min, max);
}

// One walk over one body.
class Checker {
 public:
  explicit Checker(Direction direction) : direction_(direction) {}

  Status check_body(const Shape& shape, const Json& body) {
    if (!body.is_object()) {
      return wrong_kind(fmt::format("the body must be an object, not {}", body.kind_name()));
    }
    if (auto status = check(shape, body); !status) return status;
    return check_bound(shape, "", shape, body);
  }

  std::vector<std::string> take_warnings() {
    if (unlisted_warnings_ > 0) {
      warnings_.push_back(fmt::format("{} more unknown members; ignored", unlisted_warnings_));
    }
    return std::move(warnings_);
  }

 private:
  // One step of the path: a member of a structure, a key of a map, or an index of a list.
  struct Step {
    enum class Kind { kMember, kKey, kIndex } kind = Kind::kMember;
    std::string_view name;
    std::size_t index = 0;
  };

  Status check(const Shape& shape, const Json& value) {
    if (!has_kind(value, shape.kind)) {
      return wrong_kind(
          fmt::format("must be {}, not {}", describe_wanted(shape), describe_value(value)));
    }
    switch (shape.kind) {
      case ShapeKind::kStructure:
      case ShapeKind::kUnion:
        return check_structure(shape, value);
      case ShapeKind::kList:
        return check_list(shape, value);
      case ShapeKind::kMap:
        return check_map(shape, value);
      case ShapeKind::kString:
        return check_string(shape, value);
      case ShapeKind::kInteger:
        return check_integer(shape, value);
      case ShapeKind::kLong:
      case ShapeKind::kDouble:
        return check_range(shape, value, shape.min, shape.max);
      case ShapeKind::kBoolean:
      case ShapeKind::kTimestamp:
        break;
    }
    return {};
  }

  Status check_structure(const Shape& shape, const Json& value) {
    std::size_t set_members = 0;
    for (const Json::Member& given : value.as_object()) {
      const ShapeMember* member = find_member(shape, given.name);
      if (member == nullptr) {
        if (auto status = unknown_member(shape, given.name); !status) return status;
        continue;
      }
      if (given.value.is_null()) continue;
      ++set_members;
      if (auto status = check_member(shape, *member, given.value); !status) return status;
    }
    for (const ShapeMember& member : shape.members) {
      if (!member.required || value.find(member.name) != nullptr) continue;
      path_.push_back({Step::Kind::kMember, member.name});
      return invalid(
          fmt::format("is required; it must be {}", describe_wanted(shape_at(member.shape))));
    }
    if (shape.kind == ShapeKind::kUnion && set_members != 1) {
      std::vector<std::string_view> names;
      for (const ShapeMember& member : shape.members) names.push_back(member.name);
      return invalid(fmt::format("must have exactly one member of {}, has {}",
                                 fmt::join(names, ", "), set_members));
    }
    return {};
  }

  Status check_member(const Shape& owner, const ShapeMember& member, const Json& value) {
    const bool was_strict = std::exchange(strict_, strict_ || member.name == kStrictMember);
    path_.push_back({Step::Kind::kMember, member.name});
    const Shape& shape = shape_at(member.shape);
    if (auto status = check(shape, value); !status) return status;
    if (auto status = check_bound(owner, member.name, shape, value); !status) return status;
    path_.pop_back();
    strict_ = was_strict;
    return {};
  }

  Status check_list(const Shape& shape, const Json& value) {
    const Json::Array& elements = value.as_array();
    if (auto status = check_range(shape, value, shape.min, shape.max); !status) return status;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      path_.push_back({Step::Kind::kIndex, {}, i});
      if (auto status = check(shape_at(shape.element), elements[i]); !status) return status;
      path_.pop_back();
    }
    return {};
  }

  Status check_map(const Shape& shape, const Json& value) {
    for (const Json::Member& entry : value.as_object()) {
      path_.push_back({Step::Kind::kKey, entry.name});
      if (auto status = check(shape_at(shape.element), entry.value); !status) return status;
      path_.pop_back();
    }
    return {};
  }

  Status check_string(const Shape& shape, const Json& value) {
    const auto& allowed = shape.enum_values;
    if (!allowed.empty() &&
        std::find(allowed.begin(), allowed.end(), value.as_string()) == allowed.end() &&
        !is_added_value(shape.name, value.as_string())) {
      return invalid(
          fmt::format("must be {}, not {}", describe_wanted(shape), quoted(value.as_string())));
    }
    if (auto status = check_range(shape, value, shape.min, shape.max); !status) return status;
    return check_characters(value.as_string(), shape.characters);
  }

  Status check_integer(const Shape& shape, const Json& value) {
    constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
    if (value.as_integer() < kMin || value.as_integer() > kMax) {
      return wrong_kind(fmt::format("must be an integer of 32 bits, between {} and {}, not {}",
                                    kMin, kMax, value.as_integer()));
    }
    return check_range(shape, value, shape.min, shape.max);
  }

  // The row of api_bounds.h for this member, where there is one.
  Status check_bound(const Shape& owner, std::string_view member, const Shape& shape,
                     const Json& value) {
    if (direction_ == Direction::kResponse) return {};
    const Bound* bound = find_bound(owner.name, member);
    if (bound == nullptr) return {};
    if (auto status = check_range(shape, value, bound->min, bound->max); !status) return status;
    if (value.is_string()) return check_characters(value.as_string(), bound->characters);
    return {};
  }

  Status check_range(const Shape& shape, const Json& value, std::int64_t min, std::int64_t max) {
    if (min == kUnstatedMin && max == kUnstatedMax) return {};
    const auto in_range = [&](auto amount) {
      using Amount = decltype(amount);
      return (min == kUnstatedMin || amount >= static_cast<Amount>(min)) &&
             (max == kUnstatedMax || amount <= static_cast<Amount>(max));
    };
    if (value.is_integer() || value.is_double()) {
      const bool fits =
          value.is_integer() ? in_range(value.as_integer()) : in_range(value.as_double());
      if (fits) return {};
      return invalid(
          fmt::format("must be {}, not {}", describe_range(min, max, false), value.dump()));
    }
    std::int64_t size = 0;
    std::string_view unit;
    if (value.is_string()) {
      size = static_cast<std::int64_t>(utf8_characters(value.as_string()));
      unit = "characters";
    } else if (value.is_array()) {
      size = static_cast<std::int64_t>(value.as_array().size());
      unit = "elements";
    } else if (is_structure(shape)) {
      size = static_cast<std::int64_t>(value.dump().size());
      unit = "bytes of JSON";
    }
    if (in_range(size)) return {};
    return invalid(
        fmt::format("must have {} {}, has {}", describe_range(min, max, true), unit, size));
  }

  Status check_characters(std::string_view text, Characters characters) {
    if (has_only(text, characters)) return {};
    return invalid(fmt::format("may have only {}, not {}", describe(characters), quoted(text)));
  }

  Status unknown_member(const Shape& shape, std::string_view name) {
    const bool refused = strict_ || direction_ == Direction::kResponse;
    if (!refused && warnings_.size() >= kMaxWarnings) {
      ++unlisted_warnings_;
      return {};
    }
    std::vector<std::string_view> known;
    std::string hint;
    for (const ShapeMember& member : shape.members) {
      known.push_back(member.name);
      if (equal_ignoring_case(member.name, name)) {
        hint = fmt::format(" (did you mean {}?)", member.name);
      }
    }
    const std::string short_name = shortened(name);
    path_.push_back({Step::Kind::kMember, short_name});
    if (refused) {
      return invalid(
          fmt::format("not a member of {}{}; it has {}", shape.name, hint,
                      known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
    }
    warnings_.push_back(fmt::format("{}: not a member of {}{}; ignored", path(), shape.name, hint));
    path_.pop_back();
    return {};
  }

  std::string path() const {
    std::string text;
    for (const Step& step : path_) {
      switch (step.kind) {
        case Step::Kind::kMember:
          if (!text.empty()) text += '.';
          text += step.name;
          break;
        case Step::Kind::kKey:
          text += fmt::format("[{}]", quoted(step.name));
          break;
        case Step::Kind::kIndex:
          text += fmt::format("[{}]", step.index);
          break;
      }
    }
    return text;
  }

  Status wrong_kind(const std::string& why) const {
    return fail_here(ErrorCode::kSerialization, why);
  }
  Status invalid(const std::string& why) const {
    return fail_here(ErrorCode::kInvalidParameter, why);
  }

  Status fail_here(ErrorCode code, const std::string& why) const {
    if (direction_ == Direction::kResponse) code = ErrorCode::kServer;
    return base::fail(code, path_.empty() ? why : fmt::format("{}: {}", path(), why));
  }

  Direction direction_;
  bool strict_ = false;
  std::vector<Step> path_;  // after an error it stays where the error is
  std::vector<std::string> warnings_;
  std::size_t unlisted_warnings_ = 0;
};

}  // namespace

const Operation* find_operation(std::string_view name) {
  const auto operations = api_operations();
  const auto at = std::lower_bound(
      operations.begin(), operations.end(), name,
      [](const Operation& operation, std::string_view wanted) { return operation.name < wanted; });
  return at != operations.end() && at->name == name ? &*at : nullptr;
}

base::Result<std::vector<std::string>> check_input(const Operation& operation, const Json& body) {
  Checker checker(Direction::kRequest);
  if (auto status = checker.check_body(shape_at(operation.input), body); !status) {
    return base::fail(std::move(status.error()));
  }
  return checker.take_warnings();
}

base::Status check_output(const Operation& operation, const Json& body) {
  return Checker(Direction::kResponse).check_body(shape_at(operation.output), body);
}

}  // namespace cotenant::codec
