// ListContainerInstances, DescribeContainerInstances, UpdateContainerInstancesState,
// DeregisterContainerInstance, and cotenant's own DescribeGpus.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codec/ecs_request.h"
#include "codec/ecs_response.h"
#include "codec/utf8.h"
#include "core/container_override.h"
#include "server/api_functions.h"
#include "server/include.h"
#include "server/instance_filter.h"
#include "server/paging.h"

namespace cotenant::server::api {
namespace {

struct InstanceView {
  core::Instance instance;
  core::TaskCounts counts;
};

std::optional<InstanceView> view_instance(const core::State& state, const std::string& cluster,
                                          const std::string& id) {
  const auto found = state.instances.find(id);
  if (found == state.instances.end() || found->second.registration.cluster != cluster) {
    return std::nullopt;
  }
  return InstanceView{found->second, core::count_tasks(state, found->second)};
}

// A container with its share, for the rows of `cotenant gpus`.
struct GpuTenant {
  std::string task_id;
  std::string family;
  std::string container;
  std::optional<core::SharedGpu> share;
};

struct GpuRow {
  std::string instance_id;
  bool agent_connected = false;
  bool simulated = false;
  core::GpuDevice device;
  std::size_t index = 0;
  core::SharingMode mode = core::SharingMode::kIdle;
  std::int64_t remaining_mib = 0;
  std::vector<GpuTenant> tenants;
};

std::vector<GpuTenant> tenants_of(const core::State& state, const core::GpuLedger& ledger,
                                  std::size_t gpu) {
  std::vector<GpuTenant> tenants;
  const std::string& uuid = ledger.device(gpu).uuid;
  for (const std::string& task_id : ledger.task_ids(gpu)) {
    const core::Task& task = state.tasks.at(task_id);
    const core::TaskDefinitionPtr definition = core::definition_of(state, task);
    for (const core::TaskContainer& container : task.containers) {
      if (std::find(container.gpu_uuids.begin(), container.gpu_uuids.end(), uuid) ==
          container.gpu_uuids.end()) {
        continue;
      }
      GpuTenant tenant{task_id, task.family, container.name, std::nullopt};
      const core::ContainerDefinition* part = core::find_container(*definition, container.name);
      const core::GpuRequest& request = core::gpu_request(*part, task.overrides);
      if (const auto* share = std::get_if<core::SharedGpu>(&request)) tenant.share = *share;
      tenants.push_back(std::move(tenant));
    }
  }
  return tenants;
}

Json encode_tenant(const ApiContext& context, const std::string& cluster, const GpuTenant& tenant) {
  Json json = Json::object();
  json.set("taskArn", context.arns.task(cluster, tenant.task_id))
      .set("family", tenant.family)
      .set("containerName", tenant.container);
  if (tenant.share) {
    json.set("memoryInMiB", tenant.share->memory_mib);
    if (tenant.share->compute_percent)
      json.set("maxComputePercent", *tenant.share->compute_percent);
  }
  return json;
}

// ECS's model has no shape for this operation, so its members are checked here.
base::Status check_describe_gpus(const Json& body) {
  const auto wrong = [](std::string_view member, std::string_view text) {
    return base::fail(base::ErrorCode::kSerialization, fmt::format("{}: {}", member, text));
  };
  for (const Json::Member& member : body.as_object()) {
    const Json& value = member.value;
    if (value.is_null()) continue;
    if (member.name == "cluster" || member.name == "nextToken") {
      if (!value.is_string()) return wrong(member.name, "must be a string");
    } else if (member.name == "maxResults") {
      if (!value.is_integer()) return wrong(member.name, "must be an integer");
    } else {
      return base::fail(base::ErrorCode::kInvalidParameter,
                        fmt::format("{}: not a member of Cotenant.DescribeGpus; it has cluster, "
                                    "maxResults, nextToken",
                                    codec::shortened(member.name)));
    }
  }
  return {};
}

Json encode_gpu(const ApiContext& context, const std::string& cluster, const GpuRow& row) {
  Json tenants = Json::array();
  for (const GpuTenant& tenant : row.tenants) tenants.push(encode_tenant(context, cluster, tenant));
  Json json = Json::object();
  json.set("containerInstanceArn", context.arns.container_instance(cluster, row.instance_id))
      .set("agentConnected", row.agent_connected)
      .set("simulated", row.simulated)
      .set("gpuId", row.device.uuid)
      .set("index", static_cast<std::int64_t>(row.index))
      .set("model", row.device.model)
      .set("sharingMode", core::to_string(row.mode))
      .set("totalMemoryInMiB", row.device.memory_mib.value_or(0))
      .set("remainingMemoryInMiB", row.remaining_mib)
      .set("containers", std::move(tenants));
  if (!row.device.unavailable.empty()) json.set("unavailable", row.device.unavailable);
  return json;
}

}  // namespace

Result<ApiReply> list_container_instances(const ApiContext& context, const Json& body) {
  auto cluster = codec::decode_cluster(body);
  if (!cluster) return base::fail(cluster.error());
  auto page = codec::decode_page(body);
  if (!page) return base::fail(page.error());
  auto filter = make_instance_filter(body.string_or("filter", ""));
  if (!filter) return base::fail(filter.error());
  const std::string wanted = body.string_or("status", "");
  struct Listed {
    base::Status status;
    KeyPage page;
  };
  auto listed = context.loop.read<Listed>([&](const core::State& state) {
    Listed result;
    result.status = core::require_cluster(state, *cluster);
    if (!result.status) return result;
    result.page =
        page_of(state.instances, *page, [&](const std::string&, const core::Instance& instance) {
          return instance.registration.cluster == *cluster &&
                 (wanted.empty() ? instance.status != core::InstanceStatus::kInactive
                                 : wanted == core::to_string(instance.status)) &&
                 (*filter)(state, instance);
        });
    return result;
  });
  if (!listed) return base::fail(listed.error());
  if (!listed->status) return base::fail(listed->status.error());
  Json arns = Json::array();
  for (const std::string& id : listed->page.keys) {
    arns.push(context.arns.container_instance(*cluster, id));
  }
  Json reply = Json::object({{"containerInstanceArns", std::move(arns)}});
  if (!listed->page.next_token.empty()) reply.set("nextToken", listed->page.next_token);
  return ApiReply{std::move(reply), {}};
}

Result<ApiReply> describe_container_instances(const ApiContext& context, const Json& body) {
  auto cluster = codec::decode_cluster(body);
  if (!cluster) return base::fail(cluster.error());
  auto refs = codec::decode_refs(body, "containerInstances", "container-instance");
  if (!refs) return base::fail(refs.error());
  struct Found {
    base::Status status;
    std::vector<std::optional<InstanceView>> instances;  // one for each reference
  };
  auto found = context.loop.read<Found>([&](const core::State& state) {
    Found result;
    result.status = core::require_cluster(state, *cluster);
    for (const base::ResourceRef& ref : *refs) {
      const bool elsewhere = ref.cluster && *ref.cluster != *cluster;
      result.instances.push_back(elsewhere ? std::nullopt : view_instance(state, *cluster, ref.id));
    }
    return result;
  });
  if (!found) return base::fail(found.error());
  if (!found->status) return base::fail(found->status.error());
  const codec::Included included = decode_include(body);
  Json instances = Json::array();
  Json failures = Json::array();
  for (std::size_t i = 0; i < refs->size(); ++i) {
    if (const auto& view = found->instances[i]) {
      instances.push(codec::encode_instance(context.arns, view->instance, view->counts, included));
    } else {
      failures.push(codec::encode_failure(context.arns.container_instance(*cluster, (*refs)[i].id),
                                          "MISSING", ""));
    }
  }
  return ApiReply{Json::object({{"containerInstances", std::move(instances)},
                                {"failures", std::move(failures)}}),
                  include_warnings(body, {"TAGS"})};
}

Result<ApiReply> update_container_instances_state(const ApiContext& context, const Json& body) {
  auto command = codec::decode_update_instances_state(body);
  if (!command) return base::fail(command.error());
  struct Updated {
    std::vector<std::optional<InstanceView>> instances;  // one for each that is named
    core::ItemsReply reply;
  };
  auto updated = context.loop.apply<Updated>(
      *command, [&](const core::Reply& reply, const core::State& state) {
        Updated result{{}, std::get<core::ItemsReply>(reply)};
        for (const std::string& id : command->instance_ids) {
          result.instances.push_back(view_instance(state, command->cluster, id));
        }
        for (const auto& failure : result.reply.failures) result.instances[failure.item].reset();
        return result;
      });
  if (!updated) return base::fail(updated.error());
  Json instances = Json::array();
  for (const auto& view : updated->instances) {
    if (!view) continue;
    instances.push(codec::encode_instance(context.arns, view->instance, view->counts));
  }
  Json failures = Json::array();
  for (const auto& failure : updated->reply.failures) {
    failures.push(codec::encode_failure(
        context.arns.container_instance(command->cluster, command->instance_ids[failure.item]),
        failure.reason, failure.detail));
  }
  return ApiReply{Json::object({{"containerInstances", std::move(instances)},
                                {"failures", std::move(failures)}}),
                  {}};
}

Result<ApiReply> deregister_container_instance(const ApiContext& context, const Json& body) {
  auto command = codec::decode_deregister_instance(body);
  if (!command) return base::fail(command.error());
  struct Deregistered {
    std::optional<InstanceView> instance;
    bool more = false;
  };
  // Many tasks are given up in bounded steps; what a crash leaves, Expire does.
  for (;;) {
    auto step = context.loop.apply<Deregistered>(
        *command, [&](const core::Reply& reply, const core::State& state) {
          return Deregistered{view_instance(state, command->cluster, command->instance_id),
                              std::get<core::BoundedReply>(reply).more};
        });
    if (!step) return base::fail(step.error());
    if (step->more) continue;
    return ApiReply{Json::object({{"containerInstance",
                                   codec::encode_instance(context.arns, step->instance->instance,
                                                          step->instance->counts)}}),
                    {}};
  }
}

Result<ApiReply> describe_gpus(const ApiContext& context, const Json& body) {
  if (auto status = check_describe_gpus(body); !status) return base::fail(status.error());
  auto cluster = codec::decode_cluster(body);
  if (!cluster) return base::fail(cluster.error());
  auto page = codec::decode_page(body);
  if (!page) return base::fail(page.error());
  struct Found {
    base::Status status;
    KeyPage page;
    std::vector<GpuRow> rows;
  };
  // A page counts instances; the rows of an instance stay together.
  auto found = context.loop.read<Found>([&](const core::State& state) {
    Found result;
    result.status = core::require_cluster(state, *cluster);
    if (!result.status) return result;
    result.page =
        page_of(state.instances, *page, [&](const std::string&, const core::Instance& instance) {
          return instance.registration.cluster == *cluster && instance.gpus.size() > 0 &&
                 instance.status != core::InstanceStatus::kInactive;
        });
    for (const std::string& id : result.page.keys) {
      const core::Instance& instance = state.instances.at(id);
      for (std::size_t gpu = 0; gpu < instance.gpus.size(); ++gpu) {
        result.rows.push_back({id, instance.agent_connected, instance.registration.gpu_simulated,
                               instance.gpus.device(gpu), gpu, instance.gpus.mode(gpu),
                               instance.gpus.remaining_mib(gpu),
                               tenants_of(state, instance.gpus, gpu)});
      }
    }
    return result;
  });
  if (!found) return base::fail(found.error());
  if (!found->status) return base::fail(found->status.error());
  Json gpus = Json::array();
  for (const GpuRow& row : found->rows) gpus.push(encode_gpu(context, *cluster, row));
  Json reply = Json::object({{"gpus", std::move(gpus)}});
  if (!found->page.next_token.empty()) reply.set("nextToken", found->page.next_token);
  return ApiReply{std::move(reply), {}};
}

}  // namespace cotenant::server::api
