// The Docker Engine API's refusals as the port's errors. Pure.
// Source: Docker Engine API reference ("Errors": {"message": ...}) and the engine's own texts.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ports/http.h"

namespace cotenant::adapters {

// For an answer that is not a success. `doing` starts the message: "create container 'web'".
//   kNotFound     404 whose text says "no such container" or "no such image"; another 404 (a
//   network,
//                 say) is kClient, so that nobody takes it for a container that is gone
//   kConflict     409 because the name is taken
//   kUnavailable  503
//   kProtocol     an answer without the engine's {"message"}: not a container engine
//   kClient       all others, with the engine's text (also its 500: "driver failed", "runc failed")
base::Error docker_error(std::string_view doing, const ports::HttpResponse& response);

// True for the engine's "no such container".
bool is_no_such_container(const base::Error& error);

}  // namespace cotenant::adapters
