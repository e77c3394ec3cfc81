// bench-run-task: RunTask (count 10) from several callers, each task stopped again, against an ECS
// endpoint; prints one line: tasks/s, and percentiles of RunTask.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "codec/json.h"
#include "keep_alive_client.h"
#include "live_agent.h"

namespace {

using cotenant::codec::Json;
using cotenant::tests::KeepAliveClient;
using cotenant::tests::LiveAgent;
using Clock = std::chrono::steady_clock;

struct Options {
  int port = 0;
  int callers = 4;
  int listers = 0;
  int agents = 0;
  double seconds = 8;
  int hold = 20;  // batches that a caller lets run before it stops them; above that, one for one
  std::int64_t fill = 0;  // place so many tasks, say so, and keep them until standard input ends
  std::string definition = "bench";
  std::string headers;
  std::string cluster = "default";
};

struct Counted {
  std::int64_t tasks = 0;
  std::int64_t stopped = 0;
  std::int64_t failures = 0;
  std::int64_t errors = 0;
  std::string error;
  std::vector<double> run_ms;
};

std::vector<std::string> task_arns(const Json& answer) {
  std::vector<std::string> arns;
  for (const Json& task : answer.array_or_empty("tasks")) {
    arns.push_back(task.string_or("taskArn", ""));
  }
  return arns;
}

class Caller {
 public:
  Caller(const Options& options, const std::atomic<bool>& over)
      : options_(options), over_(over), client_(options.port, options.headers) {}

  void run() {
    std::deque<std::vector<std::string>> running;
    while (!over_) {
      running.push_back(run_task());
      if (static_cast<int>(running.size()) <= options_.hold) continue;
      stop(running.front());
      running.pop_front();
    }
    for (const auto& arns : running) stop(arns);
  }

  Counted counted;

 private:
  std::vector<std::string> run_task() {
    const auto began = Clock::now();
    const auto response = client_.post(
        "RunTask", fmt::format(R"({{"cluster":"{}","taskDefinition":"{}","count":10}})",
                               options_.cluster, options_.definition));
    const std::chrono::duration<double, std::milli> took = Clock::now() - began;
    if (!response || response->status != 200) {
      note_error(response ? response->body : response.error().message);
      return {};
    }
    const auto answer = Json::parse(response->body);
    if (!answer) {
      note_error("not JSON: " + response->body);
      return {};
    }
    counted.run_ms.push_back(took.count());
    counted.failures += static_cast<std::int64_t>(answer->array_or_empty("failures").size());
    std::vector<std::string> arns = task_arns(*answer);
    if (!over_) counted.tasks += static_cast<std::int64_t>(arns.size());
    return arns;
  }

  void stop(const std::vector<std::string>& arns) {
    for (const std::string& arn : arns) {
      const auto response = client_.post(
          "StopTask", fmt::format(R"({{"cluster":"{}","task":"{}"}})", options_.cluster, arn));
      if (!response || response->status != 200) {
        note_error(response ? response->body : response.error().message);
      } else if (!over_) {
        ++counted.stopped;
      }
    }
  }

  void note_error(const std::string& text) {
    ++counted.errors;
    counted.error = text.substr(0, 300);
  }

  const Options& options_;
  const std::atomic<bool>& over_;
  KeepAliveClient client_;
};

void list_on(const Options& options, const std::atomic<bool>& over,
             std::atomic<std::int64_t>& lists) {
  KeepAliveClient client(options.port, options.headers);
  while (!over) {
    if (client.post("ListTasks", fmt::format(R"({{"cluster":"{}"}})", options.cluster))) ++lists;
  }
}

double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

bool connect_agents(const Options& options, cotenant::net::WebSocketClient& sockets,
                    std::vector<std::unique_ptr<LiveAgent>>& agents) {
  const std::string endpoint = fmt::format("http://127.0.0.1:{}", options.port);
  for (int i = 0; i < options.agents; ++i) {
    auto agent = LiveAgent::connect(
        sockets, endpoint, cotenant::tests::live_registration(fmt::format("{:032x}", i + 1), 8), 1);
    if (!agent) return false;
    agents.push_back(std::move(*agent));
  }
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  return std::all_of(agents.begin(), agents.end(), [&](const auto& agent) {
    while (!agent->connected() && Clock::now() < deadline) std::this_thread::yield();
    return agent->connected();
  });
}

int fill(const Options& options) {
  KeepAliveClient client(options.port, options.headers);
  std::int64_t placed = 0;
  while (placed < options.fill) {
    const auto response =
        client.post("RunTask", fmt::format(R"({{"cluster":"{}","taskDefinition":"{}","count":10}})",
                                           options.cluster, options.definition));
    const auto answer = response ? Json::parse(response->body) : Json::parse("null");
    const std::size_t tasks = answer ? answer->array_or_empty("tasks").size() : 0;
    if (tasks == 0) {
      fmt::print(stderr, "bench-run-task: no more than {} tasks: {}\n", placed,
                 response ? response->body.substr(0, 300) : response.error().message);
      return 1;
    }
    placed += static_cast<std::int64_t>(tasks);
  }
  fmt::print("placed={}\n", placed);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}

int measure(const Options& options) {
  auto sockets = cotenant::net::WebSocketClient::create();
  std::vector<std::unique_ptr<LiveAgent>> agents;
  if (!sockets || !connect_agents(options, **sockets, agents)) {
    fmt::print(stderr, "bench-run-task: the agents cannot connect\n");
    return 1;
  }
  if (options.fill > 0) return fill(options);
  std::atomic<bool> over{false};
  std::atomic<std::int64_t> lists{0};
  std::vector<std::unique_ptr<Caller>> callers;
  std::vector<std::thread> threads;
  const auto began = Clock::now();
  for (int i = 0; i < options.callers; ++i) {
    callers.push_back(std::make_unique<Caller>(options, over));
    threads.emplace_back([caller = callers.back().get()] { caller->run(); });
  }
  for (int i = 0; i < options.listers; ++i) {
    threads.emplace_back([&] { list_on(options, over, lists); });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  over = true;
  const std::chrono::duration<double> took = Clock::now() - began;
  for (std::thread& thread : threads) thread.join();

  Counted total;
  for (const auto& caller : callers) {
    total.tasks += caller->counted.tasks;
    total.stopped += caller->counted.stopped;
    total.failures += caller->counted.failures;
    total.errors += caller->counted.errors;
    if (!caller->counted.error.empty()) total.error = caller->counted.error;
    total.run_ms.insert(total.run_ms.end(), caller->counted.run_ms.begin(),
                        caller->counted.run_ms.end());
  }
  if (total.errors > 0)
    fmt::print(stderr, "bench-run-task: {} errors: {}\n", total.errors, total.error);
  fmt::print(
      "tasks_per_s={:.0f} stopped_per_s={:.0f} lists_per_s={:.0f} run_p50_ms={:.2f} "
      "run_p99_ms={:.2f} not_placed={} errors={}\n",
      static_cast<double>(total.tasks) / took.count(),
      static_cast<double>(total.stopped) / took.count(), static_cast<double>(lists) / took.count(),
      percentile(total.run_ms, 0.5), percentile(total.run_ms, 0.99), total.failures, total.errors);
  return total.errors == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--port") options.port = std::atoi(value);
    if (name == "--callers") options.callers = std::atoi(value);
    if (name == "--listers") options.listers = std::atoi(value);
    if (name == "--agents") options.agents = std::atoi(value);
    if (name == "--seconds") options.seconds = std::atof(value);
    if (name == "--hold") options.hold = std::atoi(value);
    if (name == "--fill") options.fill = std::atoll(value);
    if (name == "--header") options.headers += std::string(value) + "\r\n";
  }
  if (options.port == 0) {
    fmt::print(stderr,
               "usage: bench-run-task --port N [--callers N] [--listers N] [--agents N] "
               "[--seconds N] [--hold N] [--header LINE]\n");
    return 2;
  }
  return measure(options);
}
