// The MPS control daemon: starts servers, hands clients over to them, obeys the console.
// One thread, one poll loop; nothing in it waits for a server or a client.
//
// control_daemon.cc: files and loop; clients.cc: connections on `control`; servers.cc: the servers'
// processes; consoles.cc: sessions on `control_privileged`; *commands.cc: the verbs; v3_servers.cc:
// named servers and their folders.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mps/channel.h"
#include "mps/client_defaults.h"
#include "mps/driver_traits.h"
#include "mps/log.h"
#include "mps/partitions.h"
#include "mps/settings.h"
#include "mps/v3_spec.h"

namespace gpusim::mps {

// Milliseconds of CLOCK_MONOTONIC.
uint64_t now_ms();

struct DaemonOptions {
  bool multiuser = false;
  bool v3 = false;
  bool static_partitions = false;
  V3Config config;  // v3: what is there from the start
};

class ControlDaemon {
 public:
  explicit ControlDaemon(DaemonOptions options)
      : multiuser_(options.multiuser),
        v3_(options.v3),
        static_partitions_(options.static_partitions),
        config_(std::move(options.config)) {}
  ~ControlDaemon();
  ControlDaemon(const ControlDaemon&) = delete;
  ControlDaemon& operator=(const ControlDaemon&) = delete;

  // Makes the files of the pipe directory. A text why not; on success clients can connect.
  std::optional<std::string> open();
  // Until quit or SIGTERM. The exit code.
  int run();

 private:
  enum class ServerState { kStopped, kInitializing, kActive, kFault };  // v3 only: kStopped
  struct ServerClient {
    int32_t pid;
    uint64_t devices;
    std::string space;  // its v3 namespace, or its SM partition
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
    int32_t waits_for_termination = 0;
    bool waits_for_quit = false;
    bool waits() const {
      return waits_for_server_exit != 0 || waits_for_termination != 0 || waits_for_quit;
    }
  };
  using Words = std::vector<std::string>;
  struct Command;
  struct V3Command;
  struct V3Arguments;
  struct Watch;

  static const Command kCommands[];
  static const V3Command kV3Commands[];

  std::vector<Watch> watches();
  int poll_timeout_ms() const;
  void read_signals();
  void drain_fifo();
  void clean_up();

  void accept_client(int listen_fd, const std::string& server, const std::string& space);
  void read_hello(Waiting* waiting);
  void place_client(Waiting* waiting);
  void hand_over(Server* server, Waiting* waiting);
  void refuse(Waiting* waiting, int32_t result);
  void retry_waiting();
  void drop_silent_clients();

  Server* start_server(uint32_t uid);
  bool launch(Server* server);
  void answer_for_dead_server(int32_t pid);
  Server* find_server(int32_t pid);
  Server* accepting_server();
  void serve_channel(Server* server);
  void end_idle_servers(bool force);
  void reap_servers();
  bool send_to(Server* server, const ChannelMessage& message);
  void send_defaults(Server* server);

  void accept_console();
  void read_command(Console* console);
  void obey(Console* console, const std::string& command);
  bool collides(const Console& console) const;
  void answer(Console* console, std::string_view text);
  void send_late_answers();
  void end_closed_consoles();
  std::string execute(Console* console, const Words& words);
  bool is_known(std::string_view command) const;

  // The console's verbs. Each returns what is printed.
  std::string get_server_list(Console*, const Words&);
  std::string get_server_status(Console*, const Words&);
  std::string start_server_command(Console*, const Words&);
  std::string shutdown_server(Console*, const Words&);
  std::string get_client_list(Console*, const Words&);
  std::string get_device_client_list(Console*, const Words&);
  std::string ps(Console*, const Words&);
  std::string terminate_client(Console*, const Words&);
  std::string set_default_percentage(Console*, const Words&);
  std::string get_default_percentage(Console*, const Words&);
  std::string set_percentage(Console*, const Words&);
  std::string get_percentage(Console*, const Words&);
  std::string set_default_limit(Console*, const Words&);
  std::string get_default_limit(Console*, const Words&);
  std::string set_limit(Console*, const Words&);
  std::string get_limit(Console*, const Words&);
  std::string set_default_priority(Console*, const Words&);
  std::string get_default_priority(Console*, const Words&);
  std::string device_query(Console*, const Words&);
  std::string quit(Console*, const Words&);
  std::string sm_partition(Console*, const Words&);
  std::string lspart(Console*, const Words&);
  size_t clients_of_partition(std::string_view name) const;
  std::optional<std::string> open_partitions();

  // v3. Texts are errors.
  std::optional<std::string> create_server(const ServerSpec& spec);
  std::optional<std::string> create_namespace(Server* server, const NamespaceSpec& spec);
  std::optional<std::string> apply_config();
  void remove_server_files(Server* server);
  void remove_namespace_files(const Server& server, Namespace* space);
  std::string server_folder(const std::string& server, const std::string& space = "") const;
  Server* find_named(std::string_view name);
  void place_v3_client(Waiting* waiting);
  const NamespaceSpec* find_spec(const Server& server, std::string_view space) const;
  std::string execute_v3(Console* console, const Words& words);
  std::string fail(Console* console, std::string_view text);
  using V3 = V3Arguments;
  std::string v3_server_create(Console*, const V3&);
  std::string v3_server_delete(Console*, const V3&);
  std::string v3_server_set(Console*, const V3&);
  std::string v3_server_list(Console*, const V3&);
  std::string v3_namespace_create(Console*, const V3&);
  std::string v3_namespace_delete(Console*, const V3&);
  std::string v3_namespace_set(Console*, const V3&);
  std::string v3_namespace_list(Console*, const V3&);
  std::string v3_client_list(Console*, const V3&);
  std::string v3_client_terminate(Console*, const V3&);
  std::string v3_device_list(Console*, const V3&);
  std::string v3_memacct_get(Console*, const V3&);
  std::string v3_memacct_set(Console*, const V3&);
  std::string v3_feature_list(Console*, const V3&);
  std::string v3_not_imitated(Console*, const V3&);

  // "gpusim ...": faults on demand.
  std::string gpusim_command(Console*, const Words&);

  bool multiuser_;
  bool v3_;
  bool static_partitions_;
  V3Config config_;
  Settings settings_;
  DriverTraits traits_;
  Log log_;
  int lock_fd_ = -1;
  int control_fd_ = -1;
  int privileged_fd_ = -1;
  int fifo_fd_ = -1;
  int signal_fd_ = -1;
  bool owns_files_ = false;
  bool hung_ = false;
  bool quitting_ = false;
  std::optional<uint64_t> quit_deadline_ms_;
  uint32_t failed_starts_ = 0;  // servers in a row that ended before they were ready
  ClientDefaults defaults_;
  SmPartitions partitions_;
  std::list<Server> servers_;
  std::list<Waiting> waiting_;
  std::list<Console> consoles_;
};

}  // namespace gpusim::mps
