// CreateCluster, UpdateClusterSettings, DescribeClusters, ListClusters, DeleteCluster.
#include <fmt/format.h>

#include <map>
#include <optional>

#include "codec/ecs_request.h"
#include "codec/ecs_response.h"
#include "server/api_functions.h"
#include "server/include.h"
#include "server/paging.h"

namespace cotenant::server::api {
namespace {

struct ClusterView {
  std::string id;
  std::optional<core::Cluster> cluster;
  codec::ClusterCounts counts;
};

ClusterView view_cluster(const core::State& state, const std::string& name) {
  ClusterView view;
  view.id = name;
  const auto found = state.clusters.find(name);
  if (found == state.clusters.end()) return view;
  view.cluster = found->second;
  for (const auto& [id, instance] : state.instances) {
    if (instance.registration.cluster != name ||
        instance.status == core::InstanceStatus::kInactive) {
      continue;
    }
    ++view.counts.instances;
    const core::TaskCounts counts = core::count_tasks(state, instance);
    view.counts.running += counts.running;
    view.counts.pending += counts.pending;
  }
  return view;
}

}  // namespace

Result<ApiReply> create_cluster(const ApiContext& context, const Json& body) {
  auto command = codec::decode_create_cluster(body);
  if (!command) return base::fail(command.error());
  const std::string name = command->name;
  auto view = context.loop.apply<ClusterView>(
      *command,
      [&](const core::Reply&, const core::State& state) { return view_cluster(state, name); });
  if (!view) return base::fail(view.error());
  return ApiReply{Json::object({{"cluster", codec::encode_cluster(context.arns, *view->cluster,
                                                                  view->counts, {true, false})}}),
                  {}};
}

Result<ApiReply> delete_cluster(const ApiContext& context, const Json& body) {
  auto name = codec::decode_cluster(body);
  if (!name) return base::fail(name.error());
  auto view = context.loop.apply<ClusterView>(
      core::DeleteCluster{*name},
      [&](const core::Reply&, const core::State& state) { return view_cluster(state, *name); });
  if (!view) return base::fail(view.error());
  return ApiReply{Json::object({{"cluster", codec::encode_cluster(context.arns, *view->cluster,
                                                                  view->counts, {true, false})}}),
                  {}};
}

Result<ApiReply> update_cluster_settings(const ApiContext& context, const Json& body) {
  auto command = codec::decode_update_cluster_settings(body);
  if (!command) return base::fail(command.error());
  const std::string name = command->cluster;
  auto view = context.loop.apply<ClusterView>(
      *command,
      [&](const core::Reply&, const core::State& state) { return view_cluster(state, name); });
  if (!view) return base::fail(view.error());
  return ApiReply{Json::object({{"cluster", codec::encode_cluster(context.arns, *view->cluster,
                                                                  view->counts, {true, false})}}),
                  {}};
}

Result<ApiReply> describe_clusters(const ApiContext& context, const Json& body) {
  auto refs = codec::decode_refs(body, "clusters", "cluster");
  if (!refs) return base::fail(refs.error());
  if (refs->empty()) refs->push_back({core::kDefaultCluster, std::nullopt});
  auto views = context.loop.read<std::vector<ClusterView>>([&](const core::State& state) {
    std::vector<ClusterView> found;
    for (const base::ResourceRef& ref : *refs) found.push_back(view_cluster(state, ref.id));
    return found;
  });
  if (!views) return base::fail(views.error());
  const codec::Included included = decode_include(body);
  Json clusters = Json::array();
  Json failures = Json::array();
  for (const ClusterView& view : *views) {
    if (view.cluster) {
      clusters.push(codec::encode_cluster(context.arns, *view.cluster, view.counts, included));
    } else {
      failures.push(codec::encode_failure(context.arns.cluster(view.id), "MISSING", ""));
    }
  }
  return ApiReply{
      Json::object({{"clusters", std::move(clusters)}, {"failures", std::move(failures)}}),
      include_warnings(body, {"TAGS", "STATISTICS", "SETTINGS"})};
}

Result<ApiReply> list_clusters(const ApiContext& context, const Json& body) {
  auto page = codec::decode_page(body);
  if (!page) return base::fail(page.error());
  auto names = context.loop.read<KeyPage>([&](const core::State& state) {
    return page_of(state.clusters, *page, [](const std::string&, const core::Cluster& cluster) {
      return cluster.active();
    });
  });
  if (!names) return base::fail(names.error());
  Json arns = Json::array();
  for (const std::string& name : names->keys) arns.push(context.arns.cluster(name));
  Json reply = Json::object({{"clusterArns", std::move(arns)}});
  if (!names->next_token.empty()) reply.set("nextToken", names->next_token);
  return ApiReply{std::move(reply), {}};
}

}  // namespace cotenant::server::api
