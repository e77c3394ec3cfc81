#include "codec/agent_message.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/prng.h"
#include "codec/json.h"

namespace cotenant::codec {
namespace {

using core::ContainerStatus;

// Random values of every member, among them the empty ones.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : prng_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return prng_.next() % bound; }
  bool coin() { return below(2) == 0; }
  std::string name() { return "n" + prng_.next_hex_id().substr(0, 1 + below(20)); }
  std::string text() {
    static constexpr std::string_view kParts[] = {"", "a b", "\"\\\n", "\xC3\xA9", "=,", "0"};
    return std::string(kParts[below(6)]) + std::string(kParts[below(6)]);
  }
  std::vector<std::string> texts() {
    std::vector<std::string> values(below(3));
    for (std::string& value : values) value = text();
    return values;
  }
  std::map<std::string, std::string> text_map() {
    std::map<std::string, std::string> values;
    for (std::uint64_t i = below(3); i > 0; --i) values[name()] = text();
    return values;
  }

  std::vector<core::TaskObservation> observations() {
    std::vector<core::TaskObservation> tasks(below(4));
    for (core::TaskObservation& task : tasks) {
      task.task_id = name();
      if (coin()) task.pull_started_at_ms = static_cast<std::int64_t>(below(1'000'000));
      if (coin()) task.pull_stopped_at_ms = static_cast<std::int64_t>(below(1'000'000));
      task.containers.resize(below(4));
      for (core::ContainerObservation& container : task.containers) {
        container.name = name();
        container.status = static_cast<ContainerStatus>(below(3));
        if (coin()) container.exit_code = static_cast<int>(below(512)) - 256;
        container.reason = text();
        container.runtime_id = coin() ? name() : "";
        container.image_digest = text();
      }
    }
    return tasks;
  }

  AgentHello hello() {
    AgentHello hello;
    hello.boot_id = coin() ? name() : "";
    hello.epoch = static_cast<std::int64_t>(below(1000));
    core::InstanceRegistration& registration = hello.registration;
    registration.id = name();
    registration.cluster = name();
    registration.cpu_units = static_cast<std::int64_t>(below(100000));
    registration.memory_mib = static_cast<std::int64_t>(below(100000));
    for (std::uint64_t i = below(4); i > 0; --i) {
      registration.reserved_ports.push_back(static_cast<int>(1 + below(65535)));
    }
    registration.gpus.resize(below(4));
    for (core::GpuDevice& gpu : registration.gpus) {
      gpu.uuid = "GPU-" + prng_.next_hex_id();
      gpu.model = text();
      if (coin()) gpu.memory_mib = static_cast<std::int64_t>(below(100000));
      gpu.client_slots = static_cast<int>(below(61));
    }
    registration.attributes = text_map();
    registration.agent_version = text();
    registration.engine_version = text();
    registration.driver_version = text();
    registration.gpu_simulated = coin();
    hello.observed = observations();
    for (std::uint64_t i = below(3); i > 0; --i) hello.running.push_back(name());
    return hello;
  }

  core::ContainerDefinition definition() {
    core::ContainerDefinition definition;
    definition.name = name();
    definition.image = name();
    definition.cpu_units = static_cast<std::int64_t>(below(3)) * 512;
    if (coin()) definition.memory_mib = static_cast<std::int64_t>(below(3));
    if (coin()) definition.memory_reservation_mib = static_cast<std::int64_t>(below(3));
    definition.essential = coin();
    definition.entry_point = texts();
    definition.command = texts();
    for (std::uint64_t i = below(3); i > 0; --i) definition.environment.push_back({name(), text()});
    definition.working_directory = text();
    if (coin()) definition.stop_timeout_s = static_cast<std::int64_t>(below(100));
    definition.docker_labels = text_map();
    switch (below(4)) {
      case 0:
        definition.gpu = core::WholeGpus{static_cast<int>(1 + below(8)), false};
        break;
      case 1:
        definition.gpu = core::WholeGpus{0, true};
        break;
      case 2:
        definition.gpu = core::SharedGpu{
            static_cast<std::int64_t>(1 + below(9999)),
            coin() ? std::optional(1 + static_cast<int>(below(100))) : std::nullopt};
        break;
      default:
        break;
    }
    return definition;
  }

  ServerDesired desired() {
    ServerDesired desired;
    desired.revision = static_cast<std::int64_t>(below(1000));
    desired.full = coin();
    desired.tasks.resize(below(4));
    for (core::DesiredTask& task : desired.tasks) {
      task.task_id = name();
      task.family = name();
      task.revision = static_cast<std::int64_t>(1 + below(9));
      task.network_mode = static_cast<core::NetworkMode>(below(3));
      task.stop = coin();
      task.containers.resize(below(4));
      for (core::DesiredContainer& container : task.containers) {
        container.id = name();
        container.definition = definition();
        container.gpu_uuids = texts();
        container.started = coin();
      }
    }
    desired.removed = texts();
    return desired;
  }

 private:
  base::Prng prng_;
};

void expect_same(const core::ContainerDefinition& got, const core::ContainerDefinition& want) {
  EXPECT_EQ(got.name, want.name);
  EXPECT_EQ(got.image, want.image);
  EXPECT_EQ(got.cpu_units, want.cpu_units);
  EXPECT_EQ(got.memory_mib, want.memory_mib);
  EXPECT_EQ(got.memory_reservation_mib, want.memory_reservation_mib);
  EXPECT_EQ(got.essential, want.essential);
  EXPECT_EQ(got.entry_point, want.entry_point);
  EXPECT_EQ(got.command, want.command);
  EXPECT_EQ(got.environment, want.environment);
  EXPECT_EQ(got.working_directory, want.working_directory);
  EXPECT_EQ(got.stop_timeout_s, want.stop_timeout_s);
  EXPECT_EQ(got.docker_labels, want.docker_labels);
  EXPECT_EQ(got.gpu, want.gpu);
}

TEST(AgentMessageTest, AgentMessagesComeBackAsTheyWere) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Maker make(seed);
    const AgentHello want = make.hello();
    const auto got = decode_agent_message(encode(AgentMessage(want)));
    ASSERT_TRUE(got) << got.error().message;
    const auto& hello = std::get<AgentHello>(*got);
    EXPECT_EQ(hello.protocol, want.protocol);
    EXPECT_EQ(hello.boot_id, want.boot_id);
    EXPECT_EQ(hello.epoch, want.epoch);
    EXPECT_EQ(hello.registration, want.registration);
    EXPECT_EQ(hello.observed, want.observed);
    EXPECT_EQ(hello.running, want.running);

    const AgentObserved report{static_cast<std::int64_t>(seed), make.observations()};
    const auto back = decode_agent_message(encode(AgentMessage(report)));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(std::get<AgentObserved>(*back).seq, report.seq);
    EXPECT_EQ(std::get<AgentObserved>(*back).tasks, report.tasks);
  }
}

TEST(AgentMessageTest, ServerMessagesComeBackAsTheyWere) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Maker make(seed);
    const ServerDesired want = make.desired();
    const auto got = decode_server_message(encode(ServerMessage(want)));
    ASSERT_TRUE(got) << got.error().message;
    const auto& desired = std::get<ServerDesired>(*got);
    EXPECT_EQ(desired.revision, want.revision);
    EXPECT_EQ(desired.full, want.full);
    EXPECT_EQ(desired.removed, want.removed);
    ASSERT_EQ(desired.tasks.size(), want.tasks.size());
    for (std::size_t i = 0; i < want.tasks.size(); ++i) {
      EXPECT_EQ(desired.tasks[i].task_id, want.tasks[i].task_id);
      EXPECT_EQ(desired.tasks[i].family, want.tasks[i].family);
      EXPECT_EQ(desired.tasks[i].revision, want.tasks[i].revision);
      EXPECT_EQ(desired.tasks[i].network_mode, want.tasks[i].network_mode);
      EXPECT_EQ(desired.tasks[i].stop, want.tasks[i].stop);
      ASSERT_EQ(desired.tasks[i].containers.size(), want.tasks[i].containers.size());
      for (std::size_t j = 0; j < want.tasks[i].containers.size(); ++j) {
        const core::DesiredContainer& a = desired.tasks[i].containers[j];
        const core::DesiredContainer& b = want.tasks[i].containers[j];
        EXPECT_EQ(a.id, b.id);
        EXPECT_EQ(a.gpu_uuids, b.gpu_uuids);
        EXPECT_EQ(a.started, b.started);
        expect_same(a.definition, b.definition);
      }
    }
  }
  const auto ack = decode_server_message(encode(ServerMessage(ServerAck{7})));
  ASSERT_TRUE(ack);
  EXPECT_EQ(std::get<ServerAck>(*ack).seq, 7);
  const auto refused = decode_server_message(encode(ServerMessage(ServerRefused{"why \xff"})));
  ASSERT_TRUE(refused) << "an engine's text that is not UTF-8 must not spoil the frame";
  EXPECT_EQ(std::get<ServerRefused>(*refused).reason, "why ?");
  EXPECT_FALSE(std::get<ServerRefused>(*refused).stop_containers);
  EXPECT_FALSE(std::get<ServerRefused>(*refused).leave);
  const auto dismissed =
      decode_server_message(encode(ServerMessage(ServerRefused{"gone", true, true})));
  ASSERT_TRUE(dismissed);
  EXPECT_TRUE(std::get<ServerRefused>(*dismissed).stop_containers);
  EXPECT_TRUE(std::get<ServerRefused>(*dismissed).leave);
}

TEST(AgentMessageTest, UnknownMembersAreIgnored) {
  EXPECT_TRUE(decode_server_message(R"({"type":"ack","seq":1,"later":{"x":[1]}})"));
}

struct Malformed {
  std::string_view frame;
  std::string_view want;
};

constexpr std::string_view kHelloStart =
    R"({"type":"hello","protocol":1,"epoch":1,"observed":[],"registration":)";

TEST(AgentMessageTest, MalformedAgentFramesAreNamed) {
  const Malformed rows[] = {
      {"", "the frame is not JSON: "},
      {"[]", "the frame: must be an object, not an array"},
      {"{}", "type: is missing"},
      {R"({"type":3})", "type: must be a string, not an integer"},
      {R"({"type":"desired"})", "type: 'desired' must be hello or observed"},
      {R"({"type":"observed","tasks":[]})", "seq: is missing"},
      {R"({"type":"observed","seq":-1,"tasks":[]})", "seq: -1 is not in 0..9223372036854775807"},
      {R"({"type":"observed","seq":1,"seq":2,"tasks":[]})", "duplicate key \"seq\""},
      {R"({"type":"observed","seq":1.5,"tasks":[]})", "seq: must be an integer, not"},
      {R"({"type":"observed","seq":1,"tasks":{}})", "tasks: must be an array, not an object"},
      {R"({"type":"observed","seq":1,"tasks":[7]})", "tasks[0]: must be an object, not an integer"},
      {R"({"type":"observed","seq":1,"tasks":[{"taskId":"a/b","containers":[]}]})",
       "tasks[0].taskId: 'a/b' must be 1 to 255 letters, digits, - and _"},
      {R"({"type":"observed","seq":1,"tasks":[{"taskId":"t","containers":[{"name":"c","status":"DEAD"}]}]})",
       "tasks[0].containers[0].status: 'DEAD' must be PENDING, RUNNING or STOPPED"},
      {R"({"type":"observed","seq":1,"tasks":[{"taskId":"t","containers":[{"name":"c","status":"STOPPED","exitCode":99999999999}]}]})",
       "tasks[0].containers[0].exitCode: 99999999999 is not in"},
      {R"({"type":"observed","seq":1,"tasks":[{"taskId":"t","containers":[1,1,1,1,1,1,1,1,1,1,1]}]})",
       "tasks[0].containers: has 11 elements; at most 10 are allowed"},
      {R"({"type":"hello","protocol":1,"epoch":1,"observed":[]})", "registration: is missing"},
      {R"({"type":"hello","protocol":0,"epoch":1,"observed":[]})", "protocol: 0 is not in 1.."},
  };
  for (const Malformed& row : rows) {
    const auto got = decode_agent_message(row.frame);
    ASSERT_FALSE(got) << row.frame;
    EXPECT_EQ(got.error().code, base::ErrorCode::kProtocol);
    EXPECT_NE(got.error().message.find(row.want), std::string::npos) << row.frame << "\n"
                                                                     << got.error().message;
  }
}

TEST(AgentMessageTest, MalformedRegistrationsAreNamed) {
  const Malformed rows[] = {
      {R"([]})", "registration: must be an object, not an array"},
      {R"({"id":"","cluster":"c","cpuUnits":1,"memoryMib":1,"gpus":[]}})",
       "registration.id: must not be empty"},
      {R"({"id":"i","cluster":"c","cpuUnits":-1,"memoryMib":1,"gpus":[]}})",
       "registration.cpuUnits: -1 is not in 0.."},
      {R"({"id":"i","cluster":"c","cpuUnits":1,"memoryMib":1,"gpus":[],"reservedPorts":[70000]}})",
       "registration.reservedPorts[0]: must be a port, 1..65535"},
      {R"({"id":"i","cluster":"c","cpuUnits":1,"memoryMib":1,"gpus":[{"uuid":"g"}]}})",
       "registration.gpus[0].clientSlots: is missing"},
      {R"({"id":"i","cluster":"c","cpuUnits":1,"memoryMib":1,"gpus":[{"uuid":"g","clientSlots":1},{"uuid":"g","clientSlots":1}]}})",
       "registration.gpus[1].uuid: 'g' is there twice"},
      {R"({"id":"i","cluster":"c","cpuUnits":1,"memoryMib":1,"gpus":[],"attributes":{"a":1}}})",
       "registration.attributes[\"a\"]: must be a string, not an integer"},
  };
  for (const Malformed& row : rows) {
    const auto got = decode_agent_message(std::string(kHelloStart) + std::string(row.frame));
    ASSERT_FALSE(got) << row.frame;
    EXPECT_NE(got.error().message.find(row.want), std::string::npos) << row.frame << "\n"
                                                                     << got.error().message;
  }
}

TEST(AgentMessageTest, MalformedServerFramesAreNamed) {
  const auto with_container = [](std::string_view container) {
    return R"({"type":"desired","revision":1,"full":true,"tasks":[{"taskId":"t","family":"f",)"
           R"("revision":1,"networkMode":"bridge","containers":[)" +
           std::string(container) + "]}]}";
  };
  const auto with_gpu = [&](std::string_view gpu) {
    return with_container(R"({"id":"c","definition":{"name":"n","image":"i","gpu":)" +
                          std::string(gpu) + "}}");
  };
  const std::pair<std::string, std::string_view> rows[] = {
      {R"({"type":"hello"})", "type: 'hello' must be desired, ack, refused or stream"},
      {R"({"type":"ack"})", "seq: is missing"},
      {R"({"type":"refused","reason":""})", "reason: must not be empty"},
      {R"({"type":"desired","full":true,"tasks":[]})", "revision: is missing"},
      {R"({"type":"desired","revision":1,"full":"yes","tasks":[]})",
       "full: must be true or false, not a string"},
      {R"({"type":"desired","revision":1,"full":true,"tasks":[],"removed":[1]})",
       "removed[0]: must be a string, not an integer"},
      {R"({"type":"desired","revision":1,"tasks":[{"taskId":"t","family":"f","revision":1,"networkMode":"vpc","containers":[]}]})",
       "tasks[0].networkMode: 'vpc' must be bridge, host, none or awsvpc"},
      {with_container(R"({"id":"c"})"), "tasks[0].containers[0].definition: is missing"},
      {with_container(R"({"id":"c","definition":{"name":"n"}})"),
       "tasks[0].containers[0].definition.image: is missing"},
      {with_container(R"({"id":"c","definition":{"name":"n","image":"i","stopTimeoutS":90000}})"),
       "tasks[0].containers[0].definition.stopTimeoutS: 90000 is not in 0..86400"},
      {with_gpu("{}"), "definition.gpu: must have exactly one of whole and shared"},
      {with_gpu(R"({"fraction":{"tenths":5}})"),
       "definition.gpu: must have exactly one of whole and shared"},
      {with_gpu(R"({"whole":{"all":true},"shared":{"memoryMib":1}})"),
       "definition.gpu: must have exactly one of whole and shared"},
      {with_gpu(R"({"whole":{}})"), "definition.gpu.whole.count: is missing"},
      {with_gpu(R"({"shared":{"memoryMib":0}})"),
       "definition.gpu.shared.memoryMib: 0 is not in 1.."},
      {with_gpu(R"({"shared":{"memoryMib":1,"computePercent":101}})"),
       "definition.gpu.shared.computePercent: 101 is not in 1..100"},
      {std::string(base::limits::kAgentFrameBytes + 1, ' '), "the frame has 8388609 bytes"},
  };
  for (const auto& [frame, want] : rows) {
    const auto got = decode_server_message(frame);
    ASSERT_FALSE(got) << frame.substr(0, 200);
    EXPECT_EQ(got.error().code, base::ErrorCode::kProtocol);
    EXPECT_NE(got.error().message.find(want), std::string::npos) << frame.substr(0, 200) << "\n"
                                                                 << got.error().message;
  }
}

// Whatever is cut off or flipped: an answer, never a crash.
TEST(AgentMessageTest, DamagedFramesAreAnsweredNotCrashedOn) {
  Maker make(5);
  const std::string frame = encode(ServerMessage(make.desired()));
  for (std::size_t i = 0; i < frame.size(); ++i) {
    EXPECT_FALSE(decode_server_message(frame.substr(0, i)));
    std::string flipped = frame;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x15);
    const auto got = decode_server_message(flipped);
    if (!got) {
      EXPECT_FALSE(got.error().message.empty());
    }
  }
}

TEST(AgentMessageTest, ADesiredStateIsCutIntoFramesThatSayWhetherThereIsMore) {
  // Very many large tasks: some 64 KiB each, as large as a task definition may be.
  ServerDesired all;
  all.revision = 7;
  all.full = true;
  for (int i = 0; i < 300; ++i) {
    core::DesiredTask& task = all.tasks.emplace_back();
    task.task_id = fmt::format("{:032x}", i);
    task.family = "large";
    task.revision = 1;
    core::DesiredContainer& container = task.containers.emplace_back();
    container.id = fmt::format("{:032x}", i + 1000);
    container.definition.name = "main";
    container.definition.image = "image";
    container.definition.environment = {{"LARGE", std::string(64 * 1024, '"')}};
  }
  const std::vector<std::string> frames = encode_in_parts(all);
  EXPECT_GT(frames.size(), 5u);
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    ASSERT_LE(frames[i].size(), base::limits::kAgentFrameBytes);
    const auto decoded = decode_server_message(frames[i]);
    ASSERT_TRUE(decoded) << decoded.error().message;
    const auto& part = std::get<ServerDesired>(*decoded);
    EXPECT_EQ(part.revision, 7 + static_cast<std::int64_t>(i));
    EXPECT_TRUE(part.full);
    EXPECT_EQ(part.more, i + 1 < frames.size());
    for (const core::DesiredTask& task : part.tasks) ids.push_back(task.task_id);
  }
  ASSERT_EQ(ids.size(), 300u);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));

  // Changes need no "more": each frame is right by itself.
  all.full = false;
  all.removed = {"gone-1", "gone-2"};
  std::size_t tasks = 0;
  std::size_t removed = 0;
  for (const std::string& frame : encode_in_parts(all, 100'000)) {
    const auto decoded = decode_server_message(frame);
    ASSERT_TRUE(decoded);
    const auto& part = std::get<ServerDesired>(*decoded);
    EXPECT_FALSE(part.full);
    EXPECT_FALSE(part.more);
    tasks += part.tasks.size();
    removed += part.removed.size();
  }
  EXPECT_EQ(tasks, 300u);
  EXPECT_EQ(removed, 2u);

  // Nothing at all is a frame too: it answers the hello.
  const std::vector<std::string> empty = encode_in_parts(ServerDesired{1, true, {}, {}});
  ASSERT_EQ(empty.size(), 1u);
  EXPECT_FALSE(std::get<ServerDesired>(*decode_server_message(empty[0])).more);
}

TEST(AgentMessageTest, TheBoundOfAnObservationsSizeHolds) {
  core::TaskObservation task;
  task.task_id = std::string(32, 'a');
  task.pull_started_at_ms = task.pull_stopped_at_ms = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 10; ++i) {
    core::ContainerObservation& container = task.containers.emplace_back();
    container.name = std::string(255, 'n');
    container.exit_code = -2'000'000'000;
    container.reason = std::string(1024, '\x01');
    container.runtime_id = std::string(64, 'f');
    container.image_digest = "sha256:" + std::string(64, 'f');
  }
  const std::string frame = encode(AgentMessage(AgentObserved{1, {task}}));
  EXPECT_LE(frame.size(), encoded_bytes_at_most(task) + 64);
  const auto decoded = decode_agent_message(frame);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(std::get<AgentObserved>(*decoded).tasks, std::vector<core::TaskObservation>{task});
}

}  // namespace
}  // namespace cotenant::codec
