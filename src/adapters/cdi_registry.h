// The CDI specs of one folder (--cdi-dir), read as a container engine would read them. A plain
// value: no locks; load again to see changes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/cdi_spec.h"
#include "base/result.h"

namespace cotenant::adapters {

class CdiRegistry {
 public:
  static constexpr std::size_t kFilesMax = 256;

  // Reads the folder's *.json, *.yaml and *.yml in the order of their names. A file that is not
  // valid is left out and stands in problems(), so that another vendor's file cannot stop this one.
  // Errors: kNotFound (no such folder), kIo, kLimitExceeded (too many files).
  static base::Result<CdiRegistry> load(const std::string& folder);

  // For tests and for specs from elsewhere: adds one that `file` names in messages.
  void add(std::string file, CdiSpec spec);

  // The edits for these devices in CDI's order: for each device, those of its spec (once), then its
  // own; later ones replace earlier ones. Errors: kNotFound (names the devices that there are),
  // kConflict (two files define the device).
  base::Result<CdiEdits> resolve(std::string_view kind,
                                 const std::vector<std::string>& device_names) const;

  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::pair<std::string, CdiSpec>> specs_;  // file, spec
  std::vector<std::string> problems_;
};

}  // namespace cotenant::adapters
