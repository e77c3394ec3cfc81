#include "core/task_settings.h"

namespace cotenant::core {

std::string_view to_string(NamespaceMode mode) {
  switch (mode) {
    case NamespaceMode::kOwn:
      return "";
    case NamespaceMode::kHost:
      return "host";
    case NamespaceMode::kTask:
      return "task";
    case NamespaceMode::kNone:
      return "none";
  }
  return "";
}

std::optional<NamespaceMode> parse_namespace_mode(std::string_view text) {
  for (const NamespaceMode mode :
       {NamespaceMode::kOwn, NamespaceMode::kHost, NamespaceMode::kTask, NamespaceMode::kNone}) {
    if (to_string(mode) == text) return mode;
  }
  return std::nullopt;
}

const Volume* find_volume(const TaskSettings& settings, std::string_view name) {
  for (const Volume& volume : settings.volumes) {
    if (volume.name == name) return &volume;
  }
  return nullptr;
}

}  // namespace cotenant::core
