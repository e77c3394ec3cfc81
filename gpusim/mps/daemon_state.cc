#include "mps/daemon_state.h"

#include <time.h>

namespace gpusim::mps {

uint64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

Server* DaemonState::find_server(int32_t pid) {
  for (Server& server : servers) {
    if (server.pid == pid && pid != 0) return &server;
  }
  return nullptr;
}

Server* DaemonState::find_named(std::string_view name) {
  for (Server& server : servers) {
    if (server.name == name && !server.name.empty()) return &server;
  }
  return nullptr;
}

Server* DaemonState::accepting_server() {
  for (Server& server : servers) {
    if (!server.ending) return &server;
  }
  return nullptr;
}

const NamespaceSpec* find_spec(const Server& server, std::string_view space) {
  if (space == kDefaultNamespace) return nullptr;
  for (const Namespace& candidate : server.namespaces) {
    if (candidate.spec.name == space) return &candidate.spec;
  }
  return nullptr;
}

}  // namespace gpusim::mps
