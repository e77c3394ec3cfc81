// Policy `balanced` once more, straight from its definition (core/placement/balanced_policy.h, docs/placement.md)
// and by a scan of all nodes for each decision: what the engine is measured against and must agree with.
//
// Scores are cached for each pair of request shape and node and made anew where the node has changed or
// the policy has learned. One GPU model, so that no model is scarce and that term is 0. Plain arrays of
// per-mille and milli-CPU; nothing of core's is used for the decisions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace cotenant::bench {

class BalancedScan {
 public:
  struct Request {
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    std::int64_t milli = 0;  // of each GPU
    int gpus = 0;
    bool is_share() const { return gpus == 1 && milli < 1000; }
    std::int64_t demand() const { return gpus * milli; }
  };
  struct Choice {
    std::size_t node = 0;
    std::uint32_t gpus = 0;  // a bit each
  };
  struct Node {
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    std::array<std::int32_t, 8> left{};  // per-mille of each GPU
    std::uint32_t version = 1;
  };

  // All requests that may come; place() takes indexes of them.
  BalancedScan(std::vector<Node> nodes, std::vector<Request> requests, std::int64_t fleet_cpu)
      : nodes_(std::move(nodes)), requests_(std::move(requests)), fleet_cpu_(fleet_cpu) {
    std::map<std::tuple<std::int64_t, std::int64_t, int>, std::size_t> known;
    for (const Request& request : requests_) {
      const std::int64_t cpu = request.cpu == 0 ? 100 : request.cpu;
      const auto [at, fresh] =
          known.emplace(std::tuple(cpu, request.milli, request.gpus), shapes_.size());
      if (fresh) shapes_.push_back({cpu, request.milli, request.gpus});
      shape_of_.push_back(at->second);
    }
    for (int milli = 0; milli < 1000; ++milli) {
      tight_[static_cast<std::size_t>(milli)] = 200 * milli / (400 + milli);
    }
    for (const Node& node : nodes_) fleet_gpus_ += static_cast<std::int64_t>(node.left.size());
    const std::size_t cells = shapes_.size() * nodes_.size();
    stamps_.assign(cells, 0);
    costs_.assign(cells, 0);
    gpus_.assign(cells, 0);
    value_stamps_.assign(nodes_.size(), 0);
    values_.assign(nodes_.size(), 0);
  }

  std::optional<Choice> place(std::size_t index) {
    const Request& request = requests_[index];
    const std::size_t shape = shape_of_[index];
    arrive(shape);
    const std::size_t row = shape * nodes_.size();
    std::int64_t least = INT64_MAX;
    std::size_t best = nodes_.size();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      if (node.cpu < request.cpu || node.memory < request.memory) continue;
      if (stamps_[row + i] != node.version) score(row + i, i, request);
      if (costs_[row + i] >= least) continue;
      least = costs_[row + i];
      best = i;
    }
    if (best == nodes_.size()) return std::nullopt;
    Choice choice{best, 0};
    Node& node = nodes_[best];
    if (request.is_share()) choice.gpus = 1U << gpus_[row + best];
    int wanted = request.is_share() ? 0 : request.gpus;
    for (std::size_t gpu = 0; wanted > 0; ++gpu) {
      if (node.left[gpu] != 1000) continue;
      choice.gpus |= 1U << gpu;
      --wanted;
    }
    change(choice, request, -1);
    ++placed_;
    return choice;
  }
  void leave(const Choice& choice, std::size_t index) {
    change(choice, requests_[index], +1);
    ++left_;
  }

 private:
  struct Shape {
    std::int64_t cpu, milli;
    int gpus;
    std::int64_t count = 0;
  };
  struct Weighted {
    std::int64_t cpu;
    int gpus;
    std::int64_t weight;
  };

  void change(const Choice& choice, const Request& request, std::int64_t sign) {
    Node& node = nodes_[choice.node];
    node.cpu += sign * request.cpu;
    node.memory += sign * request.memory;
    for (std::size_t gpu = 0; gpu < node.left.size(); ++gpu) {
      if ((choice.gpus >> gpu & 1) == 0) continue;
      node.left[gpu] = static_cast<std::int32_t>(node.left[gpu] + sign * request.milli);
    }
    ++node.version;
  }

  void arrive(std::size_t shape) {
    bool due = false;
    if (++window_ >= 512) {
      if (placed_ > 0 && turnover_ < 4 && left_ * 8 >= placed_ * (2 * turnover_ + 1)) {
        ++turnover_;
        due = true;
      } else if (placed_ > 0 && turnover_ > 0 && left_ * 8 < placed_ * (2 * turnover_ - 3)) {
        --turnover_;
        due = true;
      }
      window_ = placed_ = left_ = 0;
    }
    ++shapes_[shape].count;
    ++total_;
    if (++seen_ >= next_) {
      next_ = seen_ + std::clamp<std::int64_t>(seen_ / 2, 1, 8192);
      due = true;
      if (total_ > 16384) {
        total_ = 0;
        for (Shape& each : shapes_) total_ += each.count /= 2;
      }
    }
    if (due && seen_ >= 100) learn();
  }

  void learn() {
    std::int64_t cpu_all = 0;
    std::int64_t cpu_gpu = 0;
    std::int64_t milli = 0;
    weight_ = 0;
    std::map<std::int64_t, std::vector<Weighted>> by_milli;
    for (const Shape& shape : shapes_) {
      const std::int64_t demand = shape.gpus * shape.milli;
      cpu_all += shape.count * shape.cpu;
      if (shape.gpus > 0) cpu_gpu += shape.count * shape.cpu;
      milli += shape.count * demand;
      const std::int64_t weight = shape.count * (1000 + turnover_ * demand / 4) / 1000;
      if (shape.gpus == 0 || weight == 0) continue;
      weight_ += weight;
      by_milli[shape.milli].push_back({shape.cpu, shape.gpus, weight});
    }
    by_milli_.assign(by_milli.begin(), by_milli.end());
    if (milli == 0) return;
    const bool scarce = cpu_all * fleet_gpus_ > fleet_cpu_ * (milli / 1000);
    cpu_per_gpu_ = (scarce ? cpu_all : cpu_gpu) * 1000 / milli;
    for (Node& node : nodes_) ++node.version;
  }

  std::int64_t value(std::int64_t cpu, const std::array<std::int32_t, 8>& left) const {
    std::int64_t all = 0;
    std::int64_t value = 0;
    for (const std::int64_t each : left) {
      all += each;
      value += tight_[static_cast<std::size_t>(each)];
    }
    if (all == 0) return 0;
    std::int64_t wasted = 0;
    for (const auto& [milli, shapes] : by_milli_) {
      int fit = 0;
      std::int64_t too_small = 0;
      for (const std::int64_t each : left) {
        fit += each >= milli ? 1 : 0;
        too_small += each < milli ? each : 0;
      }
      for (const Weighted& shape : shapes) {
        wasted += shape.weight * (cpu < shape.cpu || fit < shape.gpus ? all : too_small);
      }
    }
    if (weight_ > 0) value += wasted / weight_;
    const std::int64_t need = all * cpu_per_gpu_ / 1000;
    if (const std::int64_t missing = need - cpu; missing > 0) {
      value += all * missing * missing / (2 * need * need);
    }
    return value;
  }

  void score(std::size_t cell, std::size_t at, const Request& request) {
    Node& node = nodes_[at];
    stamps_[cell] = node.version;
    costs_[cell] = INT64_MAX;
    const auto fits = [&](std::int64_t left) { return left >= request.milli; };
    if (request.gpus > 0 &&
        std::count_if(node.left.begin(), node.left.end(), fits) < request.gpus) {
      return;
    }
    if (value_stamps_[at] != node.version) {
      value_stamps_[at] = node.version;
      values_[at] = value(node.cpu, node.left);
    }
    const std::int64_t cpu = node.cpu - request.cpu;
    std::int64_t extra = 0;
    if (request.gpus == 0) {
      for (const std::int64_t each : node.left) extra += each;
    }
    const auto cost_now = [&] {
      const std::int64_t gain = value(cpu, node.left) - values_[at] + extra;
      return gain >= 0 ? (gain + 19) / 20 : -(-gain / 20);
    };
    if (!request.is_share()) {
      const auto before = node.left;
      int wanted = request.gpus;
      for (std::size_t gpu = 0; wanted > 0; ++gpu) {
        if (node.left[gpu] != 1000) continue;
        node.left[gpu] = 0;
        --wanted;
      }
      costs_[cell] = cost_now();
      node.left = before;
      return;
    }
    for (std::size_t gpu = 0; gpu < node.left.size(); ++gpu) {
      const std::int32_t left = node.left[gpu];
      if (left < request.milli) continue;
      // An equal one was tried.
      const auto its_place = node.left.begin() + gpu;
      if (std::find(node.left.begin(), its_place, left) != its_place) continue;
      node.left[gpu] = static_cast<std::int32_t>(left - request.milli);
      const std::int64_t cost = cost_now();
      node.left[gpu] = left;
      if (cost >= costs_[cell]) continue;
      costs_[cell] = cost;
      gpus_[cell] = static_cast<std::uint8_t>(gpu);
    }
  }

  std::vector<Node> nodes_;
  std::vector<Request> requests_;
  std::vector<Shape> shapes_;
  std::vector<std::size_t> shape_of_;
  std::vector<std::uint32_t> stamps_;
  std::vector<std::int64_t> costs_;
  std::vector<std::uint8_t> gpus_;
  std::vector<std::uint32_t> value_stamps_;
  std::vector<std::int64_t> values_;
  std::vector<std::pair<std::int64_t, std::vector<Weighted>>> by_milli_;
  std::array<std::int64_t, 1001> tight_{};
  std::int64_t weight_ = 0;
  std::int64_t fleet_cpu_ = 0;
  std::int64_t fleet_gpus_ = 0;
  std::int64_t cpu_per_gpu_ = 10000;
  std::int64_t turnover_ = 0;
  std::int64_t window_ = 0, placed_ = 0, left_ = 0;
  std::int64_t total_ = 0, seen_ = 0, next_ = 100;
};

}  // namespace cotenant::bench
