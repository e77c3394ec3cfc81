// What a cluster has learned of its requests: how often each shape has arrived, and whether tasks
// leave. Policies are trained from it at set arrivals (100, 150, 225, ... by half, at most 8192 more, and
// when the turnover moves), so that the same history gives the same decisions. Durable: a restart
// goes on with the same tables (codec/workload_record.h).
//
// All integers. Counts are halved when their sum passes 16384, so that old requests are forgotten. At
// most kWorkloadShapes shapes are kept; a new one then takes the place of the rarest.
// The schedule and its constants were found by replays of the published openb traces; docs/placement.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/placement/fleet.h"
#include "core/placement/placement_query.h"

namespace cotenant::core {

inline constexpr std::size_t kWorkloadShapes = 512;

// A request as policies count it. Memory of the host and containers play no part.
struct RequestShape {
  std::int64_t cpu_milli = 0;  // 0 counts as 100
  std::int64_t share_mib = 0;  // of one GPU; 0: no share
  int whole_gpus = 0;          // kAllGpus: every GPU of the node
  std::string models;          // that it may use, joined by '|'; empty: any
  static constexpr int kAllGpus = -1;

  bool has_gpu() const { return share_mib > 0 || whole_gpus != 0; }
  friend auto operator<=>(const RequestShape&, const RequestShape&) = default;
};
RequestShape shape_of(const Fleet& fleet, const PlacementQuery& query);

struct CountedShape {
  RequestShape shape;
  std::int64_t count = 0;
};

// What policies are trained from.
struct TrainingSet {
  std::vector<CountedShape> shapes;
  int turnover = 0;  // 0: nothing leaves; 4: as many leave as come
  std::int64_t fleet_cpu_milli = 0;
  std::int64_t fleet_gpus = 0;
  std::map<std::string, std::int64_t> class_gpus;  // by NodeClass::name()
};

class Workload {
 public:
  struct Shape {
    RequestShape shape;
    std::int64_t count = 0;
    std::int64_t built_count = 0;  // at the last training
  };
  // The counters, as they are stored.
  struct Counters {
    std::int64_t seen = 0;
    std::int64_t next_training = 100;
    std::int64_t trainings = 0;
    std::int64_t halvings = 0;
    int turnover = 0;
    std::int64_t window_arrived = 0;
    std::int64_t window_placed = 0;
    std::int64_t window_left = 0;
    friend bool operator==(const Counters&, const Counters&) = default;
  };

  // To be called for each arrival before its decision; returns the index of its shape.
  std::size_t arrive(const Fleet& fleet, const RequestShape& shape);
  void placed() { ++counters_.window_placed; }
  void departed() { ++counters_.window_left; }

  // Changes whenever policies are to be trained anew; 0: not yet.
  std::int64_t trainings() const { return counters_.trainings; }
  TrainingSet training_set() const;

  const Counters& counters() const { return counters_; }
  const std::vector<Shape>& shapes() const { return shapes_; }
  // The fleet's sums at the last training (shapes left empty).
  const TrainingSet& trained_fleet() const { return fleet_; }
  static Workload restored(Counters counters, std::vector<Shape> shapes, TrainingSet fleet);

 private:
  std::size_t find_or_add(const RequestShape& shape);
  bool turnover_moved();
  void train(const Fleet& fleet);

  std::vector<Shape> shapes_;
  std::map<RequestShape, std::size_t> index_;
  std::int64_t total_ = 0;  // sum of the counts
  Counters counters_;
  TrainingSet fleet_;
};

}  // namespace cotenant::core
