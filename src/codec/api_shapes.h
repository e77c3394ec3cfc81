// The ECS API as tables: 88 operations and the shapes of their requests and responses. The rows are
// generated at build time from data/ecs-api.json (facts of the published service model, version
// 2014-11-13); bounds that ECS states only in prose are in api_bounds.h.
// Constant data: any thread; every pointer and view lives as long as the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace cotenant::codec {

enum class ShapeKind : std::uint8_t {
  kStructure,
  kUnion,  // a structure of which exactly one member is set
  kList,
  kMap,  // from strings
  kString,
  kInteger,  // 32 bits
  kLong,     // 64 bits
  kDouble,
  kBoolean,
  kTimestamp,  // epoch seconds, a number
};

// Which characters a string may hold; the model's patterns and the rules in prose come down to
// these.
enum class Characters : std::uint8_t {
  kAny,
  kName,            // letters, digits, - _
  kStartedBy,       // letters, digits, - _ / = .
  kVisibleAscii,    // codes 33..126
  kAttributeName,   // letters, digits, - _ . / \ (backslash)
  kAttributeValue,  // letters, digits, - _ . @ / \ : and space
  kInstanceType,    // letters, digits, . * -
  kTag,             // letters, digits and spaces of any script, _ . : / = + - @
};

// A minimum or maximum that nobody states.
inline constexpr std::int64_t kUnstatedMin = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kUnstatedMax = std::numeric_limits<std::int64_t>::max();

struct ShapeMember {
  std::string_view name;
  std::size_t shape = 0;  // index into api_shapes()
  bool required = false;
};

struct Shape {
  std::string_view name;
  ShapeKind kind = ShapeKind::kStructure;
  std::span<const ShapeMember> members;           // structure, union; by name
  std::size_t element = 0;                        // list, map: index into api_shapes()
  std::span<const std::string_view> enum_values;  // string; empty: any value
  // Of a number its value, of a string its characters, of a list its elements.
  std::int64_t min = kUnstatedMin;
  std::int64_t max = kUnstatedMax;
  Characters characters = Characters::kAny;
};

struct Operation {
  std::string_view name;
  std::size_t input = 0;  // index into api_shapes()
  std::size_t output = 0;
};

// Both sorted by name.
std::span<const Shape> api_shapes();
std::span<const Operation> api_operations();

}  // namespace cotenant::codec
