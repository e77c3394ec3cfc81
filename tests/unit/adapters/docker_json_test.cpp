#include "adapters/docker_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using codec::Json;
using ports::ContainerPhase;
using ports::ContainerSpec;

Json json(std::string_view text) {
  auto parsed = Json::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : Json();
}

ContainerSpec minimal() {
  ContainerSpec spec;
  spec.name = "web";
  spec.image = "app:1";
  return spec;
}

TEST(DockerCreateBody, LeavesToTheImageWhatIsNotGiven) {
  const auto body = docker_create_body(minimal(), 41);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->dump(), R"({"Image":"app:1","Env":[],"Labels":{},"HostConfig":{"CpuShares":2,)"
                          R"("NetworkMode":"bridge","LogConfig":{"Type":"json-file",)"
                          R"("Config":{"max-file":"3","max-size":"10m"}}}})");
}

TEST(DockerCreateBody, TranslatesEveryMember) {
  ContainerSpec spec = minimal();
  spec.entry_point = {"/bin/sh", "-c"};
  spec.command = {"echo hi"};
  spec.environment = {{"A", "1"}, {"B", "x=y"}, {"C", ""}};
  spec.labels = {{"cotenant.task", "t1"}, {"z", ""}};
  spec.working_directory = "/srv";
  spec.cpu_units = 512;
  spec.memory_mib = 64;
  spec.memory_reservation_mib = 32;
  spec.network_mode = ports::NetworkMode::kNone;
  spec.mounts = {{"/run/a", "/a", true}, {"/run/b", "/b", false}};
  spec.device_nodes = {{"/dev/nvidia3", "/dev/nvidia0", "rw"}};
  spec.cdi_devices = {"nvidia.com/gpu=GPU-1"};
  spec.runtime = "nvidia";
  const auto body = docker_create_body(spec, 44);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->dump_pretty(), json(R"({
    "Image": "app:1", "Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo hi"], "WorkingDir": "/srv",
    "Env": ["A=1", "B=x=y", "C="], "Labels": {"cotenant.task": "t1", "z": ""},
    "HostConfig": {
      "CpuShares": 512, "Memory": 67108864, "MemoryReservation": 33554432, "NetworkMode": "none",
      "DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=GPU-1"]}],
      "Runtime": "nvidia",
      "Mounts": [{"Type": "bind", "Source": "/run/a", "Target": "/a", "ReadOnly": true},
                 {"Type": "bind", "Source": "/run/b", "Target": "/b", "ReadOnly": false}],
      "Devices": [{"PathOnHost": "/dev/nvidia3", "PathInContainer": "/dev/nvidia0",
                   "CgroupPermissions": "rw"}],
      "LogConfig": {"Type": "json-file", "Config": {"max-file": "3", "max-size": "10m"}}}})")
                                     .dump_pretty());
}

TEST(DockerCreateBody, CpuUnitsBecomeSharesWithinTheKernelsBounds) {
  struct Case {
    std::int64_t cpu_units;
    std::int64_t want_shares;
  };
  for (const Case& c : {Case{0, 2}, Case{1, 2}, Case{2, 2}, Case{1024, 1024}, Case{262144, 262144},
                        Case{262145, 262144}}) {
    ContainerSpec spec = minimal();
    spec.cpu_units = c.cpu_units;
    const auto body = docker_create_body(spec, 41);
    ASSERT_TRUE(body);
    EXPECT_EQ(body->find("HostConfig")->integer_or("CpuShares", -1), c.want_shares);
  }
}

TEST(DockerCreateBody, NamesTheMemberThatIsWrong) {
  struct Case {
    const char* text;
    void (*spoil)(ContainerSpec&);
  };
  for (const Case& c : {
           Case{"name: must", [](ContainerSpec& s) { s.name = ""; }},
           Case{"image: must", [](ContainerSpec& s) { s.image = ""; }},
           Case{"environment[1].name: 'A=B'",
                [](ContainerSpec& s) {
                  s.environment = {{"A", ""}, {"A=B", ""}};
                }},
           Case{"environment[0].name: ''",
                [](ContainerSpec& s) {
                  s.environment = {{"", "x"}};
                }},
           Case{"memory_mib: -1", [](ContainerSpec& s) { s.memory_mib = -1; }},
           Case{"memory_mib: 9223372036854775807",
                [](ContainerSpec& s) { s.memory_mib = INT64_MAX; }},
           Case{"memory_reservation_mib: -5",
                [](ContainerSpec& s) { s.memory_reservation_mib = -5; }},
           Case{"cpu_units: -1", [](ContainerSpec& s) { s.cpu_units = -1; }},
           Case{"cdi_devices: the engine's API 1.43 knows no CDI",
                [](ContainerSpec& s) { s.cdi_devices = {"nvidia.com/gpu=0"}; }},
       }) {
    ContainerSpec spec = minimal();
    c.spoil(spec);
    const auto body = docker_create_body(spec, 43);
    ASSERT_FALSE(body) << c.text;
    EXPECT_EQ(body.error().code, ErrorCode::kClient) << c.text;
    EXPECT_PRED_FORMAT2(testing::IsSubstring, c.text, body.error().message);
  }
}

TEST(DockerVersion, SpeaksTheNewestThatBothKnow) {
  struct Case {
    const char* body;
    int want_minor;
    const char* want_name;
  };
  for (const Case& c : {
           Case{R"({"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12",)"
                R"("Components":[{"Name":"Engine"}]})",
                41, "Docker Engine"},
           Case{R"({"Version":"28.0","ApiVersion":"1.48","MinAPIVersion":"1.24"})", 48,
                "Docker Engine"},
           Case{R"({"Version":"29.0","ApiVersion":"1.52","MinAPIVersion":"1.44"})", 51,
                "Docker Engine"},
           Case{R"({"Version":"4.3.1","ApiVersion":"1.41","MinAPIVersion":"1.24",)"
                R"("Components":[{"Name":"Podman Engine"}]})",
                41, "Podman Engine"},
       }) {
    const auto version = parse_docker_version(json(c.body));
    ASSERT_TRUE(version) << version.error().message;
    EXPECT_EQ(version->api_minor, c.want_minor);
    EXPECT_EQ(version->name, c.want_name);
  }
}

TEST(DockerVersion, RefusesEnginesThatItCannotSpeakTo) {
  struct Case {
    const char* body;
    ErrorCode want;
    const char* text;
  };
  for (const Case& c : {
           Case{R"({"Version":"19.03","ApiVersion":"1.40","MinAPIVersion":"1.12"})",
                ErrorCode::kUnavailable, "speaks API 1.40; 1.41 (Docker 20.10) or newer"},
           Case{R"({"Version":"40","ApiVersion":"1.80","MinAPIVersion":"1.70"})",
                ErrorCode::kUnavailable, "speaks only API 1.70"},
           Case{"{}", ErrorCode::kProtocol, "ApiVersion"},
           Case{R"({"ApiVersion":"2.1","MinAPIVersion":"1.2"})", ErrorCode::kProtocol,
                "ApiVersion"},
           Case{R"({"ApiVersion":"1.","MinAPIVersion":"1.2"})", ErrorCode::kProtocol, "ApiVersion"},
           Case{R"({"ApiVersion":"1.41","MinAPIVersion":"1.x"})", ErrorCode::kProtocol,
                "MinAPIVersion"},
           Case{"[]", ErrorCode::kProtocol, "ApiVersion"},
       }) {
    const auto version = parse_docker_version(json(c.body));
    ASSERT_FALSE(version) << c.body;
    EXPECT_EQ(version.error().code, c.want) << c.body;
    EXPECT_PRED_FORMAT2(testing::IsSubstring, c.text, version.error().message);
  }
}

TEST(DockerInfo, ReadsWhatTheAgentNeeds) {
  const auto info = parse_docker_info(
      {"Docker Engine", "28.0", 48},
      json(R"({"NCPU":16,"MemTotal":25275953152,"CDISpecDirs":["/etc/cdi","/var/run/cdi"],
               "Runtimes":{"runc":{"path":"runc"},"nvidia":{"path":"x"}}})"),
      json(R"([{"Name":"host","Driver":"host"},{"Name":"bridge","Driver":"bridge"}])"));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->name, "Docker Engine");
  EXPECT_EQ(info->version, "28.0");
  EXPECT_EQ(info->cpu_count, 16);
  EXPECT_EQ(info->memory_mib, 24105);
  EXPECT_TRUE(info->has_bridge);
  EXPECT_EQ(info->cdi_spec_dirs, (std::vector<std::string>{"/etc/cdi", "/var/run/cdi"}));
  EXPECT_EQ(info->runtimes, (std::vector<std::string>{"runc", "nvidia"}));
}

TEST(DockerInfo, AnOldEngineWithoutBridgeHasNeither) {
  // Another network of the bridge driver is not the default one.
  const auto info =
      parse_docker_info({}, json(R"({"NCPU":2,"MemTotal":1073741824,"CDISpecDirs":null})"),
                        json(R"([{"Name":"bridge2","Driver":"bridge"}])"));
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->has_bridge);
  EXPECT_TRUE(info->cdi_spec_dirs.empty());
  const auto broken = parse_docker_info({}, json(R"({"MemTotal":1073741824})"), json("[]"));
  ASSERT_FALSE(broken);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "NCPU", broken.error().message);
}

std::string inspect_text(std::string_view state) {
  return fmt::format(R"({{"Id":"abc","Name":"/web","Image":"sha256:1","State":{{{}}},)"
                     R"("Config":{{"Image":"app:1","Labels":{{"a":"1"}}}}}})",
                     state);
}

TEST(DockerInspect, MapsStatesToPhases) {
  constexpr const char* kRan =
      R"("StartedAt":"2026-12-01T11:51:15.5Z","FinishedAt":"2026-12-01T11:51:16.7Z")";
  constexpr const char* kNever =
      R"("StartedAt":"0001-01-01T00:00:00Z","FinishedAt":"0001-01-01T00:00:00Z")";
  struct Case {
    std::string state;
    ContainerPhase want;
    std::optional<int> exit_code;
    const char* error;
    bool finished;
  };
  using enum ContainerPhase;
  const auto state = [](std::string_view status, int code, std::string_view error,
                        std::string_view times) {
    return fmt::format(R"("Status":"{}","ExitCode":{},"Error":"{}",{})", status, code, error,
                       times);
  };
  for (const Case& c : {
           Case{state("created", 0, "", kNever), kCreated, std::nullopt, "", false},
           Case{state("running", 0, "", kRan), kRunning, std::nullopt, "", false},
           Case{state("paused", 0, "", kRan), kRunning, std::nullopt, "", false},
           Case{state("restarting", 1, "", kRan), kRunning, std::nullopt, "", false},
           Case{state("exited", 0, "", kRan), kStopped, 0, "", true},
           Case{state("exited", 3, "", kRan), kStopped, 3, "", true},
           Case{state("exited", 137, "", kRan), kStopped, 137, "", true},
           Case{state("removing", 137, "", kRan), kStopped, 137, "", true},
           Case{state("dead", 1, "", kRan), kStopped, 1, "", true},
           Case{state("dead", 0, "", kNever), kStopped, std::nullopt, "", false},
           // The engine's exit codes for a process that never was are its own invention.
           Case{state("created", 127, "no such file", kNever), kStopped, std::nullopt,
                "no such file", false},
           Case{state("created", 128, "no driver", kNever), kStopped, std::nullopt, "no driver",
                false},
           // It ran once; a later start failed.
           Case{state("exited", 128, "no driver", kRan), kStopped, std::nullopt, "no driver", true},
       }) {
    const auto got = parse_docker_inspect(json(inspect_text(c.state)));
    ASSERT_TRUE(got) << c.state << got.error().message;
    EXPECT_EQ(got->phase, c.want) << c.state;
    EXPECT_EQ(got->exit_code, c.exit_code) << c.state;
    EXPECT_EQ(got->error, c.error) << c.state;
    EXPECT_EQ(got->finished_at_ms, c.finished ? 1796125876700 : 0) << c.state;
    EXPECT_EQ(got->id, "abc");
    EXPECT_EQ(got->name, "web");
    EXPECT_EQ(got->image, "app:1");
    EXPECT_EQ(got->image_digest, "sha256:1");
    EXPECT_EQ(got->labels, (std::map<std::string, std::string>{{"a", "1"}}));
  }
}

TEST(DockerInspect, ReportsOutOfMemory) {
  const auto got =
      parse_docker_inspect(json(inspect_text(R"("Status":"exited","ExitCode":137,"OOMKilled":true,)"
                                             R"("StartedAt":"2026-12-01T11:51:15.5Z")")));
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->oom_killed);
  EXPECT_EQ(got->started_at_ms, 1796125875500);
}

TEST(DockerInspect, NamesTheMemberThatIsWrong) {
  struct Case {
    std::string body;
    const char* text;
  };
  for (const Case& c : {
           Case{"{}", "Id"},
           Case{R"({"Id":"a"})", "Config"},
           Case{R"({"Id":"a","Config":{}})", "State"},
           Case{R"({"Id":"a","Config":{"Labels":{"x":1}}})", "Labels.x"},
           Case{inspect_text(R"("Status":"melting")"), "State.Status 'melting'"},
           Case{inspect_text(R"("Status":"running","StartedAt":"soon")"), "State.StartedAt"},
           Case{inspect_text(R"("Status":"running","FinishedAt":"soon")"), "State.FinishedAt"},
           Case{inspect_text(R"("Status":"exited","StartedAt":"2026-12-01T11:51:15Z")"),
                "State.ExitCode"},
       }) {
    const auto got = parse_docker_inspect(json(c.body));
    ASSERT_FALSE(got) << c.body;
    EXPECT_EQ(got.error().code, ErrorCode::kProtocol);
    EXPECT_PRED_FORMAT2(testing::IsSubstring, c.text, got.error().message);
  }
}

TEST(DockerList, ReadsAnEntry) {
  const auto got = parse_docker_list_entry(
      json(R"({"Id":"abc","Names":["/web"],"Image":"app:1","ImageID":"sha256:1",
               "Labels":{"a":"1"},"State":"paused"})"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->id, "abc");
  EXPECT_EQ(got->name, "web");
  EXPECT_EQ(got->phase, ContainerPhase::kRunning);
  EXPECT_EQ(got->labels.at("a"), "1");
  EXPECT_FALSE(parse_docker_list_entry(json(R"({"State":"running"})")));
  EXPECT_FALSE(parse_docker_list_entry(json(R"({"Id":"abc","State":""})")));
}

TEST(DockerRepoDigest, PrefersTheRepositoryOfTheImagesName) {
  struct Case {
    const char* body;
    const char* image;
    std::optional<std::string> want;
  };
  constexpr const char* kTwo = R"({"RepoDigests":["other@sha256:1","reg:5000/app@sha256:2"]})";
  for (const Case& c : {
           Case{kTwo, "reg:5000/app:v1", "sha256:2"},
           Case{kTwo, "reg:5000/app", "sha256:2"},
           Case{kTwo, "other@sha256:1", "sha256:1"},
           Case{kTwo, "third:1", "sha256:1"},
           Case{R"({"RepoDigests":[]})", "app:1", std::nullopt},
           Case{R"({"RepoDigests":null})", "app:1", std::nullopt},
           Case{R"({"RepoDigests":["bad",3]})", "app:1", std::nullopt},
       }) {
    EXPECT_EQ(docker_repo_digest(json(c.body), c.image), c.want) << c.body << c.image;
  }
}

TEST(DockerFilters, QuoteTheirValues) {
  EXPECT_EQ(docker_label_filter("cotenant.instance", "a\"b"),
            R"({"label":["cotenant.instance=a\"b"]})");
  EXPECT_EQ(docker_event_filter("k", "v"), R"({"type":["container"],"label":["k=v"]})");
  EXPECT_EQ(percent_encode("aZ0-_.~"), "aZ0-_.~");
  EXPECT_EQ(percent_encode("a/b?c=d&\xc3\xa4 %"), "a%2Fb%3Fc%3Dd%26%C3%A4%20%25");
}

}  // namespace
}  // namespace cotenant::adapters
