#include "codec/api_schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codec/api_bounds.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;

Json parse(std::string_view text) {
  auto value = Json::parse(text);
  EXPECT_TRUE(value) << text.substr(0, 200) << ": " << (value ? "" : value.error().message);
  return value ? *value : Json();
}

// A task definition whose only container has these members beside name and image.
std::string task_definition(std::string_view container_members) {
  return R"({"family":"f","containerDefinitions":[{"name":"c","image":"i")" +
         std::string(container_members) + "}]}";
}

std::string gpu_requirement(std::string_view requirement) {
  return task_definition(R"(,"resourceRequirements":[)" + std::string(requirement) + "]");
}

std::string mps(std::string_view members) {
  return gpu_requirement(R"({"type":"GPU","sharingStrategy":{"nvidiaMps":{)" +
                         std::string(members) + "}}}");
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    out += text;
  }
  return out;
}

std::string run_task(std::string_view members) {
  return R"({"taskDefinition":"f")" + std::string(members) + "}";
}

TEST(ApiSchemaTest, KnowsTheOperationsOfEcs) {
  EXPECT_EQ(api_operations().size(), 88U);
  for (const Operation& operation : api_operations()) {
    EXPECT_EQ(find_operation(operation.name), &operation) << operation.name;
  }
  for (const std::string_view unknown : {"", "runTask", "RunTasks", "ZZZ", "A", "RunTask "}) {
    EXPECT_EQ(find_operation(unknown), nullptr) << unknown;
  }
}

TEST(ApiSchemaTest, AcceptsWithoutWarning) {
  struct Row {
    std::string name;
    std::string operation;
    std::string body;
  };
  const std::string p = R"(,"resourceRequirements":)";
  const Row rows[] = {
      {"empty body", "ListClusters", "{}"},
      {"whole GPU", "RegisterTaskDefinition", gpu_requirement(R"({"type":"GPU","value":"1"})")},
      {"share", "RegisterTaskDefinition", mps(R"("memory":1)")},
      {"share with compute", "RegisterTaskDefinition",
       mps(R"("memory":1073741824,"maxComputePercent":100)")},
      {"smallest compute", "RegisterTaskDefinition", mps(R"("memory":1,"maxComputePercent":1)")},
      {"null members are absent", "RegisterTaskDefinition",
       mps(R"("memory":1,"maxComputePercent":null)")},
      {"null before the value", "RegisterTaskDefinition",
       gpu_requirement(R"({"type":"GPU","value":null,"sharingStrategy":null})")},
      {"map", "RegisterTaskDefinition",
       task_definition(R"(,"dockerLabels":{"any key":"v","":""})")},
      {"all the bounds from below", "RegisterTaskDefinition",
       task_definition(R"(,"cpu":0,"memory":6,"memoryReservation":6,"stopTimeout":0,)"
                       R"("healthCheck":{"command":["CMD","x"],"interval":5,"timeout":2,)"
                       R"("retries":1,"startPeriod":0},"portMappings":[{"containerPort":1,)"
                       R"("hostPort":0}],"restartPolicy":{"enabled":true,)"
                       R"("restartAttemptPeriod":60})")},
      {"all the bounds from above", "RegisterTaskDefinition",
       task_definition(R"(,"cpu":262144,"memory":2147483647,"stopTimeout":86400,)"
                       R"("healthCheck":{"command":["CMD","x"],"interval":300,"timeout":60,)"
                       R"("retries":10,"startPeriod":300},"portMappings":[{"containerPort":65535,)"
                       R"("hostPort":65535}],"restartPolicy":{"enabled":true,)"
                       R"("restartAttemptPeriod":1800})")},
      {"ten containers", "RegisterTaskDefinition",
       R"({"family":"f","containerDefinitions":[)" + repeated(R"({"name":"c","image":"i"})", 10) +
           "]}"},
      {"longest family", "RegisterTaskDefinition",
       R"({"containerDefinitions":[{"name":"c"}],"family":")" + std::string(255, 'f') + "\"}"},
      {"count 1", "RunTask", run_task(R"(,"count":1)")},
      {"count 10", "RunTask", run_task(R"(,"count":10)")},
      {"started by", "RunTask", run_task(R"(,"startedBy":"ecs-svc/12_3=4.5")")},
      {"longest client token", "RunTask",
       run_task(R"(,"clientToken":")" + std::string(64, '!') + "\"")},
      {"override", "RunTask",
       run_task(R"(,"overrides":{"containerOverrides":[{"name":"c","resourceRequirements":[)"
                R"({"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":5}}}]}]})")},
      {"tags of any script", "RunTask",
       run_task(","
                R"("tags":[{"key":"\u0416 k_.:/=+-@","value":""},{"key":"\u4e00"}])")},
      {"tag of 128 characters, 256 bytes", "RunTask",
       run_task(R"(,"tags":[{"key":")" +
                [] {
                  std::string key;
                  for (int i = 0; i < 128; ++i) key += "\xC3\xA9";
                  return key;
                }() +
                "\"}]")},
      {"a double where the model has one", "UpdateTaskSet",
       R"({"cluster":"c","service":"s","taskSet":"t","scale":{"value":50,"unit":"PERCENT"}})"},
      {"a fraction", "UpdateTaskSet",
       R"({"cluster":"c","service":"s","taskSet":"t","scale":{"value":0.5,"unit":"PERCENT"}})"},
      {"a hundred tasks", "DescribeTasks", R"({"tasks":[)" + repeated("\"t\"", 100) + "]}"},
      {"a timestamp", "SubmitTaskStateChange", R"({"pullStartedAt":1.7e9,"executionStoppedAt":1})"},
      {"attribute", "PutAttributes",
       R"({"attributes":[{"name":"a.b/c\\d","value":"x y@z:1","targetType":"container-instance"}]})"},
      {"a page", "ListTasks", R"({"maxResults":100,"desiredStatus":"STOPPED"})"},
  };
  for (const Row& row : rows) {
    const Operation* operation = find_operation(row.operation);
    ASSERT_NE(operation, nullptr) << row.name;
    const auto got = check_input(*operation, parse(row.body));
    ASSERT_TRUE(got) << row.name << ": " << got.error().message;
    EXPECT_TRUE(got->empty()) << row.name << ": " << got->front();
  }
}

TEST(ApiSchemaTest, Refuses) {
  constexpr ErrorCode kKind = ErrorCode::kSerialization;
  constexpr ErrorCode kInvalid = ErrorCode::kInvalidParameter;
  const std::string requirement = "containerDefinitions[0].resourceRequirements[0]";
  const std::string share = requirement + ".sharingStrategy.nvidiaMps";
  const std::string mebibyte(1024 * 1024, 'x');
  struct Row {
    std::string name;
    std::string operation;
    std::string body;
    ErrorCode want_code;
    std::string want;  // the message begins so
  };
  const Row rows[] = {
      // The body itself.
      {"array as body", "ListClusters", "[]", kKind, "the body must be an object, not an array"},
      {"null as body", "ListClusters", "null", kKind, "the body must be an object, not null"},
      {"string as body", "ListClusters", "\"{}\"", kKind,
       "the body must be an object, not a string"},

      // Required members.
      {"no task definition", "RunTask", "{}", kInvalid,
       "taskDefinition: is required; it must be a string"},
      {"null task definition", "RunTask", R"({"taskDefinition":null})", kInvalid,
       "taskDefinition: is required"},
      {"no containers", "RegisterTaskDefinition", R"({"family":"f"})", kInvalid,
       "containerDefinitions: is required; it must be an array"},
      {"no type", "RegisterTaskDefinition", gpu_requirement(R"({"value":"1"})"), kInvalid,
       requirement + ".type: is required; it must be one of GPU, InferenceAccelerator"},
      {"no memory", "RegisterTaskDefinition", mps(R"("maxComputePercent":5)"), kInvalid,
       share + ".memory: is required; it must be an integer"},
      {"null memory", "RegisterTaskDefinition", mps(R"("memory":null)"), kInvalid,
       share + ".memory: is required"},

      // The GPU's share.
      {"memory 0", "RegisterTaskDefinition", mps(R"("memory":0)"), kInvalid,
       share + ".memory: must be at least 1, not 0"},
      {"memory negative", "RegisterTaskDefinition", mps(R"("memory":-4096)"), kInvalid,
       share + ".memory: must be at least 1, not -4096"},
      {"memory above ours", "RegisterTaskDefinition", mps(R"("memory":1073741825)"), kInvalid,
       share + ".memory: must be between 1 and 1073741824, not 1073741825"},
      {"memory 2^31", "RegisterTaskDefinition", mps(R"("memory":2147483648)"), kKind,
       share + ".memory: must be an integer of 32 bits, between -2147483648 and 2147483647, not "
               "2147483648"},
      {"memory -2^63", "RegisterTaskDefinition", mps(R"("memory":-9223372036854775808)"), kKind,
       share + ".memory: must be an integer of 32 bits"},
      {"memory as string", "RegisterTaskDefinition", mps(R"("memory":"4096")"), kKind,
       share + ".memory: must be an integer, without fraction or exponent, not \"4096\""},
      {"memory with fraction", "RegisterTaskDefinition", mps(R"("memory":1.5)"), kKind,
       share + ".memory: must be an integer, without fraction or exponent, not 1.5"},
      {"memory 4e3", "RegisterTaskDefinition", mps(R"("memory":4e3)"), kKind,
       share + ".memory: must be an integer, without fraction or exponent, not 4000.0"},
      {"memory 1e300", "RegisterTaskDefinition", mps(R"("memory":1e300)"), kKind,
       share + ".memory: must be an integer, without fraction or exponent, not 1e+300"},
      {"memory true", "RegisterTaskDefinition", mps(R"("memory":true)"), kKind,
       share + ".memory: must be an integer, without fraction or exponent, not true"},
      {"memory array", "RegisterTaskDefinition", mps(R"("memory":[4096])"), kKind,
       share + ".memory: must be an integer, without fraction or exponent, not an array"},
      {"compute 0", "RegisterTaskDefinition", mps(R"("memory":1,"maxComputePercent":0)"), kInvalid,
       share + ".maxComputePercent: must be between 1 and 100, not 0"},
      {"compute 101", "RegisterTaskDefinition", mps(R"("memory":1,"maxComputePercent":101)"),
       kInvalid, share + ".maxComputePercent: must be between 1 and 100, not 101"},
      {"strategy empty", "RegisterTaskDefinition",
       gpu_requirement(R"({"type":"GPU","sharingStrategy":{}})"), kInvalid,
       requirement + ".sharingStrategy: must have exactly one member of nvidiaMps, has 0"},
      {"strategy null member", "RegisterTaskDefinition",
       gpu_requirement(R"({"type":"GPU","sharingStrategy":{"nvidiaMps":null}})"), kInvalid,
       requirement + ".sharingStrategy: must have exactly one member of nvidiaMps, has 0"},
      {"strategy as array", "RegisterTaskDefinition",
       gpu_requirement(R"({"type":"GPU","sharingStrategy":[]})"), kKind,
       requirement + ".sharingStrategy: must be an object, not an array"},
      {"type in lower case", "RegisterTaskDefinition",
       gpu_requirement(R"({"type":"gpu","value":"1"})"), kInvalid,
       requirement + ".type: must be one of GPU, InferenceAccelerator, NeuronDevice, not \"gpu\""},
      {"value as number", "RegisterTaskDefinition", gpu_requirement(R"({"type":"GPU","value":1})"),
       kKind, requirement + ".value: must be a string, not 1"},
      {"requirements as object", "RegisterTaskDefinition",
       task_definition(R"(,"resourceRequirements":{"type":"GPU"})"), kKind,
       "containerDefinitions[0].resourceRequirements: must be an array, not an object"},

      // Unknown members where they would cost a whole GPU.
      {"unknown strategy", "RegisterTaskDefinition",
       gpu_requirement(R"({"type":"GPU","sharingStrategy":{"timeSlicing":{"n":2}}})"), kInvalid,
       requirement + ".sharingStrategy.timeSlicing: not a member of SharingStrategy; it has "
                     "nvidiaMps"},
      {"misspelt strategy", "RegisterTaskDefinition",
       gpu_requirement(R"({"type":"GPU","sharingstrategy":{"nvidiaMps":{"memory":1}}})"), kInvalid,
       requirement + ".sharingstrategy: not a member of ResourceRequirement (did you mean "
                     "sharingStrategy?); it has sharingStrategy, type, value"},
      {"unknown null", "RegisterTaskDefinition",
       gpu_requirement(R"({"type":"GPU","value":"1","x":null})"), kInvalid,
       requirement + ".x: not a member of ResourceRequirement"},
      {"misspelt percent", "RegisterTaskDefinition", mps(R"("memory":1,"computePercent":50)"),
       kInvalid,
       share + ".computePercent: not a member of NvidiaMpsAllocation; it has "
               "maxComputePercent, memory"},
      {"unknown in an override", "RunTask",
       run_task(R"(,"overrides":{"containerOverrides":[{"resourceRequirements":[)"
                R"({"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":5,"gpus":2}}}]}]})"),
       kInvalid,
       "overrides.containerOverrides[0].resourceRequirements[0].sharingStrategy.nvidiaMps.gpus: "
       "not a member"},

      // Kinds.
      {"containers as object", "RegisterTaskDefinition",
       R"({"family":"f","containerDefinitions":{"name":"c"}})", kKind,
       "containerDefinitions: must be an array, not an object"},
      {"container as string", "RegisterTaskDefinition",
       R"({"family":"f","containerDefinitions":["c"]})", kKind,
       "containerDefinitions[0]: must be an object, not \"c\""},
      {"null element", "RegisterTaskDefinition", R"({"family":"f","containerDefinitions":[null]})",
       kKind, "containerDefinitions[0]: must be an object, not null"},
      {"null in a string list", "DescribeTasks", R"({"tasks":["a",null]})", kKind,
       "tasks[1]: must be a string, not null"},
      {"nested arrays", "DescribeTasks", R"({"tasks":[[[[[[[[[[["a"]]]]]]]]]]]})", kKind,
       "tasks[0]: must be a string, not an array"},
      {"family as array", "RegisterTaskDefinition", R"({"family":["f"]})", kKind,
       "family: must be a string, not an array"},
      {"essential as string", "RegisterTaskDefinition", task_definition(R"(,"essential":"true")"),
       kKind, "containerDefinitions[0].essential: must be true or false, not \"true\""},
      {"essential as 1", "RegisterTaskDefinition", task_definition(R"(,"essential":1)"), kKind,
       "containerDefinitions[0].essential: must be true or false, not 1"},
      {"label as number", "RegisterTaskDefinition", task_definition(R"(,"dockerLabels":{"a b":1})"),
       kKind, "containerDefinitions[0].dockerLabels[\"a b\"]: must be a string, not 1"},
      {"label null", "RegisterTaskDefinition", task_definition(R"(,"dockerLabels":{"a":null})"),
       kKind, "containerDefinitions[0].dockerLabels[\"a\"]: must be a string, not null"},
      {"command as string", "RegisterTaskDefinition", task_definition(R"(,"command":"sleep 1")"),
       kKind, "containerDefinitions[0].command: must be an array, not \"sleep 1\""},
      {"timestamp as text", "SubmitTaskStateChange", R"({"pullStartedAt":"2024-01-01T00:00:00Z"})",
       kKind, "pullStartedAt: must be a number, seconds since 1970, not \"2024-01-01T00:00:00Z\""},
      {"scale as string", "UpdateTaskSet",
       R"({"cluster":"c","service":"s","taskSet":"t","scale":{"value":"50"}})", kKind,
       "scale.value: must be a number, not \"50\""},
      {"a mebibyte for a number", "RunTask", run_task(",\"count\":\"" + mebibyte + "\""), kKind,
       "count: must be an integer, without fraction or exponent, not \"" + std::string(64, 'x') +
           "...\""},

      // Enums.
      {"launch type in lower case", "RunTask", run_task(R"(,"launchType":"ec2")"), kInvalid,
       "launchType: must be one of EC2, FARGATE, EXTERNAL"},
      {"network mode", "RegisterTaskDefinition",
       R"({"networkMode":"Host","family":"f","containerDefinitions":[{"name":"c"}]})", kInvalid,
       "networkMode: must be one of bridge, host, awsvpc, none, not \"Host\""},
      {"no container", "RegisterTaskDefinition", R"({"family":"f","containerDefinitions":[]})",
       kInvalid, "containerDefinitions: must have between 1 and 10 elements, has 0"},
      {"enum in a list", "DescribeTasks", R"({"tasks":["t"],"include":["TAGS","tags"]})", kInvalid,
       "include[1]: must be one of TAGS, not \"tags\""},
      {"a mebibyte for an enum", "RunTask", run_task(",\"launchType\":\"" + mebibyte + "\""),
       kInvalid, "launchType: must be one of EC2, FARGATE, EXTERNAL"},

      // Bounds.
      {"count 0", "RunTask", run_task(R"(,"count":0)"), kInvalid,
       "count: must be between 1 and 10, not 0"},
      {"count 11", "RunTask", run_task(R"(,"count":11)"), kInvalid,
       "count: must be between 1 and 10, not 11"},
      {"count -2^31", "RunTask", run_task(R"(,"count":-2147483648)"), kInvalid,
       "count: must be between 1 and 10, not -2147483648"},
      {"started by too long", "RunTask",
       run_task(R"(,"startedBy":")" + std::string(129, 'a') + "\""), kInvalid,
       "startedBy: must have at most 128 characters, has 129"},
      {"started by a mebibyte", "RunTask", run_task(",\"startedBy\":\"" + mebibyte + "\""),
       kInvalid, "startedBy: must have at most 128 characters, has 1048576"},
      {"started by with space", "RunTask", run_task(R"(,"startedBy":"a b")"), kInvalid,
       "startedBy: may have only letters, digits and - _ / = ., not \"a b\""},
      {"client token too long", "RunTask",
       run_task(R"(,"clientToken":")" + std::string(65, 'a') + "\""), kInvalid,
       "clientToken: must have at most 64 characters, has 65"},
      {"client token with newline", "RunTask", run_task(R"(,"clientToken":"a\n")"), kInvalid,
       "clientToken: may have only visible ASCII characters (codes 33 to 126), not \"a\\n\""},
      {"overrides too large", "RunTask",
       run_task(R"(,"overrides":{"containerOverrides":[{"name":")" + std::string(8200, 'n') +
                "\"}]}"),
       kInvalid, "overrides: must have at most 8192 bytes of JSON, has 82"},
      {"eleven containers", "RegisterTaskDefinition",
       R"({"family":"f","containerDefinitions":[)" + repeated(R"({"name":"c","image":"i"})", 11) +
           "]}",
       kInvalid, "containerDefinitions: must have between 1 and 10 elements, has 11"},
      {"family too long", "RegisterTaskDefinition",
       R"({"family":")" + std::string(256, 'f') + R"(","containerDefinitions":[]})", kInvalid,
       "family: must have between 1 and 255 characters, has 256"},
      {"family empty", "RegisterTaskDefinition", R"({"family":"","containerDefinitions":[]})",
       kInvalid, "family: must have between 1 and 255 characters, has 0"},
      {"family with NUL", "RegisterTaskDefinition",
       R"({"family":"a\u0000b","containerDefinitions":[]})", kInvalid,
       "family: may have only letters, digits, - and _, not \"a\\u0000b\""},
      {"family with accent", "RegisterTaskDefinition",
       R"({"family":"caf\u00e9","containerDefinitions":[]})", kInvalid,
       "family: may have only letters, digits, - and _"},
      {"container name with slash", "RegisterTaskDefinition",
       R"({"family":"f","containerDefinitions":[{"name":"../x"}]})", kInvalid,
       "containerDefinitions[0].name: may have only letters, digits, - and _, not \"../x\""},
      {"definition too large", "RegisterTaskDefinition",
       task_definition(",\"user\":\"" + std::string(70000, 'u') + "\""), kInvalid,
       "must have at most 65536 bytes of JSON, has 70"},
      {"cluster name", "CreateCluster", R"({"clusterName":"a.b"})", kInvalid,
       "clusterName: may have only letters, digits, - and _, not \"a.b\""},
      {"memory 5", "RegisterTaskDefinition", task_definition(R"(,"memory":5)"), kInvalid,
       "containerDefinitions[0].memory: must be at least 6, not 5"},
      {"memory reservation 5", "RegisterTaskDefinition",
       task_definition(R"(,"memoryReservation":5)"), kInvalid,
       "containerDefinitions[0].memoryReservation: must be at least 6, not 5"},
      {"cpu negative", "RegisterTaskDefinition", task_definition(R"(,"cpu":-1)"), kInvalid,
       "containerDefinitions[0].cpu: must be between 0 and 262144, not -1"},
      {"stop timeout", "RegisterTaskDefinition", task_definition(R"(,"stopTimeout":86401)"),
       kInvalid, "containerDefinitions[0].stopTimeout: must be between 0 and 86400, not 86401"},
      {"port 65536", "RegisterTaskDefinition",
       task_definition(R"(,"portMappings":[{"containerPort":80},{"containerPort":65536}])"),
       kInvalid,
       "containerDefinitions[0].portMappings[1].containerPort: must be between 1 and 65535, not "
       "65536"},
      {"restart period 59", "RegisterTaskDefinition",
       task_definition(R"(,"restartPolicy":{"enabled":true,"restartAttemptPeriod":59})"), kInvalid,
       "containerDefinitions[0].restartPolicy.restartAttemptPeriod: must be between 60 and 1800, "
       "not 59"},
      {"interval 4", "RegisterTaskDefinition",
       task_definition(R"(,"healthCheck":{"command":["x"],"interval":4})"), kInvalid,
       "containerDefinitions[0].healthCheck.interval: must be between 5 and 300, not 4"},
      {"timeout 61", "RegisterTaskDefinition",
       task_definition(R"(,"healthCheck":{"command":["x"],"timeout":61})"), kInvalid,
       "containerDefinitions[0].healthCheck.timeout: must be between 2 and 60, not 61"},
      {"retries 0", "RegisterTaskDefinition",
       task_definition(R"(,"healthCheck":{"command":["x"],"retries":0})"), kInvalid,
       "containerDefinitions[0].healthCheck.retries: must be between 1 and 10, not 0"},
      {"start period 301", "RegisterTaskDefinition",
       task_definition(R"(,"healthCheck":{"command":["x"],"startPeriod":301})"), kInvalid,
       "containerDefinitions[0].healthCheck.startPeriod: must be between 0 and 300, not 301"},
      {"scale 100.5", "UpdateTaskSet",
       R"({"cluster":"c","service":"s","taskSet":"t","scale":{"value":100.5}})", kInvalid,
       "scale.value: must be between 0 and 100, not 100.5"},
      {"page of 0", "ListTasks", R"({"maxResults":0})", kInvalid,
       "maxResults: must be between 1 and 100, not 0"},
      {"page of 101", "ListTasks", R"({"maxResults":101})", kInvalid,
       "maxResults: must be between 1 and 100, not 101"},
      {"101 tasks", "DescribeTasks", R"({"tasks":[)" + repeated("\"t\"", 101) + "]}", kInvalid,
       "tasks: must have between 1 and 100 elements, has 101"},
      {"no tasks", "DescribeTasks", R"({"tasks":[]})", kInvalid,
       "tasks: must have between 1 and 100 elements, has 0"},
      {"51 tags", "RunTask",
       run_task(R"(,"tags":[)" + repeated(R"({"key":"k","value":"v"})", 51) + "]"), kInvalid,
       "tags: must have at most 50 elements, has 51"},
      {"tag key empty", "RunTask", run_task(R"(,"tags":[{"key":""}])"), kInvalid,
       "tags[0].key: must have between 1 and 128 characters, has 0"},
      {"tag key too long", "RunTask",
       run_task(R"(,"tags":[{"key":")" + std::string(129, 'k') + "\"}]"), kInvalid,
       "tags[0].key: must have between 1 and 128 characters, has 129"},
      {"tag value with tab", "RunTask", run_task(R"(,"tags":[{"key":"k","value":"a\tb"}])"),
       kInvalid, "tags[0].value: may have only letters, digits, spaces and _ . : / = + - @, not"},
      {"tag value with control character", "RunTask",
       run_task(R"(,"tags":[{"key":"k","value":"\u0085"}])"), kInvalid,
       "tags[0].value: may have only letters, digits, spaces"},
      {"weight", "RunTask",
       run_task(R"(,"capacityProviderStrategy":[{"capacityProvider":"p","weight":1001}])"),
       kInvalid, "capacityProviderStrategy[0].weight: must be between 0 and 1000, not 1001"},
      {"attribute name", "PutAttributes", R"({"attributes":[{"name":"a b"}]})", kInvalid,
       "attributes[0].name: may have only letters, digits and - _ . / \\, not \"a b\""},
      {"expression", "RunTask",
       run_task(R"(,"placementConstraints":[{"expression":")" + std::string(2001, 'e') + "\"}]"),
       kInvalid, "placementConstraints[0].expression: must have at most 2000 characters, has 2001"},
  };
  for (const Row& row : rows) {
    const Operation* operation = find_operation(row.operation);
    ASSERT_NE(operation, nullptr) << row.name;
    const auto got = check_input(*operation, parse(row.body));
    ASSERT_FALSE(got) << row.name << " was taken";
    EXPECT_EQ(got.error().code, row.want_code) << row.name << ": " << got.error().message;
    EXPECT_EQ(got.error().message.substr(0, row.want.size()), row.want) << row.name;
    EXPECT_LE(got.error().message.size(), 600U) << row.name;
  }
}

TEST(ApiSchemaTest, WarnsOfUnknownMembers) {
  struct Row {
    std::string name;
    std::string operation;
    std::string body;
    std::vector<std::string> want;
  };
  const Row rows[] = {
      {"at the top",
       "ListClusters",
       R"({"colour":1})",
       {"colour: not a member of ListClustersRequest; ignored"}},
      {"in a container",
       "RegisterTaskDefinition",
       task_definition(R"(,"foo":{"a":[1]})"),
       {"containerDefinitions[0].foo: not a member of ContainerDefinition; ignored"}},
      {"case",
       "RegisterTaskDefinition",
       task_definition(R"(,"Memory":128)"),
       {"containerDefinitions[0].Memory: not a member of ContainerDefinition (did you mean "
        "memory?); ignored"}},
      {"after resourceRequirements too",
       "RegisterTaskDefinition",
       task_definition(R"(,"resourceRequirements":[{"type":"GPU","value":"1"}],"foo":1)"),
       {"containerDefinitions[0].foo: not a member of ContainerDefinition; ignored"}},
      {"two",
       "RunTask",
       run_task(R"(,"a":1,"overrides":{"b":null})"),
       {"a: not a member of RunTaskRequest; ignored",
        "overrides.b: not a member of TaskOverride; ignored"}},
      {"a long name",
       "ListClusters",
       "{\"" + std::string(1000, 'n') + "\":1}",
       {std::string(64, 'n') + "...: not a member of ListClustersRequest; ignored"}},
  };
  for (const Row& row : rows) {
    const auto got = check_input(*find_operation(row.operation), parse(row.body));
    ASSERT_TRUE(got) << row.name << ": " << got.error().message;
    EXPECT_EQ(*got, row.want) << row.name;
  }
}

TEST(ApiSchemaTest, WarningsAreBounded) {
  Json body = Json::object();
  for (int i = 0; i < 1000; ++i) body.set("k" + std::to_string(i), i);
  const auto got = check_input(*find_operation("ListClusters"), body);
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->size(), kMaxWarnings + 1);
  EXPECT_EQ(got->front(), "k0: not a member of ListClustersRequest; ignored");
  EXPECT_EQ(got->back(), "950 more unknown members; ignored");
}

TEST(ApiSchemaTest, EmptyBodyOfEveryOperationIsTakenOrNamesAMissingMember) {
  for (const Operation& operation : api_operations()) {
    const Shape& shape = api_shapes()[operation.input];
    const auto got = check_input(operation, Json::object());
    const auto required = std::find_if(shape.members.begin(), shape.members.end(),
                                       [](const ShapeMember& member) { return member.required; });
    if (required == shape.members.end()) {
      EXPECT_TRUE(got) << operation.name << ": " << got.error().message;
    } else {
      ASSERT_FALSE(got) << operation.name;
      EXPECT_EQ(got.error().message.rfind(std::string(required->name) + ": is required", 0), 0U)
          << operation.name << ": " << got.error().message;
    }
  }
}

TEST(ApiSchemaTest, ChecksResponses) {
  struct Row {
    std::string name;
    std::string operation;
    std::string body;
    std::string want;  // empty: conforms
  };
  const Row rows[] = {
      {"task", "DescribeTasks",
       R"({"tasks":[{"taskArn":"a","version":1,"createdAt":1.5,"containers":[{"gpuIds":["g"]}]}],)"
       R"("failures":[{"arn":"a","reason":"MISSING"}]})",
       ""},
      {"devices", "DescribeContainerInstances",
       R"({"containerInstances":[{"gpuDevices":[{"gpuId":"g","sharingMode":"NVIDIA_MPS",)"
       R"("totalMemoryInMiB":22563,"remainingMemoryInMiB":18467,"containerCount":1}]}]})",
       ""},
      {"a version of 64 bits", "DescribeTasks", R"({"tasks":[{"version":9007199254740993}]})", ""},
      {"prose bounds are for requests", "DescribeTaskDefinition",
       R"({"taskDefinition":{"containerDefinitions":[{"memory":1}]}})", ""},
      {"unknown member", "DescribeTasks", R"({"task":[]})",
       "task: not a member of DescribeTasksResponse; it has failures, tasks"},
      {"enum", "DescribeContainerInstances",
       R"({"containerInstances":[{"gpuDevices":[{"sharingMode":"MPS"}]}]})",
       "containerInstances[0].gpuDevices[0].sharingMode: must be one of "},
      {"kind", "DescribeTasks", R"({"tasks":[{"createdAt":"now"}]})",
       "tasks[0].createdAt: must be a number"},
      {"body", "DescribeTasks", "[]", "the body must be an object, not an array"},
  };
  for (const Row& row : rows) {
    const auto got = check_output(*find_operation(row.operation), parse(row.body));
    if (row.want.empty()) {
      EXPECT_TRUE(got) << row.name << ": " << got.error().message;
      continue;
    }
    ASSERT_FALSE(got) << row.name;
    EXPECT_EQ(got.error().code, ErrorCode::kServer) << row.name;
    EXPECT_EQ(got.error().message.substr(0, row.want.size()), row.want) << row.name;
  }
}

TEST(ApiBoundsTest, EveryRowNamesAMemberOfTheModelAndASource) {
  for (const Bound& bound : api_bounds()) {
    const std::string name = std::string(bound.shape) + "." + std::string(bound.member);
    EXPECT_FALSE(bound.source.empty()) << name;
    EXPECT_LE(bound.min, bound.max) << name;
    EXPECT_TRUE(bound.min != kUnstatedMin || bound.max != kUnstatedMax) << name;
    EXPECT_EQ(find_bound(bound.shape, bound.member), &bound) << name;
    const auto shapes = api_shapes();
    const auto shape = std::find_if(shapes.begin(), shapes.end(),
                                    [&](const Shape& s) { return s.name == bound.shape; });
    ASSERT_NE(shape, shapes.end()) << name;
    if (bound.member.empty()) continue;
    const auto member = std::find_if(shape->members.begin(), shape->members.end(),
                                     [&](const ShapeMember& m) { return m.name == bound.member; });
    ASSERT_NE(member, shape->members.end()) << name;
    const ShapeKind kind = shapes[member->shape].kind;
    EXPECT_NE(kind, ShapeKind::kBoolean) << name;
    EXPECT_NE(kind, ShapeKind::kMap) << name;
    EXPECT_TRUE(bound.characters == Characters::kAny || kind == ShapeKind::kString) << name;
  }
  EXPECT_EQ(find_bound("RunTaskRequest", "nothing"), nullptr);
  EXPECT_EQ(find_bound("Zzz", "name"), nullptr);
}

TEST(ApiShapesTest, TheTableIsSound) {
  const auto shapes = api_shapes();
  std::set<std::string_view> names;
  for (const Shape& shape : shapes) {
    EXPECT_TRUE(names.insert(shape.name).second) << shape.name;
    EXPECT_LT(shape.element, shapes.size()) << shape.name;
    EXPECT_LE(shape.min, shape.max) << shape.name;
    for (const ShapeMember& member : shape.members) {
      EXPECT_LT(member.shape, shapes.size()) << shape.name << "." << member.name;
    }
  }
  EXPECT_EQ(names.count("NvidiaMpsAllocation"), 1U);
}

}  // namespace
}  // namespace cotenant::codec
