// Account settings: kept for whoever asks; cotenant has no feature that one of them governs.
#include <fmt/format.h>

#include "base/limits.h"
#include "core/reducer_rules.h"

namespace cotenant::core::rules {

Result<Outcome> put_account_setting(State& state, const PutAccountSetting& command) {
  const AccountSetting& setting = command.setting;
  const AccountSettingKey key{setting.name, setting.principal_arn};
  Outcome outcome;
  outcome.reply = AccountSettingReply{setting};
  const auto known = state.account_settings.find(key);
  if (setting.value.empty()) {
    if (known == state.account_settings.end()) return outcome;
    outcome.reply = AccountSettingReply{known->second};
    state.account_settings.erase(known);
  } else {
    if (known == state.account_settings.end() &&
        state.account_settings.size() >= base::limits::kAccountSettings) {
      return base::fail(base::ErrorCode::kLimitExceeded,
                        fmt::format("principalArn: there are {} account settings already, the most "
                                    "there can be",
                                    base::limits::kAccountSettings));
    }
    if (known != state.account_settings.end() && known->second.value == setting.value) {
      return outcome;
    }
    state.account_settings[key] = setting;
  }
  outcome.effects.changed_records.insert(
      {RecordKind::kAccountSetting, setting.name + "/" + setting.principal_arn});
  return outcome;
}

}  // namespace cotenant::core::rules
