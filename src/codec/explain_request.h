// Cotenant.Explain: what is asked, from JSON, which has passed no check yet. Errors name the member.
#pragma once

#include "base/result.h"
#include "codec/ecs_request.h"
#include "codec/json.h"
#include "core/placement/explain.h"

namespace cotenant::codec {

inline constexpr int kExplainedInstancesMax = 100;

// The members of RunTask (count up to core::kExplainCountMax), with in place of taskDefinition either
// `definition`, an input of RegisterTaskDefinition, or `task`, an id or ARN; and `instances`, how many
// are listed. Errors: kSerialization for a wrong JSON kind, kInvalidParameter, and those of RunTask and
// RegisterTaskDefinition.
base::Result<Decoded<core::ExplainQuestion>> decode_explain(const Json& body);

}  // namespace cotenant::codec
