#include "agent/registry_config.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "base/private_file.h"
#include "codec/json.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using codec::Json;

constexpr const char* kDockerHub = "docker.io";

// "https://index.docker.io/v1/" -> "docker.io": keys come as addresses and as names.
std::string server_of_key(std::string_view key) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  }
  key = key.substr(0, key.find('/'));
  if (key == "index.docker.io" || key == "registry-1.docker.io") return kDockerHub;
  return std::string(key);
}

}  // namespace

std::string registry_of(std::string_view image) {
  const std::size_t slash = image.find('/');
  if (slash == std::string_view::npos) return kDockerHub;
  const std::string_view first = image.substr(0, slash);
  // Docker's rule: a first part that could be no user's name is a host.
  const bool is_host = first == "localhost" || first.find_first_of(".:") != std::string_view::npos;
  return is_host ? server_of_key(first) : kDockerHub;
}

Result<RegistryConfig> RegistryConfig::parse(std::string_view text) {
  const auto bad = [](std::string_view member, std::string_view wanted) {
    return fail(ErrorCode::kInvalidParameter, fmt::format("{}: must be {}", member, wanted));
  };
  const Result<Json> json = Json::parse(text);
  if (!json) return fail(ErrorCode::kInvalidParameter, json.error().message);
  if (!json->is_object()) return bad("the whole", "an object");
  RegistryConfig config;
  for (const char* member : {"credsStore", "credHelpers"}) {
    if (json->find(member) == nullptr) continue;
    config.warnings_.push_back(
        fmt::format("{}: credential helpers are not run; give the registry's \"auth\" itself in "
                    "\"auths\"",
                    member));
  }
  const Json* auths = json->find("auths");
  if (auths == nullptr) return config;
  if (!auths->is_object()) return bad("auths", "an object");
  for (const Json::Member& entry : auths->as_object()) {
    const std::string path = fmt::format("auths[\"{}\"]", entry.name);
    if (!entry.value.is_object()) return bad(path, "an object");
    ports::RegistryCredentials credentials;
    credentials.server = server_of_key(entry.name);
    credentials.username = entry.value.string_or("username", "");
    credentials.password = entry.value.string_or("password", "");
    credentials.identity_token = entry.value.string_or("identitytoken", "");
    const std::string auth = entry.value.string_or("auth", "");
    if (!auth.empty()) {
      const std::optional<std::string> pair = base::base64_decode(auth);
      const std::size_t colon = pair ? pair->find(':') : std::string::npos;
      if (colon == std::string::npos) return bad(path + ".auth", "base64 of user:password");
      credentials.username = pair->substr(0, colon);
      credentials.password = pair->substr(colon + 1);
    }
    // What a credential helper keeps stands here as an empty object.
    if (credentials.username.empty() && credentials.identity_token.empty()) continue;
    config.by_server_.insert_or_assign(credentials.server, std::move(credentials));
  }
  return config;
}

Result<RegistryConfig> RegistryConfig::read(const std::string& path) {
  if (path.empty()) return RegistryConfig();
  const Result<std::optional<std::string>> text =
      base::read_private_file(path, base::Privacy::kAny);
  if (!text) return fail(text.error());
  if (!*text) return RegistryConfig();
  Result<RegistryConfig> config = parse(**text);
  if (!config)
    return fail(config.error().code, fmt::format("{}: {}", path, config.error().message));
  return config;
}

std::optional<ports::RegistryCredentials> RegistryConfig::find(std::string_view image) const {
  const auto found = by_server_.find(registry_of(image));
  if (found == by_server_.end()) return std::nullopt;
  return found->second;
}

}  // namespace cotenant::agent
