#include "adapters/docker_events.h"

#include <algorithm>
#include <array>
#include <optional>

#include "codec/json.h"

namespace cotenant::adapters {
namespace {

// Docker Engine API reference, "Monitor events"; the last three are Podman's own names.
constexpr std::array<std::string_view, 15> kStateChanges = {
    "create",  "start",  "restart", "die",     "oom",    "kill", "stop", "pause",
    "unpause", "rename", "update",  "destroy", "remove", "died", "init"};

// The id of the container that the event changed; nothing when it changed none.
std::optional<std::string> changed(std::string_view line) {
  const base::Result<codec::Json> event = codec::Json::parse(line);
  if (!event || !event->is_object()) return "";
  const std::string type = event->string_or("Type", "container");
  const std::string action = event->string_or("Action", "");
  if (type != "container") return std::nullopt;
  // "health_status: healthy"
  const bool health = action.starts_with("health_status");
  if (!health &&
      std::find(kStateChanges.begin(), kStateChanges.end(), action) == kStateChanges.end()) {
    return std::nullopt;
  }
  const codec::Json* actor = event->find("Actor");
  return actor == nullptr ? "" : actor->string_or("ID", "");
}

}  // namespace

std::vector<std::string> DockerEvents::feed(std::string_view piece) {
  std::vector<std::string> ids;
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    piece.remove_prefix(end == std::string_view::npos ? piece.size() : end + 1);
    if (!skipping_ && line_.size() + part.size() > kLineBytesMax) {
      skipping_ = true;
      ids.emplace_back();
    }
    if (skipping_) {
      line_.clear();
    } else {
      line_ += part;
    }
    if (end == std::string_view::npos) break;
    const bool blank = line_.find_first_not_of(" \t\r") == std::string::npos;
    if (!skipping_ && !blank) {
      if (std::optional<std::string> id = changed(line_)) ids.push_back(std::move(*id));
    }
    line_.clear();
    skipping_ = false;
  }
  return ids;
}

}  // namespace cotenant::adapters
