// Sets members of documents of ours. What says nothing (empty, zero) is left out. Private to codec.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/json.h"

namespace cotenant::codec {

inline void set_text(Json& json, std::string_view name, const std::string& value) {
  if (!value.empty()) json.set(name, value);
}

inline void set_number(Json& json, std::string_view name, std::int64_t value) {
  if (value != 0) json.set(name, value);
}

template <class T>
void set_array(Json& json, std::string_view name, const std::vector<T>& values) {
  if (values.empty()) return;
  Json array = Json::array();
  for (const T& value : values) array.push(Json(value));
  json.set(name, std::move(array));
}

inline void set_map(Json& json, std::string_view name,
                    const std::map<std::string, std::string>& values) {
  if (values.empty()) return;
  Json object = Json::object();
  for (const auto& [key, value] : values) object.set(key, value);
  json.set(name, std::move(object));
}

}  // namespace cotenant::codec
