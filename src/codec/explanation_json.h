// The answer of Cotenant.Explain. Members: docs/api.md. Any thread; the values are copies.
#pragma once

#include "base/ids.h"
#include "codec/json.h"
#include "core/placement/explanation.h"

namespace cotenant::codec {

Json encode_explanation(const base::ArnFormat& arns, const core::Explanation& explanation);

}  // namespace cotenant::codec
