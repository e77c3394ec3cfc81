// An instance's registration as JSON: the same form in the agent's hello and in the stored record.
#pragma once

#include "base/result.h"
#include "codec/json.h"
#include "codec/json_reader.h"
#include "core/instance.h"

namespace cotenant::codec {

Json encode_registration(const core::InstanceRegistration& registration);

// As part of a larger document; errors are kept by the reader.
core::InstanceRegistration read_registration(JsonReader reader);
// Errors: kProtocol, naming the member.
base::Result<core::InstanceRegistration> decode_registration(const Json& json);

}  // namespace cotenant::codec
