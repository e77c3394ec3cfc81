// The credentials for image registries, from a file as `docker login` writes it (config.json). The
// file is read for each pull, so that a login counts at once. Credential helpers are programs of
// the user's desktop; they are not run, and the warnings say so.
// Source: docker's configuration file reference ("auths", "auth", "identitytoken").
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ports/image_store.h"

namespace cotenant::agent {

class RegistryConfig {
 public:
  // Errors: kInvalidParameter, naming the member.
  static base::Result<RegistryConfig> parse(std::string_view text);
  // A file that is not there is an empty one. Errors: kIo, kInvalidParameter, naming the file.
  static base::Result<RegistryConfig> read(const std::string& path);

  std::optional<ports::RegistryCredentials> find(std::string_view image) const;
  // What stands in the file and is not used.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::map<std::string, ports::RegistryCredentials> by_server_;
  std::vector<std::string> warnings_;
};

// The registry that an image's name means: "registry:5000", "docker.io".
std::string registry_of(std::string_view image);

}  // namespace cotenant::agent
