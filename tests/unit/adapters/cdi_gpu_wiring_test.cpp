#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "adapters/gpu_wiring.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using ports::ContainerSpec;
using Strings = std::vector<std::string>;

constexpr const char* kUuid = "GPU-1";

// The task definition and the image's author may have written anything.
ContainerSpec tenant_spec() {
  ContainerSpec spec;
  spec.name = "web";
  spec.environment = {{"NVIDIA_VISIBLE_DEVICES", "all"}, {"A", "tenant"}, {"GPUSIM_DIR", "/evil"}};
  spec.mounts = {{"/home", "/home", false}, {"/evil", "/run/gpusim", false}};
  spec.device_nodes = {{"/dev/evil", "/dev/gpu0", "rwm"}};
  return spec;
}

CdiEdits plain_edits() {
  CdiEdits edits;
  edits.environment = {{"GPUSIM_DIR", "/run/gpusim"}};
  edits.mounts = {{"/host/gpusim", "/run/gpusim", {"rbind", "nosuid"}, ""},
                  {"/host/lib", "/lib/libcuda.so.1", {"ro"}, "bind"}};
  edits.device_nodes = {{"/dev/gpu0", "/dev/host0", "rw"}};
  return edits;
}

CdiEdits with_hook() {
  CdiEdits edits = plain_edits();
  edits.hooks = {{"createContainer", "/usr/bin/nvidia-cdi-hook"}};
  return edits;
}

std::map<std::string, std::string> environment(const ContainerSpec& spec) {
  std::map<std::string, std::string> result;
  for (const auto& variable : spec.environment) {
    EXPECT_TRUE(result.emplace(variable.name, variable.value).second) << variable.name << " twice";
  }
  return result;
}

// "name", "edits", "runtime" or "refused": which way was taken, and that the spec holds just its
// change.
std::string way(const GpuWiringInput& input, std::string* error = nullptr) {
  ContainerSpec spec = tenant_spec();
  const base::Status status = wire_gpus(input, spec);
  const auto env = environment(spec);
  if (!status) {
    EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(env.at("NVIDIA_VISIBLE_DEVICES"), "all") << "untouched";
    EXPECT_TRUE(spec.cdi_devices.empty() && spec.runtime.empty());
    EXPECT_EQ(spec.mounts.size(), 2U);
    if (error != nullptr) *error = status.error().message;
    return "refused";
  }
  EXPECT_EQ(env.at("A"), "tenant");
  if (!spec.runtime.empty()) {
    EXPECT_EQ(spec.runtime, "nvidia");
    EXPECT_EQ(env.at("NVIDIA_VISIBLE_DEVICES"), kUuid);
    EXPECT_TRUE(spec.cdi_devices.empty());
    return "runtime";
  }
  EXPECT_EQ(env.at("NVIDIA_VISIBLE_DEVICES"), "void");
  if (!spec.cdi_devices.empty()) {
    EXPECT_EQ(spec.cdi_devices, Strings{"nvidia.com/gpu=GPU-1"});
    EXPECT_EQ(spec.mounts.size(), 2U);
    return "name";
  }
  EXPECT_EQ(env.at("GPUSIM_DIR"), "/run/gpusim");
  return "edits";
}

TEST(GpuWiring, TakesTheFirstWayThatIsOpen) {
  const base::Result<CdiEdits> none = base::fail(ErrorCode::kNotFound, "no CDI device");
  struct Case {
    const char* name;
    Strings engine_dirs;
    Strings runtimes;
    std::string cdi_dir;
    base::Result<CdiEdits> edits;
    const char* want;
  };
  for (const Case& c : {
           Case{"the engine reads the folder",
                {"/etc/cdi", "/run/x"},
                {"nvidia"},
                "/run/x",
                plain_edits(),
                "name"},
           Case{"hooks are the engine's affair then",
                {"/etc/cdi"},
                {},
                "/etc/cdi",
                with_hook(),
                "name"},
           Case{"spelled otherwise", {"/etc//cdi/"}, {}, "/etc/x/../cdi", with_hook(), "name"},
           Case{"/var/run is /run", {"/var/run/cdi"}, {}, "/run/cdi/", with_hook(), "name"},
           Case{"another folder", {"/etc/cdi"}, {"runc"}, "/opt/cdi", plain_edits(), "edits"},
           Case{"a folder below", {"/etc"}, {"runc"}, "/etc/cdi", plain_edits(), "edits"},
           Case{
               "an engine without CDI", {}, {"runc", "nvidia"}, "/etc/cdi", plain_edits(), "edits"},
           Case{"hooks", {}, {"runc", "nvidia"}, "/etc/cdi", with_hook(), "runtime"},
           Case{"no spec", {"/etc/cdi"}, {"nvidia"}, "/etc/cdi", none, "runtime"},
           Case{"no folder at all", {""}, {"nvidia"}, "", none, "runtime"},
           Case{"hooks, no runtime", {}, {"runc"}, "/etc/cdi", with_hook(), "refused"},
           Case{"nothing", {}, {}, "", none, "refused"},
       }) {
    EXPECT_EQ(way({c.engine_dirs, c.runtimes, c.cdi_dir, {kUuid}, c.edits}), c.want) << c.name;
  }
}

TEST(GpuWiring, ARequestThatCannotCarryTheEditsIsNotMade) {
  CdiEdits gids = plain_edits();
  gids.additional_gids = {44};
  CdiEdits shared = plain_edits();
  shared.mounts[0].options = {"rshared"};
  CdiEdits tmpfs = plain_edits();
  tmpfs.mounts[0].type = "tmpfs";
  CdiEdits owner = plain_edits();
  owner.device_nodes[0].has_mode_or_owner = true;
  struct Case {
    const CdiEdits& edits;
    const char* want;
  };
  for (const Case& c :
       {Case{with_hook(), "the hook /usr/bin/nvidia-cdi-hook"}, Case{gids, "additionalGids"},
        Case{shared, "/run/gpusim is not a plain bind"},
        Case{tmpfs, "/run/gpusim is not a plain bind"},
        Case{owner, "/dev/gpu0 has a mode or owner"}}) {
    std::string error;
    EXPECT_EQ(way({{}, {"runc"}, "/opt/cdi", {kUuid}, c.edits}, &error), "refused") << c.want;
    for (const char* part : {c.want, "GPU-1", "'/opt/cdi' (it reads: none)", "no runtime 'nvidia'",
                             "nvidia-ctk runtime configure"}) {
      EXPECT_PRED_FORMAT2(testing::IsSubstring, part, error);
    }
  }
}

TEST(GpuWiring, OwnResolutionReplacesWhatTheTenantPutThere) {
  ContainerSpec spec = tenant_spec();
  ASSERT_TRUE(wire_gpus({{}, {}, "/opt/cdi", {kUuid}, plain_edits()}, spec));
  ASSERT_EQ(spec.mounts.size(), 3U);
  EXPECT_EQ(spec.mounts[0].source, "/home");
  EXPECT_EQ(spec.mounts[1].source, "/host/gpusim");
  EXPECT_FALSE(spec.mounts[1].read_only);
  EXPECT_EQ(spec.mounts[2].target, "/lib/libcuda.so.1");
  EXPECT_TRUE(spec.mounts[2].read_only);
  ASSERT_EQ(spec.device_nodes.size(), 1U);
  EXPECT_EQ(spec.device_nodes[0].host_path, "/dev/host0");
  EXPECT_EQ(spec.device_nodes[0].container_path, "/dev/gpu0");
  EXPECT_EQ(spec.device_nodes[0].permissions, "rw");
}

TEST(GpuWiring, SeveralGpus) {
  ContainerSpec by_name = tenant_spec();
  ASSERT_TRUE(wire_gpus({{"/c"}, {}, "/c", {"GPU-1", "GPU-2"}, CdiEdits{}}, by_name));
  EXPECT_EQ(by_name.cdi_devices, (Strings{"nvidia.com/gpu=GPU-1", "nvidia.com/gpu=GPU-2"}));
  ContainerSpec by_runtime = tenant_spec();
  ASSERT_TRUE(wire_gpus({{}, {"nvidia"}, "/c", {"GPU-1", "GPU-2"}, with_hook()}, by_runtime));
  EXPECT_EQ(environment(by_runtime).at("NVIDIA_VISIBLE_DEVICES"), "GPU-1,GPU-2");
}

TEST(CdiGpuWiring, ReadsItsFolderAtEachCall) {
  std::string name = testing::TempDir() + "wiring-XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(name.data());
  const CdiGpuWiring wiring(folder.string());
  const ports::EngineInfo engine;
  ContainerSpec spec = tenant_spec();
  EXPECT_FALSE(wiring.wire(engine, {kUuid}, spec));
  std::ofstream(folder / "gpusim.yaml")
      << "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"
         "devices: [{name: GPU-1, containerEdits: {env: [GPUSIM_GPU=1]}}]\n";
  const base::Status wired = wiring.wire(engine, {kUuid}, spec);
  EXPECT_TRUE(wired) << wired.error().message;
  EXPECT_EQ(environment(spec).at("GPUSIM_GPU"), "1");
  const base::Status unknown = wiring.wire(engine, {"GPU-9"}, spec);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnavailable);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "there are: GPU-1", unknown.error().message);
  std::filesystem::remove_all(folder);
}

TEST(CdiGpuWiring, WithoutGpusTheContainerSeesNone) {
  const CdiGpuWiring wiring("");
  ContainerSpec spec = tenant_spec();
  ASSERT_TRUE(wiring.wire({}, {}, spec));
  EXPECT_EQ(environment(spec).at("NVIDIA_VISIBLE_DEVICES"), "void");
  EXPECT_EQ(environment(spec).at("A"), "tenant");
  ContainerSpec gpu = tenant_spec();
  const base::Status refused = wiring.wire({}, {kUuid}, gpu);
  ASSERT_FALSE(refused);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "--cdi-dir", refused.error().message);
}

}  // namespace
}  // namespace cotenant::adapters
