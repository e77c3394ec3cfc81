#include "server/instance_filter.h"

namespace cotenant::server {

base::Result<InstanceFilter> make_instance_filter(std::string_view expression) {
  if (!expression.empty()) {
    return base::fail(base::ErrorCode::kUnsupportedFeature,
                      "filter: the cluster query language is not offered yet; leave it out");
  }
  return InstanceFilter([](const core::State&, const core::Instance&) { return true; });
}

}  // namespace cotenant::server
