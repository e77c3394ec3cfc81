#include "core/query/query_pattern.h"

#include <re2/re2.h>

#include <utility>

#include "base/limits.h"

namespace cotenant::core {

tl::expected<QueryPattern, std::string> QueryPattern::compile(std::string_view pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(base::limits::kQueryPatternBytes);
  auto compiled =
      std::make_shared<const re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!compiled->ok()) return tl::unexpected<std::string>(compiled->error());
  return QueryPattern(std::move(compiled));
}

bool QueryPattern::matches(std::string_view text) const {
  return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *pattern_);
}

}  // namespace cotenant::core
