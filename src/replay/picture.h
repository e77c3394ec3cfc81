// A picture of fill-up replays as SVG: unallocated % of the GPUs against what has arrived, a line for
// each policy (the median of its seeds).
#pragma once

#include <string>
#include <vector>

#include "replay/replay.h"

namespace cotenant::replay {

struct PictureLine {
  std::string name;
  std::vector<std::array<double, 8>> runs;  // at FillUpResult::kLevels
};

std::string draw_picture(const std::vector<PictureLine>& lines);

}  // namespace cotenant::replay
