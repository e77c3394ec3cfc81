// The console's verbs. Each returns what is printed; a v3 error also sets Console::failed.
//
// commands.cc: the table of v2 and its plain verbs; limit_commands.cc: percentages, memory limits and
// priorities; partition_commands.cc: SM partitions of v2; gpusim_commands.cc: faults on demand;
// v3_*commands.cc: modules and verbs of v3.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mps/control_daemon.h"

namespace gpusim::mps {

using Words = std::vector<std::string>;

// Texts of ours; test doubles of others say the first too.
inline constexpr char kServerNotFound[] = "Server not found\n";
inline constexpr char kClientNotFound[] = "Client not found\n";
inline constexpr char kInvalidArgument[] = "Invalid argument\n";

std::string execute(ControlDaemon& daemon, Console* console, const Words& words);
std::string execute_v3(ControlDaemon& daemon, Console* console, const Words& words);

// Above 0.
std::optional<int32_t> parse_pid(std::string_view text);

using Verb = std::string(ControlDaemon& daemon, Console* console, const Words& words);
Verb set_default_percentage, get_default_percentage, set_percentage, get_percentage;
Verb set_default_limit, get_default_limit, set_limit, get_limit;
Verb set_default_priority, get_default_priority;
Verb sm_partition, lspart;
Verb terminate_client, quit, gpusim_command;

}  // namespace gpusim::mps
