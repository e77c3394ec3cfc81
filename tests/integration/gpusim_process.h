// A running gpusimd for one test, from the folder in COTENANT_TEST_GPUSIM_BIN. GPUSIM_DIR is set
// for this process, since that is how the NVML library finds it.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

namespace cotenant::adapters {

inline std::string gpusim_bin() {
  const char* folder = std::getenv("COTENANT_TEST_GPUSIM_BIN");
  return folder == nullptr ? std::string() : std::string(folder);
}

class GpusimProcess {
 public:
  // The GPUs' UUIDs follow from the seed.
  GpusimProcess(std::string dir, std::string gpus, std::string seed = "1")
      : dir_(std::move(dir)), gpus_(std::move(gpus)), seed_(std::move(seed)) {
    ::setenv("GPUSIM_DIR", dir_.c_str(), 1);
  }
  ~GpusimProcess() {
    stop();
    ::unsetenv("GPUSIM_DIR");
  }
  GpusimProcess(const GpusimProcess&) = delete;
  GpusimProcess& operator=(const GpusimProcess&) = delete;

  const std::string& dir() const { return dir_; }

  // Returns when it accepts connections.
  void start() {
    ASSERT_NE(gpusim_bin(), "") << "set COTENANT_TEST_GPUSIM_BIN to the folder with gpusimd";
    const std::string program = gpusim_bin() + "/gpusimd";
    pid_ = ::fork();
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execl(program.c_str(), program.c_str(), "--dir", dir_.c_str(), "--gpus", gpus_.c_str(),
              "--seed", seed_.c_str(), nullptr);
      ::_exit(127);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!std::filesystem::exists(dir_ + "/gpusimd.pid")) {
      int status = 0;
      const bool ended = ::waitpid(pid_, &status, WNOHANG) == pid_;
      if (ended) pid_ = -1;
      ASSERT_FALSE(ended) << program << " ended with status " << status;
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << program << " is not ready";
      std::this_thread::yield();
    }
  }

  void stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  std::string dir_;
  std::string gpus_;
  std::string seed_;
  pid_t pid_ = -1;
};

}  // namespace cotenant::adapters
