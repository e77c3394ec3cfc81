#include <fmt/format.h>

#include "cli/api_client.h"
#include "cli/client_verbs.h"
#include "cli/exit_code.h"
#include "cli/table.h"

namespace cotenant::cli {
namespace {

using codec::Json;

constexpr int kBarWidth = 20;

std::string tenants_text(const Json& gpu) {
  std::string text;
  for (const Json& tenant : gpu.array_or_empty("containers")) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", tenant.string_or("containerName", ""));
    if (const Json* memory = tenant.find("memoryInMiB")) {
      text += fmt::format(" {} MiB", memory->as_integer());
    } else {
      text += " (whole)";
    }
    if (const Json* percent = tenant.find("maxComputePercent")) {
      text += fmt::format(" {}%", percent->as_integer());
    }
  }
  return text.empty() ? "-" : text;
}

std::string memory_text(const Json& gpu) {
  const std::int64_t total_mib = gpu.integer_or("totalMemoryInMiB", 0);
  if (total_mib == 0) return "unknown";
  const std::int64_t used_mib = total_mib - gpu.integer_or("remainingMemoryInMiB", 0);
  return fmt::format("{} {}/{} MiB", bar(used_mib, total_mib, kBarWidth), used_mib, total_mib);
}

std::string mode_text(const Json& gpu) {
  const std::string mode = gpu.string_or("sharingMode", "");
  return gpu.find("unavailable") == nullptr ? mode : mode + " (out of service)";
}

std::string instance_text(const Json& gpu) {
  const std::string id = short_id(gpu.string_or("containerInstanceArn", ""));
  return gpu.bool_or("agentConnected", false) ? id : id + " (agent away)";
}

}  // namespace

int gpus_verb(const ClientOptions& options) {
  auto client = ApiClient::create(options);
  if (!client) return report(client.error());
  Json gpus = Json::array();
  Json body = Json::object();
  for (;;) {
    auto reply = client->call("Cotenant.DescribeGpus", body);
    if (!reply) return report(reply.error());
    for (const Json& gpu : reply->array_or_empty("gpus")) gpus.push(gpu);
    const std::string token = reply->string_or("nextToken", "");
    if (token.empty()) break;
    body.set("nextToken", token);
  }
  if (options.json) {
    fmt::print("{}\n", Json::object({{"gpus", std::move(gpus)}}).dump_pretty());
    return kExitOk;
  }
  Table table({"INSTANCE", "#", "GPU", "MODEL", "MODE", "MEMORY RESERVED", "CONTAINERS"});
  bool simulated = false;
  for (const Json& gpu : gpus.as_array()) {
    simulated = simulated || gpu.bool_or("simulated", false);
    table.add({instance_text(gpu), std::to_string(gpu.integer_or("index", 0)),
               gpu.string_or("gpuId", "").substr(0, 12), gpu.string_or("model", ""), mode_text(gpu),
               memory_text(gpu), tenants_text(gpu)});
  }
  if (table.empty()) {
    fmt::print("no GPUs in cluster {}\n", options.cluster);
    return kExitOk;
  }
  fmt::print("{}", table.text());
  for (const Json& gpu : gpus.as_array()) {
    const std::string why = gpu.string_or("unavailable", "");
    if (why.empty()) continue;
    fmt::print("{} is out of service: {}\n", gpu.string_or("gpuId", ""), why);
  }
  if (simulated) fmt::print("These GPUs are simulated (gpusim): no kernel really runs.\n");
  return kExitOk;
}

}  // namespace cotenant::cli
