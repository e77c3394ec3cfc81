#include "sim/definitions.h"

#include <fmt/format.h>

namespace cotenant::sim {
namespace {

// The other members of the first container, and the containers after it.
struct Kind {
  const char* family;
  const char* first;
  const char* others;
};

const Kind kKinds[] = {
    {"half",
     R"("memory":64,"resourceRequirements":[{"type":"GPU","sharingStrategy":)"
     R"({"nvidiaMps":{"memory":11000}}}])",
     ""},
    {"small",
     R"("memory":64,"resourceRequirements":[{"type":"GPU","sharingStrategy":)"
     R"({"nvidiaMps":{"memory":3000,"maxComputePercent":20}}}])",
     ""},
    {"pair",
     R"("memory":64,"resourceRequirements":[{"type":"GPU","sharingStrategy":)"
     R"({"nvidiaMps":{"memory":4000}}}])",
     R"(,{"name":"second","image":"i","memory":64,"essential":false,"resourceRequirements":)"
     R"([{"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":6500}}}]},)"
     R"({"name":"side","image":"i","memory":32,"essential":false})"},
    {"whole", R"("memory":64,"resourceRequirements":[{"type":"GPU","value":"1"}])", ""},
    {"two", R"("memory":64,"resourceRequirements":[{"type":"GPU","value":"1"}])",
     R"(,{"name":"second","image":"i","memory":64,"resourceRequirements":)"
     R"([{"type":"GPU","value":"1"}]})"},
    {"cpu", R"("memory":256,"cpu":512)", R"(,{"name":"side","image":"i","memory":32})"},
    {"huge",
     R"("memory":64,"resourceRequirements":[{"type":"GPU","sharingStrategy":)"
     R"({"nvidiaMps":{"memory":900000}}}])",
     ""},
};

}  // namespace

std::size_t definition_count() {
  return std::size(kKinds);
}

std::string definition_family(std::size_t kind) {
  return kKinds[kind].family;
}

std::string definition_body(std::size_t kind, const std::string& tag) {
  const Kind& k = kKinds[kind];
  return fmt::format(
      R"({{"family":"{}","containerDefinitions":[{{"name":"main","image":"{}",{}}}{}]}})", k.family,
      tag, k.first, k.others);
}

}  // namespace cotenant::sim
