// Why an operation of ECS is not offered: for the refusal, and for docs/api.md. Constant data.
#pragma once

#include <string_view>

namespace cotenant::server {

// A few words; empty for an operation that is offered, or that ECS does not have.
std::string_view refusal_reason(std::string_view operation);

}  // namespace cotenant::server
