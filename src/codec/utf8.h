// UTF-8 as RFC 3629 has it. Pure functions: any thread, no errors but the stated results.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cotenant::codec {

// How many bytes the sequence at the front of `text`, which is not empty, has; 0 where it is not
// valid UTF-8 (overlong forms, surrogates and code points above U+10FFFF are not).
std::size_t utf8_sequence_bytes(std::string_view text);

// With '?' for each byte that is none: engines' texts reach us as they are, and a frame must be valid
// UTF-8 or its receiver refuses it whole.
std::string valid_utf8(std::string_view text);

// How many characters (code points) `text` has. A byte that is not valid UTF-8 counts as one.
std::size_t utf8_characters(std::string_view text);

// At most `max_bytes` of what a client sent, for a message: cut between characters, "..." after it.
std::string shortened(std::string_view text, std::size_t max_bytes = 64);

}  // namespace cotenant::codec
