#include "adapters/process_user.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;
  std::string home = "/";
};

std::optional<unsigned> parse_id(std::string_view text) {
  unsigned id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

template <class Entry, class Ask>
std::optional<Entry> look_up(std::vector<char>& buffer, const Ask& ask) {
  buffer.resize(64 * 1024);
  Entry entry{};
  Entry* found = nullptr;
  if (ask(&entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return entry;
}

// A number needs no entry in the database.
std::optional<Account> find_account(const std::string& text) {
  const std::optional<unsigned> id = parse_id(text);
  std::vector<char> buffer;
  const auto entry = look_up<passwd>(buffer, [&](auto* out, char* data, auto size, auto** found) {
    return id ? ::getpwuid_r(*id, out, data, size, found)
              : ::getpwnam_r(text.c_str(), out, data, size, found);
  });
  if (entry) return Account{entry->pw_uid, entry->pw_gid, entry->pw_name, entry->pw_dir};
  if (id) return Account{*id, 0, "", "/"};
  return std::nullopt;
}

std::optional<gid_t> find_group(const std::string& text) {
  if (const std::optional<unsigned> id = parse_id(text)) return *id;
  std::vector<char> buffer;
  const auto entry = look_up<group>(buffer, [&](auto* out, char* data, auto size, auto** found) {
    return ::getgrnam_r(text.c_str(), out, data, size, found);
  });
  if (!entry) return std::nullopt;
  return entry->gr_gid;
}

std::vector<gid_t> groups_of(const Account& account) {
  std::array<gid_t, 64> groups{};
  int count = static_cast<int>(groups.size());
  if (account.name.empty() ||
      ::getgrouplist(account.name.c_str(), account.gid, groups.data(), &count) < 0) {
    return {account.gid};
  }
  return {groups.begin(), groups.begin() + count};
}

base::Error user_error(const std::string& text, std::string_view why) {
  return {ErrorCode::kClient, fmt::format("user: '{}' {}", text, why)};
}

constexpr std::pair<std::string_view, int> kResources[] = {
    {"core", RLIMIT_CORE},         {"cpu", RLIMIT_CPU},     {"data", RLIMIT_DATA},
    {"fsize", RLIMIT_FSIZE},       {"locks", RLIMIT_LOCKS}, {"memlock", RLIMIT_MEMLOCK},
    {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},   {"nofile", RLIMIT_NOFILE},
    {"nproc", RLIMIT_NPROC},       {"rss", RLIMIT_RSS},     {"rtprio", RLIMIT_RTPRIO},
    {"rttime", RLIMIT_RTTIME},     {"stack", RLIMIT_STACK}, {"sigpending", RLIMIT_SIGPENDING}};

}  // namespace

base::Result<FoundUser> find_process_user(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string user = text.substr(0, colon);
  const std::optional<Account> account =
      find_account(user.empty() ? std::to_string(::geteuid()) : user);
  if (!account) return fail(user_error(text, "is no user of this machine"));
  FoundUser found;
  found.home = account->home;
  ProcessUser change{account->uid, account->gid, groups_of(*account)};
  if (colon != std::string::npos) {
    const std::optional<gid_t> group = find_group(text.substr(colon + 1));
    if (!group) return fail(user_error(text, "names no group of this machine"));
    change.gid = *group;
    change.groups = {*group};
  }
  if (text.empty() || (change.uid == ::geteuid() && change.gid == ::getegid())) return found;
  if (::geteuid() != 0) {
    return fail(user_error(text, "is another user than the agent's, which is not root"));
  }
  found.change = std::move(change);
  return found;
}

base::Result<std::vector<ProcessLimit>> process_limits(const std::vector<core::Ulimit>& ulimits) {
  std::vector<ProcessLimit> limits;
  for (const core::Ulimit& ulimit : ulimits) {
    std::optional<int> resource;
    for (const auto& [name, number] : kResources) {
      if (name == ulimit.name) resource = number;
    }
    if (!resource) {
      return fail(ErrorCode::kClient, fmt::format("ulimits: '{}' is not known", ulimit.name));
    }
    limits.push_back({*resource, ulimit.soft, ulimit.hard});
  }
  return limits;
}

}  // namespace cotenant::adapters
