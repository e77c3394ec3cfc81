// What a GPU with so much left will waste in the end, learned by replaying the requests on the fleet's
// GPUs as bare bins, nothing leaving. 20-60 ms. Floating point inside, the same on every machine that
// rounds as IEEE 754 says; the result is integers.
#pragma once

#include <cstdint>
#include <vector>

#include "core/placement/curve_policy.h"
#include "core/placement/training_shapes.h"

namespace cotenant::core {

std::vector<CurvePolicy::Curve> learn_wv_curves(const std::vector<TrainingShape>& shapes,
                                                const std::vector<std::int64_t>& class_gpus);

}  // namespace cotenant::core
