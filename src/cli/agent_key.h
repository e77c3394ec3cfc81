// What an agent shows its control plane: who it is, its own key, and, until it has joined, a token.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ports/http_message.h"

namespace cotenant::cli {

// The headers of GET /agent/v1. The key is made at the first call (<data dir>/agent.key, 0600) and
// kept. `join_token_file` empty: no token. Errors: kIo, naming the file and the remedy.
base::Result<std::vector<ports::HttpHeader>> agent_headers(const std::string& data_dir,
                                                           const std::string& instance_id,
                                                           const std::string& join_token_file);

}  // namespace cotenant::cli
