// MPS v3: the verbs of features and of memacct. The limits themselves are set by NVML and nvidia-smi.
#include <fmt/format.h>

#include "mps/v3_arguments.h"

namespace gpusim::mps {
namespace {

struct FeatureRow {
  const char* name;
  bool Features::*member;
};
constexpr FeatureRow kFeatures[] = {{"memacct", &Features::memacct},
                                    {"context-share", &Features::context_share}};

std::string switch_feature(ControlDaemon& daemon, Console* console, const std::string& name,
                           bool on) {
  for (const FeatureRow& feature : kFeatures) {
    if (name != feature.name) continue;
    daemon.state().features.*feature.member = on;
    return "";
  }
  return fail(console, fmt::format("no feature '{}': memacct or context-share", name));
}

}  // namespace

std::string v3_feature_enable(ControlDaemon& daemon, Console* console,
                              const V3Arguments& arguments) {
  return switch_feature(daemon, console, arguments.positional[0], true);
}

std::string v3_feature_disable(ControlDaemon& daemon, Console* console,
                               const V3Arguments& arguments) {
  return switch_feature(daemon, console, arguments.positional[0], false);
}

std::string v3_feature_describe(ControlDaemon& daemon, Console* console,
                                const V3Arguments& arguments) {
  Table table = {{"feature", "state", "module", "covers"}};
  for (const FeatureRow& feature : kFeatures) {
    if (!arguments.positional.empty() && arguments.positional[0] != feature.name) continue;
    const bool is_on = daemon.state().features.*feature.member;
    const bool is_default = is_on == Features().*feature.member;
    table.push_back(
        {feature.name,
         fmt::format("{}{}", is_on ? "enabled" : "disabled", is_default ? " (default)" : ""),
         feature.name, "-"});
  }
  if (table.size() == 1) {
    return fail(console,
                fmt::format("no feature '{}': memacct or context-share", arguments.positional[0]));
  }
  return answer_table(console, arguments, table);
}

std::string v3_memacct_set(ControlDaemon& daemon, Console* console, const V3Arguments& arguments) {
  if (!arguments.has("audit_log")) return fail(console, "memacct set takes audit_log=true|false");
  bool on = false;
  const auto error = read_v3_flag(arguments, "audit_log", &on);
  if (error) return fail(console, *error);
  daemon.state().features.audit_log = on;
  return "";
}

// Columns ours.
std::string v3_memacct_describe(ControlDaemon& daemon, Console* console,
                                const V3Arguments& arguments) {
  return answer_table(
      console, arguments,
      {{"key", "value"}, {"audit_log", daemon.state().features.audit_log ? "true" : "false"}});
}

}  // namespace gpusim::mps
