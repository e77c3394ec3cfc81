// The MPS control daemon: starts servers, hands clients over to them, obeys the console.
// One thread, one poll loop; nothing in it waits for a server or a client.
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
#include "mps/limits.h"
#include "mps/log.h"

namespace gpusim::mps {

class ControlDaemon {
 public:
  explicit ControlDaemon(bool multiuser) : multiuser_(multiuser) {}
  ~ControlDaemon();
  ControlDaemon(const ControlDaemon&) = delete;
  ControlDaemon& operator=(const ControlDaemon&) = delete;

  // Makes the files of the pipe directory. A text why not; on success clients can connect.
  std::optional<std::string> open();
  // Until quit or SIGTERM. The exit code.
  int run();

 private:
  struct ServerClient {
    int32_t pid;
    uint64_t devices;
  };
  struct Server {
    int32_t pid = 0;
    uint32_t uid = 0;
    int channel = -1;
    bool ready = false;
    bool ending = false;  // takes no more clients
    bool told_to_end = false;
    uint32_t in_flight = 0;  // clients handed over, not yet answered for
    uint32_t hundredths = 0;
    LimitTable limits;
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
    ClientHello hello = {};
  };
  struct Console {
    int fd = -1;
    bool closed = false;
    // What the console waits for, if its command is not answered yet.
    int32_t waits_for_server_exit = 0;
    int32_t waits_for_termination = 0;
    bool waits_for_quit = false;
    bool waits() const {
      return waits_for_server_exit != 0 || waits_for_termination != 0 || waits_for_quit;
    }
  };
  struct Command;

  static const Command kCommands[];

  void accept_client();
  void accept_console();
  void read_hello(Waiting* waiting);
  void place_client(Waiting* waiting);
  void hand_over(Server* server, Waiting* waiting);
  void refuse(Waiting* waiting, int32_t result);
  void retry_waiting();

  Server* start_server(uint32_t uid);
  Server* find_server(int32_t pid);
  Server* accepting_server();
  void serve_channel(Server* server);
  void end_idle_servers(bool force);
  void reap_servers();
  bool send_to(Server* server, const ChannelMessage& message);

  void read_command(Console* console);
  void answer(Console* console, std::string_view text);
  std::string execute(Console* console, const std::vector<std::string>& words);
  void drain_fifo();
  void clean_up();

  // The console's verbs. Each returns what is printed.
  using Words = std::vector<std::string>;
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
  std::string device_query(Console*, const Words&);
  std::string quit(Console*, const Words&);

  bool multiuser_;
  Log log_;
  int lock_fd_ = -1;
  int control_fd_ = -1;
  int privileged_fd_ = -1;
  int fifo_fd_ = -1;
  int signal_fd_ = -1;
  bool owns_files_ = false;
  bool quitting_ = false;
  std::optional<uint64_t> quit_deadline_ms_;
  uint32_t default_hundredths_ = 10000;
  LimitTable default_limits_;
  std::list<Server> servers_;
  std::list<Waiting> waiting_;
  std::list<Console> consoles_;
};

}  // namespace gpusim::mps
