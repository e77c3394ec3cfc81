// MPS v3: the verbs of clients, devices, memory accounts and features.
#include <fmt/format.h>

#include <algorithm>

#include "common/driver_client.h"
#include "common/text.h"
#include "mps/process_info.h"
#include "mps/v3_arguments.h"

namespace gpusim::mps {

// One row for each device of a client, with the columns of `client get`.
std::string ControlDaemon::v3_client_list(Console* console, const V3& arguments) {
  TableFormat format = TableFormat::kAligned;
  if (const auto error = read_v3_format(arguments.value("format"), &format)) {
    return fail(console, *error);
  }
  const bool is_get = !arguments.positional.empty();
  if (!is_get && arguments.has("server") == arguments.has("all")) {
    return fail(console, "client list takes either --server=NAME or --all");
  }
  if (arguments.has("server") && find_named(arguments.value("server")) == nullptr) {
    return fail(console, fmt::format("no server {}", arguments.value("server")));
  }
  std::map<std::string, std::string, std::less<>> pci_ids;
  DriverClient driver;
  if (driver.connect_to(driver_folder(), Role::kObserver) == Status::kOk) {
    for (uint32_t i = 0; i < driver.device_count(); ++i) {
      DeviceInfo info;
      if (driver.get_device(i, &info) == Status::kOk) pci_ids[info.uuid] = pci_bus_id(info);
    }
  }
  Table table;
  table.push_back({"pid", "server", "device", "pci-id", "linux-ns", "maws-ns", "cmd"});
  for (const Server& server : servers_) {
    if (arguments.has("server") && server.name != arguments.value("server")) continue;
    for (const ServerClient& client : server.clients) {
      const std::string pid = fmt::format("{}", client.pid);
      if (is_get && pid != arguments.positional[0]) continue;
      for (size_t i = 0; i < server.uuids.size(); ++i) {
        if ((client.devices >> i & 1) == 0) continue;
        table.push_back({pid, server.name, server.uuids[i], pci_ids[server.uuids[i]],
                         pid_namespace(client.pid), client.space, command_of(client.pid)});
      }
    }
  }
  if (is_get && table.size() == 1) {
    return fail(console, fmt::format("no client {}", arguments.positional[0]));
  }
  return show_table(table, format);
}

std::string ControlDaemon::v3_client_terminate(Console* console, const V3& arguments) {
  for (const Server& server : servers_) {
    for (const ServerClient& client : server.clients) {
      const std::string pid = fmt::format("{}", client.pid);
      if (pid != arguments.positional[0]) continue;
      return terminate_client(console, {"terminate_client", fmt::format("{}", server.pid), pid});
    }
  }
  return fail(console, fmt::format("no client {}", arguments.positional[0]));
}

std::string ControlDaemon::v3_device_list(Console* console, const V3& arguments) {
  TableFormat format = TableFormat::kAligned;
  if (const auto error = read_v3_format(arguments.value("format"), &format)) {
    return fail(console, *error);
  }
  DriverClient driver;
  if (driver.connect_to(driver_folder(), Role::kObserver) != Status::kOk) {
    return fail(console, fmt::format("no driver at {}", driver_folder()));
  }
  Table table;
  table.push_back({"uuid", "name", "pci-id", "servers"});
  for (uint32_t i = 0; i < driver.device_count(); ++i) {
    DeviceInfo info;
    if (driver.get_device(i, &info) != Status::kOk) continue;
    std::string servers;
    for (const Server& server : servers_) {
      const std::string uuid = info.uuid;
      if (std::find(server.uuids.begin(), server.uuids.end(), uuid) == server.uuids.end()) continue;
      servers += (servers.empty() ? "" : ";") + server.name;
    }
    table.push_back({info.uuid, info.name, pci_bus_id(info), servers.empty() ? "-" : servers});
  }
  return show_table(table, format);
}

// The device-memory cgroup, whose account gpusimd keeps: hard and soft limit, and what is used now.
std::string ControlDaemon::v3_memacct_get(Console* console, const V3& arguments) {
  TableFormat format = TableFormat::kAligned;
  if (const auto error = read_v3_format(arguments.value("format"), &format)) {
    return fail(console, *error);
  }
  DriverClient driver;
  if (driver.connect_to(driver_folder(), Role::kObserver) != Status::kOk) {
    return fail(console, fmt::format("no driver at {}", driver_folder()));
  }
  Table table;
  table.push_back({"device", "soft-limit", "hard-limit", "current-used"});
  for (uint32_t i = 0; i < driver.device_count(); ++i) {
    DeviceInfo info;
    MemoryLimit limit = {};
    if (driver.get_device(i, &info) != Status::kOk) continue;
    const Status status = driver.get_memory_limit(i, arguments.positional[0].c_str(), &limit);
    if (status != Status::kOk) {
      return fail(console, fmt::format("{} has no memory account of {} (status {})", info.uuid,
                                       arguments.positional[0], static_cast<int>(status)));
    }
    const auto mib = [](uint64_t bytes) { return fmt::format("{} MiB", bytes / kMiB); };
    table.push_back({info.uuid, mib(limit.soft), limit.hard == UINT64_MAX ? "max" : mib(limit.hard),
                     mib(limit.current_used)});
  }
  return show_table(table, format);
}

std::string ControlDaemon::v3_memacct_set(Console* console, const V3& arguments) {
  const std::string& cgroup = arguments.positional[0];
  MemoryLimit limit = {};
  if (!copy_text(cgroup, limit.cgroup, sizeof limit.cgroup)) {
    return fail(console, "the cgroup's path is too long");
  }
  DriverClient driver;
  if (driver.connect_to(driver_folder(), Role::kObserver) != Status::kOk) {
    return fail(console, fmt::format("no driver at {}", driver_folder()));
  }
  for (uint32_t i = 0; i < driver.device_count(); ++i) {
    DeviceInfo info;
    if (driver.get_device(i, &info) != Status::kOk || info.uuid != arguments.value("device")) {
      continue;
    }
    MemoryLimit present = {};
    driver.get_memory_limit(i, cgroup.c_str(), &present);
    limit.soft = present.soft;
    limit.hard = present.hard == 0 ? UINT64_MAX : present.hard;
    for (const char* key : {"soft-limit", "hard-limit"}) {
      if (!arguments.has(key)) continue;
      uint64_t mib = 0;
      const bool is_max = arguments.value(key) == "max" && std::string_view(key) == "hard-limit";
      if (!is_max && (!parse_number(arguments.value(key), &mib) || mib > UINT64_MAX / kMiB)) {
        return fail(console, fmt::format("--{} is a whole number of MiB, not '{}'", key,
                                         arguments.value(key)));
      }
      (std::string_view(key) == "soft-limit" ? limit.soft : limit.hard) =
          is_max ? UINT64_MAX : mib * kMiB;
    }
    const Status status = driver.set_memory_limit(i, limit);
    if (status == Status::kOk) return "";
    return fail(console, fmt::format("{} refuses the limits of {} (status {})", info.uuid, cgroup,
                                     static_cast<int>(status)));
  }
  return fail(console, fmt::format("no device '{}'", arguments.value("device")));
}

std::string ControlDaemon::v3_feature_list(Console* console, const V3& arguments) {
  TableFormat format = TableFormat::kAligned;
  if (const auto error = read_v3_format(arguments.value("format"), &format)) {
    return fail(console, *error);
  }
  return show_table({{"name", "enabled"}, {"memacct", "yes"}, {"context-share", "no"}}, format);
}

std::string ControlDaemon::v3_not_imitated(Console* console, const V3&) {
  return fail(console, "gpusim does not imitate this module");
}

}  // namespace gpusim::mps
