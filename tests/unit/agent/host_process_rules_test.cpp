#include "agent/host_process_rules.h"

#include <gtest/gtest.h>

#include <functional>

#include "agent/container_spec.h"
#include "fakes/fake_container_runtime.h"
#include "fakes/fake_gpu_wiring.h"
#include "fakes/fake_mps_control.h"

namespace cotenant::agent {
namespace {

ContainerPlan process_plan() {
  ContainerPlan plan;
  plan.task_id = "task";
  plan.family = "family";
  plan.revision = 1;
  plan.container.id = "0123456789abcdef0123456789abcdef";
  plan.container.definition.name = "web";
  plan.container.definition.command = {"/bin/true"};
  return plan;
}

core::Volume volume(core::Volume::Kind kind, std::string host_path) {
  core::Volume made;
  made.name = "v";
  made.kind = kind;
  made.host_path = std::move(host_path);
  return made;
}

struct HostRow {
  const char* member;
  std::function<void(ContainerPlan&)> change;
};

TEST(HostProcessRulesTest, WhatWouldChangeTheProgramsMeaningIsRefused) {
  const HostRow rows[] = {
      {"networkMode", [](auto& p) { p.network_mode = core::NetworkMode::kAwsvpc; }},
      {"pidMode", [](auto& p) { p.settings.pid_mode = core::NamespaceMode::kTask; }},
      {"ipcMode", [](auto& p) { p.settings.ipc_mode = core::NamespaceMode::kTask; }},
      {"portMappings",
       [](auto& p) {
         p.container.definition.ports = {{80, 8080}};
       }},
      {"portMappings",
       [](auto& p) {
         p.container.definition.ports = {{80, 80}, {81, 0}};
       }},
      {"links", [](auto& p) { p.container.definition.host.links = {"db"}; }},
      {"volumesFrom", [](auto& p) { p.container.definition.host.volumes_from = {{"db"}}; }},
      {"extraHosts",
       [](auto& p) {
         p.container.definition.host.extra_hosts = {{"a", "::1"}};
       }},
      {"dnsServers", [](auto& p) { p.container.definition.host.dns_servers = {"::1"}; }},
      {"dnsSearchDomains",
       [](auto& p) { p.container.definition.host.dns_search_domains = {"example"}; }},
      {"systemControls",
       [](auto& p) {
         p.container.definition.host.system_controls = {{"net.a", "1"}};
       }},
      {"linuxParameters.tmpfs",
       [](auto& p) {
         p.container.definition.host.tmpfs = {{"/t", 1, {}}};
       }},
      {"linuxParameters.devices",
       [](auto& p) {
         p.container.definition.host.devices = {{"/dev/a", "/dev/b", {}}};
       }},
      {"healthCheck", [](auto& p) { p.container.definition.life.health_check.emplace(); }},
      {"mountPoints",
       [](auto& p) {
         p.settings.volumes = {volume(core::Volume::Kind::kTask, "")};
         p.container.definition.host.mount_points = {{"v", "/v"}};
       }},
      {"mountPoints",
       [](auto& p) {
         p.settings.volumes = {volume(core::Volume::Kind::kHostPath, "/srv")};
         p.container.definition.host.mount_points = {{"v", "/v"}};
       }},
      {"entryPoint, command", [](auto& p) { p.container.definition.command.clear(); }},
  };
  for (const HostRow& row : rows) {
    ContainerPlan plan = process_plan();
    row.change(plan);
    std::vector<std::string> warnings;
    const base::Status fits = fit_to_host(plan, warnings);
    ASSERT_FALSE(fits) << row.member;
    EXPECT_EQ(fits.error().code, base::ErrorCode::kClient) << row.member;
    EXPECT_EQ(fits.error().message.find(std::string("container 'web': ") + row.member + ": "), 0U)
        << fits.error().message;
  }
}

TEST(HostProcessRulesTest, WhatOnlyIsolatesIsLetGoWithAWarning) {
  const HostRow rows[] = {
      {"networkMode", [](auto& p) { p.network_mode = core::NetworkMode::kNone; }},
      {"ipcMode", [](auto& p) { p.settings.ipc_mode = core::NamespaceMode::kNone; }},
      {"readonlyRootFilesystem",
       [](auto& p) { p.container.definition.host.read_only_root = true; }},
      {"disableNetworking", [](auto& p) { p.container.definition.host.network_disabled = true; }},
      {"hostname", [](auto& p) { p.container.definition.host.hostname = "h"; }},
      {"dockerSecurityOptions",
       [](auto& p) { p.container.definition.host.security_options = {"no-new-privileges"}; }},
      {"linuxParameters.capabilities",
       [](auto& p) { p.container.definition.host.capabilities_dropped = {"ALL"}; }},
      {"linuxParameters.sharedMemorySize",
       [](auto& p) { p.container.definition.host.shared_memory_mib = 64; }},
      {"linuxParameters.maxSwap", [](auto& p) { p.container.definition.host.max_swap_mib = 1; }},
      {"pseudoTerminal", [](auto& p) { p.container.definition.host.pseudo_terminal = true; }},
      {"logConfiguration",
       [](auto& p) {
         p.container.definition.host.log = core::LogSettings{"journald", {}};
       }},
      {"mountPoints.readOnly",
       [](auto& p) {
         p.settings.volumes = {volume(core::Volume::Kind::kHostPath, "/srv")};
         p.container.definition.host.mount_points = {{"v", "/srv", true}};
       }},
  };
  for (const HostRow& row : rows) {
    ContainerPlan plan = process_plan();
    row.change(plan);
    std::vector<std::string> warnings;
    ASSERT_TRUE(fit_to_host(plan, warnings)) << row.member;
    ASSERT_EQ(warnings.size(), 1U) << row.member;
    EXPECT_NE(warnings[0].find(std::string("not carried out: ") + row.member), std::string::npos)
        << warnings[0];
  }
}

TEST(HostProcessRulesTest, AnOrdinaryContainerIsLeftAsItIs) {
  ContainerPlan plan = process_plan();
  core::ContainerDefinition& definition = plan.container.definition;
  definition.memory_mib = 64;
  definition.ports = {{8080, 8080}};
  definition.host.user = "1000";
  definition.host.ulimits = {{"nofile", 1, 2}};
  plan.settings.volumes = {volume(core::Volume::Kind::kHostPath, "/srv")};
  definition.host.mount_points = {{"v", "/srv"}};
  std::vector<std::string> warnings;
  ASSERT_TRUE(fit_to_host(plan, warnings));
  EXPECT_TRUE(warnings.empty());

  // As the runtime gets it.
  ports::EngineInfo engine = fakes::FakeContainerRuntime::default_info();
  engine.has_isolation = false;
  engine.has_bridge = false;
  const fakes::FakeGpuWiring wiring;
  const fakes::FakeMpsControl mps;
  const auto built = build_container_spec(plan, "instance", engine, wiring, mps);
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(built->spec.network_mode, core::NetworkMode::kHost);
  EXPECT_EQ(built->spec.ports, definition.ports);
  EXPECT_TRUE(built->warnings.empty());
}

}  // namespace
}  // namespace cotenant::agent
