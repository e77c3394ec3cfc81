#include "server/instance_filter.h"

#include <fmt/format.h>

#include <utility>

#include "core/placement/placement_plan.h"
#include "core/query/query.h"

namespace cotenant::server {

base::Result<InstanceFilter> make_instance_filter(std::string_view expression) {
  if (expression.empty()) {
    return InstanceFilter([](const core::State&, const core::Instance&) { return true; });
  }
  auto query = core::Query::parse(expression);
  if (!query) {
    return base::fail(query.error().code, fmt::format("filter: {}", query.error().message));
  }
  return InstanceFilter(
      [query = std::move(*query)](const core::State& state, const core::Instance& instance) {
        return query.matches(core::InstanceFacts(state, instance, query).facts());
      });
}

}  // namespace cotenant::server
