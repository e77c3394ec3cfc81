// What `GET /metrics` shows, in Prometheus' text format (prometheus-cpp's registry and serializer).
//
// Kept as things happen: a scrape walks no state. Names and units: Prometheus' naming rules (bytes,
// seconds, counters end in _total). Any thread may count and read; on_loaded() and on_stored() come
// from the core loop's thread. The labels have bounds: ECS's operations and exceptions, the instances
// and GPUs that there are.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/core_engine.h"

namespace cotenant::server {

class Metrics final : public StateObserver {
 public:
  Metrics();
  ~Metrics() override;

  // `outcome` is "ok" or the name of the exception.
  void count_request(std::string_view operation, std::string_view outcome, double seconds);
  // What RunTask and StartTask have placed, and a failure with its reason.
  void count_placed(std::size_t tasks);
  void count_not_placed(std::string_view reason, std::size_t tasks);

  void on_loaded(const core::State& state) override;
  void on_stored(const core::State& state, const core::Effects& effects) override;

  std::string text(bool store_writable, std::size_t connected_agents) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cotenant::server
