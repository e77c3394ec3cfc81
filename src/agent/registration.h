// What an agent says of its machine when it joins. Pure, but for find_program() and
// memory_mib_of_machine(), which read the file system.
//
// Sources: ECS agent's capability gate for GPU sharing and its reserved ports; client slots: MPS
// documentation (16 before Volta, 48, and 60 from CUDA 13.1 on).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/instance.h"
#include "ports/container_runtime.h"
#include "ports/gpu_driver.h"

namespace cotenant::agent {

struct RegistrationInput {
  std::string instance_id;
  std::string cluster;
  std::string agent_version;
  std::optional<int> api_port;  // of a control plane on the same machine
  ports::EngineInfo engine;
  std::int64_t machine_memory_mib = 0;  // used when the engine does not say
  std::int64_t machine_cores = 0;       // likewise
  std::string cpu_architecture;         // "x86_64" or "arm64"
  base::Result<ports::DriverInfo> driver;
  base::Result<std::vector<ports::GpuInfo>> gpus;
  bool mps_control_present = false;
  // As registered last: a GPU that was there and is not seen any more stays, out of service.
  std::optional<core::InstanceRegistration> known = {};
};

struct BuiltRegistration {
  core::InstanceRegistration registration;
  // For the log: what is missing and why, e.g. the first condition that GPU sharing does not meet.
  std::vector<std::string> warnings;
};

BuiltRegistration build_registration(const RegistrationInput& input);

// What has become of the GPUs, a line for each that came, went or came back; empty: nothing. Sizes are
// not compared.
std::vector<std::string> gpu_changes(const core::InstanceRegistration& before,
                                     const core::InstanceRegistration& now);

// MPS client contexts that a GPU serves.
int client_slots(const ports::GpuInfo& gpu, int cuda_version);

// Whether `program` is an executable file: at that path, or in PATH when it has no slash.
bool find_program(const std::string& program);

// MemTotal of /proc/meminfo. Errors: kIo.
base::Result<std::int64_t> memory_mib_of_machine();

// The kernel's name for this machine in ECS's spelling: "x86_64", "arm64".
std::string cpu_architecture_of_machine();

}  // namespace cotenant::agent
