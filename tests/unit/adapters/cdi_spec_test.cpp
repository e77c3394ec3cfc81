#include "adapters/cdi_spec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cotenant::adapters {
namespace {

constexpr const char* kYaml = R"(
cdiVersion: "0.5.0"
kind: nvidia.com/gpu
annotations: {made.by: test}
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
      hostPath: /dev/nvidia7
      type: c
      major: 195
      minor: 7
      permissions: rw
- name: GPU-1
  annotations: {a: b}
  containerEdits:
    deviceNodes:
    - {path: /dev/nvidia1, fileMode: 0666, uid: 0, gid: 44}
containerEdits:
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  - OPTIONS=a=b
  - EMPTY=
  mounts:
  - hostPath: /usr/lib/libcuda.so.1
    containerPath: /usr/lib/libcuda.so.1
    options: [ro, nosuid, nodev, rbind, rprivate]
  - {hostPath: /run/x, containerPath: /run/y}
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, update-ldcache]
    env: [A=B]
    timeout: 10
  additionalGids: [44, 109]
)";

constexpr const char* kJson = R"({
  "cdiVersion": "1.1.0", "kind": "nvidia.com/gpu",
  "devices": [{"name": "GPU-1", "containerEdits": {"env": ["A=1"], "mounts": null}}],
  "containerEdits": null})";

TEST(CdiSpec, ReadsYaml) {
  const auto spec = parse_cdi_spec("f", kYaml);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->kind, "nvidia.com/gpu");
  ASSERT_EQ(spec->devices.size(), 2U);
  const CdiDevice* first = spec->find("0");
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(first->edits.device_nodes.size(), 1U);
  EXPECT_EQ(first->edits.device_nodes[0].path, "/dev/nvidia0");
  EXPECT_EQ(first->edits.device_nodes[0].host_path, "/dev/nvidia7");
  EXPECT_EQ(first->edits.device_nodes[0].permissions, "rw");
  EXPECT_FALSE(first->edits.device_nodes[0].has_mode_or_owner);
  const CdiDevice* second = spec->find("GPU-1");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->edits.device_nodes[0].host_path, "/dev/nvidia1");
  EXPECT_EQ(second->edits.device_nodes[0].permissions, "rwm");
  EXPECT_TRUE(second->edits.device_nodes[0].has_mode_or_owner);
  EXPECT_EQ(spec->find("1"), nullptr);

  const CdiEdits& common = spec->edits;
  ASSERT_EQ(common.environment.size(), 3U);
  EXPECT_EQ(common.environment[1].name, "OPTIONS");
  EXPECT_EQ(common.environment[1].value, "a=b");
  EXPECT_EQ(common.environment[2].value, "");
  ASSERT_EQ(common.mounts.size(), 2U);
  EXPECT_TRUE(common.mounts[0].read_only());
  EXPECT_FALSE(common.mounts[1].read_only());
  EXPECT_EQ(common.mounts[1].host_path, "/run/x");
  EXPECT_EQ(common.mounts[1].container_path, "/run/y");
  ASSERT_EQ(common.hooks.size(), 1U);
  EXPECT_EQ(common.hooks[0].hook_name, "createContainer");
  EXPECT_EQ(common.hooks[0].path, "/usr/bin/nvidia-cdi-hook");
  EXPECT_EQ(common.additional_gids, (std::vector<std::uint32_t>{44, 109}));
}

TEST(CdiSpec, ReadsJson) {
  const auto spec = parse_cdi_spec("f", kJson);
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_NE(spec->find("GPU-1"), nullptr);
  EXPECT_EQ(spec->find("GPU-1")->edits.environment[0].name, "A");
}

// The minimal document, with one line replaced.
std::string with(std::string_view version, std::string_view kind, std::string_view rest) {
  return fmt::format("cdiVersion: {}\nkind: {}\n{}\n", version, kind, rest);
}

TEST(CdiSpec, NamesFileAndMember) {
  const std::string device = "devices: [{name: a, containerEdits: {}}]\n";
  const auto edits = [&](std::string_view text) {
    return with("0.5.0", "v/c", device + fmt::format("containerEdits: {{{}}}", text));
  };
  struct Case {
    std::string text;
    const char* want;
  };
  for (const Case& c : {
           Case{"", "must be a map"},
           Case{"[1]", "must be a map"},
           Case{"{", "f.yaml: yaml-cpp: error at line 1"},
           Case{"kind: v/c\n" + device, "cdiVersion: is missing"},
           Case{"cdiVersion: 0.5.0\n" + device, "kind: is missing"},
           Case{with("0.5.0", "v/c", ""), "devices: is missing"},
           Case{with("9.0.0", "v/c", device), "cdiVersion: 9.0.0 is newer than 1.1"},
           Case{with("1.2.0", "v/c", device), "cdiVersion: 1.2.0 is newer than 1.1"},
           Case{with("0.5", "v/c", device), "cdiVersion: '0.5' must be a version"},
           Case{with("0.5.0.1", "v/c", device), "cdiVersion: '0.5.0.1' must be a version"},
           Case{with("v0.5.0", "v/c", device), "cdiVersion: 'v0.5.0' must be a version"},
           Case{with("[0]", "v/c", device), "cdiVersion: must be text"},
           Case{with("0.5.0", "gpu", device), "kind: 'gpu' must be of the form vendor/class"},
           Case{with("0.5.0", "a/b/c", device), "kind: 'a/b/c' must be"},
           Case{with("0.5.0", "-a/b", device), "kind: '-a/b' must be"},
           Case{with("0.5.0", "v/c", device + "kind: v/d"), "kind: is given twice"},
           Case{with("0.5.0", "v/c", device + "devces: []"), "devces: is no member known here"},
           Case{with("0.5.0", "v/c", "devices: {}"), "devices: must be a list"},
           Case{with("0.5.0", "v/c", "devices: [x]"), "devices[0]: must be a map"},
           Case{with("0.5.0", "v/c", "devices: [{containerEdits: {}}]"),
                "devices[0].name: is missing"},
           Case{with("0.5.0", "v/c", "devices: [{name: a}]"),
                "devices[0].containerEdits: is missing"},
           Case{with("0.5.0", "v/c", "devices: [{name: 'a b', containerEdits: {}}]"),
                "devices[0].name: 'a b' must be"},
           Case{with("0.5.0", "v/c",
                     "devices: [{name: a, containerEdits: {}}, {name: a, containerEdits: {}}]"),
                "devices[1].name: 'a' is given twice"},
           Case{edits("env: [A]"), "containerEdits.env[0]: 'A' must be of the form NAME=value"},
           Case{edits("env: [A=1, =x]"), "containerEdits.env[1]: '=x'"},
           Case{edits("env: A=1"), "containerEdits.env: must be a list"},
           Case{edits("deviceNodes: [{hostPath: /dev/x}]"), "deviceNodes[0].path: is missing"},
           Case{edits("deviceNodes: [{path: dev/x}]"), "'dev/x' must be an absolute path"},
           Case{edits("deviceNodes: [{path: /x, permissions: rx}]"),
                "deviceNodes[0].permissions: 'rx' must be"},
           Case{edits("deviceNodes: [{path: /x, major: -1}]"),
                "deviceNodes[0].major: '-1' must be"},
           Case{edits("deviceNodes: [{path: /x, fileMode: 0999}]"), "fileMode: '0999' must be"},
           Case{edits("deviceNodes: [{path: /x, type: z}]"), "type: 'z' must be"},
           Case{edits("mounts: [{hostPath: /x}]"), "mounts[0].containerPath: is missing"},
           Case{edits("mounts: [{hostPath: /x, containerPath: /y, options: ro}]"),
                "mounts[0].options: must be a list"},
           Case{edits("hooks: [{path: /x}]"), "hooks[0].hookName: is missing"},
           Case{edits("additionalGids: [x]"), "additionalGids[0]: 'x' must be an integer"},
           Case{edits("additionalGids: [4294967296]"), "additionalGids[0]: '4294967296' must be"},
           Case{edits("intelRdt: {}"), "containerEdits.intelRdt: is no member known here"},
       }) {
    const auto spec = parse_cdi_spec("f.yaml", c.text);
    ASSERT_FALSE(spec) << c.text;
    EXPECT_EQ(spec.error().code, base::ErrorCode::kInvalidParameter);
    EXPECT_EQ(spec.error().message.find("CDI spec f.yaml: "), 0U) << spec.error().message;
    EXPECT_PRED_FORMAT2(testing::IsSubstring, c.want, spec.error().message);
  }
}

TEST(CdiSpec, SizesAreBounded) {
  std::string devices = "devices:\n";
  for (std::size_t i = 0; i <= CdiSpec::kDevicesMax; ++i) {
    devices += fmt::format("- {{name: d{}, containerEdits: {{}}}}\n", i);
  }
  std::string entries = "devices: []\ncontainerEdits:\n  env:\n";
  for (std::size_t i = 0; i <= CdiSpec::kEntriesMax; ++i) entries += fmt::format("  - A{}=1\n", i);
  struct Case {
    std::string text;
    const char* want;
  };
  for (const Case& c : {
           Case{with("0.5.0", "v/c", devices), "devices: has 1025 entries"},
           Case{with("0.5.0", "v/c", entries), "containerEdits.env: has 4097 entries"},
           Case{with("0.5.0", std::string(CdiSpec::kTextBytesMax + 1, 'k'), "devices: []"),
                "kind: is longer than 4096 bytes"},
           Case{std::string(CdiSpec::kFileBytesMax + 1, '#'), "is larger than"},
           // The parser's own bound on nesting, not a crash.
           Case{std::string(100'000, '['), "f: "},
       }) {
    const auto spec = parse_cdi_spec("f", c.text);
    ASSERT_FALSE(spec) << c.want;
    EXPECT_PRED_FORMAT2(testing::IsSubstring, c.want, spec.error().message);
  }
}

TEST(CdiEdits, LaterOnesReplaceEarlierOnes) {
  CdiEdits edits;
  edits.environment = {{"A", "1"}, {"B", "1"}};
  edits.device_nodes = {{"/dev/a", "/dev/h1"}};
  edits.mounts = {{"/h1", "/t", {}, ""}, {"/h1", "/u", {}, ""}};
  edits.additional_gids = {1, 2};
  CdiEdits later;
  later.environment = {{"A", "2"}, {"C", "2"}};
  later.device_nodes = {{"/dev/a", "/dev/h2"}, {"/dev/b", "/dev/h2"}};
  later.mounts = {{"/h2", "/t", {"ro"}, ""}};
  later.additional_gids = {2, 3};
  later.hooks = {{"createContainer", "/x"}};
  edits.append(later);
  ASSERT_EQ(edits.environment.size(), 3U);
  EXPECT_EQ(edits.environment[0].name, "B");
  EXPECT_EQ(edits.environment[1].name + edits.environment[1].value, "A2");
  ASSERT_EQ(edits.device_nodes.size(), 2U);
  EXPECT_EQ(edits.device_nodes[0].host_path, "/dev/h2");
  ASSERT_EQ(edits.mounts.size(), 2U);
  EXPECT_EQ(edits.mounts[1].host_path, "/h2");
  EXPECT_EQ(edits.additional_gids, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(edits.hooks.size(), 1U);
}

}  // namespace
}  // namespace cotenant::adapters
