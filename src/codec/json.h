// A JSON value: what travels between the API, the store, the agents and the core's own structs.
//
// Parsing is stricter than common parsers: duplicate keys, non-finite numbers, nesting beyond
// limits::kJsonDepth, invalid UTF-8 and trailing text are refused (ErrorCode::kSerialization, with
// the byte position). Objects keep the order of their members; writing is compact and
// deterministic. A plain value type: copy it, no locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace cotenant::codec {

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  // Defined below, where Member is complete: clang needs that.
  Json();  // null
  Json(std::nullptr_t);
  Json(bool value);
  Json(int value);
  Json(std::int64_t value);
  Json(double value);
  Json(const char* value);
  Json(std::string_view value);
  Json(std::string value);
  Json(Array value);
  Json(Object value);

  static Json array();
  static Json object();
  static Json object(std::initializer_list<Member> members);

  static base::Result<Json> parse(std::string_view text);
  std::string dump() const;
  // Two spaces an indent, for people.
  std::string dump_pretty() const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  bool is_number() const { return is_integer() || is_double(); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  // "an object", "a string", ... for messages.
  std::string_view kind_name() const;

  // The kind must have been asked for first: a wrong kind is a programmer's error and aborts.
  bool as_bool() const { return std::get<bool>(value_); }
  std::int64_t as_integer() const { return std::get<std::int64_t>(value_); }
  double as_double() const;  // an integer converts
  const std::string& as_string() const { return std::get<std::string>(value_); }
  const Array& as_array() const { return std::get<Array>(value_); }
  Array& as_array() { return std::get<Array>(value_); }
  const Object& as_object() const { return std::get<Object>(value_); }
  Object& as_object() { return std::get<Object>(value_); }

  // The member of that name; null pointer where this is no object or has no such member, and also
  // where the member is JSON null: ECS treats both alike.
  const Json* find(std::string_view name) const;
  // Lenient readers for documents that we wrote ourselves.
  std::string string_or(std::string_view name, std::string_view fallback) const;
  std::int64_t integer_or(std::string_view name, std::int64_t fallback) const;
  bool bool_or(std::string_view name, bool fallback) const;
  // The elements of the array member of that name; empty where there is none.
  const Array& array_or_empty(std::string_view name) const;

  // Builders. set() replaces or appends; on null it makes an object first. Likewise push().
  Json& set(std::string_view name, Json value);
  Json& push(Json value);

  friend bool operator==(const Json& left, const Json& right);

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string name;
  Json value;
  friend bool operator==(const Member&, const Member&) = default;
};

inline Json::Json() = default;
inline Json::Json(std::nullptr_t) {}
inline Json::Json(bool value) : value_(value) {}
inline Json::Json(int value) : value_(std::int64_t{value}) {}
inline Json::Json(std::int64_t value) : value_(value) {}
inline Json::Json(double value) : value_(value) {}
inline Json::Json(const char* value) : value_(std::string(value)) {}
inline Json::Json(std::string_view value) : value_(std::string(value)) {}
inline Json::Json(std::string value) : value_(std::move(value)) {}
inline Json::Json(Array value) : value_(std::move(value)) {}
inline Json::Json(Object value) : value_(std::move(value)) {}
inline Json Json::array() {
  return Json(Array{});
}

}  // namespace cotenant::codec
