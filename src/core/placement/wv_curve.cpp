#include "core/placement/wv_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "base/prng.h"

namespace cotenant::core {
namespace {

constexpr std::size_t kSteps = CurvePolicy::kSteps;
constexpr int kIterations = 30;
constexpr int kReplays = 2;
constexpr double kGiveUp = 0.1;      // chance that no further request comes, at the start
constexpr double kStartWeight = 20;  // of the start against what replays show
constexpr double kForget = 0.9;      // of older iterations
constexpr double kDemand = 1.1;      // of the fleet, in each replay
constexpr double kChoiceBand = 5;

// A request as bins see it.
struct BinRequest {
  std::size_t access = 0;  // which classes it may use
  int milli = 0;
  int gpus = 0;
  double count = 0;

  std::size_t steps() const { return static_cast<std::size_t>((milli + 9) / 10); }
};

// Node classes that all shapes treat alike are one. States are (bin class, step).
struct Bins {
  std::vector<std::size_t> class_of;        // ClassId -> bin class
  std::vector<std::vector<bool>> accesses;  // distinct sets of bin classes
  std::vector<std::int64_t> gpus;           // by bin class
  std::vector<BinRequest> requests;
  double seen = 0;
  double capacity_milli = 0;

  std::size_t classes() const { return gpus.size(); }
  std::size_t states() const { return classes() * kSteps; }
};

Bins make_bins(const std::vector<TrainingShape>& shapes,
               const std::vector<std::int64_t>& class_gpus) {
  Bins bins;
  for (std::size_t id = 0; id < class_gpus.size(); ++id) {
    std::size_t same = id;
    for (std::size_t other = 0; other < id && same == id; ++other) {
      const bool alike = std::all_of(shapes.begin(), shapes.end(), [&](const TrainingShape& shape) {
        return shape.in_class[id].allowed == shape.in_class[other].allowed &&
               shape.in_class[id].milli == shape.in_class[other].milli;
      });
      if (alike) same = other;
    }
    if (same == id) {
      bins.class_of.push_back(bins.gpus.size());
      bins.gpus.push_back(0);
    } else {
      bins.class_of.push_back(bins.class_of[same]);
    }
    bins.gpus[bins.class_of[id]] += class_gpus[id];
    bins.capacity_milli += 1000.0 * static_cast<double>(class_gpus[id]);
  }
  std::map<std::tuple<std::size_t, int, int>, double> counts;
  for (const TrainingShape& shape : shapes) {
    bins.seen += static_cast<double>(shape.count);
    std::vector<bool> access(bins.classes(), false);
    for (std::size_t id = 0; id < class_gpus.size(); ++id) {
      if (shape.in_class[id].allowed) access[bins.class_of[id]] = true;
    }
    const auto known = std::find(bins.accesses.begin(), bins.accesses.end(), access);
    const auto at = static_cast<std::size_t>(known - bins.accesses.begin());
    if (known == bins.accesses.end()) bins.accesses.push_back(access);
    // What asks for nothing would be drawn for ever.
    if (!shape.shape->has_gpu() || shape.gpu_milli() == 0) continue;
    counts[{at, shape.milli, shape.gpus}] += static_cast<double>(shape.count);
  }
  for (const auto& [key, count] : counts) {
    bins.requests.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  }
  return bins;
}

// A renewal argument without GPUs or competition: what is left when requests that fit come in their
// proportions until none comes any more.
std::vector<double> start_waste(const Bins& bins) {
  std::vector<double> waste(bins.states(), 0);
  for (std::size_t c = 0; c < bins.classes(); ++c) {
    for (std::size_t step = 1; step < kSteps; ++step) {
      double sum = kGiveUp * static_cast<double>(step) * 10;
      double weight = kGiveUp;
      for (const BinRequest& request : bins.requests) {
        if (request.milli > static_cast<int>(step) * 10 || !bins.accesses[request.access][c])
          continue;
        const double chance =
            request.count / bins.seen * (request.milli == 1000 ? request.gpus : 1);
        sum += chance * waste[c * kSteps + step - request.steps()];
        weight += chance;
      }
      waste[c * kSteps + step] = sum / weight;
    }
  }
  return waste;
}

class WvTrainer {
 public:
  explicit WvTrainer(const Bins& bins)
      : bins_(bins),
        start_(start_waste(bins)),
        waste_(start_),
        sums_(bins.states(), 0),
        visits_(bins.states(), 0),
        count_(bins.states()),
        value_(bins.states()) {
    for (const BinRequest& request : bins.requests) cumulative_.push_back(weight_ += request.count);
  }

  std::vector<double> run() {
    std::vector<double> best = waste_;
    double least = std::numeric_limits<double>::max();
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      double wasted = 0;
      for (int replay = 0; replay < kReplays; ++replay) {
        fill();
        wasted += learn();
      }
      if (iteration > 0 && wasted < least) {
        least = wasted;
        best = waste_;
      }
      for (std::size_t i = 0; i < bins_.states(); ++i) {
        if (i % kSteps == 0) continue;
        waste_[i] = (sums_[i] + kStartWeight * start_[i]) / (visits_[i] + kStartWeight);
      }
      for (double& sum : sums_) sum *= kForget;
      for (double& visit : visits_) visit *= kForget;
    }
    return best;
  }

 private:
  struct Move {
    std::size_t from = 0;
    std::size_t to = 0;
    std::int64_t bins_before = 0;
  };

  const BinRequest& draw() {
    const double at = static_cast<double>(prng_.next() >> 11) * 0x1p-53 * weight_;
    const auto found = std::lower_bound(cumulative_.begin(), cumulative_.end(), at);
    const auto index = static_cast<std::size_t>(found - cumulative_.begin());
    return bins_.requests[std::min(bins_.requests.size() - 1, index)];
  }

  // The state whose bins lose least; the number of states: none fits.
  std::size_t cheapest(const BinRequest& request) const {
    std::size_t best = bins_.states();
    double least = std::numeric_limits<double>::max();
    for (std::size_t step = request.steps(); step < kSteps; ++step) {
      for (std::size_t c = 0; c < bins_.classes(); ++c) {
        const std::size_t state = c * kSteps + step;
        if (count_[state] < request.gpus || !bins_.accesses[request.access][c]) continue;
        const double lost =
            std::ceil((waste_[state - request.steps()] - waste_[state]) / kChoiceBand) *
            kChoiceBand;
        if (lost < least - 1e-9) {
          least = lost;
          best = state;
        }
      }
    }
    return best;
  }

  void fill() {
    std::fill(count_.begin(), count_.end(), 0);
    for (std::size_t c = 0; c < bins_.classes(); ++c)
      count_[c * kSteps + kSteps - 1] = bins_.gpus[c];
    moves_.clear();
    double demand = 0;
    while (demand < kDemand * bins_.capacity_milli) {
      const BinRequest& request = draw();
      demand += static_cast<double>(request.milli * request.gpus);
      const std::size_t state = cheapest(request);
      if (state == bins_.states()) continue;
      for (int i = 0; i < request.gpus; ++i) {
        moves_.push_back({state, state - request.steps(), count_[state]});
        --count_[state];
        ++count_[state - request.steps()];
      }
    }
  }

  // Backward over the moves: the expected final remainder of a bin in each state. Returns the waste.
  double learn() {
    double wasted = 0;
    for (std::size_t i = 0; i < bins_.states(); ++i) {
      value_[i] = static_cast<double>(i % kSteps) * 10;
      wasted += static_cast<double>(count_[i]) * value_[i];
    }
    for (std::size_t i = moves_.size(); i-- > 0;) {
      const Move& move = moves_[i];
      sums_[move.to] += value_[move.to];
      visits_[move.to] += 1;
      value_[move.from] +=
          (value_[move.to] - value_[move.from]) / static_cast<double>(move.bins_before);
      sums_[move.from] += value_[move.from];
      visits_[move.from] += 1;
    }
    return wasted;
  }

  const Bins& bins_;
  std::vector<double> start_;
  std::vector<double> waste_;
  std::vector<double> sums_;
  std::vector<double> visits_;
  std::vector<std::int64_t> count_;
  std::vector<double> value_;
  std::vector<double> cumulative_;
  std::vector<Move> moves_;
  double weight_ = 0;
  base::Prng prng_{12345};
};

}  // namespace

std::vector<CurvePolicy::Curve> learn_wv_curves(const std::vector<TrainingShape>& shapes,
                                                const std::vector<std::int64_t>& class_gpus) {
  const Bins bins = make_bins(shapes, class_gpus);
  std::vector<CurvePolicy::Curve> curves(class_gpus.size());
  if (bins.requests.empty()) return curves;
  const std::vector<double> waste = WvTrainer(bins).run();
  for (std::size_t id = 0; id < class_gpus.size(); ++id) {
    for (std::size_t step = 0; step < kSteps; ++step) {
      curves[id][step] = std::llround(waste[bins.class_of[id] * kSteps + step]);
    }
  }
  return curves;
}

}  // namespace cotenant::core
