// PutAccountSetting, PutAccountSettingDefault, ListAccountSettings, DeleteAccountSetting.
//
// Kept and shown as ECS does; cotenant has none of the features that they govern, and says so. Names,
// values and defaults: ECS developer guide, "Account settings".
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/ecs_request.h"
#include "codec/invalid.h"
#include "codec/utf8.h"
#include "server/api_functions.h"

namespace cotenant::server::api {
namespace {

using codec::invalid;

struct SettingRow {
  std::string_view name;
  std::string_view values;  // between commas
  std::string_view fallback;
  std::string_view type = "user";
};

// Sorted by name.
constexpr std::array<SettingRow, 11> kSettings = {{
    {"awsvpcTrunking", "enabled,disabled", "disabled"},
    {"containerInsights", "enabled,disabled,enhanced", "disabled"},
    {"containerInstanceLongArnFormat", "enabled", "enabled"},
    {"defaultLogDriverMode", "blocking,non-blocking", "non-blocking"},
    {"fargateEventWindows", "enabled,disabled", "disabled"},
    {"fargateFIPSMode", "enabled,disabled", "disabled"},
    {"fargateTaskRetirementWaitPeriod", "0,7,14", "7"},
    {"guardDutyActivate", "", "off", "aws_managed"},
    {"serviceLongArnFormat", "enabled", "enabled"},
    {"tagResourceAuthorization", "on,off", "off"},
    {"taskLongArnFormat", "enabled", "enabled"},
}};

const SettingRow* find_setting(std::string_view name) {
  const auto at = std::find_if(kSettings.begin(), kSettings.end(),
                               [&](const SettingRow& row) { return row.name == name; });
  return at == kSettings.end() ? nullptr : &*at;
}

bool allows(const SettingRow& row, std::string_view value) {
  std::string_view rest = row.values;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (rest.substr(0, comma) == value) return true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return false;
}

// The account's root user, who all callers are here.
std::string root_arn(const ApiContext& context) {
  // arn:aws:ecs:<region>:<account>:cluster/x
  const std::string arn = context.arns.cluster("x");
  const std::size_t end = arn.rfind(':');
  const std::size_t begin = arn.rfind(':', end - 1);
  return fmt::format("arn:aws:iam::{}:root", arn.substr(begin + 1, end - begin - 1));
}

Json encode_setting(const ApiContext& context, const core::AccountSetting& setting) {
  const SettingRow* row = find_setting(setting.name);
  return Json::object(
      {{"name", setting.name},
       {"value", setting.value},
       {"principalArn", setting.principal_arn.empty() ? root_arn(context) : setting.principal_arn},
       {"type", row == nullptr ? std::string_view("user") : row->type}});
}

// `principalArn`; empty for the account itself.
Result<std::string> decode_principal(const ApiContext& context, const Json& body) {
  const std::string arn = body.string_or("principalArn", "");
  if (arn.empty() || arn == root_arn(context)) return std::string();
  if (arn.rfind("arn:aws:iam::", 0) != 0 || arn.size() > 2048) {
    return invalid("principalArn", fmt::format("'{}' is not the ARN of a user or role of IAM",
                                               codec::shortened(arn)));
  }
  return arn;
}

Result<ApiReply> put_setting(const ApiContext& context, const Json& body, std::string principal) {
  const SettingRow* row = find_setting(body.string_or("name", ""));
  const std::string value = body.string_or("value", "");
  if (row == nullptr || !allows(*row, value)) {
    const std::string_view values = row == nullptr ? std::string_view() : row->values;
    return invalid("value",
                   values.empty()
                       ? std::string("the setting is managed by the platform; it cannot be put")
                       : fmt::format("'{}' is not possible for {}; it must be one of {}",
                                     codec::shortened(value), row->name, values));
  }
  core::PutAccountSetting command{{std::string(row->name), std::move(principal), value}};
  const core::AccountSetting setting = command.setting;
  auto done = context.loop.apply<bool>(std::move(command),
                                       [](const core::Reply&, const core::State&) { return true; });
  if (!done) return base::fail(done.error());
  return ApiReply{Json::object({{"setting", encode_setting(context, setting)}}),
                  {fmt::format("name: {} is stored and shown; cotenant has nothing that it governs",
                               row->name)}};
}

}  // namespace

Result<ApiReply> put_account_setting(const ApiContext& context, const Json& body) {
  auto principal = decode_principal(context, body);
  if (!principal) return base::fail(principal.error());
  return put_setting(context, body, std::move(*principal));
}

Result<ApiReply> put_account_setting_default(const ApiContext& context, const Json& body) {
  return put_setting(context, body, "");
}

Result<ApiReply> delete_account_setting(const ApiContext& context, const Json& body) {
  auto principal = decode_principal(context, body);
  if (!principal) return base::fail(principal.error());
  core::PutAccountSetting command{{body.string_or("name", ""), std::move(*principal), ""}};
  auto deleted = context.loop.apply<core::AccountSetting>(
      std::move(command), [](const core::Reply& reply, const core::State&) {
        return std::get<core::AccountSettingReply>(reply).setting;
      });
  if (!deleted) return base::fail(deleted.error());
  return ApiReply{Json::object({{"setting", encode_setting(context, *deleted)}}), {}};
}

Result<ApiReply> list_account_settings(const ApiContext& context, const Json& body) {
  constexpr std::size_t kSettingsPerPage = 10;  // ECS API reference, ListAccountSettings
  auto page = codec::decode_page(body);
  if (!page) return base::fail(page.error());
  if (body.find("maxResults") == nullptr) page->max_results = kSettingsPerPage;
  auto principal = decode_principal(context, body);
  if (!principal) return base::fail(principal.error());
  const std::string name = body.string_or("name", "");
  const std::string value = body.string_or("value", "");
  if (name.empty() && !value.empty()) {
    return invalid("value", "is a filter beside name; give name too");
  }
  // By name: what was put for the principal; where effective, also the account's, then the defaults.
  std::map<std::string, core::AccountSetting> settings;
  if (body.bool_or("effectiveSettings", false)) {
    for (const SettingRow& row : kSettings) {
      settings[std::string(row.name)] = {std::string(row.name), *principal,
                                         std::string(row.fallback)};
    }
  }
  const bool effective = !settings.empty();
  auto put = context.loop.read<std::vector<core::AccountSetting>>([&](const core::State& state) {
    std::vector<core::AccountSetting> found;
    for (const auto& [key, setting] : state.account_settings) {
      const bool own = setting.principal_arn == *principal;
      if (own || (effective && setting.principal_arn.empty())) found.push_back(setting);
    }
    return found;
  });
  if (!put) return base::fail(put.error());
  // The account's come first in the map's order, so that the principal's own win.
  for (const core::AccountSetting& setting : *put) {
    settings[setting.name] = {setting.name, *principal, setting.value};
  }
  Json list = Json::array();
  Json reply = Json::object();
  std::string last;
  for (auto at = page->after.empty() ? settings.begin() : settings.upper_bound(page->after);
       at != settings.end(); ++at) {
    const core::AccountSetting& setting = at->second;
    if ((!name.empty() && setting.name != name) || (!value.empty() && setting.value != value)) {
      continue;
    }
    if (list.as_array().size() == page->max_results) {
      reply.set("nextToken", codec::encode_page_token(last));
      break;
    }
    list.push(encode_setting(context, setting));
    last = setting.name;
  }
  reply.set("settings", std::move(list));
  return ApiReply{std::move(reply), {}};
}

}  // namespace cotenant::server::api
