#include "agent/agent_state.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "agent/image_keeper.h"
#include "base/private_file.h"
#include "codec/json.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using codec::Json;

constexpr const char* kFileName = "agent.json";
constexpr const char* kLockName = "agent.lock";
constexpr std::int64_t kFormat = 1;
constexpr std::size_t kFileBytesMax = 4096;

auto io_error(std::string_view doing, const std::string& path, int error) {
  return fail(ErrorCode::kIo, fmt::format("{} {}: {}", doing, path, std::strerror(error)));
}

bool is_instance_id(std::string_view text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<base::FileLock> lock_folder(const std::string& folder) {
  Result<base::FileLock> lock = base::FileLock::acquire(folder + "/" + kLockName);
  if (lock) return lock;
  if (lock.error().code != ErrorCode::kConflict) return fail(ErrorCode::kIo, lock.error().message);
  return fail(
      ErrorCode::kConflict,
      fmt::format("{}: another agent runs with this data folder ({}); stop it, or give this "
                  "one another --data-dir",
                  folder, lock.error().message));
}

struct Identity {
  std::string instance_id;
  std::int64_t epoch = 0;
};

Result<Identity> parse_identity(const std::string& path, const std::string& text) {
  const auto corrupt = [&](std::string_view why) {
    return fail(ErrorCode::kIo,
                fmt::format("{}: {}; restore the file from a backup, or remove it to join as a new "
                            "instance (containers of the old one are then left as they are)",
                            path, why));
  };
  if (text.size() > kFileBytesMax) return corrupt("is too large for an agent's state");
  const Result<Json> json = Json::parse(text);
  if (!json) return corrupt("is damaged: " + json.error().message);
  if (!json->is_object()) return corrupt("is damaged: it must hold an object");
  const Json* const format = json->find("format");
  if (format == nullptr || !format->is_integer() || format->as_integer() != kFormat) {
    return corrupt(fmt::format("format: this version of cotenant reads only {}", kFormat));
  }
  const Json* const id = json->find("instanceId");
  if (id == nullptr || !id->is_string() || !is_instance_id(id->as_string())) {
    return corrupt("instanceId: must be 32 lower-case hex digits");
  }
  const Json* const epoch = json->find("epoch");
  if (epoch == nullptr || !epoch->is_integer() || epoch->as_integer() < 0 ||
      epoch->as_integer() == std::numeric_limits<std::int64_t>::max()) {
    return corrupt("epoch: must be an integer from 0 on");
  }
  return Identity{id->as_string(), epoch->as_integer()};
}

Result<Identity> read_identity(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return fail(ErrorCode::kIo,
                fmt::format("{}: cannot be read or is empty; restore the file from a backup, or "
                            "remove it to join as a new instance",
                            path));
  }
  return parse_identity(path, text.str());
}

}  // namespace

Result<std::optional<std::string>> AgentState::read_instance_id(const std::string& data_dir) {
  const std::string path = data_dir + "/" + kFileName;
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::nullopt;
  Result<Identity> identity = read_identity(path);
  if (!identity) return fail(identity.error());
  return std::move(identity->instance_id);
}

std::vector<std::string> AgentState::file_names() {
  return {kFileName, std::string(kFileName) + ".new", kLockName, ImageKeeper::kFileName,
          std::string(ImageKeeper::kFileName) + ".new"};
}

Result<AgentState> AgentState::open(const std::string& data_dir, base::Prng& prng) {
  std::error_code error;
  if (std::filesystem::create_directories(data_dir, error)) ::chmod(data_dir.c_str(), 0700);
  if (error) return io_error("make folder", data_dir, error.value());
  Result<base::FileLock> lock = lock_folder(data_dir);
  if (!lock) return fail(lock.error());
  AgentState state(data_dir, std::move(*lock));

  const std::string path = state.folder_ + "/" + kFileName;
  if (!std::filesystem::exists(path, error) && !error) {
    state.instance_id_ = prng.next_hex_id();
    if (Status written = state.write(0); !written) return fail(written.error());
    return state;
  }
  Result<Identity> identity = read_identity(path);
  if (!identity) return fail(identity.error());
  state.instance_id_ = std::move(identity->instance_id);
  state.epoch_ = state.reserved_ = identity->epoch;
  return state;
}

Result<std::int64_t> AgentState::next_epoch() {
  if (epoch_ >= reserved_) {
    if (Status written = write(epoch_ + kEpochsReserved); !written) return fail(written.error());
    reserved_ = epoch_ + kEpochsReserved;
  }
  return ++epoch_;
}

Status AgentState::write(std::int64_t epoch) const {
  return base::write_private_file(
      folder_ + "/" + kFileName,
      Json::object({{"format", kFormat}, {"instanceId", instance_id_}, {"epoch", epoch}})
          .dump_pretty());
}

Result<std::string> read_boot_id() {
  constexpr const char* kPath = "/proc/sys/kernel/random/boot_id";
  std::ifstream file(kPath);
  std::string id;
  if (!(file >> id)) return fail(ErrorCode::kIo, std::string(kPath) + ": cannot be read");
  return id;
}

}  // namespace cotenant::agent
