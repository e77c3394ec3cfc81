#include "adapters/process_plan.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <functional>

namespace cotenant::adapters {
namespace {

ports::ContainerSpec process_spec() {
  ports::ContainerSpec spec;
  spec.name = "cotenant-f-1-web-0123";
  spec.image = "web";
  spec.command = {"/bin/sleep", "10"};
  return spec;
}

std::string variable_of(const ProcessConfig& config, const std::string& name) {
  for (const ports::EnvironmentVariable& variable : config.environment) {
    if (variable.name == name) return variable.value;
  }
  return "(none)";
}

TEST(ProcessPlanTest, EntryPointAndCommandMakeTheProgram) {
  ports::ContainerSpec spec = process_spec();
  spec.entry_point = {"/bin/sh", "-c"};
  const auto config = plan_process(spec);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->program, (std::vector<std::string>{"/bin/sh", "-c", "/bin/sleep", "10"}));
  EXPECT_EQ(config->working_directory, "/");
  EXPECT_FALSE(config->user);
  EXPECT_NE(variable_of(*config, "PATH"), "(none)");
  EXPECT_NE(variable_of(*config, "HOME"), "(none)");
  EXPECT_NE(variable_of(*config, "HOSTNAME"), "(none)");
}

TEST(ProcessPlanTest, NothingOfTheAgentsEnvironmentIsPassedOn) {
  ports::ContainerSpec spec = process_spec();
  spec.environment = {{"A", "1"}, {"PATH", "/only"}};
  const auto config = plan_process(spec);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->environment.size(), 4U);  // A, PATH, HOME, HOSTNAME
  EXPECT_EQ(variable_of(*config, "PATH"), "/only");
}

struct FollowRow {
  const char* what;
  std::vector<ports::EnvironmentVariable> environment;
  std::vector<ports::Mount> mounts;
  const char* name;
  const char* want;
};

TEST(ProcessPlanTest, VariablesFollowThePlatformsMounts) {
  const FollowRow rows[] = {
      {"a file below the folder",
       {{"CUDA_MPS_PIPE_DIRECTORY", "/run/cotenant/mps"}},
       {{"/run/c/mps/1/pipe/control", "/run/cotenant/mps/control", true}},
       "CUDA_MPS_PIPE_DIRECTORY",
       "/run/c/mps/1/pipe"},
      {"several that agree",
       {{"GPUSIM_DIR", "/run/gpusim"}},
       {{"/sim/socket", "/run/gpusim/socket"}, {"/sim/devices/0", "/run/gpusim/devices/0"}},
       "GPUSIM_DIR",
       "/sim"},
      {"several that do not",
       {{"DIR", "/run/gpusim"}},
       {{"/a/socket", "/run/gpusim/socket"}, {"/b/devices", "/run/gpusim/devices"}},
       "DIR",
       "/run/gpusim"},
      {"the folder itself", {{"DIR", "/in"}}, {{"/out", "/in"}}, "DIR", "/out"},
      {"a name that only begins alike", {{"DIR", "/in"}}, {{"/x/inner", "/inner"}}, "DIR", "/in"},
      {"the root", {{"DIR", "/"}}, {{"/x/in", "/in"}}, "DIR", "/"},
      {"no path", {{"DIR", "in"}}, {{"/x/in", "/in"}}, "DIR", "in"},
      {"a library's folder is not followed",
       {{"OWN", "/usr/lib64"}},
       {{"/sim/libcuda.so.1", "/usr/lib64/libcuda.so.1"}},
       "OWN",
       "/usr/lib64"},
      {"a library is found",
       {},
       {{"/sim/libcuda.so.1", "/usr/lib64/libcuda.so.1"},
        {"/sim/libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so.1"}},
       "LD_LIBRARY_PATH",
       "/sim"},
      {"before the definition's own",
       {{"LD_LIBRARY_PATH", "/mine"}},
       {{"/sim/libcuda.so.1", "/usr/lib64/libcuda.so.1"}},
       "LD_LIBRARY_PATH",
       "/sim:/mine"},
      {"a library that lies where it lies",
       {},
       {{"/usr/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.1"}},
       "LD_LIBRARY_PATH",
       "(none)"},
  };
  for (const FollowRow& row : rows) {
    ports::ContainerSpec spec = process_spec();
    spec.environment = row.environment;
    spec.mounts = row.mounts;
    const auto config = plan_process(spec);
    ASSERT_TRUE(config) << row.what << ": " << config.error().message;
    EXPECT_EQ(variable_of(*config, row.name), row.want) << row.what;
  }
}

struct RefusedPlan {
  const char* member;
  std::function<void(ports::ContainerSpec&)> change;
};

TEST(ProcessPlanTest, RefusesWhatAProcessCannotHave) {
  const RefusedPlan rows[] = {
      {"entryPoint, command", [](auto& spec) { spec.command.clear(); }},
      {"mountPoints",
       [](auto& spec) {
         spec.mounts = {{"/a", "/b", false, true}};
       }},
      {"mountPoints", [](auto& spec) { spec.volume_mounts.emplace_back(); }},
      {"volumesFrom", [](auto& spec) { spec.volumes_from = {"other"}; }},
      {"links", [](auto& spec) { spec.links = {"other:o"}; }},
      {"networkMode, pidMode or ipcMode", [](auto& spec) { spec.namespace_holder = "pause"; }},
      {"resourceRequirements", [](auto& spec) { spec.cdi_devices = {"nvidia.com/gpu=0"}; }},
      {"user", [](auto& spec) { spec.host.user = "nobody-of-that-name"; }},
      {"user", [](auto& spec) { spec.host.user = "0:no-group-of-that-name"; }},
      {"ulimits",
       [](auto& spec) {
         spec.host.ulimits = {{"nosuch", 1, 1}};
       }},
      {"logConfiguration.options.max-size",
       [](auto& spec) {
         spec.host.log = core::LogSettings{"json-file", {{"max-size", "10x"}}};
       }},
      {"logConfiguration.options.max-file",
       [](auto& spec) {
         spec.host.log = core::LogSettings{"json-file", {{"max-file", "0"}}};
       }},
  };
  for (const RefusedPlan& row : rows) {
    ports::ContainerSpec spec = process_spec();
    row.change(spec);
    const auto config = plan_process(spec);
    ASSERT_FALSE(config) << row.member;
    EXPECT_EQ(config.error().code, base::ErrorCode::kClient) << row.member;
    EXPECT_TRUE(config.error().message.starts_with(row.member)) << config.error().message;
  }
}

TEST(ProcessPlanTest, UsersLimitsAndLogsOfTheDefinition) {
  ports::ContainerSpec spec = process_spec();
  spec.host.ulimits = {{"nofile", 100, 200}, {"core", 0, -1}};
  spec.host.log = core::LogSettings{"json-file", {{"max-size", "2k"}, {"max-file", "5"}}};
  if (::geteuid() == 0) spec.host.user = "12345:678";
  const auto config = plan_process(spec);
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->limits.size(), 2U);
  EXPECT_EQ(config->limits[0].resource, RLIMIT_NOFILE);
  EXPECT_EQ(config->limits[1].hard, -1);
  EXPECT_EQ(config->log_bytes, 2048);
  EXPECT_EQ(config->log_files, 5);
  if (::geteuid() != 0) return;
  ASSERT_TRUE(config->user);
  EXPECT_EQ(config->user->uid, 12345U);
  EXPECT_EQ(config->user->gid, 678U);
}

TEST(ProcessPlanTest, ARecordIsReadBackAsItWas) {
  ports::ContainerSpec spec = process_spec();
  spec.labels = {{"cotenant.task", "t"}, {"other", ""}};
  spec.ports = {{8080, 8080, core::Protocol::kTcp}, {53, 53, core::Protocol::kUdp}};
  spec.host.interactive = true;
  spec.host.ulimits = {{"nofile", 100, 200}};
  auto config = plan_process(spec);
  ASSERT_TRUE(config);
  config->user = ProcessUser{1, 2, {2, 3}};
  const std::string text = encode_process_config(*config);
  const auto back = decode_process_config(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode_process_config(*back), text);
  EXPECT_EQ(back->bindings, config->bindings);
  for (const char* bad : {"", "{", "{}", R"({"format":2})", R"({"format":1})"}) {
    EXPECT_FALSE(decode_process_config(bad)) << bad;
  }
}

}  // namespace
}  // namespace cotenant::adapters
