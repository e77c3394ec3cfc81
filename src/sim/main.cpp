// cotenant-sim: runs seeds of the deterministic cluster simulator (src/sim/cluster_run.h).
#include <fmt/format.h>

#include <unistd.h>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "sim/cluster_run.h"

namespace {

using cotenant::sim::RunOptions;
using cotenant::sim::RunReport;

constexpr const char* kUsage =
    "usage: cotenant-sim --seed N [--print] [--no-faults]\n"
    "       cotenant-sim --seeds A..B [--no-faults] [--keep-going]\n"
    "Runs a simulated cluster from a seed: a control plane, machines, callers, and faults. The same\n"
    "seed gives the same run. Exit code 1: a check failed.\n";

struct Arguments {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool has_seeds = false;
  bool keep_going = false;
  RunOptions run;
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--print") {
      arguments.run.print = true;
    } else if (name == "--no-faults") {
      arguments.run.faults = false;
    } else if (name == "--keep-going") {
      arguments.keep_going = true;
    } else if ((name == "--seed" || name == "--seeds") && i + 1 < argc) {
      const std::string_view value = argv[++i];
      const std::size_t dots = value.find("..");
      const auto first = number(value.substr(0, dots));
      const auto last = dots == std::string_view::npos ? first : number(value.substr(dots + 2));
      if (!first || !last || *last < *first) return std::nullopt;
      arguments.first = *first;
      arguments.last = *last;
      arguments.has_seeds = true;
    } else {
      return std::nullopt;
    }
  }
  if (!arguments.has_seeds) return std::nullopt;
  return arguments;
}

std::atomic<std::uint64_t> current_seed{0};

std::string repeat_command(std::uint64_t seed, bool faults) {
  return fmt::format("cotenant-sim --seed {}{} --print", seed, faults ? "" : " --no-faults");
}

// An assertion of the product has failed; the seed must not be lost.
void on_abort(int) {
  char text[64];
  const int length =
      std::snprintf(text, sizeof text, "aborted; repeat: cotenant-sim --seed %llu --print\n",
                    static_cast<unsigned long long>(current_seed.load()));
  if (length > 0) (void)!::write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

void print_failure(const RunReport& report, std::uint64_t seed, bool faults) {
  fmt::print("seed {}: FAILED\n", seed);
  for (const std::string& violation : report.violations) fmt::print("  {}\n", violation);
  fmt::print("repeat: {}\n", repeat_command(seed, faults));
  std::fflush(stdout);
}

int run_seeds(Arguments arguments) {
  RunReport total;
  std::uint64_t failed = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t seed = arguments.first; seed <= arguments.last; ++seed) {
    current_seed = seed;
    arguments.run.seed = seed;
    const RunReport report = cotenant::sim::run_cluster(arguments.run);
    total.events += report.events;
    total.calls_acknowledged += report.calls_acknowledged;
    total.calls_unknown += report.calls_unknown;
    total.tasks_placed += report.tasks_placed;
    total.containers_started += report.containers_started;
    total.replays += report.replays;
    total.digest ^= report.digest;
    if (!report.violations.empty()) {
      ++failed;
      print_failure(report, seed, arguments.run.faults);
      if (!arguments.keep_going) break;
    }
    if (arguments.first == arguments.last) {
      fmt::print("rested {} s after the faults\n", report.rested_after_ms / 1000);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print(
      "seeds {}..{}: {} failed; {} events, {} calls acknowledged, {} without an answer, {} tasks, {} "
      "containers started, {} replays, digest {:016x}, {:.1f} s\n",
      arguments.first, arguments.last, failed, total.events, total.calls_acknowledged,
      total.calls_unknown, total.tasks_placed, total.containers_started, total.replays,
      total.digest, took.count());
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = parse(argc, argv);
  if (!arguments) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  std::signal(SIGABRT, on_abort);
  cotenant::base::log::set_level(cotenant::base::log::Level::kSilent);
  return run_seeds(*arguments);
}
