// The patterns of the cluster query language's =~ and !~.
//
// ECS takes Java's regular expressions. We take RE2's, which is the same syntax without what needs
// backtracking (back references, look-around), so that no pattern can take more than time linear in
// the text: a constraint comes from a client and runs on the control plane's one thread. The whole
// text must match, as Java's Pattern.matches wants.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace re2 {
class RE2;
}

namespace cotenant::core {

class QueryPattern {
 public:
  // The error is RE2's own words for what is wrong with the pattern.
  static tl::expected<QueryPattern, std::string> compile(std::string_view pattern);

  // Thread rule: several threads may ask at once.
  bool matches(std::string_view text) const;

 private:
  explicit QueryPattern(std::shared_ptr<const re2::RE2> pattern) : pattern_(std::move(pattern)) {}

  std::shared_ptr<const re2::RE2> pattern_;
};

}  // namespace cotenant::core
