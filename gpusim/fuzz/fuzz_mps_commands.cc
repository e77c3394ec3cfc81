// What people and programs tell MPS in words: the console's lines of both protocols, limits and
// percentages of the environment, settings, the TOML file. First byte: which; the rest: the text.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/pinned_limit.h"
#include "common/text.h"
#include "driver/device_table.h"
#include "mps/commands.h"

namespace {

using namespace gpusim;
using namespace gpusim::mps;

void check(bool well, const char* what) {
  if (well) return;
  fprintf(stderr, "failed: %s\n", what);
  abort();
}

// These would make processes or end the daemon.
bool has_effects(const Words& words) {
  if (words.empty()) return false;
  return words[0] == "start_server" || words[0] == "gpusim" || words[0] == "quit" ||
         (words.size() > 1 && words[0] == "server" && words[1] == "create");
}

// Folders would be made there.
const bool has_no_folder = setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev/null/nowhere", 1) == 0;

void obey_lines(bool v3, std::string_view text) {
  check(has_no_folder, "setenv");
  DaemonOptions options;
  options.v3 = v3;
  options.static_partitions = true;
  ControlDaemon daemon(std::move(options));
  DaemonState& state = daemon.state();
  state.traits.has_pinned_limits = state.traits.has_terminate = true;
  const auto devices = make_devices(std::get<0>(parse_gpu_spec("2xL4")), 1);
  state.partitions.set_devices(devices);
  Server& server = state.servers.emplace_back();
  server.name = "s";
  server.state = ServerState::kActive;
  server.pid = 0;
  for (const DeviceInfo& device : devices) server.uuids.emplace_back(device.uuid);
  server.partitions.set_devices(devices);
  server.clients.push_back({7, 0, 7, 1, "default", ""});
  Console console;
  for (int line = 0; line < 32 && !text.empty(); ++line) {
    std::string_view rest = take_field(&text, '\n');
    Words words;
    while (!rest.empty()) {
      const std::string_view word = trim(take_field(&rest, ' '));
      if (!word.empty()) words.emplace_back(word);
    }
    if (has_effects(words)) continue;
    const std::string answer = execute(daemon, &console, words);
    check(answer.empty() || answer.back() == '\n', "answers are lines");
    if (state.servers.empty()) break;
    for (const std::string& gpu : state.servers.front().partitions.gpus()) {
      const SmPartitions& partitions = state.servers.front().partitions;
      check(partitions.free_sms(gpu) <= partitions.total_sms(gpu), "multiprocessors add up");
      check(partitions.free_chunks(gpu) <= partitions.total_chunks(gpu), "chunks add up");
    }
  }
  state.servers.clear();
}

void read_environment(const std::string& text) {
  static const auto devices = make_devices(std::get<0>(parse_gpu_spec("3xL4")), 1);
  std::vector<VisibleDevice> visible(kMaxDevices);
  uint32_t count = 0;
  for (const DeviceInfo& device : devices) {
    visible[count] = {count, device};
    ++count;
  }
  uint64_t limits[kMaxDevices] = {};
  apply_pinned_limits(text.c_str(), visible.data(), count, limits);
  names_unknown_device(text.c_str(), visible.data(), count);
  LimitTable table;
  table.set_from_environment(text.c_str());
  check(table.entries().size() <= 128, "a limit on limits");
  check(parse_thread_percentage(text.c_str()) <= 10000, "a percentage");
  apply_cuda_visible_devices(text.c_str(), visible.data(), &count);
  check(count <= 3, "no device is made");
  Settings settings;
  settings.set_all(text);
  Settings again;
  check(!again.set_all(settings.text()), "settings read what they print");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0:
      obey_lines(false, text);
      break;
    case 1:
      obey_lines(true, text);
      break;
    case 2:
      read_environment(text);
      break;
    default:
      read_v3_config_text(text, "fuzz.toml");
  }
  return 0;
}
