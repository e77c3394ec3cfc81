// What the MPS control daemon knows: its servers with their namespaces and clients, the clients that
// wait, and the console's sessions. Plain records; ControlDaemon changes them, the verbs read and
// change them through it. One thread.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mps/client_defaults.h"
#include "mps/driver_traits.h"
#include "mps/log.h"
#include "mps/partitions.h"
#include "mps/settings.h"
#include "mps/v3_spec.h"

namespace gpusim::mps {

// Milliseconds of CLOCK_MONOTONIC.
uint64_t now_ms();

enum class ServerState { kStopped, kInitializing, kActive, kFault };  // v3 only: kStopped

struct ServerClient {
  int32_t id;             // by which the server knows it
  uint32_t number;        // of the clients that the server has; shown by ps
  int32_t pid;            // where the daemon is; 0: its process cannot be seen from there
  uint64_t devices;       // by the server's ordinals
  std::string space;      // its v3 namespace
  std::string partition;  // its SM partition, "GPU-.../id"
};

struct Namespace {
  NamespaceSpec spec;
  int listen_fd = -1;
};

struct Server {
  // v3 only.
  std::string name;
  std::string allowed_devices;
  std::list<Namespace> namespaces;  // the default one among them
  int listen_fd = -1;
  bool locality_domains = false;
  SmPartitions partitions{SmPartitions::Dialect::kV3};

  int32_t pid = 0;
  uint32_t uid = 0;
  int channel = -1;
  ServerState state = ServerState::kInitializing;
  bool was_ready = false;
  bool ending = false;  // takes no more clients
  bool told_to_end = false;
  uint32_t in_flight = 0;   // clients handed over, not yet answered for
  ClientDefaults defaults;  // the daemon's, as they were when it started
  std::vector<std::string> uuids;
  std::vector<ServerClient> clients;
};

// A connection whose hello has not come yet, or whose server is not ready.
struct Waiting {
  int fd = -1;
  int32_t pid = 0;
  uint32_t uid = 0;
  uint64_t since_ms = 0;
  bool greeted = false;
  std::string server;  // v3: whose socket it came by; "" = the daemon's own
  std::string space;
  ClientHello hello = {};
};

struct Console {
  int fd = -1;
  bool closed = false;
  bool in_session = false;  // has given a command that counts for collisions
  uint64_t last_command_ms = 0;
  bool failed = false;  // v3: the answer is an error
  // Given while the daemon hangs; obeyed when it resumes.
  std::optional<std::string> stashed;
  // An answer that is held back (slow_ms).
  std::optional<std::string> late_answer;
  uint64_t due_ms = 0;
  // What the console waits for, if its command is not answered yet.
  int32_t waits_for_server_exit = 0;
  int32_t waits_for_termination = 0;  // of this client ...
  int32_t terminating_server = 0;     // ... by this server
  bool waits_for_quit = false;
  bool waits() const {
    return waits_for_server_exit != 0 || waits_for_termination != 0 || waits_for_quit;
  }
};

struct DaemonState {
  bool multiuser = false;
  bool v3 = false;
  bool static_partitions = false;
  Settings settings;
  DriverTraits traits;
  Log log;
  Features features;
  bool hung = false;
  bool quitting = false;
  std::optional<uint64_t> quit_deadline_ms;
  ClientDefaults defaults;
  SmPartitions partitions{SmPartitions::Dialect::kV2};
  std::list<Server> servers;
  // A server or a namespace has been taken off its list in this turn: what poll() reported besides may
  // be about it, and is left to the next turn.
  bool has_erased = false;
  std::list<Waiting> waiting;
  std::list<Console> consoles;

  Server* find_server(int32_t pid);
  Server* find_named(std::string_view name);
  // v2: the one server that takes clients.
  Server* accepting_server();
};

// nullptr for the default namespace, whose values are the server's.
const NamespaceSpec* find_spec(const Server& server, std::string_view space);

}  // namespace gpusim::mps
