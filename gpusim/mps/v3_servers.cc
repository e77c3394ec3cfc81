// MPS v3: named servers, their namespaces, and the folders by which clients choose:
//   $P/control                       by user id, to the server uid_<uid>
//   $P/<server>/control              the server's default namespace
//   $P/<server>/<namespace>/control
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/unix_socket.h"
#include "mps/control_daemon.h"
#include "mps/paths.h"

namespace gpusim::mps {
namespace {

constexpr int kV3Backlog = 64;
constexpr size_t kMaxServers = 64;
constexpr size_t kMaxNamespaces = 128;

// A text why not.
std::optional<std::string> listen_in(const std::string& folder, int* fd) {
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return fmt::format("Cannot create directory {}: {}", folder, strerror(errno));
  }
  unlink((folder + "/" + kControlSocket).c_str());
  *fd = listen_seqpacket(folder.c_str(), kControlSocket, 0666, kV3Backlog);
  if (*fd >= 0) return std::nullopt;
  return fmt::format("Cannot listen on {}/{}: {}", folder, kControlSocket, strerror(errno));
}

void stop_listening(const std::string& folder, int* fd) {
  if (*fd < 0) return;
  close(*fd);
  *fd = -1;
  unlink((folder + "/" + kControlSocket).c_str());
  rmdir(folder.c_str());
}

}  // namespace

std::string server_folder(const std::string& server, const std::string& space) {
  const std::string folder = pipe_directory() + "/" + server;
  return space.empty() ? folder : folder + "/" + space;
}

std::optional<std::string> ControlDaemon::create_server(const ServerSpec& spec) {
  if (state_.find_named(spec.name) != nullptr) return fmt::format("server {} exists", spec.name);
  if (state_.servers.size() >= kMaxServers) return fmt::format("there are {} servers", kMaxServers);
  const uint32_t uid = spec.uid.value_or(geteuid());
  if (geteuid() != 0 && uid != geteuid()) {
    return fmt::format("only root can start a server for user {}", uid);
  }
  const std::string logs = log_directory() + "/" + spec.name;
  if (mkdir(logs.c_str(), 0755) != 0 && errno != EEXIST) {
    return fmt::format("Cannot create directory {}: {}", logs, strerror(errno));
  }
  Server& server = state_.servers.emplace_back();
  server.name = spec.name;
  server.uid = uid;
  server.allowed_devices = spec.allowed_devices;
  server.defaults = spec.defaults;
  server.locality_domains = spec.locality_domains;
  for (const PartitionSpec& part : spec.partitions) server.partitions.configure(part);
  std::optional<std::string> error = listen_in(server_folder(spec.name), &server.listen_fd);
  NamespaceSpec default_space;
  default_space.name = kDefaultNamespace;
  if (!error) error = create_namespace(&server, default_space);
  for (const NamespaceSpec& space : spec.namespaces) {
    if (!error) error = create_namespace(&server, space);
  }
  if (!error && !launch(&server)) error = "the server could not be started";
  if (error) {
    remove_server_files(&server);
    state_.servers.pop_back();
  }
  return error;
}

std::optional<std::string> ControlDaemon::create_namespace(Server* server,
                                                           const NamespaceSpec& spec) {
  if (server->namespaces.size() >= kMaxNamespaces) {
    return fmt::format("server {} has {} namespaces", server->name, kMaxNamespaces);
  }
  for (const Namespace& space : server->namespaces) {
    if (space.spec.name == spec.name) return fmt::format("namespace {} exists", spec.name);
  }
  Namespace space;
  space.spec = spec;
  const auto error = listen_in(server_folder(server->name, spec.name), &space.listen_fd);
  if (!error) server->namespaces.push_back(space);
  return error;
}

std::optional<std::string> ControlDaemon::apply_config() {
  if (!state_.v3) return std::nullopt;
  for (const std::string& note : config_.notes) state_.log.line("gpusim: " + note);
  for (const ServerSpec& spec : config_.servers) {
    if (const auto error = create_server(spec)) return fmt::format("{}: {}", spec.name, *error);
  }
  return std::nullopt;
}

void ControlDaemon::remove_namespace_files(const Server& server, Namespace* space) {
  stop_listening(server_folder(server.name, space->spec.name), &space->listen_fd);
}

void ControlDaemon::remove_server_files(Server* server) {
  if (server->name.empty()) return;
  for (Namespace& space : server->namespaces) remove_namespace_files(*server, &space);
  stop_listening(server_folder(server->name), &server->listen_fd);
}

void ControlDaemon::place_v3_client(Waiting* waiting) {
  std::string name = waiting->server;
  if (name.empty()) {
    name = fmt::format("uid_{}", state_.multiuser ? geteuid() : waiting->uid);
    if (state_.find_named(name) == nullptr) {
      ServerSpec spec;
      spec.name = name;
      spec.uid = state_.multiuser ? geteuid() : waiting->uid;
      if (const auto error = create_server(spec)) {
        state_.log.line(fmt::format("Cannot start server {}: {}", name, *error));
        refuse(waiting, kMpsConnectionFailed);
        return;
      }
    }
    waiting->server = name;
    waiting->space = kDefaultNamespace;
  }
  Server* server = state_.find_named(name);
  if (server == nullptr || server->ending) {
    refuse(waiting, kMpsConnectionFailed);
    return;
  }
  // Measured for v3: a container's user that is not the server's gets 800 unless multiuser.
  if (!state_.multiuser && waiting->uid != server->uid) {
    refuse(waiting, kMpsNotPermitted);
    return;
  }
  switch (server->state) {
    case ServerState::kStopped:
      if (!launch(server)) refuse(waiting, kMpsConnectionFailed);
      break;
    case ServerState::kInitializing:
      break;
    case ServerState::kActive:
      hand_over(server, waiting);
      break;
    case ServerState::kFault:
      refuse(waiting, kMpsServerNotReady);
      break;
  }
}

}  // namespace gpusim::mps
