#include "mps/driver_traits.h"

#include <cstdlib>

namespace gpusim::mps {
namespace {

constexpr int kCuda115 = 11050;
constexpr int kCuda118 = 11080;
constexpr int kCuda131 = 13010;
constexpr int kLastNamedMemory = 535;
constexpr int kFirstV3 = 615;

bool choose(Choice choice, bool by_version) {
  return choice == Choice::kAuto ? by_version : choice == Choice::kOn;
}

}  // namespace

DriverTraits driver_traits(int major, int cuda_version, const Settings& settings) {
  DriverTraits traits;
  traits.major = major;
  traits.cuda_version = cuda_version;
  traits.has_pinned_limits = cuda_version >= kCuda115;
  traits.named_memory = choose(settings.named_memory, major <= kLastNamedMemory);
  traits.old_wording = choose(settings.old_wording, major <= kLastNamedMemory);
  traits.has_terminate = cuda_version >= kCuda118;
  traits.has_partitions = cuda_version >= kCuda131;
  traits.has_v3 = major >= kFirstV3;
  return traits;
}

DriverTraits ask_driver_traits(const Settings& settings) {
  DriverClient driver;
  DriverInfo info = {};
  if (driver.connect_to(driver_folder(), Role::kObserver) == Status::kOk &&
      driver.get_driver(&info) == Status::kOk) {
    return driver_traits(atoi(info.driver_version), info.cuda_version, settings);
  }
  return driver_traits(DriverTraits().major, DriverTraits().cuda_version, settings);
}

}  // namespace gpusim::mps
