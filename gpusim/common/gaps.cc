#include "common/gaps.h"

#include "common/protocol.h"
#include "common/text.h"

namespace gpusim {
namespace {

struct Gap {
  const char* name;
  Behaviour bit;
};

constexpr Gap kGaps[] = {{"crafted-limit", kCraftedLimitDropsAll},
                         {"plain-process", kPlainProcessBesideMps},
                         {"per-process", kLimitPerProcess}};

}  // namespace

bool parse_gap(std::string_view text, uint32_t* bits, uint32_t* on) {
  const std::string_view name = trim(take_field(&text, '='));
  const std::string_view value = trim(text);
  for (const Gap& gap : kGaps) {
    if (name != gap.name || (value != "on" && value != "off")) continue;
    *bits |= gap.bit;
    *on = value == "on" ? *on | gap.bit : *on & ~uint32_t{gap.bit};
    return true;
  }
  return false;
}

std::string gap_names() {
  std::string names;
  for (const Gap& gap : kGaps) names += (names.empty() ? "" : ", ") + std::string(gap.name);
  return names;
}

std::string show_gaps(uint32_t behaviours) {
  std::string text;
  for (const Gap& gap : kGaps) {
    text += (text.empty() ? "" : ", ") + std::string(gap.name);
    text += (behaviours & gap.bit) != 0 ? "=on" : "=off";
  }
  return text;
}

}  // namespace gpusim
