// What happened in a run: a running digest that two runs of one seed share, what was wrong, and, when
// asked for, every line. Checkers report here and the run goes on to its end.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "sim/scheduler.h"

namespace cotenant::sim {

class Journal {
 public:
  Journal(const Scheduler& scheduler, bool print) : scheduler_(scheduler), print_(print) {}

  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    line(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void violation(fmt::format_string<Args...> format, Args&&... args) {
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    line("VIOLATION: " + text);
    constexpr std::size_t kKept = 20;
    if (violations_.size() < kKept) {
      violations_.push_back(fmt::format("at {} ms: {}", elapsed_ms(), text));
    }
  }

  std::uint64_t digest() const { return digest_; }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  base::TimeMs elapsed_ms() const { return scheduler_.now_ms() - start_ms_; }
  void line(const std::string& text) {
    digest_ = base::fnv1a(text, digest_ + static_cast<std::uint64_t>(elapsed_ms()));
    if (print_) fmt::print("{:>9} {}\n", elapsed_ms(), text);
  }

  const Scheduler& scheduler_;
  const base::TimeMs start_ms_ = scheduler_.now_ms();
  const bool print_;
  std::uint64_t digest_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace cotenant::sim
