// A registered document to the definition that the core runs, without judging it.
//
// Registration checks first (task_definition_rules.h); the store only reads: a definition that was
// accepted once must load whatever rule has been tightened since (docs/adr/0004).
#pragma once

#include <string>

#include "base/result.h"
#include "codec/json.h"
#include "core/task_definition.h"

namespace cotenant::codec {

// Members of a wrong kind count as absent. `document`, `revision`, `registered_at_ms` and `warnings`
// are the caller's. Errors: kProtocol where what the core rests on is not there: a family, one or
// more containers with names that differ, GPU requests that can be read.
base::Result<core::TaskDefinition> read_task_definition(const Json& document);

// From the store: as above, with the document as it is. What today's rules have against it comes as
// a warning. Errors: also a mix of GPU options, which the core cannot place.
base::Result<core::TaskDefinition> read_stored_definition(const std::string& document);

}  // namespace cotenant::codec
