// The client's side of a stream of logs or exec: opens it, hands over what comes, sends what the
// user types. Private to cli.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "codec/stream_message.h"

namespace cotenant::cli {

struct StreamTargetOptions {
  std::string task;
  std::string container;  // empty: the task's only one
};

// Until the stream's end, its output to standard output and standard error; standard input to the program
// where the request has input. Errors: the control plane's refusals; kIo, kTimeout, kUnavailable,
// kProtocol.
base::Result<codec::StreamEnd> run_stream(const ClientOptions& options,
                                          const StreamTargetOptions& target,
                                          const codec::StreamRequest& request);

}  // namespace cotenant::cli
