// A training set as the policies' tables need it: shapes in policy units, per node class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/placement/fleet.h"
#include "core/placement/workload.h"

namespace cotenant::core {

struct ShapeInClass {
  bool allowed = false;  // model and GPU size do
  int milli = 0;         // of each GPU, rounded up; 1000 for whole ones
  int gpus = 0;          // 0: none
};

struct TrainingShape {
  const RequestShape* shape = nullptr;
  std::int64_t count = 0;
  std::vector<ShapeInClass> in_class;  // by ClassId
  // As seen by the class with the most GPUs among those allowed; the first class where none is.
  int milli = 0;
  int gpus = 0;

  std::int64_t gpu_milli() const { return std::int64_t{gpus} * milli; }
};

std::vector<TrainingShape> training_shapes(const Fleet& fleet, const TrainingSet& set);

// By ClassId: whether the class's model is among `models` (joined by '|'; empty: all are).
std::vector<bool> classes_of_models(const Fleet& fleet, const std::string& models);

// GPUs of each class at the training, by ClassId.
std::vector<std::int64_t> trained_class_gpus(const Fleet& fleet, const TrainingSet& set);

// CPU per GPU that the requests with GPUs ask for, in milli-CPU; that of all requests, where so much is
// more than the fleet has. 0: no request asked for a GPU.
std::int64_t cpu_per_gpu(const TrainingSet& set, const std::vector<TrainingShape>& shapes);

}  // namespace cotenant::core
