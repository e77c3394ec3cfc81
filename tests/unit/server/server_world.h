// A store in memory, a clock that stands still, and short builders of commands, for the server's
// tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../core/builders.h"
#include "../core/state_dump.h"
#include "codec/ecs_request.h"
#include "codec/json.h"
#include "codec/record.h"
#include "core/command.h"
#include "fakes/memory_store.h"
#include "fakes/settable_clock.h"
#include "server/core_engine.h"

namespace cotenant::server::test {

inline constexpr base::TimeMs kStart = 1'700'000'000'000;

// A definition as a client would register it: the store keeps its document.
inline core::RegisterTaskDefinition register_command(const std::string& family,
                                                     std::int64_t share_mib = 100,
                                                     std::size_t padding = 0) {
  codec::Json mps = codec::Json::object({{"memory", share_mib}});
  codec::Json requirement = codec::Json::object(
      {{"type", "GPU"}, {"sharingStrategy", codec::Json::object({{"nvidiaMps", std::move(mps)}})}});
  codec::Json container = codec::Json::object({{"name", "main"}, {"image", "i"}, {"memory", 64}});
  container.set("resourceRequirements", codec::Json::array().push(std::move(requirement)));
  if (padding > 0) container.set("command", codec::Json::array().push(std::string(padding, 'x')));
  const codec::Json body = codec::Json::object(
      {{"family", family}, {"containerDefinitions", codec::Json::array().push(container)}});
  auto decoded = codec::decode_register_task_definition(body);
  EXPECT_TRUE(decoded) << decoded.error().message;
  return std::move(decoded->value);
}

inline core::ConnectInstance connect_command(const std::string& id, std::int64_t epoch = 1) {
  return {core::test::registration(id, {core::test::idle_gpu()}), epoch};
}

inline core::RunTask run_command(const std::string& family, int count = 1) {
  core::RunTask command;
  command.cluster = "default";
  command.definition.family = family;
  command.count = count;
  return command;
}

inline core::TaskObservation gone(const std::string& task_id) {
  return {task_id, {{"main", core::ContainerStatus::kStopped, 0, "", "", ""}}};
}

// What the store would give back, in the words of state_dump.h.
inline std::string stored(const fakes::MemoryStore& store) {
  auto state = codec::decode_records(store.records());
  if (!state) return state.error().message;
  std::string text;
  for (const auto& [ref, record] : core::test::dump_records(*state)) text += record;
  return text + core::test::dump_reservations(*state);
}

inline std::string durable(const core::State& state) {
  std::string text;
  for (const auto& [ref, record] : core::test::dump_records(state)) text += record;
  return text + core::test::dump_reservations(state);
}

}  // namespace cotenant::server::test
