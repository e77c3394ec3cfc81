// A container instance: a node whose agent has registered, and what is left of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "core/gpu_ledger.h"
#include "core/instance_ports.h"
#include "core/placement/fleet_node.h"
#include "core/tags.h"
#include "core/task_definition.h"

namespace cotenant::core {

// Advertised by an agent whose GPUs can be shared (ECS: an attribute without a value).
inline constexpr std::string_view kSharingAttribute = "ecs.capability.gpu-sharing-mps";

// "none": its containers are processes of the host. Absent: they are a container engine's.
inline constexpr std::string_view kIsolationAttribute = "cotenant.isolation";
inline constexpr const char* kNoIsolation = "none";

// Source of the spellings: ECS API reference, ContainerInstance.status.
enum class InstanceStatus { kActive, kDraining, kInactive };
std::string_view to_string(InstanceStatus status);
std::optional<InstanceStatus> parse_instance_status(std::string_view text);

// What an agent says of its machine when it joins. Durable.
struct InstanceRegistration {
  std::string id;  // chosen by the agent once, 32 hex digits
  std::string cluster;
  std::int64_t cpu_units = 0;
  std::int64_t memory_mib = 0;
  std::vector<int> reserved_ports;
  std::vector<GpuDevice> gpus;  // in the driver's order
  std::map<std::string, std::string> attributes;
  std::string agent_version;
  std::string engine_version;
  std::string driver_version;
  bool gpu_simulated = false;
  friend bool operator==(const InstanceRegistration&, const InstanceRegistration&) = default;
};

struct Instance {
  InstanceRegistration registration;
  std::int64_t number = 0;  // in order of registration: breaks ties
  InstanceStatus status = InstanceStatus::kActive;
  base::TimeMs registered_at_ms = 0;
  std::int64_t version = 1;
  Tags tags = {};
  base::TimeMs deregistered_at_ms = 0;  // INACTIVE since
  // Given by PutAttributes; over those of the registration.
  std::map<std::string, std::string> custom_attributes;

  // What follows is not stored: it is derived from the tasks, or a fact of this moment.
  bool agent_connected = false;
  std::int64_t connection_epoch = 0;  // of the present connection; older ones are closed
  std::int64_t used_cpu_units = 0;
  std::int64_t used_memory_mib = 0;
  InstancePorts ports;
  GpuLedger gpus;
  std::set<std::string> task_ids;      // those that hold a reservation
  std::optional<NodeSlot> fleet_slot;  // its node in its cluster's Fleet

  // Null where there is none.
  const std::string* find_attribute(const std::string& name) const;
  std::map<std::string, std::string> all_attributes() const;

  std::int64_t free_cpu_units() const { return registration.cpu_units - used_cpu_units; }
  std::int64_t free_memory_mib() const { return registration.memory_mib - used_memory_mib; }
};

// The first of the ports that the instance cannot give: reserved, or (unless it were empty) held by a
// task.
std::optional<HostPort> port_in_the_way(const Instance& instance,
                                        const std::vector<HostPort>& ports,
                                        bool when_empty = false);

}  // namespace cotenant::core
