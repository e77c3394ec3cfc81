#include "cli/client_endpoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/credentials_file.h"
#include "cli/installation.h"

namespace cotenant::cli {
namespace {

constexpr const char* kDefaultEndpoint = "http://127.0.0.1:8484";
constexpr const char* kDefaultRegion = "us-east-1";

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// The run folder that was recorded at the start, as far as we may read that.
std::string run_dir_of(const std::string& data_dir) {
  for (const Role role : {Role::kUp, Role::kServer}) {
    if (::access(data_dir.c_str(), R_OK | X_OK) != 0) break;
    const auto recorded = read_node_file(data_dir, role);
    if (recorded && *recorded) return (*recorded)->run_dir;
  }
  return default_run_dir(data_dir);
}

base::Result<Signer> signer_of(const ClientOptions& options, const std::string& path,
                               const CredentialProfiles& profiles) {
  std::string name = environment("AWS_PROFILE");
  if (name.empty()) name = "default";
  const auto found = profiles.find(name);
  if (found == profiles.end()) {
    return base::fail(base::ErrorCode::kInvalidParameter,
                      fmt::format("{}: has no profile [{}]; AWS_PROFILE names one", path, name));
  }
  Signer signer{found->second.credentials, options.region};
  if (signer.region.empty()) signer.region = found->second.region;
  if (signer.region.empty()) signer.region = kDefaultRegion;
  return signer;
}

}  // namespace

std::string find_endpoint(const ClientOptions& options) {
  if (!options.endpoint.empty()) return options.endpoint;
  if (std::string named = environment("COTENANT_ENDPOINT"); !named.empty()) return named;
  const std::string socket = api_socket_path(run_dir_of(absolute_path(options.data_dir)));
  return ::access(socket.c_str(), R_OK | W_OK) == 0 ? "unix://" + socket : kDefaultEndpoint;
}

base::Result<std::optional<Signer>> find_signer(const ClientOptions& options) {
  std::string path = options.credentials;
  if (path.empty()) path = environment("AWS_SHARED_CREDENTIALS_FILE");
  const bool is_named = !path.empty();
  if (!is_named) path = credentials_path(absolute_path(options.data_dir));
  if (is_named || ::access(path.c_str(), R_OK) == 0) {
    auto profiles = load_credentials(path);
    if (!profiles) return base::fail(profiles.error());
    auto signer = signer_of(options, path, *profiles);
    if (!signer) return base::fail(signer.error());
    return std::optional<Signer>(std::move(*signer));
  }
  Signer signer{{environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY")},
                options.region.empty() ? kDefaultRegion : options.region};
  if (signer.credentials.access_key_id.empty() || signer.credentials.secret_access_key.empty()) {
    return std::optional<Signer>();
  }
  return std::optional<Signer>(std::move(signer));
}

}  // namespace cotenant::cli
