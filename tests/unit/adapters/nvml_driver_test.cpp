#include "adapters/nvml_driver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>

#include "adapters/nvml_text.h"
#include "temp_folder.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

constexpr unsigned long long kMib = 1024 * 1024;

TEST(NvmlTextTest, DriverVersion) {
  const struct {
    const char* text;
    const char* want_version;
    bool want_simulated;
  } cases[] = {
      {"580.95.05", "580.95.05", false},
      {"535.261.03", "535.261.03", false},
      {"580.95.05-gpusim", "580.95.05", true},
      {"580.95.05-gpusim-2", "580.95.05", true},
      {"gpusim", "gpusim", true},
      {"", "", false},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.text);
    const ports::DriverInfo info = parse_driver_version(test.text, 13000);
    EXPECT_EQ(info.version, test.want_version);
    EXPECT_EQ(info.simulated, test.want_simulated);
    EXPECT_EQ(info.cuda_version, 13000);
  }
}

TEST(NvmlTextTest, SchedulableMemory) {
  const struct {
    const char* name;
    unsigned long long total;
    unsigned long long reserved;
    std::optional<std::int64_t> want;
  } cases[] = {
      {"an L4", 24'152'899'584, 491'782'144, 22565},
      {"rounded down", 10 * kMib, 1, 9},
      {"nothing reserved", 80 * 1024 * kMib, 0, 81920},
      {"nothing there", 0, 0, std::nullopt},
      {"all reserved", 5 * kMib, 5 * kMib, std::nullopt},
      {"senseless", 5 * kMib, 6 * kMib, std::nullopt},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    nvml::MemoryV2 memory{};
    memory.total = test.total;
    memory.reserved = test.reserved;
    EXPECT_EQ(schedulable_mib(memory), test.want);
  }
}

TEST(NvmlTextTest, UsedMemoryIsRoundedUp) {
  for (const auto& [bytes, want] : {std::pair{0ULL, 0}, {1ULL, 1}, {kMib, 1}, {kMib + 1, 2}}) {
    nvml::MemoryV2 memory{};
    memory.used = bytes;
    EXPECT_EQ(used_mib(memory), want) << bytes;
  }
}

TEST(NvmlTextTest, ErrorsSayWhatToDo) {
  const struct {
    int code;
    ErrorCode want;
    const char* want_text;
  } cases[] = {
      {4, ErrorCode::kUnavailable, "run the agent as root"},
      {9, ErrorCode::kUnavailable, "driver is not loaded"},
      {9, ErrorCode::kUnavailable, "start gpusimd"},
      {18, ErrorCode::kUnavailable, "restart the machine"},
      {15, ErrorCode::kIo, "GPU is lost"},
      {4711, ErrorCode::kIo, "NVML error 4711"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.want_text);
    const base::Error error = nvml_error(test.code, "nvmlInit_v2");
    EXPECT_EQ(error.code, test.want);
    EXPECT_NE(error.message.find(test.want_text), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("nvmlInit_v2"), std::string::npos) << error.message;
  }
}

// The words that the library checks before it fills the struct.
TEST(NvmlAbiTest, VersionWords) {
  EXPECT_EQ(nvml::kMemoryV2Version, 33554472U);
  EXPECT_EQ(nvml::struct_version(24, 1), 0x01000018U);
}

TEST(NvmlDriverTest, MissingLibraryIsUnavailableWithTheRemedy) {
  const TempFolder folder;
  const std::string path = folder.path() + "/libnvidia-ml.so.1";
  NvmlDriver driver(path);
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (const base::Error& error :
         {driver.driver().error(), driver.gpus().error(), driver.memory_use().error()}) {
      EXPECT_EQ(error.code, ErrorCode::kUnavailable);
      EXPECT_NE(error.message.find(path), std::string::npos) << error.message;
      EXPECT_NE(error.message.find("--nvml-library"), std::string::npos) << error.message;
    }
  }
}

TEST(NvmlDriverTest, AnotherLibraryIsRefused) {
  NvmlDriver driver("libc.so.6");
  const auto info = driver.driver();
  ASSERT_FALSE(info.has_value());
  EXPECT_EQ(info.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(info.error().message.find("not an NVML library"), std::string::npos)
      << info.error().message;
}

}  // namespace
}  // namespace cotenant::adapters
