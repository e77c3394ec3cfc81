// Small text helpers without std::string, for code that also lives in the injected libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpusim {

// Copies at most size - 1 characters and always terminates. False when it had to cut.
bool copy_text(std::string_view from, char* to, size_t size);

// Takes the part before the next separator (or all of it) off the front of `rest`.
std::string_view take_field(std::string_view* rest, char separator);

// Decimal digits only, the whole of `text`, no overflow.
bool parse_number(std::string_view text, uint64_t* value);

// Without leading and trailing spaces and tabs.
std::string_view trim(std::string_view text);

// Does `text` name the device `uuid`: the whole "GPU-..." (or "MIG-...") text or a prefix
// of it beyond "GPU-"?
bool names_uuid(std::string_view text, std::string_view uuid);

// "512M", "2G", "512MB", "2GB" -> bytes. False for anything else, zero included.
bool parse_memory_size(std::string_view text, uint64_t* bytes);

}  // namespace gpusim
