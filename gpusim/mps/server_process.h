// The MPS server: holds a context per visible device, admits clients to gpusimd with their limits,
// and goes through a fatal fault. One thread, one poll loop.
//
// server.cc: start and loop; server_clients.cc: who comes and goes; server_fault.cc: FAULT.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/driver_client.h"
#include "common/event_stream.h"
#include "common/peer.h"
#include "common/visible_devices.h"
#include "mps/channel.h"
#include "mps/client_defaults.h"
#include "mps/driver_traits.h"
#include "mps/log.h"
#include "mps/settings.h"
#include "mps/shared_memory.h"

namespace gpusim::mps {

class ServerProcess {
 public:
  int run();

 private:
  struct Client {
    int fd;
    int pidfd;          // -1: none is to be had
    int32_t shown_pid;  // in this process's PID namespace; 0: not seen from here
    bool terminated = false;
    bool said_goodbye = false;
  };

  bool start(const ChannelMessage& config);
  bool reach_daemon();
  bool open_devices();
  // False: told to end, or the daemon is gone.
  bool stay_initializing();
  void log_defaults();
  // False: the daemon is gone.
  bool serve_channel();
  void report(ChannelKind kind, int32_t pid, int32_t result = 0);
  void report_added(const ChannelMessage& client, int32_t pid, uint64_t devices);
  // In the log; the clients' own numbers are pids where gpusimd is.
  std::string name_of(int32_t pid) const;
  int32_t shown_pid(int32_t pid) const;

  void add_client(const ChannelMessage& message, int fd);
  int32_t admit(const ChannelMessage& message, int32_t pid, ClientWelcome* welcome);
  void revoke(int32_t pid);
  bool is_before_volta() const;
  void read_client(int32_t pid);
  void drop_client(int32_t pid);
  void terminate(int32_t pid);

  bool read_events();
  std::set<int32_t> clients_hit(uint64_t devices_hit);
  void enter_fault(uint64_t devices_hit);
  void forget_affected(int32_t pid, int32_t shown_pid);
  bool recover_if_all_left();
  std::string fault_prefix() const;

  Settings settings_;
  DriverTraits traits_;
  Log log_;
  DriverClient driver_;
  EventStream events_;
  SharedMemory shared_memory_;
  std::vector<VisibleDevice> devices_;
  ClientDefaults defaults_;
  bool multiuser_ = false;
  std::map<int32_t, Client> clients_;  // by pid where gpusimd is
  // In FAULT: the devices by driver index, and the clients that must exit first.
  uint64_t faulted_devices_ = 0;
  std::set<int32_t> affected_;
  bool shut_down_ = false;
  bool must_exit_ = false;
};

}  // namespace gpusim::mps
