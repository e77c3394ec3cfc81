#include "api_case_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "case_file.h"
#include "codec/api_schema.h"
#include "codec/json.h"
#include "core/instance.h"
#include "json_match.h"
#include "test_plane.h"

namespace cotenant::test {
namespace {

using base::ErrorCode;
using base::fail;
using base::Status;
using codec::Json;

constexpr std::string_view kEcsPrefix = "AmazonEC2ContainerServiceV20141113.";
// Enough to see what is wrong; the rest of a story follows from its beginning.
constexpr std::size_t kMaxFailures = 20;
constexpr std::size_t kMaxFailureBytes = 4000;

Status wrong(std::string text) {
  return fail(ErrorCode::kClient, std::move(text));
}

// The first word, and the rest of the line.
std::pair<std::string, std::string> split_word(const std::string& text) {
  const std::size_t end = text.find_first_of(" \t\n");
  if (end == std::string::npos) return {text, ""};
  const std::size_t next = text.find_first_not_of(" \t\n", end);
  return {text.substr(0, end), next == std::string::npos ? "" : text.substr(next)};
}

std::string id_of(const std::string& id_or_arn) {
  return id_or_arn.substr(id_or_arn.rfind('/') + 1);
}

// {"cluster", "cpu", "memory", "ports", "sharing", "simulated", "running", "gpus": [{"uuid", "model",
// "memoryMib",
// "slots"}]}, all of them optional.
core::InstanceRegistration make_registration(const std::string& id, const Json& json) {
  core::InstanceRegistration registration;
  registration.id = id;
  registration.cluster = json.string_or("cluster", "default");
  registration.cpu_units = json.integer_or("cpu", 4096);
  registration.memory_mib = json.integer_or("memory", 16384);
  registration.agent_version = "1.2.3";
  registration.engine_version = "20.10";
  registration.gpu_simulated = json.bool_or("simulated", false);
  if (json.bool_or("sharing", true)) registration.attributes.emplace(core::kSharingAttribute, "");
  for (const Json& port : json.array_or_empty("ports")) {
    registration.reserved_ports.push_back(static_cast<int>(port.as_integer()));
  }
  for (const Json& gpu : json.array_or_empty("gpus")) {
    core::GpuDevice device;
    device.uuid = gpu.string_or("uuid", "");
    device.model = gpu.string_or("model", "NVIDIA L4");
    if (gpu.find("memoryMib") != nullptr) device.memory_mib = gpu.integer_or("memoryMib", 0);
    device.client_slots = static_cast<int>(gpu.integer_or("slots", 48));
    registration.gpus.push_back(std::move(device));
  }
  return registration;
}

// "a RUNNING", "a STOPPED exit=3 reason="its words"".
base::Result<core::ContainerObservation> parse_observation(const std::string& text) {
  core::ContainerObservation seen;
  auto [name, rest] = split_word(text);
  auto [status_word, details] = split_word(rest);
  const auto status = core::parse_container_status(status_word);
  if (!status) return fail(ErrorCode::kClient, fmt::format("'{}' is no status", status_word));
  seen.name = name;
  seen.status = *status;
  seen.runtime_id = "engine-" + name;
  while (!details.empty()) {
    if (details.rfind("exit=", 0) == 0) {
      auto [word, more] = split_word(details);
      seen.exit_code = std::atoi(word.c_str() + 5);
      details = more;
    } else if (details.rfind("health=", 0) == 0) {
      auto [word, more] = split_word(details);
      const auto health = core::parse_health_status(word.substr(7));
      if (!health) return fail(ErrorCode::kClient, fmt::format("'{}' is no health", word));
      seen.health = *health;
      details = more;
    } else if (details.rfind("address=", 0) == 0) {
      auto [word, more] = split_word(details);
      seen.address = word.substr(8);
      details = more;
    } else if (details.rfind("bound=", 0) == 0) {
      // The container's port and the host's: "bound=80:49153".
      auto [word, more] = split_word(details);
      const std::size_t colon = word.find(':');
      if (colon == std::string::npos) return fail(ErrorCode::kClient, "bound=80:49153 is the form");
      seen.bindings.push_back(
          {"0.0.0.0", std::atoi(word.c_str() + 6), std::atoi(word.c_str() + colon + 1)});
      details = more;
    } else if (details.rfind("reason=\"", 0) == 0 && details.find('"', 8) != std::string::npos) {
      const std::size_t end = details.find('"', 8);
      seen.reason = details.substr(8, end - 8);
      details = split_word(details.substr(end + 1)).second;
    } else {
      return fail(ErrorCode::kClient, fmt::format("'{}' is no part of a report", details));
    }
  }
  return seen;
}

// A request with its macros, rows and variables filled in.
struct Request {
  ports::HttpRequest http;
  const codec::Operation* operation = nullptr;
  int status = 200;
  std::optional<Json> reply;
  std::vector<std::string> warnings;
  bool no_warnings = false;
};

class Runner {
 public:
  explicit Runner(std::string path) : path_(std::move(path)) {}

  std::vector<std::string> run() {
    std::ifstream file(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    auto steps = parse_case_file(text);
    if (!steps) return {fmt::format("{}: {}", path_, steps.error().message)};
    for (const CaseStep& step : *steps) {
      if (failures_.size() >= kMaxFailures) break;
      if (step.is_request) {
        run_request(step);
      } else {
        note(step.lines.front(), step.lines.front().key, run_verb(step.lines.front()));
      }
    }
    return std::move(failures_);
  }

 private:
  void note(const CaseLine& line, const std::string& what, const Status& status) {
    if (status) return;
    const std::string text = status.error().message.substr(0, kMaxFailureBytes);
    failures_.push_back(fmt::format("{}:{}: {}: {}", path_, line.line, what, text));
  }

  // --- requests ---

  void run_request(const CaseStep& step) {
    const CaseLine& name = step.lines.front();
    const CaseLine* each = step.find("each");
    if (each == nullptr) return note(name, name.value, run_once(step, {}));
    std::istringstream rows(each->value);
    std::string row;
    for (int line = each->line; std::getline(rows, row); ++line) {
      if (row.find_first_not_of(" \t") == std::string::npos) continue;
      const CaseLine at{"each", row, line};
      note(at, fmt::format("{} [{}]", name.value, row.substr(row.find_first_not_of(' '), 100)),
           run_once(step, split_columns(row)));
    }
  }

  // The line's value for this row.
  base::Result<std::string> filled(const std::string& value,
                                   const std::vector<std::string>& columns) const {
    std::string text = value;
    for (std::size_t i = columns.size(); i > 0; --i) {
      const std::string mark = fmt::format("%{}", i);
      for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) {
        text.replace(at, mark.size(), columns[i - 1]);
        at += columns[i - 1].size();
      }
    }
    return expand_macros(text);
  }

  Status set_line(const std::string& key, const std::string& value, Request& request) const {
    if (key == "target") {
      const bool full = value.find('.') != std::string::npos;
      const std::string target = full ? value : std::string(kEcsPrefix) + value;
      request.http.headers.push_back({"X-Amz-Target", target});
      if (target.rfind(kEcsPrefix, 0) == 0) {
        request.operation = codec::find_operation(target.substr(kEcsPrefix.size()));
      }
    } else if (key == "header") {
      const std::size_t colon = value.find(':');
      if (colon == std::string::npos) return wrong("header: must be `Name: value`");
      const std::size_t at = value.find_first_not_of(' ', colon + 1);
      request.http.headers.push_back(
          {value.substr(0, colon), at == std::string::npos ? "" : value.substr(at)});
    } else if (key == "method") {
      request.http.method = value;
    } else if (key == "path") {
      request.http.target = value;
    } else if (key == "body") {
      auto body = substitute(value, variables_);
      if (!body) return fail(body.error());
      request.http.body = std::move(*body);
    } else if (key == "status") {
      request.status = std::atoi(value.c_str());
    } else if (key == "reply") {
      auto reply = Json::parse(value);
      if (!reply) return wrong("reply: " + reply.error().message);
      request.reply = std::move(*reply);
    } else if (key == "warning") {
      if (value == "none") {
        request.no_warnings = true;
      } else {
        request.warnings.push_back(value);
      }
    }
    return {};
  }

  base::Result<Request> make_request(const CaseStep& step,
                                     const std::vector<std::string>& columns) const {
    Request request;
    request.http.method = "POST";
    for (const CaseLine& line : step.lines) {
      if (line.key == "name" || line.key == "each") continue;
      auto value = filled(line.value, columns);
      if (!value) return fail(value.error());
      if (auto status = set_line(line.key, *value, request); !status) return fail(status.error());
    }
    // `header: Host: none` sends none.
    auto& headers = request.http.headers;
    if (!ports::has_header(headers, "Host")) headers.push_back({"Host", "127.0.0.1:8484"});
    std::erase_if(headers, [](const ports::HttpHeader& header) {
      return header.name == "Host" && header.value == "none";
    });
    return request;
  }

  Status run_once(const CaseStep& step, const std::vector<std::string>& columns) {
    auto request = make_request(step, columns);
    if (!request) return fail(request.error());
    return check(*request, plane_.send(request->http));
  }

  Status check(const Request& request, const ports::HttpResponse& response) {
    if (response.status != request.status) {
      return wrong(fmt::format("came status {}, wanted {}: {}", response.status, request.status,
                               response.body.substr(0, 2000)));
    }
    auto body = Json::parse(response.body);
    if (!body) return wrong("the reply is no JSON: " + body.error().message);
    if (response.status == 200 && request.operation != nullptr) {
      if (auto status = codec::check_output(*request.operation, *body); !status) {
        return wrong("the reply is not of ECS's model: " + status.error().message);
      }
    }
    if (auto status = check_warnings(request, response); !status) return status;
    if (!request.reply) return {};
    return match_json(*request.reply, *body, variables_);
  }

  static Status check_warnings(const Request& request, const ports::HttpResponse& response) {
    std::vector<std::string> came;
    for (const ports::HttpHeader& header : response.headers) {
      if (header.name == "X-Cotenant-Warning") came.push_back(header.value);
    }
    const std::string shown = fmt::format("[{}]", fmt::join(came, "; "));
    if (request.no_warnings && !came.empty()) return wrong("wanted no warning, came " + shown);
    for (const std::string& wanted : request.warnings) {
      const bool there = std::any_of(came.begin(), came.end(), [&](const std::string& text) {
        return text.find(wanted) != std::string::npos;
      });
      if (!there) return wrong(fmt::format("wanted the warning '{}', came {}", wanted, shown));
    }
    return {};
  }

  // --- what is no request ---

  Status run_verb(const CaseLine& line) {
    auto value = filled(line.value, {});
    if (!value) return fail(value.error());
    auto text = line.key == "desired" ? value : substitute(*value, variables_);
    if (!text) return fail(text.error());
    using Verb = Status (Runner::*)(const std::string&);
    static const std::map<std::string, Verb> verbs = {
        {"instance", &Runner::join},   {"refused", &Runner::refused},
        {"observe", &Runner::observe}, {"disconnect", &Runner::disconnect},
        {"desired", &Runner::desired}, {"time", &Runner::time},
        {"restart", &Runner::restart}, {"store", &Runner::store}};
    return (this->*verbs.at(line.key))(*text);
  }

  base::Result<core::InstanceRegistration> registration(const std::string& text) {
    const auto [id, rest] = split_word(text);
    if (rest.empty() && registrations_.count(id) > 0) return registrations_.at(id);
    auto json = Json::parse(rest.empty() ? "{}" : rest);
    if (!json) return fail(json.error());
    return make_registration(id, *json);
  }

  // The ids of "running" of `ID {"running": ["<ARN>"], ...}`.
  static std::vector<std::string> running_tasks(const std::string& text) {
    std::vector<std::string> ids;
    const auto json = Json::parse(split_word(text).second);
    if (!json) return ids;
    for (const Json& task : json->array_or_empty("running")) ids.push_back(id_of(task.as_string()));
    return ids;
  }

  Status join(const std::string& text) {
    auto now = registration(text);
    if (!now) return fail(now.error());
    registrations_[now->id] = *now;
    return plane_.connect(*now, running_tasks(text));
  }

  Status refused(const std::string& text) {
    const std::size_t arrow = text.rfind("=> ");
    if (arrow == std::string::npos) return wrong("must be `ID JSON => text`");
    auto now = registration(text.substr(0, arrow));
    if (!now) return fail(now.error());
    const auto status = plane_.connect(*now, running_tasks(text.substr(0, arrow)));
    const std::string wanted = text.substr(arrow + 3);
    if (status) return wrong("the hello was accepted");
    if (status.error().message.find(wanted) != std::string::npos) return {};
    return wrong(fmt::format("came '{}', wanted '{}'", status.error().message, wanted));
  }

  Status observe(const std::string& text) {
    const auto [task, rest] = split_word(text);
    std::vector<core::ContainerObservation> seen;
    for (std::size_t at = 0; at < rest.size();) {
      const std::size_t comma = std::min(rest.find(", ", at), rest.size());
      auto one = parse_observation(rest.substr(at, comma - at));
      if (!one) return fail(one.error());
      seen.push_back(std::move(*one));
      at = comma + 2;
    }
    return plane_.observe(id_of(task), std::move(seen));
  }

  Status disconnect(const std::string& id) {
    plane_.disconnect(id);
    return {};
  }

  Status desired(const std::string& text) {
    const auto [id, rest] = split_word(text);
    auto wanted = Json::parse(rest);
    if (!wanted) return fail(wanted.error());
    Json tasks = Json::array();
    for (auto& [task_id, task] : plane_.desired(id)) tasks.push(std::move(task));
    return match_json(*wanted, tasks, variables_);
  }

  Status time(const std::string& text) {
    std::int64_t seconds = 0;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), seconds);
    if (text.front() != '+' || error != std::errc() || std::string_view(end) != "s") {
      return wrong("must be `+SECONDSs`");
    }
    plane_.advance(seconds * 1000);
    return {};
  }

  Status restart(const std::string&) { return plane_.restart(); }

  Status store(const std::string& text) {
    if (text != "refuse" && text != "works") return wrong("must be refuse or works");
    plane_.set_store_works(text == "works");
    return {};
  }

  const std::string path_;
  TestPlane plane_;
  Variables variables_;
  std::map<std::string, core::InstanceRegistration> registrations_;
  std::vector<std::string> failures_;
};

}  // namespace

std::vector<std::string> run_case_file(const std::string& path) {
  return Runner(path).run();
}

}  // namespace cotenant::test
