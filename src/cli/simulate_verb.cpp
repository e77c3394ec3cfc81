// cotenant simulate: a replay of a trace through the placement engine, as CSV or JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/client_verbs.h"
#include "cli/exit_code.h"
#include "replay/picture.h"
#include "replay/replay.h"

namespace cotenant::cli {
namespace {

constexpr std::uint64_t kSeedsMax = 10000;

struct SeedRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

std::optional<SeedRange> parse_seeds(std::string_view text) {
  const auto number = [](std::string_view part) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (part.empty() || code != std::errc() || end != part.data() + part.size())
      return std::nullopt;
    return value;
  };
  const std::size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (!first || !last || *last < *first || *last - *first >= kSeedsMax) return std::nullopt;
  return SeedRange{*first, *last};
}

struct Column {
  std::string_view name;
  std::string text;  // as CSV shows it, and as JSON's number
};

std::vector<Column> fill_up_columns(const replay::FillUpResult& result) {
  constexpr std::array<std::string_view, 7> kNames = {"unalloc80",  "unalloc90",  "unalloc95",
                                                      "unalloc100", "unalloc105", "unalloc110",
                                                      "unalloc120"};
  std::vector<Column> columns = {{"events", std::to_string(result.events)},
                                 {"failed", std::to_string(result.failed)}};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    columns.push_back({kNames[i], fmt::format("{:.3f}", result.unallocated_at[i])});
  }
  columns.push_back({"unalloc_end", fmt::format("{:.4f}", result.unallocated)});
  return columns;
}

std::vector<Column> churn_columns(const replay::ChurnResult& result, double rho) {
  return {{"rho", fmt::format("{}", rho)},
          {"blocked_requests", std::to_string(result.blocked_requests)},
          {"blocked", fmt::format("{:.4f}", result.blocked)},
          {"blocked_gpu_weighted", fmt::format("{:.4f}", result.blocked_gpu)},
          {"unalloc", fmt::format("{:.4f}", result.unallocated)}};
}

// Prints rows as they come (CSV), or all at the end (JSON).
class ResultPrinter {
 public:
  explicit ResultPrinter(bool json) : json_(json) {}

  void row(const std::string& policy, std::uint64_t seed, const std::vector<Column>& columns) {
    if (json_) {
      std::string object = fmt::format("{{\"policy\": \"{}\", \"seed\": {}", policy, seed);
      for (const Column& column : columns) {
        object += fmt::format(", \"{}\": {}", column.name, column.text);
      }
      fmt::print("{}{}}}", any_ ? ",\n " : "[", object);
    } else {
      if (!any_) {
        fmt::print("policy,seed");
        for (const Column& column : columns) fmt::print(",{}", column.name);
        fmt::print("\n");
      }
      fmt::print("{},{}", policy, seed);
      for (const Column& column : columns) fmt::print(",{}", column.text);
      fmt::print("\n");
    }
    any_ = true;
    std::fflush(stdout);
  }
  void finish() {
    if (json_) fmt::print("]\n");
  }

 private:
  bool json_;
  bool any_ = false;
};

int refused(std::string_view message) {
  fmt::print(stderr, "{}\n", message);
  return kExitRefused;
}

}  // namespace

int simulate_verb(const SimulateOptions& options) {
  for (const auto& [name, value] :
       {std::pair("--ratio", options.ratio), std::pair("--churn", options.churn)}) {
    if (!std::isfinite(value))
      return refused(fmt::format("{}: must be a number, not {}", name, value));
  }
  const auto seeds = parse_seeds(options.seeds);
  if (!seeds) {
    return refused(fmt::format("--seed: '{}' is neither a number nor a range A..B of at most {}",
                               options.seeds.substr(0, 40), kSeedsMax));
  }
  std::vector<replay::ReplayPolicy> policies;
  for (std::size_t from = 0; from <= options.policies.size();) {
    const std::size_t comma = std::min(options.policies.find(',', from), options.policies.size());
    auto policy = replay::find_replay_policy(options.policies.substr(from, comma - from));
    if (!policy) return refused("--policy: " + policy.error().message);
    policies.push_back(std::move(*policy));
    from = comma + 1;
  }
  auto trace = replay::read_trace(options.nodes, options.pods);
  if (!trace) return refused(trace.error().message);
  replay::GpuSizes sizes;
  if (options.gpu_mib != 0) sizes.gpu_mib = options.gpu_mib;
  if (options.mib != 0) sizes.reference_mib = options.mib;
  const auto replayed = replay::Replay::make(std::move(*trace), sizes);
  if (!replayed) return refused("--" + replayed.error().message);
  if (const auto status = replayed->check_ratio(options.ratio); !status && options.churn == 0) {
    return refused("--" + status.error().message);
  }

  ResultPrinter printer(options.output == "json");
  std::vector<replay::PictureLine> lines;
  for (const replay::ReplayPolicy& policy : policies) {
    replay::PictureLine line{policy.shown, {}};
    for (std::uint64_t seed = seeds->first;; ++seed) {
      if (options.churn > 0) {
        const auto result = replayed->churn(policy, seed, options.churn);
        printer.row(policy.shown, seed, churn_columns(result, options.churn));
      } else {
        const auto result = replayed->fill_up(policy, seed, options.ratio);
        printer.row(policy.shown, seed, fill_up_columns(result));
        line.runs.push_back(result.unallocated_at);
      }
      if (seed == seeds->last) break;  // which may be the last number there is
    }
    lines.push_back(std::move(line));
  }
  printer.finish();
  if (options.picture.empty()) return kExitOk;
  std::ofstream file(options.picture);
  file << replay::draw_picture(lines);
  file.close();
  if (!file) return refused(fmt::format("--picture: {} cannot be written", options.picture));
  return kExitOk;
}

}  // namespace cotenant::cli
