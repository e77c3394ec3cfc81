// A store in memory, for tests and the simulator. Any thread.
//
// As strict as a real one: a batch above limits(), a key twice and a wrong revision are refused. It
// outlives the control plane that uses it, so a test may "restart" by loading again. Fault knobs
// say how the next commits end.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ports/store.h"

namespace cotenant::fakes {

class MemoryStore final : public ports::Store {
 public:
  enum class Fault {
    kNone,
    kRefused,           // kUnavailable, surely not stored (disk full)
    kUnknownStored,     // kIo, although it was stored
    kUnknownNotStored,  // kIo, and it was not stored
    kConflict,          // someone else has written
  };

  explicit MemoryStore(ports::StoreLimits limits = {1024, 4 * 1024 * 1024}) : limits_(limits) {}

  base::Result<ports::StoreSnapshot> load() override;
  base::Result<std::int64_t> commit(const std::vector<ports::StoreWrite>& writes,
                                    std::int64_t expected_revision) override;
  ports::StoreLimits limits() const override { return limits_; }

  // From the next commit on; kNone mends it.
  void set_fault(Fault fault);
  // Loads fail with kIo while it is set.
  void set_load_fails(bool fails);

  std::map<std::string, std::string> records() const;
  // The tests' own hand in the records, past revision and commits().
  void put(const std::string& key, std::string value);
  // The batches that were stored, oldest first.
  std::vector<std::vector<ports::StoreWrite>> commits() const;

 private:
  base::Status check(const std::vector<ports::StoreWrite>& writes) const;

  const ports::StoreLimits limits_;
  mutable std::mutex mutex_;
  Fault fault_ = Fault::kNone;
  bool load_fails_ = false;
  std::int64_t revision_ = 0;
  std::map<std::string, std::string> records_;
  std::vector<std::vector<ports::StoreWrite>> commits_;
};

}  // namespace cotenant::fakes
