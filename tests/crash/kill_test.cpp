// kill -9 of the control plane at any moment under load: no acknowledged call is lost, none invented.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "adapters/sqlite_store.h"
#include "base/prng.h"
#include "codec/json.h"
#include "codec/record.h"
#include "keep_alive_client.h"
#include "live_agent.h"
#include "server_process.h"

namespace cotenant::tests {
namespace {

using codec::Json;

// What callers were told, and what they asked for without an answer.
struct Told {
  std::mutex mutex;
  std::map<std::string, std::set<std::string>> ran;  // startedBy -> task ids
  std::set<std::string> unanswered_runs;             // startedBy
  std::set<std::string> stopped;                     // task ids
  std::set<std::string> registered;                  // "family:revision"
  std::atomic<std::int64_t> answered{0};
  std::int64_t surprises = 0;  // answers other than 200
  std::string surprise;
};

std::string last_part(const std::string& arn) {
  return arn.substr(arn.rfind('/') + 1);
}

const char* kDefinition =
    R"({"family":"share","containerDefinitions":[{"name":"main","image":"i","memory":64,)"
    R"("resourceRequirements":[{"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":1500}}}]}]})";

class Caller {
 public:
  Caller(int number, int round, int port, Told& told)
      : name_(fmt::format("r{}-c{}", round, number)),
        client_(port, ""),
        told_(told),
        prng_(static_cast<std::uint64_t>(round * 100 + number)) {}

  // Until the server is gone.
  void work(const std::atomic<bool>& gone) {
    while (!gone && call()) {
    }
  }

 private:
  bool call() {
    const auto dice = prng_.next() % 10;
    if (dice < 5) return run_task();
    if (dice < 9 && !mine_.empty()) return stop_task();
    return register_definition();
  }

  // Nothing: no answer came.
  std::optional<Json> ask(std::string_view operation, const std::string& body) {
    const auto response = client_.post(operation, body);
    const std::lock_guard lock(told_.mutex);
    if (!response) return std::nullopt;
    ++told_.answered;
    auto json = Json::parse(response->body);
    if (response->status != 200 || !json) {
      ++told_.surprises;
      told_.surprise = response->body;
      return Json::object();
    }
    return std::move(*json);
  }

  bool run_task() {
    const std::string started_by = fmt::format("{}-{}", name_, ++calls_);
    const auto answer =
        ask("RunTask", fmt::format(R"({{"taskDefinition":"share","count":{},"startedBy":"{}"}})",
                                   1 + prng_.next() % 10, started_by));
    const std::lock_guard lock(told_.mutex);
    if (!answer) {
      told_.unanswered_runs.insert(started_by);
      return false;
    }
    auto& ids = told_.ran[started_by];
    for (const Json& task : answer->array_or_empty("tasks")) {
      const std::string id = last_part(task.string_or("taskArn", ""));
      ids.insert(id);
      mine_.push_back(id);
    }
    return true;
  }

  bool stop_task() {
    const std::string id = mine_[prng_.next() % mine_.size()];
    std::erase(mine_, id);
    if (!ask("StopTask", fmt::format(R"({{"task":"{}"}})", id))) return false;
    const std::lock_guard lock(told_.mutex);
    told_.stopped.insert(id);
    return true;
  }

  bool register_definition() {
    const auto answer = ask("RegisterTaskDefinition", kDefinition);
    if (!answer) return false;
    const Json* definition = answer->find("taskDefinition");
    if (definition == nullptr) return true;
    const std::lock_guard lock(told_.mutex);
    const bool fresh =
        told_.registered.insert(fmt::format("share:{}", definition->integer_or("revision", 0)))
            .second;
    EXPECT_TRUE(fresh) << "one revision was given twice";
    return true;
  }

  const std::string name_;
  KeepAliveClient client_;
  Told& told_;
  base::Prng prng_;
  std::vector<std::string> mine_;
  std::int64_t calls_ = 0;
};

void compare(const Told& told, const core::State& state) {
  std::map<std::string, std::set<std::string>> found;
  for (const auto& [id, task] : state.tasks) found[task.started_by].insert(id);
  for (const auto& [started_by, ids] : told.ran) {
    EXPECT_EQ(found[started_by], ids) << started_by << " was answered otherwise";
  }
  for (const auto& [started_by, ids] : found) {
    EXPECT_TRUE(told.ran.contains(started_by) || told.unanswered_runs.contains(started_by) ||
                ids.empty())
        << ids.size() << " tasks of no call: " << started_by;
  }
  for (const std::string& id : told.stopped) {
    const auto task = state.tasks.find(id);
    ASSERT_TRUE(task != state.tasks.end()) << id;
    EXPECT_EQ(task->second.desired_status, core::DesiredStatus::kStopped) << id;
  }
  for (const std::string& name : told.registered) {
    const auto revision = std::atoll(name.c_str() + name.find(':') + 1);
    EXPECT_NE(core::find_definition(state, "share", revision), nullptr) << name;
  }
}

int kills() {
  const char* asked = std::getenv("COTENANT_TEST_KILLS");
  return asked == nullptr ? 12 : std::atoi(asked);
}

TEST(KillTest, NoAcknowledgedCallIsLostAndNoneIsInvented) {
  std::string pattern = testing::TempDir() + "cotenant-kill-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::string data_dir = pattern + "/data";
  std::filesystem::create_directory(data_dir);
  const int port = free_port();
  auto sockets = net::WebSocketClient::create();
  ASSERT_TRUE(sockets);
  Told told;
  base::Prng prng(3);
  std::int64_t ran = 0;
  for (int round = 1; round <= kills(); ++round) {
    SCOPED_TRACE(round);
    ServerProcess server(data_dir, port);
    ASSERT_TRUE(server.answers()) << server.errors();
    if (round == 1) {
      KeepAliveClient first(port, "");
      ASSERT_EQ(first.post("RegisterTaskDefinition", kDefinition)->status, 200);
      told.registered.insert("share:1");
    }
    const auto agent =
        LiveAgent::connect(**sockets, fmt::format("http://127.0.0.1:{}", port),
                           live_registration("0123456789abcdef0123456789abcdef", 16), round);
    ASSERT_TRUE(agent) << agent.error().message;
    std::atomic<bool> gone{false};
    std::vector<std::thread> callers;
    for (int number = 0; number < 4; ++number) {
      callers.emplace_back([&, number] { Caller(number, round, port, told).work(gone); });
    }
    // At a moment that chance chooses: after so many answers.
    const std::int64_t answers = told.answered + 20 + static_cast<std::int64_t>(prng.next() % 400);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (told.answered < answers && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    server.kill();
    gone = true;
    for (std::thread& caller : callers) caller.join();

    auto store = adapters::SqliteStore::open(data_dir + "/cotenant.db");
    ASSERT_TRUE(store) << store.error().message;
    const auto snapshot = (*store)->load();
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    const auto state = codec::decode_records(snapshot->records);
    ASSERT_TRUE(state) << state.error().message;
    compare(told, *state);
    ran = static_cast<std::int64_t>(state->tasks.size());
    if (HasFailure()) break;
  }
  EXPECT_EQ(told.surprises, 0) << told.surprise;
  EXPECT_GT(ran, 20 * kills()) << "there was load";
  EXPECT_GT(told.stopped.size(), 10U);
  if (!HasFailure()) std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace cotenant::tests
