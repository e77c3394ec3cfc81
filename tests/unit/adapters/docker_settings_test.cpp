#include "adapters/docker_settings.h"

#include <gtest/gtest.h>

#include <functional>

#include "adapters/docker_json.h"

namespace cotenant::adapters {
namespace {

using codec::Json;
using ports::ContainerSpec;

Json parsed(std::string_view text) {
  auto json = Json::parse(text);
  EXPECT_TRUE(json) << text;
  return json ? *json : Json();
}

struct SettingCase {
  const char* name;
  std::function<void(ContainerSpec&)> set;
  const char* path;  // "HostConfig.Binds" or "User"
  const char* want;
};

const Json* at_path(const Json& body, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return body.find(path);
  const Json* part = body.find(path.substr(0, dot));
  return part == nullptr ? nullptr : part->find(path.substr(dot + 1));
}

// One row a member: what the engine is asked for, and that it is not asked for otherwise.
TEST(DockerSettingsTest, EachMemberHasItsPlace) {
  const SettingCase cases[] = {
      {"user", [](auto& s) { s.host.user = "1000:1"; }, "User", R"("1000:1")"},
      {"interactive", [](auto& s) { s.host.interactive = true; }, "OpenStdin", "true"},
      {"terminal", [](auto& s) { s.host.pseudo_terminal = true; }, "Tty", "true"},
      {"hostname", [](auto& s) { s.host.hostname = "h"; }, "Hostname", R"("h")"},
      {"no network", [](auto& s) { s.host.network_disabled = true; }, "NetworkDisabled", "true"},
      {"health",
       [](auto& s) {
         s.health_check = core::HealthCheck{{"CMD", "true"}, 30, 5, 3, 10};
       },
       "Healthcheck",
       R"({"Test":["CMD","true"],"Interval":30000000000,"Timeout":5000000000,"Retries":3,)"
       R"("StartPeriod":10000000000})"},
      {"exposed ports",
       [](auto& s) {
         s.ports = {{80, 8080}, {53, 0, core::Protocol::kUdp}};
       },
       "ExposedPorts", R"({"80/tcp":{},"53/udp":{}})"},
      {"port bindings",
       [](auto& s) {
         s.ports = {{80, 8080}, {53, 0, core::Protocol::kUdp}, {80, 8081}};
       },
       "HostConfig.PortBindings",
       R"({"80/tcp":[{"HostPort":"8080"},{"HostPort":"8081"}],"53/udp":[{"HostPort":""}]})"},
      {"a folder that is made",
       [](auto& s) {
         s.mounts = {{"/a", "/b", true, true}};
       },
       "HostConfig.Binds", R"(["/a:/b:ro"])"},
      {"a file that must be there",
       [](auto& s) {
         s.mounts = {{"/a", "/b", false}};
       },
       "HostConfig.Mounts", R"([{"Type":"bind","Source":"/a","Target":"/b","ReadOnly":false}])"},
      {"a volume",
       [](auto& s) {
         s.volume_mounts = {{"v", "/b", true, "local", {{"o", "p"}}, {{"l", "m"}}}};
       },
       "HostConfig.Mounts",
       R"([{"Type":"volume","Source":"v","Target":"/b","ReadOnly":true,"VolumeOptions":)"
       R"({"Labels":{"l":"m"},"DriverConfig":{"Name":"local","Options":{"o":"p"}}}}])"},
      {"volumes of another", [](auto& s) { s.volumes_from = {"x:ro"}; }, "HostConfig.VolumesFrom",
       R"(["x:ro"])"},
      {"tmpfs",
       [](auto& s) {
         s.host.tmpfs = {{"/t", 16, {"noexec", "mode=1777"}}};
       },
       "HostConfig.Tmpfs", R"({"/t":"size=16m,noexec,mode=1777"})"},
      {"read-only root", [](auto& s) { s.host.read_only_root = true; }, "HostConfig.ReadonlyRootfs",
       "true"},
      {"shared memory", [](auto& s) { s.host.shared_memory_mib = 2; }, "HostConfig.ShmSize",
       "2097152"},
      {"devices",
       [](auto& s) {
         s.host.devices = {{"/dev/a", "", {"read", "mknod"}}, {"/dev/b", "/dev/c", {}}};
       },
       "HostConfig.Devices",
       R"([{"PathOnHost":"/dev/a","PathInContainer":"/dev/a","CgroupPermissions":"rm"},)"
       R"({"PathOnHost":"/dev/b","PathInContainer":"/dev/c","CgroupPermissions":"rwm"}])"},
      {"ulimits",
       [](auto& s) {
         s.host.ulimits = {{"nofile", 1, -1}};
       },
       "HostConfig.Ulimits", R"([{"Name":"nofile","Soft":1,"Hard":-1}])"},
      {"half a core", [](auto& s) { s.cpu_limit_units = 512; }, "HostConfig.NanoCpus", "499999744"},
      {"swap",
       [](auto& s) {
         s.memory_mib = 6;
         s.host.max_swap_mib = 2;
       },
       "HostConfig.MemorySwap", "8388608"},
      {"no swap",
       [](auto& s) {
         s.memory_mib = 6;
         s.host.max_swap_mib = 0;
       },
       "HostConfig.MemorySwap", "6291456"},
      {"swappiness",
       [](auto& s) {
         s.memory_mib = 6;
         s.host.max_swap_mib = 2;
         s.host.swappiness = 0;
       },
       "HostConfig.MemorySwappiness", "0"},
      {"swappiness alone means nothing", [](auto& s) { s.host.swappiness = 9; },
       "HostConfig.MemorySwappiness", ""},
      {"sysctls",
       [](auto& s) {
         s.host.system_controls = {{"net.core.somaxconn", "9"}};
       },
       "HostConfig.Sysctls", R"({"net.core.somaxconn":"9"})"},
      {"privileged", [](auto& s) { s.host.privileged = true; }, "HostConfig.Privileged", "true"},
      {"init", [](auto& s) { s.host.init_process = true; }, "HostConfig.Init", "true"},
      {"capabilities", [](auto& s) { s.host.capabilities_added = {"SYS_NICE"}; },
       "HostConfig.CapAdd", R"(["SYS_NICE"])"},
      {"dropped ones", [](auto& s) { s.host.capabilities_dropped = {"ALL"}; }, "HostConfig.CapDrop",
       R"(["ALL"])"},
      {"security options", [](auto& s) { s.host.security_options = {"no-new-privileges"}; },
       "HostConfig.SecurityOpt", R"(["no-new-privileges"])"},
      {"extra hosts",
       [](auto& s) {
         s.host.extra_hosts = {{"h", "10.0.0.1"}};
       },
       "HostConfig.ExtraHosts", R"(["h:10.0.0.1"])"},
      {"dns", [](auto& s) { s.host.dns_servers = {"10.0.0.2"}; }, "HostConfig.Dns",
       R"(["10.0.0.2"])"},
      {"dns search", [](auto& s) { s.host.dns_search_domains = {"x"}; }, "HostConfig.DnsSearch",
       R"(["x"])"},
      {"links", [](auto& s) { s.links = {"cotenant-x:db"}; }, "HostConfig.Links",
       R"(["cotenant-x:db"])"},
      {"the host's processes", [](auto& s) { s.pid_mode = core::NamespaceMode::kHost; },
       "HostConfig.PidMode", R"("host")"},
      {"the host's shared memory", [](auto& s) { s.ipc_mode = core::NamespaceMode::kHost; },
       "HostConfig.IpcMode", R"("host")"},
      {"no shared memory", [](auto& s) { s.ipc_mode = core::NamespaceMode::kNone; },
       "HostConfig.IpcMode", R"("none")"},
      {"the task's network",
       [](auto& s) {
         s.namespace_holder = "p";
         s.network_mode = core::NetworkMode::kAwsvpc;
       },
       "HostConfig.NetworkMode", R"("container:p")"},
      {"the task's processes",
       [](auto& s) {
         s.namespace_holder = "p";
         s.pid_mode = core::NamespaceMode::kTask;
       },
       "HostConfig.PidMode", R"("container:p")"},
      {"the task's shared memory",
       [](auto& s) {
         s.namespace_holder = "p";
         s.ipc_mode = core::NamespaceMode::kTask;
       },
       "HostConfig.IpcMode", R"("container:p")"},
      {"shared memory for the task", [](auto& s) { s.ipc_mode = core::NamespaceMode::kTask; },
       "HostConfig.IpcMode", R"("shareable")"},
      {"logs by default", [](auto&) {}, "HostConfig.LogConfig",
       R"({"Type":"json-file","Config":{"max-file":"3","max-size":"10m"}})"},
      {"awslogs stay here",
       [](auto& s) {
         s.host.log = core::LogSettings{"awslogs", {{"awslogs-group", "g"}}};
       },
       "HostConfig.LogConfig",
       R"({"Type":"json-file","Config":{"max-file":"3","max-size":"10m"}})"},
      {"json-file keeps a bound",
       [](auto& s) {
         s.host.log = core::LogSettings{"json-file", {{"max-size", "1m"}}};
       },
       "HostConfig.LogConfig", R"({"Type":"json-file","Config":{"max-file":"3","max-size":"1m"}})"},
      {"another driver",
       [](auto& s) {
         s.host.log = core::LogSettings{"syslog", {{"tag", "t"}}};
       },
       "HostConfig.LogConfig", R"({"Type":"syslog","Config":{"tag":"t"}})"},
  };
  ContainerSpec plain;
  plain.name = "n";
  plain.image = "i";
  const auto without = docker_create_body(plain, 41);
  ASSERT_TRUE(without);
  for (const SettingCase& test : cases) {
    SCOPED_TRACE(test.name);
    ContainerSpec spec = plain;
    test.set(spec);
    const auto body = docker_create_body(spec, 41);
    ASSERT_TRUE(body) << body.error().message;
    const Json* got = at_path(*body, test.path);
    EXPECT_EQ(got == nullptr ? "" : got->dump(), std::string(test.want));
    const std::string_view path = test.path;
    if (path != "HostConfig.LogConfig" && path != "HostConfig.NetworkMode") {
      EXPECT_EQ(at_path(*without, test.path), nullptr);
    }
  }
}

TEST(DockerSettingsTest, ReadsBindingsAndHealth) {
  EXPECT_EQ(
      parse_docker_bindings(parsed(
          R"({"NetworkSettings":{"Ports":{"90/tcp":null,"80/tcp":[{"HostIp":"::","HostPort":"7"},)"
          R"({"HostIp":"0.0.0.0","HostPort":"7"}],"53/udp":[{"HostIp":"0.0.0.0","HostPort":"53"}],)"
          R"("1/sctp":[{"HostIp":"","HostPort":"1"}],"x":[{}],"2/tcp":[{"HostPort":"70000"}]}}})")),
      (std::vector<core::NetworkBinding>{{"0.0.0.0", 53, 53, core::Protocol::kUdp},
                                         {"0.0.0.0", 80, 7, core::Protocol::kTcp},
                                         {"::", 80, 7, core::Protocol::kTcp}}));
  EXPECT_TRUE(parse_docker_bindings(parsed("{}")).empty());
  for (const auto& [status, want] : {std::pair{"healthy", core::HealthStatus::kHealthy},
                                     std::pair{"unhealthy", core::HealthStatus::kUnhealthy},
                                     std::pair{"starting", core::HealthStatus::kUnknown}}) {
    EXPECT_EQ(
        parse_docker_health(parsed(std::string(R"({"Health":{"Status":")") + status + "\"}}")),
        want);
  }
  EXPECT_EQ(parse_docker_health(parsed("{}")), core::HealthStatus::kUnknown);
}

}  // namespace
}  // namespace cotenant::adapters
