// The control plane's store in a run: what was committed stays, whoever is killed. Not thread safe.
//
// Faults: a disk that is full for a while, an fsync that fails, and a control plane that is killed
// just before or just after a commit (the owner hears of it by `on_killed`).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ports/store.h"
#include "sim/dice.h"
#include "sim/faults.h"
#include "sim/journal.h"

namespace cotenant::sim {

class SimStore final : public ports::Store {
 public:
  SimStore(Dice& dice, const Faults& faults, Journal& journal)
      : dice_(dice), faults_(faults), journal_(journal) {}

  void set_on_killed(std::function<void()> on_killed) { on_killed_ = std::move(on_killed); }

  base::Result<ports::StoreSnapshot> load() override;
  base::Result<std::int64_t> commit(const std::vector<ports::StoreWrite>& writes,
                                    std::int64_t expected_revision) override;
  // Small, so that batches are cut.
  ports::StoreLimits limits() const override { return {128, 1536 * 1024}; }

  void mend() { full_commits_ = 0; }
  // A process that was killed stores nothing any more.
  void set_writer_alive(bool alive) { writer_alive_ = alive; }

  const std::map<std::string, std::string>& records() const { return records_; }
  std::int64_t revision() const { return revision_; }

 private:
  Dice& dice_;
  const Faults& faults_;
  Journal& journal_;
  std::function<void()> on_killed_;
  std::map<std::string, std::string> records_;
  std::int64_t revision_ = 0;
  int full_commits_ = 0;  // so many more are refused
  bool writer_alive_ = true;
};

}  // namespace cotenant::sim
