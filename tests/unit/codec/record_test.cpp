#include "codec/record.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../core/random_history.h"
#include "../core/state_dump.h"
#include "codec/ecs_request.h"
#include "codec/json.h"

namespace cotenant::codec {
namespace {

using core::RecordKind;
using core::State;
using Records = std::map<std::string, std::string>;

Json requirement_json(const core::GpuRequest& request) {
  Json json = Json::object({{"type", "GPU"}});
  if (const auto* whole = std::get_if<core::WholeGpus>(&request)) {
    return json.set("value", whole->all ? std::string("ALL") : std::to_string(whole->count));
  }
  const auto& shared = std::get<core::SharedGpu>(request);
  Json mps = Json::object({{"memory", shared.memory_mib}});
  if (shared.compute_percent) mps.set("maxComputePercent", *shared.compute_percent);
  return json.set("sharingStrategy", Json::object({{"nvidiaMps", std::move(mps)}}));
}

// What a client would have registered to get this definition: the store keeps the document only.
core::TaskDefinition registered(const core::TaskDefinition& definition) {
  Json containers = Json::array();
  for (const core::ContainerDefinition& part : definition.containers) {
    Json json = Json::object({{"name", part.name}, {"image", part.image}, {"cpu", part.cpu_units}});
    json.set("memory", *part.memory_mib).set("essential", part.essential);
    if (!std::holds_alternative<core::NoGpu>(part.gpu)) {
      json.set("resourceRequirements", Json::array().push(requirement_json(part.gpu)));
    }
    containers.push(std::move(json));
  }
  Json body = Json::object({{"family", definition.family}});
  body.set("containerDefinitions", std::move(containers));
  auto decoded = decode_register_task_definition(body);
  EXPECT_TRUE(decoded) << decoded.error().message;
  core::TaskDefinition made = std::move(decoded->value.definition);
  made.revision = definition.revision;
  made.registered_at_ms = definition.registered_at_ms;
  made.status = definition.status;
  made.deregistered_at_ms = definition.deregistered_at_ms;
  made.delete_requested_at_ms = definition.delete_requested_at_ms;
  made.tags = definition.tags;
  return made;
}

State with_documents(State state) {
  for (auto& [family, entry] : state.families) {
    for (auto& [revision, definition] : entry.revisions) {
      definition = std::make_shared<const core::TaskDefinition>(registered(*definition));
    }
  }
  return state;
}

Records encode_all(const State& state) {
  Records records;
  for (const auto& [ref, text] : core::test::dump_records(state)) {
    auto value = encode_record(state, ref);
    EXPECT_TRUE(value) << record_key(ref);
    EXPECT_TRUE(records.emplace(record_key(ref), value.value_or("")).second);
  }
  return records;
}

// After a load agents count as disconnected.
State disconnected(State state) {
  for (auto& [id, instance] : state.instances) {
    instance.agent_connected = false;
    instance.connection_epoch = 0;
  }
  return state;
}

TEST(RecordTest, RandomStatesComeBackAsTheyWere) {
  std::size_t tasks = 0;
  std::size_t tokens = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    core::test::RandomHistory history(seed);
    for (int step = 1; step <= 300; ++step) {
      (void)history.step(history.next());
      if (step % 100 != 0) continue;
      const State state = with_documents(history.state());
      const Records records = encode_all(state);
      const auto back = decode_records(records);
      ASSERT_TRUE(back) << "seed " << seed << ", step " << step << ": " << back.error().message;
      ASSERT_EQ(core::test::dump(*back), core::test::dump(disconnected(state)))
          << "seed " << seed << ", step " << step;
      ASSERT_EQ(encode_all(*back), records);
      tasks += state.tasks.size();
      tokens += state.client_tokens.size();
    }
  }
  EXPECT_GT(tasks, 500U) << "the states have something in them";
  EXPECT_GT(tokens, 100U);
}

TEST(RecordTest, Keys) {
  EXPECT_EQ(record_key({RecordKind::kCluster, "c"}), "cluster/c");
  EXPECT_EQ(record_key({RecordKind::kTaskDefinition, "f", 7}), "taskdef/f/0000000007");
  EXPECT_EQ(record_key({RecordKind::kInstance, "i"}), "instance/i");
  EXPECT_EQ(record_key({RecordKind::kTask, "t"}), "task/t");
  EXPECT_EQ(record_key({RecordKind::kClientToken, "c/t"}), "token/c/t");
  EXPECT_EQ(record_key({RecordKind::kWorkload, "c"}), "workload/c");
  EXPECT_EQ(record_key({RecordKind::kWorkloadShape, "c", 12}), "workload-shape/c/00012");
}

TEST(RecordTest, WhatTheStateHasNoMoreIsToBeRemoved) {
  const State state = core::initial_state(0);
  for (const RecordKind kind :
       {RecordKind::kCluster, RecordKind::kTaskDefinition, RecordKind::kInstance, RecordKind::kTask,
        RecordKind::kClientToken, RecordKind::kWorkload, RecordKind::kWorkloadShape}) {
    EXPECT_FALSE(encode_record(state, {kind, "nobody", 1}));
  }
}

// Two tasks that share GPU-i1-0 of instance i1, one that has stopped, and a token.
Records small_records() {
  State state = core::initial_state(1000);
  base::Prng prng(1);
  const core::Context context{1000, prng};
  const auto must = [&](const core::Command& command) {
    EXPECT_TRUE(core::apply(state, command, context));
  };
  must(core::RegisterTaskDefinition{registered(core::test::definition(
      "f", {core::test::container("main", core::SharedGpu{core::test::kGpuMib / 2, {}})}))});
  must(core::RegisterTaskDefinition{registered(core::test::definition(
      "whole", {core::test::container("main", core::WholeGpus{1, false})}))});
  must(core::ConnectInstance{core::test::registration("i1", {core::test::idle_gpu()}), 1});
  core::RunTask run;
  run.cluster = "default";
  run.definition.family = "f";
  run.count = 2;
  run.client_token = "tok";
  run.parameters_digest = "digest";
  run.overrides = {{"main", std::vector<std::string>{"x"}, {}}};
  must(run);
  return encode_all(state);
}

// The only key that begins like this, or the first of several.
std::string key_of(const Records& records, const std::string& start) {
  const auto found = records.lower_bound(start);
  EXPECT_EQ(found->first.rfind(start, 0), 0U);
  return found->first;
}

std::string with_member(const std::string& record, const std::string& member, const Json& value) {
  Json json = *Json::parse(record);
  json.set(member, value);
  return json.dump();
}

TEST(RecordTest, OtherSchemaVersionsAreRefused) {
  for (const char* version : {"2", "0", "-1", "null", "\"1\""}) {
    for (const char* start : {"cluster/", "instance/", "task/", "taskdef/", "token/"}) {
      Records records = small_records();
      std::string& record = records[key_of(records, start)];
      record = with_member(record, "v", *Json::parse(version));
      const auto back = decode_records(records);
      ASSERT_FALSE(back) << start << version;
      EXPECT_EQ(back.error().code, base::ErrorCode::kProtocol);
      EXPECT_NE(back.error().message.find("v: schema version"), std::string::npos);
      EXPECT_NE(back.error().message.find("record " + key_of(records, start)), std::string::npos);
    }
  }
}

TEST(RecordTest, MembersThatAreNotKnownDoNotDisturb) {
  Records records = small_records();
  for (auto& [key, record] : records) record = with_member(record, "later", Json(1));
  EXPECT_TRUE(decode_records(records));
}

TEST(RecordTest, AProbeIsNoRecord) {
  Records records = small_records();
  records["probe/writable"] = "123";
  EXPECT_TRUE(decode_records(records));
}

TEST(RecordTest, DamagedMembersAreNamed) {
  struct RecordRow {
    std::string start;  // of the record's key
    std::string member;
    std::string value;
    std::string want;
  };
  const RecordRow rows[] = {
      {"cluster/", "name", "null", "it calls itself cluster/"},
      {"cluster/", "name", R"("other")", "it calls itself cluster/other"},
      {"instance/", "registration", "null", "registration: is missing"},
      {"instance/", "registration", R"({"id":"i1","cluster":"default"})", "cpuUnits: is missing"},
      {"instance/", "registration",
       R"({"id":"i2","cluster":"default","cpuUnits":1,"memoryMib":1,"gpus":[]})",
       "it calls itself instance/i2"},
      {"instance/", "status", R"("SLEEPING")", "status: unknown word 'SLEEPING'"},
      {"instance/", "status", "null", "status: unknown word ''"},
      {"task/", "id", "null", "it calls itself task/"},
      {"task/", "lastStatus", R"("SLEEPING")", "lastStatus: unknown word 'SLEEPING'"},
      {"task/", "desiredStatus", "null", "desiredStatus: unknown word ''"},
      {"task/", "stopCode", R"("x")", "stopCode: unknown word 'x'"},
      {"task/", "family", R"("nobody")", "its task definition has no record"},
      {"task/", "revision", "9", "its task definition has no record"},
      {"task/", "instance", R"("nobody")", "its container instance has no record"},
      {"task/", "containers", R"([{"name":"nobody","status":"PENDING"}])",
       "its container has no record"},
      {"task/", "containers", R"([{"name":"main","status":"x"}])", "status: unknown word 'x'"},
      {"task/", "containers", R"([{"name":"main","status":"PENDING","gpus":["GPU-z"]}])",
       "its GPU GPU-z has no record"},
      {"task/", "containers", R"([{"name":"main","status":"PENDING","gpus":[]}])",
       "it holds 0 GPUs, but its task definition asks for 1"},
      {"task/", "containers", "[]", "it holds 0 GPUs, but its task definition asks for 1"},
      {"task/", "family", R"("whole")", "GPU GPU-i1-0 has no room for it beside other tasks"},
      {"task/", "overrides", R"([{"command":["x"]}])", "containerOverrides: a name is missing"},
      {"taskdef/f/", "document", "null", "document: "},
      {"taskdef/f/", "document", R"("{")", "document: "},
      {"taskdef/f/", "document", R"("[]")", "document: "},
      {"taskdef/f/", "document", R"("{}")", "document: "},
      {"taskdef/f/", "document", R"("{\"family\":5,\"containerDefinitions\":[]}")",
       "document: family: "},
      {"taskdef/f/", "document", R"("{\"family\":\"f\",\"containerDefinitions\":[1]}")",
       "document: containerDefinitions[0].name: is not a name"},
      {"taskdef/f/", "document",
       R"("{\"family\":\"g\",\"containerDefinitions\":[{\"name\":\"c\",\"image\":\"i\",\"memory\":64}]}")",
       "it calls itself taskdef/g/0000000001"},
      {"taskdef/f/", "revision", "0", "revision: must be at least 1"},
      {"taskdef/f/", "revision", "2", "it calls itself taskdef/f/0000000002"},
      {"token/", "key", "null", "it calls itself token/"},
  };
  for (const RecordRow& row : rows) {
    SCOPED_TRACE(row.start + " " + row.member + " = " + row.value);
    Records records = small_records();
    std::string& record = records[key_of(records, row.start)];
    record = with_member(record, row.member, *Json::parse(row.value));
    const auto back = decode_records(records);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().code, base::ErrorCode::kProtocol);
    EXPECT_NE(back.error().message.find(row.want), std::string::npos) << back.error().message;
    EXPECT_EQ(back.error().message.rfind("record ", 0), 0U) << back.error().message;
  }
}

TEST(RecordTest, DamagedTexts) {
  for (const char* text : {"", "{", "[]", "5", "null", "\"text\"", "{} x", R"({"v":1,"v":1})"}) {
    for (const char* start : {"cluster/", "instance/", "task/", "taskdef/", "token/"}) {
      SCOPED_TRACE(std::string(start) + " " + text);
      Records records = small_records();
      const std::string key = key_of(records, start);
      records[key] = text;
      const auto back = decode_records(records);
      ASSERT_FALSE(back);
      EXPECT_EQ(back.error().code, base::ErrorCode::kProtocol);
      EXPECT_NE(back.error().message.find("record " + key + ": "), std::string::npos)
          << back.error().message;
    }
  }
}

TEST(RecordTest, UnknownKinds) {
  Records records = small_records();
  records["service/s"] = R"({"v":1})";
  const auto back = decode_records(records);
  ASSERT_FALSE(back);
  EXPECT_NE(back.error().message.find("record service/s: the key is of no known kind"),
            std::string::npos);
}

TEST(RecordTest, RecordsThatAreGoneAreMissed) {
  for (const char* start : {"instance/", "taskdef/f/"}) {
    Records records = small_records();
    records.erase(key_of(records, start));
    const auto back = decode_records(records);
    ASSERT_FALSE(back) << start;
    EXPECT_NE(back.error().message.find("has no record"), std::string::npos);
  }
  // A token outlives its tasks.
  Records records = small_records();
  records.erase(key_of(records, "task/"));
  EXPECT_TRUE(decode_records(records));
}

// Whatever is cut off a record's end, the answer is an error and never a state.
TEST(RecordTest, TruncatedRecordsAreRefused) {
  const Records whole = small_records();
  for (const auto& [key, record] : whole) {
    for (std::size_t size = 0; size < record.size(); size += 7) {
      Records records = whole;
      records[key] = record.substr(0, size);
      ASSERT_FALSE(decode_records(records)) << key << " cut to " << size;
    }
  }
}

}  // namespace
}  // namespace cotenant::codec
