#include "cli/task_queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/table.h"
#include "core/instance.h"

namespace cotenant::cli {
namespace {

using codec::Json;

std::string family_revision(const Json& task) {
  const std::string arn = task.string_or("taskDefinitionArn", "");
  return arn.substr(arn.rfind('/') + 1);
}

std::string gpu_text(const Json& container) {
  std::string text;
  for (const Json& uuid : container.array_or_empty("gpuIds")) {
    text += (text.empty() ? "" : ",") + uuid.as_string().substr(0, 12);
  }
  return text.empty() ? "-" : text;
}

std::string share_text(const Json& container) {
  if (const Json* strategy = container.find("gpuSharingStrategy")) {
    if (const Json* mps = strategy->find("nvidiaMps")) {
      std::string text = fmt::format("{} MiB", mps->integer_or("memory", 0));
      if (const Json* percent = mps->find("maxComputePercent")) {
        text += fmt::format(" {}%", percent->as_integer());
      }
      return text;
    }
  }
  return container.array_or_empty("gpuIds").empty() ? "-" : "whole";
}

// What a reader wants to know of an end: the container's own reason, its exit code, or the task's
// reason.
std::string note(const Json& task, const Json& container) {
  if (const std::string reason = container.string_or("reason", ""); !reason.empty()) return reason;
  std::string text;
  if (const Json* code = container.find("exitCode"))
    text = fmt::format("exit {}", code->as_integer());
  const std::string stopped = task.string_or("stoppedReason", "");
  if (!stopped.empty()) text += (text.empty() ? "" : "; ") + stopped;
  return text;
}

double number_or_zero(const Json& object, std::string_view member) {
  const Json* value = object.find(member);
  return value != nullptr && value->is_number() ? value->as_double() : 0;
}

std::string age(const Json& task) {
  const double stopped = number_or_zero(task, "stoppedAt");
  const double until =
      stopped > 0 ? stopped : static_cast<double>(base::SystemClock().now_ms()) / 1000.0;
  return duration_text(until - number_or_zero(task, "createdAt"));
}

// An empty or very short beginning, say of an unset shell variable, must not name a task.
constexpr std::size_t kDigitsMin = 4;

}  // namespace

base::Result<std::vector<Json>> describe_tasks(const ApiClient& client,
                                               const std::vector<std::string>& arns) {
  std::vector<Json> tasks;
  for (std::size_t at = 0; at < arns.size(); at += base::limits::kPageItems) {
    Json names = Json::array();
    for (std::size_t i = at; i < std::min(arns.size(), at + base::limits::kPageItems); ++i) {
      names.push(arns[i]);
    }
    auto reply = client.call("DescribeTasks", Json::object({{"tasks", std::move(names)}}));
    if (!reply) return base::fail(reply.error());
    for (const Json& task : reply->array_or_empty("tasks")) tasks.push_back(task);
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const Json& a, const Json& b) {
    return number_or_zero(a, "createdAt") < number_or_zero(b, "createdAt");
  });
  return tasks;
}

base::Result<std::vector<Json>> wait_for_status(const ApiClient& client,
                                                const std::vector<std::string>& arns,
                                                const std::string& status, int timeout_s) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s);
  for (;;) {
    auto tasks = describe_tasks(client, arns);
    if (!tasks) return tasks;
    const auto there = [&](const Json& task) {
      const std::string last = task.string_or("lastStatus", "");
      return last == status || last == "STOPPED";
    };
    if (tasks->size() == arns.size() && std::all_of(tasks->begin(), tasks->end(), there))
      return tasks;
    if (std::chrono::steady_clock::now() >= deadline) {
      return base::fail(base::ErrorCode::kTimeout,
                        fmt::format("not every task is {} after {} s; `cotenant ps` shows them",
                                    status, timeout_s));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

bool any_without_isolation(const ApiClient& client, const std::vector<Json>& tasks) {
  std::set<std::string> arns;
  for (const Json& task : tasks) {
    if (std::string arn = task.string_or("containerInstanceArn", ""); !arn.empty())
      arns.insert(arn);
  }
  auto at = arns.begin();
  while (at != arns.end()) {
    Json page = Json::array();
    for (std::size_t i = 0; i < base::limits::kPageItems && at != arns.end(); ++i) page.push(*at++);
    const auto reply = client.call("DescribeContainerInstances",
                                   Json::object({{"containerInstances", std::move(page)}}));
    if (!reply) return false;
    for (const Json& instance : reply->array_or_empty("containerInstances")) {
      for (const Json& attribute : instance.array_or_empty("attributes")) {
        if (attribute.string_or("name", "") == core::kIsolationAttribute) return true;
      }
    }
  }
  return false;
}

std::string task_table(const std::vector<Json>& tasks) {
  Table table({"TASK", "DEFINITION", "CONTAINER", "STATUS", "GPU", "SHARE", "AGE", "NOTE"});
  for (const Json& task : tasks) {
    for (const Json& container : task.array_or_empty("containers")) {
      const bool stopping = task.string_or("desiredStatus", "") == "STOPPED" &&
                            container.string_or("lastStatus", "") != "STOPPED";
      table.add({short_id(task.string_or("taskArn", "")), family_revision(task),
                 container.string_or("name", ""),
                 stopping ? "STOPPING" : container.string_or("lastStatus", ""), gpu_text(container),
                 share_text(container), age(task), note(task, container)});
    }
  }
  return table.text();
}

base::Result<std::string> match_task(const std::vector<std::string>& arns,
                                     const std::string& name) {
  if (name.rfind("arn:", 0) == 0) return name;
  if (name.size() < kDigitsMin) {
    return base::fail(
        base::ErrorCode::kClient,
        fmt::format("'{}': give at least the first {} digits of a task's id", name, kDigitsMin));
  }
  std::vector<std::string> matches;
  for (const std::string& arn : arns) {
    if (arn.substr(arn.rfind('/') + 1).rfind(name, 0) == 0) matches.push_back(arn);
  }
  if (matches.size() > 1) {
    return base::fail(
        base::ErrorCode::kClient,
        fmt::format("{}: {} tasks begin like this; give more digits", name, matches.size()));
  }
  // An unknown one goes to the server as it is: it says what is wrong.
  return matches.empty() ? name : matches.front();
}

base::Result<std::string> resolve_task(const ApiClient& client, const std::string& name) {
  std::vector<std::string> arns;
  for (const char* desired : {"RUNNING", "STOPPED"}) {
    auto page =
        client.list("ListTasks", "taskArns", codec::Json::object({{"desiredStatus", desired}}));
    if (!page) return base::fail(page.error());
    arns.insert(arns.end(), page->begin(), page->end());
  }
  return match_task(arns, name);
}

}  // namespace cotenant::cli
