// The MPS control daemon: starts servers, hands clients over to them, obeys the console.
// One thread, one poll loop; nothing in it waits for a server or a client.
//
// control_daemon.cc: files and loop; clients.cc: connections on `control`; servers.cc: the servers'
// processes; v3_servers.cc: named servers and their folders; consoles.cc: sessions on
// `control_privileged`. The verbs are functions (commands.h) that use the public part.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mps/channel.h"
#include "mps/daemon_state.h"

namespace gpusim::mps {

struct DaemonOptions {
  bool multiuser = false;
  bool v3 = false;
  bool static_partitions = false;
  V3Config config;  // v3: what is there from the start
};

class ControlDaemon {
 public:
  explicit ControlDaemon(DaemonOptions options);
  ~ControlDaemon();
  ControlDaemon(const ControlDaemon&) = delete;
  ControlDaemon& operator=(const ControlDaemon&) = delete;

  // Makes the files of the pipe directory. A text why not; on success clients can connect.
  std::optional<std::string> open();
  // Until quit or SIGTERM. The exit code.
  int run();

  DaemonState& state() { return state_; }
  // nullptr: no process could be made.
  Server* start_server(uint32_t uid);
  bool send_to(Server* server, const ChannelMessage& message);
  // From now on, for its new clients.
  void send_defaults(Server* server);
  // Ends the servers that shall end, once they have no clients (or at once, by force).
  void end_idle_servers(bool force);
  // v3. Texts are errors.
  std::optional<std::string> create_server(const ServerSpec& spec);
  std::optional<std::string> create_namespace(Server* server, const NamespaceSpec& spec);
  void remove_server_files(Server* server);
  void remove_namespace_files(const Server& server, Namespace* space);

 private:
  struct Watch;
  std::vector<Watch> watches();
  int poll_timeout_ms() const;
  void read_signals();
  void drain_fifo();
  void clean_up();
  std::optional<std::string> open_partitions();

  void accept_client(int listen_fd, const std::string& server, const std::string& space);
  void read_hello(Waiting* waiting);
  void place_client(Waiting* waiting);
  void place_v3_client(Waiting* waiting);
  void hand_over(Server* server, Waiting* waiting);
  void refuse(Waiting* waiting, int32_t result);
  void retry_waiting();
  void drop_silent_clients();

  bool launch(Server* server);
  void answer_for_dead_server(int32_t pid);
  void serve_channel(Server* server);
  void become_ready(Server* server, const ChannelMessage& message);
  void reap_servers();
  std::optional<std::string> apply_config();

  void accept_console();
  void read_command(Console* console);
  void obey(Console* console, const std::string& command);
  bool collides(const Console& console) const;
  void answer(Console* console, std::string_view text);
  void send_late_answers();
  void end_closed_consoles();

  DaemonState state_;
  V3Config config_;
  int lock_fd_ = -1;
  int control_fd_ = -1;
  int privileged_fd_ = -1;
  int fifo_fd_ = -1;
  int signal_fd_ = -1;
  bool owns_files_ = false;
  uint32_t failed_starts_ = 0;  // servers in a row that ended before they were ready
};

// "$P/<server>" or "$P/<server>/<namespace>" of v3.
std::string server_folder(const std::string& server, const std::string& space = "");

}  // namespace gpusim::mps
