#include "codec/settings_json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "codec/agent_message.h"
#include "codec/ecs_request.h"

namespace cotenant::codec {
namespace {

// Every member that is carried out, at a value that is not its default.
constexpr const char* kEverything = R"({
  "family": "f", "networkMode": "bridge", "cpu": "1 vCPU", "memory": "2 GB",
  "pidMode": "host", "ipcMode": "none",
  "volumes": [
    {"name": "scratch"},
    {"name": "host", "host": {"sourcePath": "/srv/models"}},
    {"name": "kept", "dockerVolumeConfiguration": {"scope": "shared", "autoprovision": true,
       "driver": "local", "driverOpts": {"type": "tmpfs"}, "labels": {"a": "b"}}}],
  "containerDefinitions": [
    {"name": "base", "image": "i", "essential": false,
     "healthCheck": {"command": ["CMD-SHELL", "true"], "interval": 7, "timeout": 3, "retries": 2,
                     "startPeriod": 11}},
    {"name": "c", "image": "i",
     "portMappings": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 53, "protocol": "udp"}],
     "mountPoints": [{"sourceVolume": "host", "containerPath": "/m", "readOnly": true},
                     {"sourceVolume": "scratch", "containerPath": "/s"}],
     "volumesFrom": [{"sourceContainer": "base", "readOnly": true}],
     "environmentFiles": [{"value": "/etc/c.env", "type": "s3"}],
     "user": "1000:1000", "hostname": "h", "interactive": true, "pseudoTerminal": true,
     "privileged": true, "readonlyRootFilesystem": true, "disableNetworking": true,
     "ulimits": [{"name": "nofile", "softLimit": 10, "hardLimit": 20}],
     "dockerSecurityOptions": ["no-new-privileges"], "links": ["base:b"],
     "extraHosts": [{"hostname": "x", "ipAddress": "10.0.0.1"}], "dnsServers": ["10.0.0.2"],
     "dnsSearchDomains": ["example.org"],
     "systemControls": [{"namespace": "net.core.somaxconn", "value": "99"}],
     "linuxParameters": {"initProcessEnabled": true, "sharedMemorySize": 128, "maxSwap": 64,
       "swappiness": 10, "tmpfs": [{"containerPath": "/t", "size": 16, "mountOptions": ["noexec"]}],
       "capabilities": {"add": ["SYS_NICE"], "drop": ["NET_RAW"]},
       "devices": [{"hostPath": "/dev/null", "containerPath": "/dev/x", "permissions": ["read"]}]},
     "logConfiguration": {"logDriver": "journald", "options": {"tag": "t"}},
     "dependsOn": [{"containerName": "base", "condition": "HEALTHY"}], "startTimeout": 9,
     "restartPolicy": {"enabled": true, "ignoredExitCodes": [0, 2], "restartAttemptPeriod": 60},
     "memory": 256}]})";

core::TaskDefinition everything() {
  const auto body = Json::parse(kEverything);
  EXPECT_TRUE(body) << body.error().message;
  auto decoded = decode_register_task_definition(*body);
  EXPECT_TRUE(decoded) << decoded.error().message;
  return decoded ? std::move(decoded->value.definition) : core::TaskDefinition();
}

TEST(SettingsJsonTest, ReadsWhatPeopleWrite) {
  const core::TaskDefinition definition = everything();
  ASSERT_EQ(definition.containers.size(), 2U);
  EXPECT_EQ(definition.settings.cpu_units, 1024);
  EXPECT_EQ(definition.settings.memory_mib, 2048);
  EXPECT_EQ(definition.settings.pid_mode, core::NamespaceMode::kHost);
  EXPECT_EQ(definition.settings.ipc_mode, core::NamespaceMode::kNone);
  ASSERT_EQ(definition.settings.volumes.size(), 3U);
  EXPECT_EQ(definition.settings.volumes[0].kind, core::Volume::Kind::kTask);
  EXPECT_EQ(definition.settings.volumes[1].kind, core::Volume::Kind::kHostPath);
  EXPECT_EQ(definition.settings.volumes[2].kind, core::Volume::Kind::kShared);
  const core::ContainerDefinition& c = definition.containers[1];
  EXPECT_EQ(c.ports, (std::vector<core::PortMapping>{{80, 8080}, {53, 0, core::Protocol::kUdp}}));
  // No member of the host's settings is left at its default.
  const core::HostSettings& host = c.host;
  EXPECT_EQ(host.mount_points,
            (std::vector<core::MountPoint>{{"host", "/m", true}, {"scratch", "/s", false}}));
  EXPECT_EQ(host.volumes_from, (std::vector<core::VolumesFrom>{{"base", true}}));
  EXPECT_EQ(host.environment_files, (std::vector<std::string>{"/etc/c.env"}));
  EXPECT_EQ(host.user, "1000:1000");
  EXPECT_EQ(host.hostname, "h");
  EXPECT_TRUE(host.interactive && host.pseudo_terminal && host.privileged && host.read_only_root &&
              host.network_disabled && host.init_process);
  EXPECT_EQ(host.ulimits, (std::vector<core::Ulimit>{{"nofile", 10, 20}}));
  EXPECT_EQ(host.security_options, (std::vector<std::string>{"no-new-privileges"}));
  EXPECT_EQ(host.links, (std::vector<std::string>{"base:b"}));
  EXPECT_EQ(host.extra_hosts.front(), (std::pair<std::string, std::string>("x", "10.0.0.1")));
  EXPECT_EQ(host.dns_servers, (std::vector<std::string>{"10.0.0.2"}));
  EXPECT_EQ(host.dns_search_domains, (std::vector<std::string>{"example.org"}));
  EXPECT_EQ(host.system_controls.front().first, "net.core.somaxconn");
  EXPECT_EQ(host.shared_memory_mib, 128);
  EXPECT_EQ(host.max_swap_mib, 64);
  EXPECT_EQ(host.swappiness, 10);
  EXPECT_EQ(host.tmpfs, (std::vector<core::Tmpfs>{{"/t", 16, {"noexec"}}}));
  EXPECT_EQ(host.capabilities_added, (std::vector<std::string>{"SYS_NICE"}));
  EXPECT_EQ(host.capabilities_dropped, (std::vector<std::string>{"NET_RAW"}));
  EXPECT_EQ(host.devices, (std::vector<core::HostDevice>{{"/dev/null", "/dev/x", {"read"}}}));
  EXPECT_EQ(host.log, (core::LogSettings{"journald", {{"tag", "t"}}}));
  const core::LifeSettings& life = c.life;
  EXPECT_EQ(life.depends_on,
            (std::vector<core::Dependency>{{"base", core::DependencyCondition::kHealthy}}));
  EXPECT_EQ(life.start_timeout_s, 9);
  EXPECT_EQ(life.restart, (core::RestartPolicy{{0, 2}, 60}));
  EXPECT_EQ(definition.containers[0].life.health_check,
            (core::HealthCheck{{"CMD-SHELL", "true"}, 7, 3, 2, 11}));
}

TEST(SettingsJsonTest, TheAgentGetsAllOfIt) {
  const core::TaskDefinition definition = everything();
  core::DesiredTask task;
  task.task_id = "t";
  task.family = "f";
  task.revision = 1;
  task.settings = definition.settings;
  for (const core::ContainerDefinition& container : definition.containers) {
    task.containers.push_back({"id-" + container.name, container, {}, false});
  }
  const auto back =
      decode_server_message(encode(ServerMessage(ServerDesired{1, true, {task}, {}})));
  ASSERT_TRUE(back) << back.error().message;
  const core::DesiredTask& got = std::get<ServerDesired>(*back).tasks.at(0);
  EXPECT_EQ(got.settings, task.settings);
  for (std::size_t i = 0; i < task.containers.size(); ++i) {
    EXPECT_EQ(got.containers[i].definition.ports, task.containers[i].definition.ports);
    EXPECT_EQ(got.containers[i].definition.host, task.containers[i].definition.host);
    EXPECT_EQ(got.containers[i].definition.life, task.containers[i].definition.life);
  }
}

TEST(SettingsJsonTest, WhatTheEngineSaysReachesTheControlPlane) {
  core::ContainerObservation seen;
  seen.name = "c";
  seen.status = core::ContainerStatus::kRunning;
  seen.health = core::HealthStatus::kUnhealthy;
  seen.bindings = {{"0.0.0.0", 80, 49153, core::Protocol::kTcp},
                   {"::", 53, 53, core::Protocol::kUdp}};
  const auto back = decode_agent_message(encode(AgentMessage(AgentObserved{1, {{"t", {seen}}}})));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(std::get<AgentObserved>(*back).tasks.at(0).containers.at(0), seen);
}

TEST(SettingsJsonTest, ForgedBindingsAreRefusedByName) {
  for (const auto& [binding, want] :
       {std::pair{R"({"containerPort":80,"hostPort":70000,"protocol":"tcp"})",
                  "tasks[0].containers[0].bindings[0].hostPort: 70000 is not in 1..65535"},
        std::pair{R"({"containerPort":80,"hostPort":1,"protocol":"sctp"})",
                  "tasks[0].containers[0].bindings[0].protocol: 'sctp' must be tcp or udp"}}) {
    const auto got = decode_agent_message(
        std::string(R"({"type":"observed","seq":1,"tasks":[{"taskId":"t","containers":[)") +
        R"({"name":"c","status":"RUNNING","bindings":[)" + binding + "]}]}]}");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().message, want);
  }
}

TEST(SettingsJsonTest, WrongKindsCountAsAbsent) {
  const auto json = Json::parse(
      R"({"portMappings": [{"containerPort": "80"}, {"containerPort": 70000}, 7], "user": 1,
          "privileged": "yes", "mountPoints": {"a": 1}, "ulimits": "none", "linuxParameters": [],
          "healthCheck": {"command": "true"}, "restartPolicy": {"enabled": 1}, "startTimeout": "3"})");
  ASSERT_TRUE(json);
  core::ContainerDefinition container;
  read_container_settings(*json, container);
  EXPECT_TRUE(container.ports.empty());
  EXPECT_EQ(container.host, core::HostSettings());
  EXPECT_EQ(container.life, core::LifeSettings());
}

TEST(SettingsJsonTest, SizesOfATask) {
  struct Case {
    const char* text;
    std::optional<std::int64_t> cpu;
    std::optional<std::int64_t> memory;
  };
  const Case cases[] = {
      {"512", 512, 512},
      {"1 vCPU", 1024, std::nullopt},
      {".25 vcpu", 256, std::nullopt},
      {"2vCPU", 2048, std::nullopt},
      {"0.5 GB", std::nullopt, 512},
      {"3GB", std::nullopt, 3072},
      {"", std::nullopt, std::nullopt},
      {"1.5", std::nullopt, std::nullopt},
      {"-1", std::nullopt, std::nullopt},
      {"vCPU", std::nullopt, std::nullopt},
      {". GB", std::nullopt, std::nullopt},
      {"1e3", std::nullopt, std::nullopt},
      {"99999999999999999999", std::nullopt, std::nullopt},
  };
  for (const Case& test : cases) {
    EXPECT_EQ(parse_task_cpu(test.text), test.cpu) << test.text;
    EXPECT_EQ(parse_task_memory(test.text), test.memory) << test.text;
  }
}

}  // namespace
}  // namespace cotenant::codec
