// MPS v3: the verbs of clients and devices.
#include <fmt/format.h>

#include <algorithm>

#include "mps/process_info.h"
#include "mps/v3_arguments.h"
#include "mps/v3_values.h"

namespace gpusim::mps {
namespace {

// The lowest of the server's ordinals that the client uses.
size_t first_device(const ServerClient& client) {
  for (size_t i = 0; i < kMaxDevices; ++i) {
    if ((client.devices >> i & 1) != 0) return i;
  }
  return 0;
}

}  // namespace

// One row for each device of a client; the columns are those of the documentation's example.
std::string v3_client_list(ControlDaemon& daemon, Console* console, const V3Arguments& arguments) {
  if (arguments.has("server") && daemon.state().find_named(arguments.value("server")) == nullptr) {
    return fail(console, no_server(arguments.value("server")));
  }
  Table table = {{"pid", "server", "device", "namespace", "cmd"}};
  for (const Server& server : daemon.state().servers) {
    if (arguments.has("server") && server.name != arguments.value("server")) continue;
    for (const ServerClient& client : server.clients) {
      for (size_t i = 0; i < server.uuids.size(); ++i) {
        if ((client.devices >> i & 1) == 0) continue;
        table.push_back({fmt::format("{}", client.pid), server.name, fmt::format("{}", i),
                         client.space, command_of(client.pid)});
      }
    }
  }
  return answer_table(console, arguments, table);
}

std::string v3_client_get(ControlDaemon& daemon, Console* console, const V3Arguments& arguments) {
  for (const Server& server : daemon.state().servers) {
    for (const ServerClient& client : server.clients) {
      const std::string pid = fmt::format("{}", client.pid);
      if (pid != arguments.positional[0]) continue;
      const size_t device = first_device(client);
      std::string pci_id = "-";
      if (device < server.uuids.size()) {
        for (const DeviceInfo& info : ask_devices({server.uuids[device]})) {
          pci_id = pci_bus_id(info);
        }
      }
      return answer_field(console,
                          {{"pid", pid},
                           {"server", server.name},
                           {"device", fmt::format("{}", device)},
                           {"pci-id", pci_id},
                           {"linux-ns", pid_namespace(client.pid)},
                           {"maws-ns", client.space},
                           {"cmd", command_of(client.pid)}},
                          arguments.positional[1]);
    }
  }
  return fail(console, fmt::format("no client {}", arguments.positional[0]));
}

std::string v3_client_terminate(ControlDaemon& daemon, Console* console,
                                const V3Arguments& arguments) {
  for (const Server& server : daemon.state().servers) {
    for (const ServerClient& client : server.clients) {
      const std::string pid = fmt::format("{}", client.pid);
      if (pid != arguments.positional[0]) continue;
      return terminate_client(daemon, console,
                              {"terminate_client", fmt::format("{}", server.pid), pid});
    }
  }
  return fail(console, fmt::format("no client {}", arguments.positional[0]));
}

// By server, because each has its own ordinals.
std::string v3_device_list(ControlDaemon& daemon, Console* console, const V3Arguments& arguments) {
  if (arguments.has("server") && daemon.state().find_named(arguments.value("server")) == nullptr) {
    return fail(console, no_server(arguments.value("server")));
  }
  Table table = {{"Ordinal", "Server", "PCI ID", "Device UUID", "Name", "Total SMs", "Total Chunks",
                  "Attributes"}};
  for (const Server& server : daemon.state().servers) {
    if (arguments.has("server") && server.name != arguments.value("server")) continue;
    if (server.uuids.empty()) continue;
    size_t ordinal = 0;
    for (const DeviceInfo& info : ask_devices(server.uuids)) {
      table.push_back({fmt::format("{}", ordinal++), server.name, pci_bus_id(info), info.uuid,
                       info.name, fmt::format("{}", info.sm_count),
                       fmt::format("{}", server.partitions.total_chunks(info.uuid)), "-"});
    }
  }
  return answer_table(console, arguments, table);
}

}  // namespace gpusim::mps
