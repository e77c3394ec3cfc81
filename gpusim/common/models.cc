#include "common/models.h"

#include <strings.h>

#include <cstring>

namespace gpusim {
namespace {

// L4: 23034 MiB total, 471 MiB reserved, so 22563 MiB usable (figures published with the Amazon ECS
// agent's GPU memory report). Totals of the others are those that nvidia-smi shows; their reserved
// amounts, and the PCI device and subsystem ids, are approximate: no program here depends on them.
constexpr GpuModel kModels[] = {
    {"P4", "Tesla P4", 7680, 69, 6, 1, 4, 20, 0x1BB310DE, 0x11D810DE, 128, 30, 192, {}},
    {"V100",
     "Tesla V100-SXM2-16GB",
     16384,
     231,
     7,
     0,
     5,
     80,
     0x1DB110DE,
     0x121210DE,
     128,
     30,
     900,
     {}},
    {"T4", "Tesla T4", 15360, 449, 7, 5, 6, 40, 0x1EB810DE, 0x12A210DE, 128, 30, 300, {}},
    {"A10G", "NVIDIA A10G", 23028, 442, 8, 6, 7, 80, 0x223710DE, 0x152F10DE, 128, 30, 600, {}},
    {"L4", "NVIDIA L4", 23034, 471, 8, 9, 8, 58, 0x27B810DE, 0x16CA10DE, 128, 30, 300, {}},
    {"L40S", "NVIDIA L40S", 46068, 585, 8, 9, 8, 142, 0x26B910DE, 0x185110DE, 128, 30, 864, {}},
    {"A100-40",
     "NVIDIA A100-SXM4-40GB",
     40960,
     424,
     8,
     0,
     7,
     108,
     0x20B010DE,
     0x134F10DE,
     128,
     30,
     1555,
     {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}},
    {"A100-80",
     "NVIDIA A100-SXM4-80GB",
     81920,
     669,
     8,
     0,
     7,
     108,
     0x20B210DE,
     0x146310DE,
     128,
     30,
     2039,
     {"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}},
    {"H100",
     "NVIDIA H100 80GB HBM3",
     81559,
     551,
     9,
     0,
     9,
     132,
     0x233010DE,
     0x16C110DE,
     128,
     30,
     3350,
     {"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}},
    {"H200",
     "NVIDIA H200",
     143771,
     598,
     9,
     0,
     9,
     132,
     0x233510DE,
     0x18BE10DE,
     128,
     30,
     4800,
     {"1g.18gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"}},
    {"B200",
     "NVIDIA B200",
     183359,
     724,
     10,
     0,
     10,
     148,
     0x290110DE,
     0x199910DE,
     128,
     30,
     8000,
     {"1g.23gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"}},
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

uint32_t mps_client_slots(uint32_t cc_major, int cuda_version) {
  constexpr uint32_t kVolta = 7;
  constexpr int kCudaWith60Clients = 13010;
  if (cc_major < kVolta) return 16;
  return cuda_version < kCudaWith60Clients ? 48 : 60;
}

}  // namespace gpusim
