// bench-bare-commit FILE: how fast the store alone takes what RunTask and StopTask of ten tasks store:
// ten records of a task's size, then each of them again, in the batches that the loop would make of
// it at best. An upper bound for durable RunTask on this disk.
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "adapters/sqlite_store.h"
#include "base/prng.h"

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  if (argc != 2) return 2;
  auto store = cotenant::adapters::SqliteStore::open(argv[1]);
  if (!store) {
    fmt::print(stderr, "{}\n", store.error().message);
    return 1;
  }
  constexpr std::size_t kRecordBytes = 700;  // a task with one container
  constexpr double kSeconds = 4;
  cotenant::base::Prng prng(1);
  std::int64_t revision = 0;
  std::int64_t tasks = 0;
  const auto began = Clock::now();
  std::chrono::duration<double> took{};
  while ((took = Clock::now() - began).count() < kSeconds) {
    std::vector<cotenant::ports::StoreWrite> batch;
    for (int i = 0; i < 10; ++i) {
      batch.push_back({"task/" + prng.next_hex_id(), std::string(kRecordBytes, 'x')});
    }
    // Started, reported running, stopped, reported gone: four times each.
    for (int times = 0; times < 4; ++times) {
      const auto committed = (*store)->commit(batch, revision);
      if (!committed) {
        fmt::print(stderr, "{}\n", committed.error().message);
        return 1;
      }
      revision = *committed;
    }
    tasks += 10;
  }
  fmt::print("bare_tasks_per_s={:.0f} commits_per_s={:.0f}\n",
             static_cast<double>(tasks) / took.count(),
             static_cast<double>(revision) / took.count());
  return 0;
}
