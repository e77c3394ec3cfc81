// gpusimd's loop: one thread, one epoll. Reads requests, asks Accounting, answers. A client that
// breaks the protocol, does not read its answers or dies is dropped, and with it what it held.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/peer.h"
#include "driver/accounting.h"

namespace gpusim {

class Daemon {
 public:
  struct Config {
    DriverInfo driver;
    // The UUID of a device that comes back as another one.
    std::function<std::string(uint32_t device, uint32_t generation)> new_uuid;
    // Device files and CDI spec have to be written anew.
    std::function<void()> devices_changed;
    // A line for the kernel log.
    std::function<void(const std::string& line)> kernel_log;
  };

  // `listen_fd` and `stop_fd` (readable when it is time to end) stay the caller's.
  Daemon(Accounting* accounting, Config config, int listen_fd, int stop_fd);
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
    // An answer is owed: it comes late (its device is slow), or when there is an event.
    bool waits_for_event = false;
    uint64_t last_event = 0;
    uint32_t wait_sequence = 0;
    std::unique_ptr<Reply> late;
    uint64_t due_us = 0;
    bool owes() const { return waits_for_event || late != nullptr; }
  };

  void accept_clients();
  void drop(SessionId id);
  // False: drop the client.
  bool serve_one(SessionId id, Client* client);
  bool greet(SessionId id, Client* client, const Request& request);
  // daemon_requests.cc
  Status handle(SessionId id, const Client& client, const Request& request, Reply* reply);
  Status inject(const Client& client, const Request& request);
  static bool answer(const Client& client, const Reply& reply);
  // If there is an event that it has not seen.
  void answer_waiting(Client* client);
  void publish_events();
  std::string xid_line(const EventEntry& event) const;
  // Milliseconds until the next late answer is due; -1: none.
  int send_late_answers();
  static uint64_t now_us();
  bool watch(int fd, uint64_t tag);

  Accounting* accounting_;
  Config config_;
  int listen_fd_;
  int stop_fd_;
  int epoll_fd_ = -1;
  uint32_t max_clients_;
  SessionId next_session_ = 1;
  std::map<SessionId, Client> clients_;
  std::map<int32_t, uint32_t> clients_of_process_;
  std::deque<EventEntry> events_;  // the last ones
  uint64_t last_event_ = 0;
  size_t late_answers_ = 0;  // that are owed
};

}  // namespace gpusim
