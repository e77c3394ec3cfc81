// Checks JSON bodies against the ECS API's model: members, kinds, enums, bounds, unions.
//
// Every message begins with the member's path as clients write it, for example
// `containerDefinitions[0].resourceRequirements[0].sharingStrategy.nvidiaMps.memory: must be at
// least 1, not 0`. The first mistake found is the one reported. A member that is JSON null counts
// as absent. What depends on several members (a GPU requirement has either `value` or
// `sharingStrategy`) is not the model's business but core's.
// Pure functions of constant tables: any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/api_shapes.h"
#include "codec/json.h"

namespace cotenant::codec {

// A request's warnings are at most this many, and one more line that counts the rest.
inline constexpr std::size_t kMaxWarnings = 50;

// Null pointer where ECS has no operation of that name (case matters). Whether cotenant offers a
// known one is the server's to say.
const Operation* find_operation(std::string_view name);

// Returns warnings: one a member that the model does not know, which ECS ignores too. Inside
// `resourceRequirements` such a member is an error instead: a lost union member there would turn a
// share of a GPU into a whole GPU.
// After success a reader may rely on every kind: integers fit their 32 or 64 bits, required members
// are there, no list or map holds null.
// Errors: kSerialization for a wrong JSON kind (as AWS answers), else kInvalidParameter.
base::Result<std::vector<std::string>> check_input(const Operation& operation, const Json& body);

// The same for a response of ours, where the model alone counts (bounds in prose are for requests)
// and an unknown member is an error. Errors: kServer.
base::Status check_output(const Operation& operation, const Json& body);

}  // namespace cotenant::codec
