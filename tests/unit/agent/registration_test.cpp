#include "agent/registration.h"

#include <gtest/gtest.h>

#include "fakes/fake_container_runtime.h"
#include "fakes/fake_gpu_driver.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;

constexpr const char* kSharing = "ecs.capability.gpu-sharing-mps";

ports::DriverInfo driver() {
  ports::DriverInfo info;
  info.version = "580.95.05";
  info.cuda_version = 13000;
  return info;
}

RegistrationInput input(base::Result<std::vector<ports::GpuInfo>> gpus) {
  return {"id", "default", "1.0",    std::nullopt, fakes::FakeContainerRuntime::default_info(),
          1000, 2,         "x86_64", driver(),     std::move(gpus),
          true};
}

ports::GpuInfo gpu(const std::function<void(ports::GpuInfo&)>& change = [](ports::GpuInfo&) {}) {
  ports::GpuInfo made = fakes::FakeGpuDriver::l4("GPU-1");
  change(made);
  return made;
}

TEST(RegistrationTest, DescribesTheMachine) {
  const core::InstanceRegistration got = build_registration(input({{gpu()}})).registration;
  EXPECT_EQ(got.id, "id");
  EXPECT_EQ(got.cluster, "default");
  EXPECT_EQ(got.cpu_units, 4 * 1024);
  EXPECT_EQ(got.memory_mib, 8192);
  EXPECT_EQ(got.reserved_ports, (std::vector<int>{22, 2375, 2376}));
  EXPECT_EQ(got.engine_version, "Fake Engine 1.0");
  EXPECT_EQ(got.driver_version, "580.95.05");
  EXPECT_EQ(got.gpus, (std::vector<core::GpuDevice>{{"GPU-1", "NVIDIA L4", 22563, 48}}));
  const std::map<std::string, std::string> want = {
      {"ecs.os-type", "linux"},
      {"ecs.cpu-architecture", "x86_64"},
      {"cotenant.driver-version", "580.95.05"},
      {"cotenant.gpu-model", "NVIDIA L4"},
      {"cotenant.memory-enforcement", "client"},
      {kSharing, ""},
  };
  EXPECT_EQ(got.attributes, want);
}

TEST(RegistrationTest, ReservesTheApisPortAndFallsBackToTheKernelsFigures) {
  RegistrationInput from = input({{gpu()}});
  from.api_port = 8484;
  from.engine.cpu_count = 0;
  from.engine.memory_mib = 0;
  const core::InstanceRegistration got = build_registration(from).registration;
  EXPECT_EQ(got.reserved_ports, (std::vector<int>{22, 2375, 2376, 8484}));
  EXPECT_EQ(got.cpu_units, 2 * 1024);
  EXPECT_EQ(got.memory_mib, 1000);
}

TEST(RegistrationTest, SharingIsWithheldWithTheReason) {
  struct Row {
    const char* want;
    std::vector<ports::GpuInfo> gpus;
    bool mps_present = true;
  };
  const Row rows[] = {
      {"no NVIDIA GPU present", {}},
      {"MPS control binary not present on host", {gpu()}, false},
      {"instance has an NVIDIA vGPU slice, where we do not support MPS",
       {gpu(), gpu([](ports::GpuInfo& g) { g.is_vgpu = true; })}},
      {"GPU GPU-1 is in MIG mode", {gpu([](ports::GpuInfo& g) { g.mig_enabled = true; })}},
      {"the memory of GPU GPU-1 cannot be read",
       {gpu([](ports::GpuInfo& g) { g.memory_mib.reset(); })}},
      {"the memory of GPU GPU-1 cannot be read",
       {gpu([](ports::GpuInfo& g) { g.memory_mib = 0; })}},
  };
  for (const Row& row : rows) {
    RegistrationInput from = input({row.gpus});
    from.mps_control_present = row.mps_present;
    const BuiltRegistration built = build_registration(from);
    EXPECT_FALSE(built.registration.attributes.contains(kSharing)) << row.want;
    EXPECT_EQ(built.registration.gpus.size(), row.gpus.size()) << "still there for other work";
    ASSERT_EQ(built.warnings.size(), 1u) << row.want;
    EXPECT_NE(built.warnings[0].find(row.want), std::string::npos) << built.warnings[0];
  }
}

TEST(RegistrationTest, WithoutADriverThereAreNoGpusAndAWarning) {
  RegistrationInput from = input(base::fail(ErrorCode::kUnavailable, "no libnvidia-ml.so.1"));
  const BuiltRegistration built = build_registration(from);
  EXPECT_TRUE(built.registration.gpus.empty());
  EXPECT_EQ(built.registration.cpu_units, 4096);
  ASSERT_EQ(built.warnings.size(), 1u);
  EXPECT_EQ(built.warnings[0], "no GPUs are registered: no libnvidia-ml.so.1");
}

TEST(RegistrationTest, AnInstanceWithoutIsolationSaysSo) {
  RegistrationInput from = input({{gpu()}});
  from.engine.has_isolation = false;
  const BuiltRegistration built = build_registration(from);
  EXPECT_EQ(built.registration.attributes.at(std::string(core::kIsolationAttribute)), "none");
  ASSERT_EQ(built.warnings.size(), 1u);
  EXPECT_NE(built.warnings[0].find("no isolation"), std::string::npos);
}

TEST(RegistrationTest, WhatWasThereAndIsNotSeenIsOutOfService) {
  const core::InstanceRegistration before = build_registration(input({{gpu()}})).registration;
  RegistrationInput dead = input(base::fail(ErrorCode::kUnavailable, "no driver"));
  dead.known = before;
  const BuiltRegistration built = build_registration(dead);
  ASSERT_EQ(built.registration.gpus.size(), 1u);
  EXPECT_EQ(built.registration.gpus[0].unavailable, "the driver does not answer: no driver");
  EXPECT_EQ(built.registration.attributes, before.attributes)
      << "it can share again when it is back";
  EXPECT_EQ(built.registration.driver_version, before.driver_version);
  EXPECT_EQ(gpu_changes(before, built.registration),
            std::vector<std::string>{
                "GPU GPU-1 is out of service: the driver does not answer: no driver"});
  EXPECT_TRUE(gpu_changes(built.registration, built.registration).empty());

  RegistrationInput lost = input({{gpu([](ports::GpuInfo& g) { g.uuid = "GPU-2"; })}});
  lost.known = before;
  const core::InstanceRegistration now = build_registration(lost).registration;
  ASSERT_EQ(now.gpus.size(), 2u);
  EXPECT_EQ(now.gpus[0].unavailable, "the driver does not show it any more");
  EXPECT_EQ(now.gpus[1].unavailable, "");
  EXPECT_EQ(
      gpu_changes(before, now),
      (std::vector<std::string>{"GPU GPU-1 is out of service: the driver does not show it any more",
                                "GPU GPU-2 is there now"}));

  RegistrationInput back = input({{gpu()}});
  back.known = built.registration;
  const core::InstanceRegistration restored = build_registration(back).registration;
  EXPECT_EQ(restored, before);
  EXPECT_EQ(gpu_changes(built.registration, restored),
            std::vector<std::string>{"GPU GPU-1 is back in service"});
}

TEST(RegistrationTest, ClientSlots) {
  struct Row {
    int major;
    int cuda;
    int want;
  };
  const Row rows[] = {
      {6, 13010, 16}, {7, 12000, 48}, {8, 13000, 48}, {9, 13010, 60}, {9, 13040, 60}};
  for (const Row& row : rows) {
    ports::GpuInfo info = gpu();
    info.compute_capability_major = row.major;
    EXPECT_EQ(client_slots(info, row.cuda), row.want) << row.major << " " << row.cuda;
  }
}

TEST(RegistrationTest, AttributeValuesKeepToEcssCharacters) {
  const auto model = [](std::string name) {
    return gpu([&](ports::GpuInfo& g) { g.model = std::move(name); });
  };
  const auto built = build_registration(input({{model("A (80GB), x"), model("B"), model("B")}}));
  EXPECT_EQ(built.registration.attributes.at("cotenant.gpu-model"), "A -80GB-- x/B");
}

TEST(RegistrationTest, FindsPrograms) {
  EXPECT_TRUE(find_program("/bin/sh"));
  EXPECT_TRUE(find_program("sh"));
  EXPECT_FALSE(find_program("/bin"));
  EXPECT_FALSE(find_program("/proc/meminfo"));
  EXPECT_FALSE(find_program("no-such-program-anywhere"));
  EXPECT_FALSE(find_program(""));
}

TEST(RegistrationTest, ReadsTheMachine) {
  const auto memory = memory_mib_of_machine();
  ASSERT_TRUE(memory);
  EXPECT_GT(*memory, 100);
  EXPECT_FALSE(cpu_architecture_of_machine().empty());
}

}  // namespace
}  // namespace cotenant::agent
