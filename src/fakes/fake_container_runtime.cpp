#include "fakes/fake_container_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cotenant::fakes {

using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using ports::ContainerPhase;
using ports::ContainerState;

ports::EngineInfo FakeContainerRuntime::default_info() {
  ports::EngineInfo info;
  info.name = "Fake Engine";
  info.version = "1.0";
  info.cpu_count = 4;
  info.memory_mib = 8192;
  info.has_bridge = true;
  info.runtimes = {"runc"};
  return info;
}

FakeContainerRuntime::FakeContainerRuntime(ports::EngineInfo info) : info_(std::move(info)) {}

std::optional<base::Error> FakeContainerRuntime::enter(Call call,
                                                       std::unique_lock<std::mutex>& lock) {
  ++calls_[call];
  wake_.wait(lock, [&] { return !held_.contains(call); });
  if (away_) return base::Error{ErrorCode::kUnavailable, "the fake engine is away"};
  std::deque<base::Error>& failures = failures_[call];
  if (failures.empty()) return std::nullopt;
  base::Error error = std::move(failures.front());
  failures.pop_front();
  return error;
}

void FakeContainerRuntime::changed() {
  ++generation_;
  wake_.notify_all();
}

base::Error FakeContainerRuntime::no_such(const std::string& id) const {
  return {ErrorCode::kNotFound, "no such container: " + id};
}

Result<ports::EngineInfo> FakeContainerRuntime::info() {
  std::unique_lock lock(mutex_);
  if (auto error = enter(Call::kInfo, lock)) return fail(*error);
  return info_;
}

Result<std::vector<ContainerState>> FakeContainerRuntime::list(const std::string& label,
                                                               const std::string& value) {
  std::unique_lock lock(mutex_);
  if (auto error = enter(Call::kList, lock)) return fail(*error);
  std::vector<ContainerState> states;
  for (const auto& [id, entry] : entries_) {
    const auto found = entry.state.labels.find(label);
    if (found != entry.state.labels.end() && found->second == value) states.push_back(entry.state);
  }
  return states;
}

Result<std::string> FakeContainerRuntime::create(const ports::ContainerSpec& spec) {
  std::unique_lock lock(mutex_);
  if (auto error = enter(Call::kCreate, lock)) return fail(*error);
  if (!images_.contains("*") && !images_.contains(spec.image)) {
    return fail(ErrorCode::kNotFound, "no such image: " + spec.image);
  }
  for (const auto& [id, entry] : entries_) {
    if (entry.state.name != spec.name) continue;
    return fail(ErrorCode::kConflict, fmt::format("the name {} is taken by {}", spec.name, id));
  }
  Entry entry;
  entry.state.id = fmt::format("{:064x}", next_id_++);
  entry.state.name = spec.name;
  entry.state.image = spec.image;
  entry.state.image_digest = "sha256:" + spec.image;
  entry.state.labels = spec.labels;
  entry.spec = spec;
  const std::string id = entry.state.id;
  entries_.emplace(id, std::move(entry));
  changed();
  if (std::exchange(lose_create_, false)) return fail(ErrorCode::kTimeout, "create: no answer");
  return id;
}

Status FakeContainerRuntime::start(const std::string& id) {
  std::unique_lock lock(mutex_);
  if (auto error = enter(Call::kStart, lock)) return fail(*error);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return fail(no_such(id));
  if (found->second.state.phase == ContainerPhase::kRunning) return {};
  found->second.state.phase = ContainerPhase::kRunning;
  found->second.state.started_at_ms = ++clock_ms_;
  ++found->second.starts;
  changed();
  return {};
}

Status FakeContainerRuntime::stop(const std::string& id, std::int64_t timeout_s) {
  std::unique_lock lock(mutex_);
  if (auto error = enter(Call::kStop, lock)) return fail(*error);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return fail(no_such(id));
  found->second.stop_timeout_s = timeout_s;
  if (found->second.state.phase != ContainerPhase::kRunning) return {};
  found->second.state.phase = ContainerPhase::kStopped;
  found->second.state.exit_code = 143;  // 128 + SIGTERM
  found->second.state.finished_at_ms = ++clock_ms_;
  changed();
  return {};
}

Status FakeContainerRuntime::remove(const std::string& id) {
  std::unique_lock lock(mutex_);
  if (auto error = enter(Call::kRemove, lock)) return fail(*error);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return {};
  if (found->second.state.phase == ContainerPhase::kRunning) {
    return fail(ErrorCode::kClient, "cannot remove a running container: " + id);
  }
  entries_.erase(found);
  changed();
  return {};
}

Status FakeContainerRuntime::import_image(const std::string& image, const std::string&,
                                          const std::string&) {
  std::unique_lock lock(mutex_);
  if (auto error = enter(Call::kImport, lock)) return fail(*error);
  images_.insert(image);
  return {};
}

Status FakeContainerRuntime::watch(const std::string&, const std::string&,
                                   const std::function<void()>& on_change, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  if (auto error = enter(Call::kWatch, lock)) return fail(*error);
  std::uint64_t seen = generation_;
  while (!stop.stop_requested()) {
    wake_.wait(lock, stop, [&] { return away_ || generation_ != seen; });
    if (stop.stop_requested()) break;
    if (away_) return fail(ErrorCode::kUnavailable, "the fake engine is away");
    seen = generation_;
    lock.unlock();
    on_change();
    lock.lock();
  }
  return {};
}

void FakeContainerRuntime::set_images(std::set<std::string> images) {
  const std::lock_guard lock(mutex_);
  images_ = std::move(images);
}

void FakeContainerRuntime::exit_container(const std::string& id, int exit_code, bool oom_killed) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  found->second.state.phase = ContainerPhase::kStopped;
  found->second.state.exit_code = exit_code;
  found->second.state.oom_killed = oom_killed;
  found->second.state.finished_at_ms = ++clock_ms_;
  changed();
}

void FakeContainerRuntime::set_health(const std::string& id, core::HealthStatus health) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  found->second.state.health = health;
  changed();
}

void FakeContainerRuntime::erase_container(const std::string& id) {
  const std::lock_guard lock(mutex_);
  entries_.erase(id);
  changed();
}

void FakeContainerRuntime::add_container(ContainerState state) {
  const std::lock_guard lock(mutex_);
  Entry entry;
  entry.state = std::move(state);
  const std::string id = entry.state.id;
  entries_.insert_or_assign(id, std::move(entry));
  changed();
}

void FakeContainerRuntime::set_away(bool away) {
  const std::lock_guard lock(mutex_);
  away_ = away;
  changed();
}

void FakeContainerRuntime::set_clock(base::TimeMs now_ms) {
  const std::lock_guard lock(mutex_);
  clock_ms_ = std::max(clock_ms_, now_ms);
}

void FakeContainerRuntime::fail_next(Call call, base::Error error) {
  const std::lock_guard lock(mutex_);
  failures_[call].push_back(std::move(error));
}

void FakeContainerRuntime::lose_next_create_answer() {
  const std::lock_guard lock(mutex_);
  lose_create_ = true;
}

void FakeContainerRuntime::hold(Call call) {
  const std::lock_guard lock(mutex_);
  held_.insert(call);
}

void FakeContainerRuntime::release(Call call) {
  const std::lock_guard lock(mutex_);
  held_.erase(call);
  wake_.notify_all();
}

std::vector<ContainerState> FakeContainerRuntime::containers() const {
  const std::lock_guard lock(mutex_);
  std::vector<ContainerState> states;
  for (const auto& [id, entry] : entries_) states.push_back(entry.state);
  return states;
}

std::optional<ContainerState> FakeContainerRuntime::find_named(const std::string& part) const {
  for (ContainerState& state : containers()) {
    if (state.name.find(part) != std::string::npos) return std::move(state);
  }
  return std::nullopt;
}

std::optional<ports::ContainerSpec> FakeContainerRuntime::spec_of(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return std::nullopt;
  return found->second.spec;
}

int FakeContainerRuntime::calls(Call call) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

int FakeContainerRuntime::starts_of(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? 0 : found->second.starts;
}

std::optional<std::int64_t> FakeContainerRuntime::stop_timeout_of(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? std::nullopt : found->second.stop_timeout_s;
}

}  // namespace cotenant::fakes
