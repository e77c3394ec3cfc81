#include "common/models.h"

#include <strings.h>

#include <cstring>

namespace gpusim {
namespace {

// L4: 23034 MiB total, 471 MiB reserved, so 22563 MiB usable (figures published with the Amazon ECS
// agent's GPU memory report). The reserved amounts of the others are approximate.
constexpr GpuModel kModels[] = {
    {"L4", "NVIDIA L4", 23034, 471, 8, 9, 8, 58, 0x27B810DE, 0x16CA10DE, 48, 128, 30, 300},
    {"A10G", "NVIDIA A10G", 23028, 442, 8, 6, 7, 80, 0x223710DE, 0x152F10DE, 48, 128, 30, 600},
    {"H100", "NVIDIA H100 80GB HBM3", 81559, 551, 9, 0, 9, 132, 0x233010DE, 0x16C110DE, 48, 128, 30,
     3350},
};

}  // namespace

const GpuModel* gpu_models(size_t* count) {
  *count = sizeof kModels / sizeof kModels[0];
  return kModels;
}

const GpuModel* find_gpu_model(const char* name, size_t name_length) {
  for (const GpuModel& model : kModels) {
    if (strlen(model.name) == name_length && strncasecmp(model.name, name, name_length) == 0) {
      return &model;
    }
  }
  return nullptr;
}

}  // namespace gpusim
