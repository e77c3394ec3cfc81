// gpusimd's loop: one thread, one epoll. Reads requests, asks Accounting, answers. A client that
// breaks the protocol, does not read its answers or dies is dropped, and with it what it held.
#pragma once

#include <csignal>
#include <cstdint>
#include <map>

#include "common/peer.h"
#include "driver/accounting.h"

namespace gpusim {

class Daemon {
 public:
  // `listen_fd` and `stop_fd` (readable when it is time to end) stay the caller's.
  Daemon(Accounting* accounting, int listen_fd, int stop_fd);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Serves until stop_fd is readable. False when the loop itself cannot go on.
  bool run();

 private:
  struct Client {
    int fd = -1;
    Peer peer;
    bool greeted = false;
  };

  void accept_clients();
  void drop(SessionId id);
  // False: drop the client.
  bool serve_one(SessionId id, Client* client);
  Status handle(SessionId id, const Client& client, const Request& request, Reply* reply);
  bool watch(int fd, uint64_t tag);

  Accounting* accounting_;
  int listen_fd_;
  int stop_fd_;
  int epoll_fd_ = -1;
  uint32_t max_clients_;
  SessionId next_session_ = 1;
  std::map<SessionId, Client> clients_;
};

}  // namespace gpusim
