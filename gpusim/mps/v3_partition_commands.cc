// MPS v3: the verbs of SM partitions.
#include <fmt/format.h>

#include <algorithm>

#include "common/text.h"
#include "mps/v3_arguments.h"
#include "mps/v3_values.h"

namespace gpusim::mps {
namespace {

constexpr uint64_t kMaxChunks = 4096;

const SmPartitions::Row* find_row(const Server& server, std::string_view gpu,
                                  std::string_view name) {
  const std::string uuid = server.partitions.find_device(gpu).value_or(std::string(gpu));
  for (const SmPartitions::Row& row : server.partitions.rows()) {
    if (row.name == name && (row.gpu == uuid || row.gpu == gpu)) return &row;
  }
  return nullptr;
}

bool has_clients_on(const Server& server, std::string_view uuid) {
  const auto found = std::find(server.uuids.begin(), server.uuids.end(), uuid);
  const auto ordinal = static_cast<size_t>(found - server.uuids.begin());
  return std::any_of(server.clients.begin(), server.clients.end(),
                     [&](const ServerClient& c) { return (c.devices >> ordinal & 1) != 0; });
}

}  // namespace

std::string v3_partition_create(ControlDaemon& daemon, Console* console,
                                const V3Arguments& arguments) {
  Server* server = daemon.state().find_named(arguments.value("server"));
  if (server == nullptr) return fail(console, no_server(arguments.value("server")));
  PartitionSpec spec;
  spec.name = arguments.positional[0];
  spec.gpu = arguments.value("device");
  uint64_t chunks = 0;
  auto error = read_v3_flag(arguments, "include-remainder", &spec.include_remainder);
  if (!error && !is_v3_name(spec.name)) {
    error = fmt::format("'{}' is no partition name: lower case, digits and underscore, at most 64",
                        spec.name);
  }
  if (!error && spec.gpu.empty()) error = "--device=UUID or ordinal is missing";
  if (!error) error = check_v3_devices(spec.gpu);
  if (!error &&
      (!parse_number(arguments.value("chunks"), &chunks) || chunks == 0 || chunks > kMaxChunks)) {
    error = fmt::format("--chunks is a whole number from 1 to {}, not '{}'", kMaxChunks,
                        arguments.value("chunks"));
  }
  if (!error && server->locality_domains) {
    error =
        fmt::format("server {} has locality domains: no SM partitions beside them", server->name);
  }
  if (!error && find_row(*server, spec.gpu, spec.name) != nullptr) {
    error = fmt::format("partition {} exists", spec.name);
  }
  if (error) return fail(console, *error);
  spec.chunks = static_cast<uint32_t>(chunks);
  if (server->state != ServerState::kActive) {
    server->partitions.configure(spec);
    return fmt::format("SM partition '{}' configured on device {}\n", spec.name, spec.gpu);
  }
  const auto uuid = server->partitions.find_device(spec.gpu);
  if (!uuid)
    return fail(console, fmt::format("server {} has no device {}", server->name, spec.gpu));
  if (!server->partitions.is_divided(*uuid) && has_clients_on(*server, *uuid)) {
    return fail(console, fmt::format("device {} has active clients", *uuid));
  }
  const SmPartitions::Row* row = server->partitions.add(spec);
  if (row == nullptr) {
    return fail(console, fmt::format("device {} has {} free chunks", *uuid,
                                     server->partitions.free_chunks(*uuid)));
  }
  return fmt::format(
      "SM partition '{}' created on device {} (sm-count={})\nCUDA_MPS_SM_PARTITION={}/{}\n",
      row->name, row->gpu, row->sms, row->gpu, row->id);
}

std::string v3_partition_delete(ControlDaemon& daemon, Console* console,
                                const V3Arguments& arguments) {
  Server* server = daemon.state().find_named(arguments.value("server"));
  if (server == nullptr) return fail(console, no_server(arguments.value("server")));
  const SmPartitions::Row* row =
      find_row(*server, arguments.value("device"), arguments.positional[0]);
  if (row == nullptr) {
    return fail(console, fmt::format("no partition {} on device '{}'", arguments.positional[0],
                                     arguments.value("device")));
  }
  const std::string in_use = row->gpu + "/" + row->id;
  for (const ServerClient& client : server->clients) {
    if (!row->id.empty() && client.partition == in_use) {
      return fail(console, fmt::format("partition {} is in use", row->name));
    }
  }
  const std::string text =
      fmt::format("SM partition '{}' deleted from device {}\n", row->name, row->gpu);
  const std::string gpu = row->gpu;
  const std::string name = row->name;
  server->partitions.remove(gpu, name);
  return text;
}

std::string v3_partition_list(ControlDaemon& daemon, Console* console,
                              const V3Arguments& arguments) {
  if (arguments.has("server") && daemon.state().find_named(arguments.value("server")) == nullptr) {
    return fail(console, no_server(arguments.value("server")));
  }
  Table table = {{"server", "device", "name", "chunks", "sm-count", "include-remainder", "status",
                  "visible-uuid"}};
  for (const Server& server : daemon.state().servers) {
    if (arguments.has("server") && server.name != arguments.value("server")) continue;
    const SmPartitions& partitions = server.partitions;
    const std::string device = arguments.value("device");
    const std::string only = partitions.find_device(device).value_or(device);
    for (const SmPartitions::Row& row : partitions.rows()) {
      if (!only.empty() && row.gpu != only) continue;
      const bool is_created = !row.id.empty();
      table.push_back({server.name, row.gpu, row.name, fmt::format("{}", row.chunks),
                       is_created ? fmt::format("{}", row.sms) : "-",
                       row.include_remainder ? "true" : "false",
                       is_created ? "created" : "configured", is_created ? row.id : "-"});
    }
    for (const std::string& gpu : partitions.gpus()) {
      if ((!only.empty() && gpu != only) || !partitions.is_divided(gpu)) continue;
      if (partitions.free_chunks(gpu) == 0) continue;
      table.push_back({server.name, gpu, "-", fmt::format("{}", partitions.free_chunks(gpu)),
                       fmt::format("{}", partitions.free_sms(gpu)), "-", "unallocated", "-"});
    }
  }
  return answer_table(console, arguments, table);
}

}  // namespace gpusim::mps
