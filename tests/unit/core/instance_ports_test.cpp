#include "core/instance_ports.h"

#include <gtest/gtest.h>

#include "builders.h"
#include "core/placement/placement.h"

namespace cotenant::core {
namespace {

constexpr HostPort kWeb{80, Protocol::kTcp};
constexpr HostPort kWebUdp{80, Protocol::kUdp};

TEST(InstancePortsTest, ATaskHoldsItsPortsUntilItLetsGo) {
  InstancePorts ports;
  EXPECT_FALSE(ports.taken(kWeb));
  ports.hold("a", {kWeb, {9000, Protocol::kTcp}});
  EXPECT_TRUE(ports.taken(kWeb));
  EXPECT_EQ(ports.holder(kWeb), "a");
  EXPECT_FALSE(ports.taken(kWebUdp)) << "TCP and UDP are apart";
  EXPECT_EQ(ports.taken(Protocol::kTcp), (std::vector<int>{80, 9000}));
  EXPECT_TRUE(ports.taken(Protocol::kUdp).empty());

  ports.hold("b", {kWeb});  // the engine says so
  ports.release("a");
  EXPECT_EQ(ports.holder(kWeb), "b");
  EXPECT_FALSE(ports.taken(HostPort{9000, Protocol::kTcp}));
  ports.release("b");
  ports.release("nobody");
  EXPECT_FALSE(ports.taken(kWeb));
  EXPECT_EQ(ports.holder(kWeb), "");
}

TEST(InstancePortsTest, WhatIsInTheWay) {
  Instance machine = test::instance("i1", 1, {});
  machine.registration.reserved_ports = {22};
  machine.ports.hold("t1", {kWeb});
  struct Case {
    std::string name;
    std::vector<HostPort> ports;
    std::optional<HostPort> want;
  };
  const Case cases[] = {
      {"none wanted", {}, std::nullopt},
      {"free", {{8080, Protocol::kTcp}}, std::nullopt},
      {"held", {{8080, Protocol::kTcp}, kWeb}, kWeb},
      {"the other protocol", {kWebUdp}, std::nullopt},
      {"reserved", {{22, Protocol::kTcp}}, HostPort{22, Protocol::kTcp}},
      {"reserved for TCP only", {{22, Protocol::kUdp}}, std::nullopt},
  };
  for (const Case& entry : cases) {
    EXPECT_EQ(port_in_the_way(machine, entry.ports), entry.want) << entry.name;
  }
}

TEST(InstancePortsTest, PlacementGoesWhereThePortIsFree) {
  Instance first = test::instance("i1", 1, {});
  const Instance second = test::instance("i2", 2, {});
  first.ports.hold("t1", {kWeb});
  TaskNeed need;
  need.ports = {kWeb};
  const auto placed = place({&first, &second}, need);
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->instance_id, "i2");

  const auto refused = place({&first}, need);
  ASSERT_FALSE(refused);
  EXPECT_EQ(reason(refused.error().test), "RESOURCE:PORTS");
  EXPECT_FALSE(refused.error().infeasible);
  EXPECT_NE(refused.error().detail.find(
                "the task needs port 80/tcp; on instance i1 it is held by task t1"),
            std::string::npos)
      << refused.error().detail;

  first.registration.reserved_ports = {80};
  first.ports.release("t1");
  const auto never = place({&first}, need);
  ASSERT_FALSE(never);
  EXPECT_TRUE(never.error().infeasible);
  EXPECT_NE(never.error().detail.find("on instance i1 it is reserved"), std::string::npos);
}

TEST(InstancePortsTest, WhatATaskNeeds) {
  struct Case {
    NetworkMode mode;
    std::vector<PortMapping> ports;
    std::vector<HostPort> want;
  };
  const Case cases[] = {
      {NetworkMode::kBridge, {{80, 8080}, {90, 0}}, {{8080, Protocol::kTcp}}},
      {NetworkMode::kHost, {{80, 0}, {53, 53, Protocol::kUdp}}, {kWeb, {53, Protocol::kUdp}}},
      {NetworkMode::kNone, {{80, 80}}, {}},
  };
  for (const Case& entry : cases) {
    TaskDefinition definition = test::definition("f", {test::container("c")});
    definition.network_mode = entry.mode;
    definition.containers.front().ports = entry.ports;
    EXPECT_EQ(task_need(definition).ports, entry.want) << to_string(entry.mode);
  }
}

TEST(InstancePortsTest, ATasksOwnSizeIsWhatItReserves) {
  TaskDefinition definition = test::definition("f", {test::container("a"), test::container("b")});
  EXPECT_EQ(task_need(definition).cpu_units, 512);
  EXPECT_EQ(task_need(definition).memory_mib, 1024);
  definition.settings.cpu_units = 2048;
  definition.settings.memory_mib = 4096;
  EXPECT_EQ(task_need(definition).cpu_units, 2048);
  EXPECT_EQ(task_need(definition).memory_mib, 4096);
}

}  // namespace
}  // namespace cotenant::core
