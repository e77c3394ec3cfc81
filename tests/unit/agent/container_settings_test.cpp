#include "agent/container_settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "logic_world.h"

namespace cotenant::agent {
namespace {

class ContainerSettingsTest : public testing::Test {
 protected:
  ContainerSettingsTest() {
    core::DesiredTask desired = task("task1", {plain("web"), plain("db")});
    plan_ = plan_container(desired, desired.containers[0]);
  }
  core::ContainerDefinition& definition() { return plan_.container.definition; }
  ports::ContainerSpec spec() {
    BuiltSpec built;
    built.spec.network_mode = plan_.network_mode;
    const base::Status status = add_settings(plan_, "instance1", true, built);
    EXPECT_TRUE(status) << status.error().message;
    return built.spec;
  }
  std::string refusal(bool has_bridge = true) {
    BuiltSpec built;
    built.spec.network_mode = has_bridge ? plan_.network_mode : core::NetworkMode::kNone;
    const base::Status status = add_settings(plan_, "instance1", has_bridge, built);
    EXPECT_FALSE(status);
    return status ? "" : status.error().message;
  }
  ContainerPlan plan_;
};

TEST_F(ContainerSettingsTest, VolumesByTheirKind) {
  using Kind = core::Volume::Kind;
  plan_.settings.volumes = {{"scratch", Kind::kTask, "", "", {}, {{"a", "b"}}},
                            {"models", Kind::kHostPath, "/srv/models", "", {}, {}},
                            {"kept", Kind::kShared, "", "local", {}, {}}};
  definition().host.mount_points = {
      {"scratch", "/s", false}, {"models", "/m", true}, {"kept", "/k", false}};
  const ports::ContainerSpec made = spec();
  ASSERT_EQ(made.mounts.size(), 1U);
  EXPECT_EQ(made.mounts[0].source, "/srv/models");
  EXPECT_EQ(made.mounts[0].target, "/m");
  EXPECT_TRUE(made.mounts[0].read_only && made.mounts[0].make_source);
  ASSERT_EQ(made.volume_mounts.size(), 2U);
  // The task's own is found by its label, and removed with the task.
  EXPECT_EQ(made.volume_mounts[0].volume, "cotenant-task1-scratch");
  EXPECT_EQ(made.volume_mounts[0].labels,
            (std::map<std::string, std::string>{
                {"a", "b"}, {kInstanceLabel, "instance1"}, {kTaskLabel, "task1"}}));
  EXPECT_EQ(made.volume_mounts[1].volume, "kept");
  EXPECT_TRUE(made.volume_mounts[1].labels.empty()) << "it stays";

  definition().host.mount_points = {{"nowhere", "/n", false}};
  EXPECT_EQ(refusal(), "container 'web': mountPoints: 'nowhere' is not among the task's volumes");
}

TEST_F(ContainerSettingsTest, SiblingsAreNamedAsTheEngineKnowsThem) {
  definition().host.links = {"db", "db:database"};
  definition().host.volumes_from = {{"db", true}, {"db", false}};
  const ports::ContainerSpec made = spec();
  EXPECT_EQ(made.links, (std::vector<std::string>{"cotenant-family-1-db-id-db:db",
                                                  "cotenant-family-1-db-id-db:database"}));
  EXPECT_EQ(made.volumes_from, (std::vector<std::string>{"cotenant-family-1-db-id-db:ro",
                                                         "cotenant-family-1-db-id-db"}));
}

TEST_F(ContainerSettingsTest, PortsNeedABridge) {
  definition().ports = {{80, 8080}};
  EXPECT_EQ(spec().ports, definition().ports);
  EXPECT_EQ(refusal(false),
            "container 'web': portMappings: this engine has no bridge network; give it one, or use "
            "networkMode host");
  plan_.network_mode = core::NetworkMode::kHost;
  EXPECT_TRUE(spec().ports.empty()) << "every port is the host's";
}

TEST_F(ContainerSettingsTest, ATasksSizeLimitsEachContainer) {
  plan_.settings.cpu_units = 2048;
  plan_.settings.memory_mib = 512;
  EXPECT_EQ(spec().cpu_limit_units, 2048);
  EXPECT_EQ(spec().memory_mib, 512);
}

TEST_F(ContainerSettingsTest, EnvironmentFilesFillInWhatIsNotGiven) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "container_settings_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.env") << "A=file a\nB=file a\n";
  std::ofstream(folder / "b.env") << "B=file b\nC=file b\n";
  definition().host.environment_files = {folder / "a.env", folder / "b.env"};
  BuiltSpec built;
  built.spec.environment = {{"A", "definition"}};
  ASSERT_TRUE(add_settings(plan_, "i", true, built));
  EXPECT_EQ(built.spec.environment, (std::vector<core::EnvironmentVariable>{
                                        {"A", "definition"}, {"B", "file a"}, {"C", "file b"}}));
  definition().host.environment_files = {folder / "none.env"};
  EXPECT_EQ(refusal(), "container 'web': environmentFiles: environment file " +
                           (folder / "none.env").string() + ": is no file on this instance");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cotenant::agent
