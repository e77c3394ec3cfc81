// Policy `tight`, what is nearest to what ECS says (tasks are placed by GPU memory):
//   a share        the GPU with the least MiB left that fits; one in NVIDIA_MPS mode before an idle one
//   whole GPUs     the node with the fewest idle GPUs that suffice, lowest indexes
//   without a GPU  the node with the least GPU memory left in all
// Ties go to the lowest registration number, then the lowest GPU index. It needs no scores: the index
// is in its order.
#pragma once

#include <optional>
#include <vector>

#include "core/placement/placement_policy.h"
#include "core/placement/placement_query.h"

namespace cotenant::core {

std::optional<PlacementChoice> choose_tight(const Fleet& fleet, const PlacementQuery& query);

// The GPUs that a need takes on a node which fits it: the tightest one for a share, one in NVIDIA_MPS
// mode first; the lowest idle ones for whole GPUs.
GpuSet tight_gpus(const Fleet& fleet, NodeSlot slot, const TaskGpuNeed& need);

// What `tight` compares of a choice, for explanations.
std::vector<PolicyTerm> tight_terms(const Fleet& fleet, const PlacementQuery& query,
                                    const PlacementChoice& choice);

}  // namespace cotenant::core
