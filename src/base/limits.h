// Every bound in one place. Bounds that ECS states only in prose carry their source.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cotenant::base::limits {

// HTTP.
inline constexpr std::size_t kRequestBodyBytes = 1024 * 1024;
inline constexpr std::size_t kRequestHeaderBytes = 64 * 1024;
inline constexpr std::size_t kAgentFrameBytes = 8 * 1024 * 1024;
inline constexpr std::size_t kHttpConnections = 1024;
// Agents, and the streams that they and clients open beside.
inline constexpr std::size_t kWebSockets = 8192;
inline constexpr std::size_t kJsonDepth = 32;

// core_loop: requests that wait; a full queue answers ThrottlingException.
inline constexpr std::size_t kQueuedRequests = 4096;
inline constexpr std::size_t kBatchCommands = 256;

// ECS API reference, RunTask: "count" 1..10.
inline constexpr int kRunTaskCountMax = 10;
// ECS API reference, RunTask: "startedBy" up to 128 characters (letters, digits, - _ / = .).
inline constexpr std::size_t kStartedByChars = 128;
// ECS API reference, RunTask: "clientToken" up to 64 characters.
inline constexpr std::size_t kClientTokenChars = 64;
// ECS API reference: family, cluster and container names are up to 255 letters, digits, - and _.
inline constexpr std::size_t kNameChars = 255;
// ECS API reference, RegisterTaskDefinition: at most 10 containers in a task definition.
inline constexpr std::size_t kContainersPerTask = 10;
inline constexpr std::size_t kEnvironmentFileBytes = 64 * 1024;
// Port mappings of one container, and what its engine reports of them: IPv4 and IPv6 each.
inline constexpr std::size_t kPortMappings = 100;
inline constexpr std::size_t kPortsPerContainer = 2 * kPortMappings;
// ECS service quotas: a task definition is at most 64 KB.
inline constexpr std::size_t kTaskDefinitionBytes = 64 * 1024;
// ECS API reference, ContainerOverride: overrides are at most 8192 characters of JSON.
inline constexpr std::size_t kOverridesBytes = 8192;
// ECS API reference, ContainerDefinition.memory: at least 6 MiB.
inline constexpr std::int64_t kContainerMemoryMibMin = 6;
// ECS API reference, ContainerDefinition.stopTimeout.
inline constexpr std::int64_t kStopTimeoutSecondsMax = 86400;
// ECS agent README: ECS_CONTAINER_STOP_TIMEOUT, 30 s.
inline constexpr std::int64_t kStopTimeoutSecondsDefault = 30;
// ECS API reference, Container.reason: at most 1024 characters.
inline constexpr std::size_t kReasonChars = 1024;
// ECS API reference: Describe calls take up to 100 names; lists answer up to 100 a page.
inline constexpr std::size_t kPageItems = 100;

// ECS API reference, AttributeLimitExceededException: 10 custom attributes on a resource.
inline constexpr std::size_t kCustomAttributes = 10;
// ECS API reference, RunTask: at most 10 constraints, those of the task definition among them.
inline constexpr std::size_t kPlacementConstraints = 10;
// ECS API reference, PlacementConstraint.expression: at most 2000 characters. The other two are ours:
// how deep it may be nested, and what a compiled pattern may take.
inline constexpr std::size_t kQueryChars = 2000;
inline constexpr std::size_t kQueryDepth = 100;
inline constexpr std::int64_t kQueryPatternBytes = 1024 * 1024;

// NvidiaMpsAllocation.memory has no upper bound in ECS; ours is far above any GPU and keeps sums
// small.
inline constexpr std::int64_t kGpuMemoryMibMax = std::int64_t{1} << 30;
// A whole-GPU request names at most this many GPUs.
inline constexpr std::int64_t kWholeGpusMax = 64;

// A unix socket's address holds 108 bytes, and NVIDIA's MPS daemon makes its sockets below
// <run dir>/mps/<8 digits>/pipe: about 75 characters are left for that folder, 57 for the run folder.
inline constexpr std::size_t kRunDirChars = 57;

// Join tokens: enough for a roll-out, and none for ever.
inline constexpr std::int64_t kJoinTokenSecondsMin = 60;
inline constexpr std::int64_t kJoinTokenSecondsMax = std::int64_t{365} * 24 * 3600;
inline constexpr std::size_t kJoinTokens = 1000;
inline constexpr std::size_t kAgentKeys = 20000;

// ECS developer guide, "Tagging resources": at most 50 tags on a resource.
inline constexpr std::size_t kTagsPerResource = 50;
// ECS API reference, RunTask: "referenceId" up to 1024 characters.
inline constexpr std::size_t kReferenceIdChars = 1024;

// Sizes of the cluster. ECS service quotas: 5,000 container instances in a cluster.
inline constexpr std::size_t kClusters = 1000;
inline constexpr std::size_t kInstancesPerCluster = 5000;
inline constexpr std::size_t kInstances = 20000;
inline constexpr std::size_t kAttributesPerInstance = 256;
inline constexpr std::size_t kAttributeChars = 512;
inline constexpr std::size_t kFamilies = 10000;
inline constexpr std::size_t kTaskDefinitions = 200000;
inline constexpr std::size_t kAccountSettings = 1000;
inline constexpr std::size_t kGpusPerInstance = 64;
// MPS serves at most 60 contexts on a GPU today.
inline constexpr std::int64_t kClientSlotsMax = 4096;
inline constexpr std::size_t kRevisionsPerFamily = 100000;
inline constexpr std::size_t kClientTokens = 100000;

// Store: stopped tasks and client tokens are kept this long (ECS: 1 h and 24 h).
inline constexpr std::int64_t kStoppedTaskRetentionMs = 3600 * 1000;
inline constexpr std::int64_t kClientTokenRetentionMs = 24 * 3600 * 1000;
// INACTIVE clusters and container instances can be described this long (ECS: "for some time").
inline constexpr std::int64_t kInactiveRetentionMs = 3600 * 1000;
// What one Expire removes at most; the next one goes on.
inline constexpr std::size_t kExpiredPerCommand = 1000;

}  // namespace cotenant::base::limits
