#include "adapters/process_record.h"

#include <fmt/format.h>

#include <charconv>

#include "base/private_file.h"
#include "codec/json.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using codec::Json;

constexpr std::int64_t kProcessFormat = 1;

Json user_json(const ProcessUser& user) {
  Json groups = Json::array();
  for (const gid_t group : user.groups) groups.push(static_cast<std::int64_t>(group));
  return Json::object({{"uid", static_cast<std::int64_t>(user.uid)},
                       {"gid", static_cast<std::int64_t>(user.gid)},
                       {"groups", std::move(groups)}});
}

ProcessUser user_from(const Json& json) {
  ProcessUser user;
  user.uid = static_cast<uid_t>(json.integer_or("uid", 0));
  user.gid = static_cast<gid_t>(json.integer_or("gid", 0));
  for (const Json& group : json.array_or_empty("groups")) {
    if (group.is_integer()) user.groups.push_back(static_cast<gid_t>(group.as_integer()));
  }
  return user;
}

Json bindings_json(const std::vector<core::NetworkBinding>& bindings) {
  Json array = Json::array();
  for (const core::NetworkBinding& binding : bindings) {
    array.push(Json::object({{"ip", binding.bind_ip},
                             {"containerPort", binding.container_port},
                             {"hostPort", binding.host_port},
                             {"protocol", core::to_string(binding.protocol)}}));
  }
  return array;
}

core::NetworkBinding binding_from(const Json& json) {
  return {json.string_or("ip", ""), static_cast<int>(json.integer_or("containerPort", 0)),
          static_cast<int>(json.integer_or("hostPort", 0)),
          core::parse_protocol(json.string_or("protocol", "")).value_or(core::Protocol::kTcp)};
}

// The lines "NAME VALUE" of a record of the shim.
std::map<std::string, std::string> record_lines(const std::string& path) {
  std::map<std::string, std::string> lines;
  const auto text = base::read_private_file(path, base::Privacy::kAny);
  if (!text || !*text) return lines;
  std::string_view rest = **text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    lines.emplace(line.substr(0, blank), line.substr(blank + 1));
  }
  return lines;
}

std::optional<std::int64_t> number_in(const std::map<std::string, std::string>& lines,
                                      const std::string& name) {
  const auto found = lines.find(name);
  if (found == lines.end()) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [at, error] = std::from_chars(found->second.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

}  // namespace

bool is_process_id(std::string_view name) {
  constexpr std::size_t kIdChars = 64;
  return name.size() == kIdChars &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string encode_process_config(const ProcessConfig& config) {
  Json labels = Json::object();
  for (const auto& [name, value] : config.labels) labels.set(name, value);
  Json program = Json::array();
  for (const std::string& word : config.program) program.push(word);
  Json environment = Json::array();
  for (const ports::EnvironmentVariable& variable : config.environment) {
    environment.push(Json::object({{"name", variable.name}, {"value", variable.value}}));
  }
  Json limits = Json::array();
  for (const ProcessLimit& limit : config.limits) {
    limits.push(
        Json::object({{"resource", limit.resource}, {"soft", limit.soft}, {"hard", limit.hard}}));
  }
  Json json = Json::object({{"format", kProcessFormat},
                            {"name", config.name},
                            {"image", config.image},
                            {"labels", std::move(labels)},
                            {"program", std::move(program)},
                            {"environment", std::move(environment)},
                            {"workingDirectory", config.working_directory},
                            {"limits", std::move(limits)},
                            {"keepStdin", config.keep_stdin},
                            {"logBytes", config.log_bytes},
                            {"logFiles", config.log_files},
                            {"bindings", bindings_json(config.bindings)}});
  if (config.user) json.set("user", user_json(*config.user));
  return json.dump_pretty() + "\n";
}

base::Result<ProcessConfig> decode_process_config(std::string_view text) {
  const base::Result<Json> json = Json::parse(text);
  if (!json) return fail(json.error());
  if (json->integer_or("format", 0) != kProcessFormat) {
    return fail(ErrorCode::kProtocol, "is another version's");
  }
  ProcessConfig config;
  config.name = json->string_or("name", "");
  config.image = json->string_or("image", "");
  if (const Json* labels = json->find("labels"); labels != nullptr && labels->is_object()) {
    for (const Json::Member& label : labels->as_object()) {
      if (label.value.is_string()) config.labels[label.name] = label.value.as_string();
    }
  }
  for (const Json& word : json->array_or_empty("program")) {
    if (word.is_string()) config.program.push_back(word.as_string());
  }
  for (const Json& variable : json->array_or_empty("environment")) {
    config.environment.push_back({variable.string_or("name", ""), variable.string_or("value", "")});
  }
  config.working_directory = json->string_or("workingDirectory", "/");
  for (const Json& limit : json->array_or_empty("limits")) {
    config.limits.push_back({static_cast<int>(limit.integer_or("resource", 0)),
                             limit.integer_or("soft", 0), limit.integer_or("hard", 0)});
  }
  config.keep_stdin = json->bool_or("keepStdin", false);
  config.log_bytes = json->integer_or("logBytes", config.log_bytes);
  config.log_files = json->integer_or("logFiles", config.log_files);
  for (const Json& binding : json->array_or_empty("bindings")) {
    config.bindings.push_back(binding_from(binding));
  }
  if (const Json* user = json->find("user"); user != nullptr) config.user = user_from(*user);
  if (config.program.empty()) return fail(ErrorCode::kProtocol, "has no program");
  return config;
}

std::optional<ProcessStateRecord> read_process_state(const std::string& folder) {
  const auto lines = record_lines(folder + "/state");
  const auto shim = number_in(lines, "shim");
  const auto pid = number_in(lines, "pid");
  if (!shim || !pid || *shim <= 0 || *pid <= 0) return std::nullopt;
  ProcessStateRecord record;
  record.shim = static_cast<pid_t>(*shim);
  record.pid = static_cast<pid_t>(*pid);
  record.boot_id = lines.contains("boot") ? lines.at("boot") : "";
  record.started_at_ms = number_in(lines, "started_ms").value_or(0);
  return record;
}

std::optional<ProcessExitRecord> read_process_exit(const std::string& folder) {
  const auto lines = record_lines(folder + "/exit");
  const auto finished_ms = number_in(lines, "finished_ms");
  if (!finished_ms) return std::nullopt;
  ProcessExitRecord record;
  record.finished_at_ms = *finished_ms;
  if (const auto code = number_in(lines, "code")) record.code = static_cast<int>(*code);
  if (const auto error = lines.find("error"); error != lines.end()) record.error = error->second;
  return record;
}

base::Status write_process_exit(const std::string& folder, const ProcessExitRecord& record) {
  std::string text = fmt::format("finished_ms {}\n", record.finished_at_ms);
  if (record.code) text += fmt::format("code {}\n", *record.code);
  if (!record.error.empty()) text += fmt::format("error {}\n", record.error);
  return base::write_private_file(folder + "/exit", text);
}

}  // namespace cotenant::adapters
