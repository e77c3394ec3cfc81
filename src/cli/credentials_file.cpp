#include "cli/credentials_file.h"

#include <fmt/format.h>

#include <sstream>

#include "base/private_file.h"
#include "net/crypto.h"

namespace cotenant::cli {
namespace {

// As AWS's: 20 upper-case letters and digits, and 40 characters. Of AWS's alphabet for secrets '/'
// and '+' are left out: they are awkward in shells and URLs.
constexpr std::string_view kKeyPrefix = "AKCT";
constexpr std::size_t kKeyChars = 20;
constexpr std::string_view kKeyAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr std::size_t kSecretChars = 40;
constexpr std::string_view kSecretAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

constexpr const char* kIdMember = "aws_access_key_id";
constexpr const char* kSecretMember = "aws_secret_access_key";

std::string trim(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::string new_credentials(const std::string& region) {
  return fmt::format(
      "# Made by cotenant. AWS SDKs and CLIs take it by AWS_SHARED_CREDENTIALS_FILE.\n"
      "[default]\n{} = {}{}\n{} = {}\nregion = {}\n",
      kIdMember, kKeyPrefix, net::random_text(kKeyChars - kKeyPrefix.size(), kKeyAlphabet),
      kSecretMember, net::random_text(kSecretChars, kSecretAlphabet), region);
}

tl::unexpected<base::Error> broken(const std::string& path, const std::string& why) {
  return base::fail(base::ErrorCode::kInvalidParameter,
                    fmt::format("{}: {}; want AWS's shared-credentials format, or remove the file "
                                "to have a new key pair made",
                                path, why));
}

base::Status check_profile(const std::string& path, const std::string& name,
                           const CredentialProfile& profile) {
  const auto& [id, secret] = profile.credentials;
  if (id.empty()) return broken(path, fmt::format("profile [{}] has no {}", name, kIdMember));
  if (secret.empty()) {
    return broken(path, fmt::format("profile [{}] has no {}", name, kSecretMember));
  }
  const bool is_id = id.size() >= 16 && id.size() <= 128 &&
                     id.find_first_not_of(
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                         "0123456789_") == std::string::npos;
  if (!is_id) {
    return broken(path, fmt::format("profile [{}]: {} must be 16 to 128 letters and digits", name,
                                    kIdMember));
  }
  if (secret.size() < 16 || secret.size() > 256) {
    return broken(
        path, fmt::format("profile [{}]: {} must have 16 to 256 characters", name, kSecretMember));
  }
  return {};
}

}  // namespace

base::Result<CredentialProfiles> parse_credentials(const std::string& path,
                                                   const std::string& text) {
  CredentialProfiles profiles;
  CredentialProfile* profile = nullptr;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = trim(line);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      const std::string name = line.back() == ']' ? trim(line.substr(1, line.size() - 2)) : "";
      if (name.empty()) return broken(path, fmt::format("line {}: want [profile]", number));
      if (profiles.count(name) > 0) {
        return broken(path, fmt::format("line {}: profile [{}] comes twice", number, name));
      }
      profile = &profiles[name];
      continue;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || profile == nullptr) {
      return broken(path, fmt::format("line {}: want {}", number,
                                      profile == nullptr ? "[profile] first" : "name = value"));
    }
    const std::string name = trim(line.substr(0, equals));
    const std::string value = trim(line.substr(equals + 1));
    if (name == kIdMember) profile->credentials.access_key_id = value;
    if (name == kSecretMember) profile->credentials.secret_access_key = value;
    if (name == "region") profile->region = value;
  }
  if (profiles.empty()) return broken(path, "holds no profile");
  for (const auto& [name, found] : profiles) {
    if (auto status = check_profile(path, name, found); !status) return base::fail(status.error());
  }
  return profiles;
}

base::Result<CredentialProfiles> load_or_create_credentials(const std::string& path,
                                                            const std::string& region) {
  auto text = base::read_private_file(path);
  if (!text) return base::fail(text.error());
  if (!*text) {
    if (auto status = base::write_private_file(path, new_credentials(region)); !status) {
      return base::fail(status.error());
    }
    text = base::read_private_file(path);
    if (!text) return base::fail(text.error());
  }
  return parse_credentials(path, text->value_or(""));
}

base::Result<CredentialProfiles> load_credentials(const std::string& path) {
  auto text = base::read_private_file(path, base::Privacy::kAny);
  if (!text) return base::fail(text.error());
  if (!*text) {
    return base::fail(base::ErrorCode::kIo, fmt::format("{}: there is no such file", path));
  }
  return parse_credentials(path, **text);
}

}  // namespace cotenant::cli
