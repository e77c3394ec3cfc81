// Who a process is: its pid alone is not enough, since pids are used again. The kernel's start time
// (/proc/<pid>/stat, field 22, clock ticks since boot) together with the boot and the command line
// tells a process that outlived us from a stranger with its pid.
//
// Free functions, any thread. Nothing here signals a process whose identity does not match.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace cotenant::base {

struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_time_ticks = 0;
  std::string boot_id;
  std::string command;  // the command line, blanks between the arguments

  bool operator==(const ProcessIdentity&) const = default;
};

// Another one after each boot of the machine; empty where /proc is not mounted.
std::string current_boot_id();

// Nothing when there is no such process or it is a zombie.
std::optional<ProcessIdentity> identify_process(pid_t pid);

bool is_alive(const ProcessIdentity& identity);

std::optional<pid_t> parent_of(pid_t pid);

// The value that `name` had when the process was started; nothing when absent or not readable.
std::optional<std::string> start_environment(pid_t pid, const std::string& name);

// Waits until the process is gone. False when it is still there after `timeout`.
bool wait_until_gone(const ProcessIdentity& identity, std::chrono::milliseconds timeout);

// SIGTERM, after `grace` SIGKILL, after another `grace` give up: false.
bool end_process(const ProcessIdentity& identity, std::chrono::milliseconds grace);

}  // namespace cotenant::base
