#include "adapters/podman_create.h"

#include <gtest/gtest.h>

#include "adapters/docker_json.h"
#include "adapters/docker_runtime.h"
#include "adapters/gpu_wiring.h"
#include "scripted_client.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using codec::Json;

Json podman_json(const std::string& text) {
  auto json = Json::parse(text);
  EXPECT_TRUE(json) << text;
  return json ? *json : Json();
}

ports::ContainerSpec gpu_spec() {
  ports::ContainerSpec spec;
  spec.name = "web";
  spec.image = "app:1";
  spec.cdi_devices = {"nvidia.com/gpu=GPU-1"};
  return spec;
}

TEST(PodmanCreate, TheLeastThatCanBeAskedFor) {
  const auto body = podman_create_body(gpu_spec());
  ASSERT_TRUE(body) << body.error().message;
  EXPECT_EQ(*body, podman_json(R"({
    "name": "web", "image": "app:1", "env": {}, "labels": {},
    "log_configuration": {"driver": "json-file", "size": 30000000},
    "netns": {"nsmode": "bridge"},
    "devices": [{"path": "nvidia.com/gpu=GPU-1"}],
    "resource_limits": {"cpu": {"shares": 2}}})"));
}

TEST(PodmanCreate, EveryMemberHasItsPlace) {
  ports::ContainerSpec spec = gpu_spec();
  spec.entry_point = {"/bin/sh", "-c"};
  spec.command = {"serve"};
  spec.environment = {{"A", "1=2"}, {"EMPTY", ""}};
  spec.labels = {{"cotenant.task", "t"}};
  spec.working_directory = "/srv";
  spec.cpu_units = 512;
  spec.cpu_limit_units = 1536;
  spec.memory_mib = 64;
  spec.memory_reservation_mib = 32;
  spec.ports = {{8080, 0, core::Protocol::kTcp}, {53, 5353, core::Protocol::kUdp}};
  spec.mounts = {{"/run/mps/control", "/mps/control", true}, {"/data", "/data", false}};
  spec.volume_mounts = {{"cache", "/cache", true, "", {}, {{"cotenant.instance", "i"}}}};
  spec.volumes_from = {"other:ro"};
  spec.device_nodes = {{"/dev/a", "/dev/b", "rw"}};
  spec.pid_mode = core::NamespaceMode::kHost;
  spec.ipc_mode = core::NamespaceMode::kTask;
  core::HealthCheck check;
  check.command = {"CMD", "true"};
  check.interval_s = 10;
  check.timeout_s = 2;
  check.retries = 4;
  check.start_period_s = 1;
  spec.health_check = check;
  spec.host.user = "1000";
  spec.host.hostname = "here";
  spec.host.interactive = true;
  spec.host.pseudo_terminal = true;
  spec.host.read_only_root = true;
  spec.host.init_process = true;
  spec.host.ulimits = {{"nofile", 512, 1024}, {"memlock", -1, -1}};
  spec.host.security_options = {"no-new-privileges", "apparmor:strict", "label=type:x"};
  spec.host.extra_hosts = {{"db", "10.0.0.1"}};
  spec.host.dns_servers = {"10.0.0.2"};
  spec.host.dns_search_domains = {"example"};
  spec.host.system_controls = {{"net.core.somaxconn", "512"}};
  spec.host.shared_memory_mib = 1;
  spec.host.max_swap_mib = 0;
  spec.host.swappiness = 60;
  spec.host.tmpfs = {{"/tmp", 16, {"noexec"}}};
  spec.host.capabilities_added = {"SYS_PTRACE"};
  spec.host.capabilities_dropped = {"NET_RAW"};
  spec.host.devices = {{"/dev/fuse", "", {"read", "write"}}};
  spec.host.log =
      core::LogSettings{"json-file", {{"max-size", "5m"}, {"max-file", "2"}, {"tag", "x"}}};
  const auto body = podman_create_body(spec);
  ASSERT_TRUE(body) << body.error().message;
  EXPECT_EQ(*body, podman_json(R"({
    "name": "web", "image": "app:1", "entrypoint": ["/bin/sh", "-c"], "command": ["serve"],
    "work_dir": "/srv", "env": {"A": "1=2", "EMPTY": ""}, "labels": {"cotenant.task": "t"},
    "user": "1000", "stdin": true, "terminal": true,
    "healthconfig": {"Test": ["CMD", "true"], "Interval": 10000000000, "Timeout": 2000000000,
                     "Retries": 4, "StartPeriod": 1000000000},
    "log_configuration": {"driver": "json-file", "size": 5242880, "options": {"tag": "x"}},
    "netns": {"nsmode": "bridge"}, "pidns": {"nsmode": "host"}, "ipcns": {"nsmode": "shareable"},
    "portmappings": [{"container_port": 8080, "host_port": 0, "protocol": "tcp"},
                     {"container_port": 53, "host_port": 5353, "protocol": "udp"}],
    "mounts": [{"type": "bind", "source": "/run/mps/control", "destination": "/mps/control",
                "options": ["rbind", "ro"]},
               {"type": "bind", "source": "/data", "destination": "/data", "options": ["rbind", "rw"]},
               {"type": "tmpfs", "source": "tmpfs", "destination": "/tmp",
                "options": ["size=16m", "noexec"]}],
    "volumes": [{"Name": "cache", "Dest": "/cache", "Options": ["ro"]}],
    "volumes_from": ["other:ro"], "read_only_filesystem": true, "shm_size": 1048576,
    "devices": [{"path": "nvidia.com/gpu=GPU-1"}, {"path": "/dev/a:/dev/b:rw"},
                {"path": "/dev/fuse:/dev/fuse:rw"}],
    "resource_limits": {"cpu": {"shares": 512, "period": 100000, "quota": 150000},
                        "memory": {"limit": 67108864, "swap": 67108864, "swappiness": 60,
                                   "reservation": 33554432}},
    "r_limits": [{"type": "nofile", "soft": 512, "hard": 1024},
                 {"type": "memlock", "soft": 9223372036854775807, "hard": 9223372036854775807}],
    "sysctl": {"net.core.somaxconn": "512"}, "init": true, "cap_add": ["SYS_PTRACE"],
    "cap_drop": ["NET_RAW"], "no_new_privileges": true, "apparmor_profile": "strict",
    "selinux_opts": ["type:x"], "hostname": "here", "hostadd": ["db:10.0.0.1"],
    "dns_server": ["10.0.0.2"], "dns_search": ["example"]})"))
      << body->dump();
  const auto volumes = podman_volume_bodies(spec);
  ASSERT_EQ(volumes.size(), 1U);
  EXPECT_EQ(volumes[0], podman_json(R"({"Name": "cache", "Labels": {"cotenant.instance": "i"}})"));
}

TEST(PodmanCreate, WhatHasNoCounterpartIsRefused) {
  ports::ContainerSpec spec = gpu_spec();
  spec.links = {"db:db"};
  EXPECT_FALSE(podman_create_body(spec));
  spec = gpu_spec();
  spec.host.security_options = {"seccomp=unconfined"};
  const auto refused = podman_create_body(spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kClient);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "'seccomp=unconfined'", refused.error().message);
}

TEST(PodmanCreate, NetworksAndLogs) {
  ports::ContainerSpec spec = gpu_spec();
  const auto netns = [&] {
    const auto body = podman_create_body(spec);
    return body ? body->find("netns")->dump() : "";
  };
  spec.network_mode = ports::NetworkMode::kHost;
  EXPECT_EQ(netns(), R"({"nsmode":"host"})");
  spec.network_mode = ports::NetworkMode::kAwsvpc;
  spec.namespace_holder = "pause";
  EXPECT_EQ(netns(), R"({"nsmode":"container","value":"pause"})");
  spec.host.network_disabled = true;
  EXPECT_EQ(netns(), R"({"nsmode":"none"})");
  spec.host.log = core::LogSettings{"journald", {}};
  EXPECT_EQ(podman_create_body(spec)->find("log_configuration")->dump(),
            R"({"driver":"journald"})");
  spec.host.log = core::LogSettings{"awslogs", {{"awslogs-group", "g"}}};
  EXPECT_EQ(podman_create_body(spec)->find("log_configuration")->dump(),
            R"({"driver":"json-file","size":30000000})");
}

class PodmanRuntimeTest : public testing::Test {
 protected:
  PodmanRuntimeTest() {
    client_->on("GET /version", 200,
                R"({"Version":"4.3.1","ApiVersion":"1.41","MinAPIVersion":"1.24",
                    "Components":[{"Name":"Podman Engine"}]})");
  }
  std::shared_ptr<ScriptedClient> client_ = std::make_shared<ScriptedClient>();
  DockerRuntime runtime_{client_};
};

TEST_F(PodmanRuntimeTest, ByItsOwnCallOnlyWhereACdiNameIsInvolved) {
  client_->on("POST /v1.41/containers/create?name=web", 201, R"({"Id":"plain"})")
      .on("POST /v4.0.0/libpod/containers/create", 201, R"({"Id":"by name"})")
      .on("POST /v1.41/volumes/create", 201, "{}");
  ports::ContainerSpec spec = gpu_spec();
  spec.cdi_devices.clear();
  EXPECT_EQ(runtime_.create(spec).value_or(""), "plain");
  spec = gpu_spec();
  spec.volume_mounts = {{"v", "/v", false, "", {}, {{"l", "x"}}}};
  EXPECT_EQ(runtime_.create(spec).value_or(""), "by name");
  EXPECT_EQ(client_->count("POST /v1.41/volumes/create"), 1U);
  spec.name.clear();
  const auto nameless = runtime_.create(spec);
  ASSERT_FALSE(nameless);
  EXPECT_EQ(nameless.error().code, ErrorCode::kClient);
}

TEST_F(PodmanRuntimeTest, AnImportedImageKeepsItsTag) {
  const std::string call =
      "POST /v1.41/images/create?fromSrc=-&repo=cotenant%2Fpause%3A1&changes=ENTRYPOINT%20%5B%22%2Fp%22%5D";
  client_->on(call, 200, R"({"status":"sha256:1"})");
  EXPECT_TRUE(runtime_.import_image("cotenant/pause:1", "tar", "/p"));
  EXPECT_EQ(client_->count(call), 1U);
}

TEST_F(PodmanRuntimeTest, ItsCdiFoldersAreKnownAndItsRuntimesDoNotCount) {
  client_
      ->on("GET /v1.41/info", 200,
           R"({"NCPU":2,"MemTotal":1073741824,"Runtimes":{"nvidia":{},"runc":{}}})")
      .on("GET /v1.41/networks", 200, R"([{"Name":"podman","Driver":"bridge"}])");
  const auto info = runtime_.info();
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->cdi_spec_dirs, (std::vector<std::string>{"/etc/cdi", "/var/run/cdi"}));
  EXPECT_TRUE(info->runtimes.empty());
  EXPECT_TRUE(info->has_bridge);
  // So a spec with hooks in another folder is refused with Podman's remedy.
  ports::ContainerSpec spec = gpu_spec();
  CdiEdits edits;
  edits.hooks = {{"createContainer", "/usr/bin/nvidia-cdi-hook"}};
  const base::Status status = wire_gpus(
      {info->cdi_spec_dirs, info->runtimes, "/opt/cdi", {"GPU-1"}, edits, info->name}, spec);
  ASSERT_FALSE(status);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "--cdi-dir /etc/cdi", status.error().message);
}

}  // namespace
}  // namespace cotenant::adapters
