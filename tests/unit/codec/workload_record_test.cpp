// What a cluster has learned survives a restart, though a RunTask writes only the records that it
// touched.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/prng.h"
#include "codec/record.h"
#include "core/reducer.h"
#include "unit/core/state_dump.h"

namespace cotenant::codec {
namespace {

using core::RecordKind;

TEST(WorkloadRecordTest, RecordsWrittenAtDifferentTimesGiveTheSameTables) {
  core::State state = core::initial_state(0);
  core::Workload& workload = state.workloads["default"];
  core::Fleet fleet;
  core::NodeImage image;
  image.cpu_total = image.cpu_free = 8192;
  image.model = "L4";
  image.gpus.resize(2);
  image.gpus[0].total_mib = image.gpus[0].left_mib = 24000;
  fleet.add(image);
  std::map<std::string, std::string> records;
  const auto store = [&](const core::RecordRef& ref) {
    records[record_key(ref)] = *encode_record(state, ref);
  };
  store({RecordKind::kCluster, "default"});
  base::Prng prng(3);
  // Past two halvings, and through windows in which tasks leave.
  for (int arrival = 1; arrival <= 40000; ++arrival) {
    core::RequestShape shape;
    // Some are rare, so that their records are old.
    shape.cpu_milli = static_cast<std::int64_t>(prng.next() % (arrival % 50 == 0 ? 400 : 20)) * 100;
    shape.share_mib = 1000;
    const std::size_t at = workload.arrive(fleet, shape);
    workload.placed();
    if (arrival > 5000 && arrival % 2 == 0) workload.departed();
    store({RecordKind::kWorkload, "default"});
    store({RecordKind::kWorkloadShape, "default", static_cast<std::int64_t>(at)});
    if (arrival % 1999 != 0) continue;
    const auto back = decode_records(records);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    const core::Workload& restored = back->workloads.at("default");
    ASSERT_EQ(core::test::dump(restored), core::test::dump(workload)) << "arrival " << arrival;
    for (std::size_t i = 0; i < workload.shapes().size(); ++i) {
      ASSERT_EQ(restored.shapes()[i].count, workload.shapes()[i].count) << "arrival " << arrival;
    }
  }
  EXPECT_GE(workload.counters().halvings, 2);
  EXPECT_GT(workload.counters().turnover, 0);
}

TEST(WorkloadRecordTest, RecordsThatContradictEachOtherAreRefused) {
  const std::string cluster = R"({"v": 1, "name": "c", "createdAt": 0})";
  const std::string head =
      R"({"v": 1, "seen": 1, "nextTraining": 100, "trainings": 0, "halvings": 0, "turnover": 0,
          "trainedTurnover": 0, "windowArrived": 1, "windowPlaced": 1, "windowLeft": 0, "fleetCpu": 0,
          "fleetGpus": 0, "classes": []})";
  const std::string shape =
      R"({"v": 1, "cpuMilli": 100, "shareMib": 5, "wholeGpus": 0, "models": "", "count": 1,
          "trainedCount": 0, "trainings": 0, "halvings": 0})";
  const auto message = [](const std::map<std::string, std::string>& records) {
    const auto state = decode_records(records);
    return state ? std::string() : state.error().message;
  };
  EXPECT_EQ(
      message({{"cluster/c", cluster}, {"workload/c", head}, {"workload-shape/c/00000", shape}}),
      "");
  EXPECT_NE(message({{"cluster/c", cluster}, {"workload-shape/c/00000", shape}}), "");
  EXPECT_EQ(message({{"workload/c", head}}), "") << "its cluster is gone, and may come back";
  EXPECT_NE(
      message({{"cluster/c", cluster}, {"workload/c", head}, {"workload-shape/c/00001", shape}}),
      "");
  EXPECT_NE(message({{"cluster/c", cluster}, {"workload/c", head}, {"workload-shape/c/x", shape}}),
            "");
  EXPECT_NE(message({{"cluster/c", cluster}, {"workload/c", R"({"v": 1, "seen": -1})"}}), "");
  EXPECT_NE(message({{"cluster/c",
                      R"({"v": 1, "name": "c", "createdAt": 0,
                          "settings": {"cotenant.placementPolicy": "unheard of"}})"}}),
            "");
}

}  // namespace
}  // namespace cotenant::codec
