// Bounds that ECS states only in prose, or that are cotenant's own: hand-kept rows, each with its
// source. They are applied to requests in addition to what the model states (api_shapes.h), never
// to responses. Constant data: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "codec/api_shapes.h"

namespace cotenant::codec {

// What min and max bound depends on the member's kind: a number's value, a string's characters, a
// list's elements, a structure's size as compact JSON in bytes.
struct Bound {
  std::string_view shape = {};
  std::string_view member = {};  // empty: the shape itself, as a request's body
  std::int64_t min = kUnstatedMin;
  std::int64_t max = kUnstatedMax;
  Characters characters = Characters::kAny;
  std::string_view source = {};
};

// Sorted by shape, then member.
std::span<const Bound> api_bounds();

// Null pointer where nothing is stated.
const Bound* find_bound(std::string_view shape, std::string_view member);

// Values of an enumeration that cotenant adds to ECS's.
bool is_added_value(std::string_view shape, std::string_view value);

// True when every character of `text` is of the class.
bool has_only(std::string_view text, Characters characters);

// The class in words, for messages: "letters, digits, - and _".
std::string_view describe(Characters characters);

}  // namespace cotenant::codec
