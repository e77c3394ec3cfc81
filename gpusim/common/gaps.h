// The known gaps of the real driver's limits, by name, each with a switch: on, a program can do here
// what it can do there; off, it cannot. So a test can show that a guard closes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusim {

// "crafted-limit=off": adds the Behaviour bit to *bits, and to *on if it is on. False: malformed.
bool parse_gap(std::string_view text, uint32_t* bits, uint32_t* on);

std::string gap_names();

// "crafted-limit=off, plain-process=on, ..."
std::string show_gaps(uint32_t behaviours);

}  // namespace gpusim
