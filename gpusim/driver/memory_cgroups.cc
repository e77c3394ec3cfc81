#include "driver/memory_cgroups.h"

#include "common/text.h"

namespace gpusim {
namespace {

constexpr size_t kMaxLimits = 4096;
// A v1 or hybrid machine mounts each controller below its own folder.
constexpr std::string_view kMounts[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified",
                                        "/sys/fs/cgroup/systemd", "/sys/fs/cgroup"};

}  // namespace

bool MemoryCgroups::set(uint32_t device, const std::string& path, CgroupLimit limit) {
  const auto key = std::make_pair(device, path);
  if (limit.soft == 0 && limit.hard == UINT64_MAX) {
    limits_.erase(key);
    return true;
  }
  if (limits_.size() >= kMaxLimits && !limits_.contains(key)) return false;
  limits_[key] = limit;
  return true;
}

CgroupLimit MemoryCgroups::get(uint32_t device, const std::string& path) const {
  const auto found = limits_.find({device, path});
  return found == limits_.end() ? CgroupLimit{} : found->second;
}

std::vector<std::pair<std::string, CgroupLimit>> MemoryCgroups::at_and_above(
    uint32_t device, const std::string& path) const {
  std::vector<std::pair<std::string, CgroupLimit>> found;
  if (limits_.empty()) return found;
  std::string at = path;
  while (!at.empty()) {
    const auto limit = limits_.find({device, at});
    if (limit != limits_.end()) found.emplace_back(at, limit->second);
    if (at == "/") break;
    const size_t slash = at.rfind('/');
    at.resize(slash == 0 ? 1 : slash);
  }
  return found;
}

std::string normal_cgroup_path(std::string_view path) {
  if (!path.starts_with('/')) return "";
  for (const std::string_view mount : kMounts) {
    if (is_within(path, mount)) {
      path.remove_prefix(mount.size());
      break;
    }
  }
  while (path.ends_with('/')) path.remove_suffix(1);
  return path.empty() ? "/" : std::string(path);
}

bool is_within(std::string_view path, std::string_view ancestor) {
  if (ancestor == "/") return path.starts_with('/');
  return path.starts_with(ancestor) &&
         (path.size() == ancestor.size() || path[ancestor.size()] == '/');
}

std::string cgroup_of_text(std::string_view proc_cgroup) {
  std::string unified;
  std::string memory;
  while (!proc_cgroup.empty()) {
    std::string_view line = take_field(&proc_cgroup, '\n');
    const std::string_view number = take_field(&line, ':');
    const std::string_view controllers = take_field(&line, ':');
    if (number == "0" && controllers.empty()) unified = line;
    if (controllers == "memory") memory = line;
  }
  return (unified.empty() || unified == "/") && !memory.empty() ? memory : unified;
}

}  // namespace gpusim
