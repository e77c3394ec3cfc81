#include "test_plane.h"

#include <fmt/format.h>

#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "codec/agent_message.h"

namespace cotenant::test {
namespace {

using codec::Json;
using Seen = fakes::FakeWebSocket::Seen;
using SteadyClock = std::chrono::steady_clock;

constexpr base::TimeMs kStart = 1'700'000'000'000;
constexpr std::chrono::seconds kDeadline{20};

bool has_frame(const Seen& seen, std::string_view type, std::int64_t seq) {
  for (const std::string& frame : seen.frames) {
    const auto message = codec::decode_server_message(frame);
    if (!message) continue;
    if (type == "desired" && std::holds_alternative<codec::ServerDesired>(*message)) return true;
    const auto* ack = std::get_if<codec::ServerAck>(&*message);
    if (type == "ack" && ack != nullptr && ack->seq >= seq) return true;
  }
  return false;
}

base::Status closed(const Seen& seen) {
  for (const std::string& frame : seen.frames) {
    const auto message = codec::decode_server_message(frame);
    if (!message) continue;
    if (const auto* refused = std::get_if<codec::ServerRefused>(&*message)) {
      return base::fail(base::ErrorCode::kUnavailable, refused->reason);
    }
  }
  return base::fail(base::ErrorCode::kUnavailable,
                    seen.close_reason.value_or("no answer before the deadline"));
}

}  // namespace

TestPlane::TestPlane() : clock_(kStart) {
  char folder[] = "/tmp/cotenant-api-test-XXXXXX";
  COTENANT_ASSERT(::mkdtemp(folder) != nullptr);
  folder_ = folder;
  const auto status = restart();
  COTENANT_ASSERT(status.has_value());
}

TestPlane::~TestPlane() {
  stop();
  std::filesystem::remove_all(folder_);
}

void TestPlane::stop() {
  handler_.reset();
  loop_.reset();  // answers what waits, for which the hub must be there
  hub_.reset();
  agents_.clear();
}

base::Status TestPlane::restart() {
  stop();
  auto agents = server::AgentAccess::open(folder_ + "/agents.json", clock_);
  if (!agents) return base::fail(agents.error());
  access_ = std::move(*agents);
  // Another seed each time: the same one would give the ids of the life before.
  auto engine = server::CoreEngine::load(store_, clock_, ++seed_);
  if (!engine) return base::fail(engine.error());
  metrics_ = std::make_unique<server::Metrics>();
  loop_ = std::make_unique<server::CoreLoop>(std::move(*engine), nullptr);
  hub_ = std::make_unique<server::AgentHub>(*loop_);
  loop_->set_effect_sink(hub_.get());
  loop_->set_observer(metrics_.get());
  handler_ = std::make_unique<server::ApiHandler>(*loop_, *hub_, *metrics_,
                                                  base::ArnFormat("us-east-1", "000000000000"),
                                                  nullptr, access_.get());
  return {};
}

ports::HttpResponse TestPlane::send(ports::HttpRequest request) {
  std::promise<ports::HttpResponse> promise;
  auto future = promise.get_future();
  handler_->handle(std::move(request),
                   [&](ports::HttpResponse response) { promise.set_value(std::move(response)); });
  return future.get();
}

base::Status TestPlane::connect(const core::InstanceRegistration& registration,
                                const std::vector<std::string>& running) {
  Agent agent{hub_->accept(), std::make_shared<fakes::FakeWebSocket>()};
  agent.listener->on_open(agent.socket);
  codec::AgentHello hello;
  hello.boot_id = "boot";
  hello.epoch = ++epoch_;
  hello.registration = registration;
  for (const std::string& task_id : running) {
    hello.observed.push_back({task_id, {{"c", core::ContainerStatus::kRunning, {}, "", "", ""}}});
  }
  agent.listener->on_text(codec::encode(codec::AgentMessage(hello)));
  const Seen seen = agent.socket->wait_for(
      [](const Seen& now) { return now.close_reason || has_frame(now, "desired", 0); });
  if (seen.close_reason || !has_frame(seen, "desired", 0)) {
    agent.listener->on_closed("closed by the server");
    return closed(seen);
  }
  const auto older = agents_.find(registration.id);
  if (older != agents_.end()) older->second.listener->on_closed("closed by the server");
  agents_[registration.id] = std::move(agent);
  return {};
}

void TestPlane::disconnect(const std::string& instance_id) {
  const auto found = agents_.find(instance_id);
  if (found == agents_.end()) return;
  found->second.listener->on_closed("the test has cut the connection");
  agents_.erase(found);
  // The loop answers in order: once this is back, the disconnection has been applied.
  [[maybe_unused]] const auto status = expire();
}

base::Status TestPlane::observe(const std::string& task_id,
                                std::vector<core::ContainerObservation> containers) {
  auto instance_id = loop_->read<std::string>([&](const core::State& state) {
    const auto found = state.tasks.find(task_id);
    return found == state.tasks.end() ? std::string() : found->second.instance_id;
  });
  if (!instance_id) return base::fail(instance_id.error());
  const auto found = agents_.find(*instance_id);
  if (found == agents_.end()) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("no connected agent has the task '{}'", task_id));
  }
  Agent& agent = found->second;
  codec::AgentObserved observed{++agent.seq, {{task_id, std::move(containers)}}};
  agent.listener->on_text(codec::encode(codec::AgentMessage(observed)));
  const Seen seen = agent.socket->wait_for(
      [&](const Seen& now) { return now.close_reason || has_frame(now, "ack", agent.seq); });
  if (has_frame(seen, "ack", agent.seq)) return {};
  return closed(seen);
}

std::map<std::string, Json> TestPlane::desired(const std::string& instance_id) const {
  std::map<std::string, Json> tasks;
  const auto found = agents_.find(instance_id);
  if (found == agents_.end()) return tasks;
  for (const std::string& frame : found->second.socket->seen().frames) {
    const auto json = Json::parse(frame);
    if (!json || json->string_or("type", "") != "desired") continue;
    if (json->bool_or("full", false)) tasks.clear();
    for (const Json& task : json->array_or_empty("tasks")) {
      tasks[task.string_or("taskId", "")] = task;
    }
    for (const Json& id : json->array_or_empty("removed")) tasks.erase(id.as_string());
  }
  return tasks;
}

base::Status TestPlane::expire() {
  auto done = loop_->apply<bool>(core::Expire{},
                                 [](const core::Reply&, const core::State&) { return true; });
  return done ? base::Status() : base::fail(done.error());
}

void TestPlane::advance(base::TimeMs by_ms) {
  clock_.advance(by_ms);
  [[maybe_unused]] const auto status = expire();
}

void TestPlane::set_store_works(bool works) {
  store_.set_fault(works ? fakes::MemoryStore::Fault::kNone : fakes::MemoryStore::Fault::kRefused);
  const auto deadline = SteadyClock::now() + kDeadline;
  while (works && !expire() && SteadyClock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace cotenant::test
