// Pages of ordered maps for the List operations.
#pragma once

#include <string>
#include <vector>

#include "codec/ecs_request.h"

namespace cotenant::server {

struct KeyPage {
  std::vector<std::string> keys;
  std::string next_token;  // empty on the last page
};

// The keys after page.after for which `wanted(key, value)` holds, in the map's order.
template <class Map, class Wanted>
KeyPage page_of(const Map& map, const codec::Page& page, Wanted wanted) {
  KeyPage result;
  auto at = page.after.empty() ? map.begin() : map.upper_bound(page.after);
  for (; at != map.end(); ++at) {
    if (!wanted(at->first, at->second)) continue;
    if (result.keys.size() == page.max_results) {
      result.next_token = codec::encode_page_token(result.keys.back());
      break;
    }
    result.keys.push_back(at->first);
  }
  return result;
}

}  // namespace cotenant::server
