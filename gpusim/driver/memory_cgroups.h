// The limits of the device-memory cgroup, by device and cgroup path, without any I/O.
//
// A path is that below the cgroup file system's root ("/a/b"); full paths ("/sys/fs/cgroup/a/b") are
// brought to that form. Bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusim {

struct CgroupLimit {
  uint64_t soft = 0;           // 0: none
  uint64_t hard = UINT64_MAX;  // UINT64_MAX: none
};

class MemoryCgroups {
 public:
  // Sets, or clears when both are "none". False: too many cgroups have limits.
  bool set(uint32_t device, const std::string& path, CgroupLimit limit);
  CgroupLimit get(uint32_t device, const std::string& path) const;

  // The limits on `path` and on what is above it.
  std::vector<std::pair<std::string, CgroupLimit>> at_and_above(uint32_t device,
                                                                const std::string& path) const;
  bool empty() const { return limits_.empty(); }

 private:
  std::map<std::pair<uint32_t, std::string>, CgroupLimit> limits_;
};

// "" when it is not an absolute path.
std::string normal_cgroup_path(std::string_view path);

// Is `path` the cgroup `ancestor` or below it?
bool is_within(std::string_view path, std::string_view ancestor);

// From the text of /proc/<pid>/cgroup: the unified hierarchy's path, or where that is the root (v1
// and hybrid machines), the memory controller's.
std::string cgroup_of_text(std::string_view proc_cgroup);

}  // namespace gpusim
