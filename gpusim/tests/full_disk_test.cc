// A file system that is really full: a tmpfs of 64 KiB in a mount namespace, filled to the last byte.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/harness.h"

namespace gpusim::test {
namespace {

// Runs a command where `folder` is full.
std::vector<std::string> on_full_folder(const std::string& folder,
                                        const std::vector<std::string>& command) {
  std::vector<std::string> all = {
      "/usr/bin/unshare",
      "--mount",
      "/bin/sh",
      "-c",
      "mount -t tmpfs -o size=64k tmpfs \"$0\" && { head -c 1000000 /dev/zero > \"$0/filler\"; } "
      "2>/dev/null; exec \"$@\"",
      folder};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

bool can_mount() {
  return run({"/usr/bin/unshare", "--mount", "true"}).exit_code == 0;
}

// gpusimd's run folder: it does not start, and says why.
TEST(FullDisk, RunFolderOfGpusimd) {
  if (!can_mount()) GTEST_SKIP() << "cannot make mount namespaces";
  TempDir folder;
  const Outcome outcome = run(
      on_full_folder(folder.path(), {binary("gpusimd"), "--dir", folder / "g", "--gpus", "1xL4"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("No space left on device"), std::string::npos) << outcome.errors;
}

// The pipe directory of MPS: the same.
TEST(FullDisk, PipeDirectory) {
  if (!can_mount()) GTEST_SKIP() << "cannot make mount namespaces";
  Gpusimd driver("1xL4");
  TempDir folder;
  Environment environment = driver.environment();
  environment["CUDA_MPS_PIPE_DIRECTORY"] = folder / "pipe";
  environment["CUDA_MPS_LOG_DIRECTORY"] = driver.dir() + "/log";
  const Outcome outcome = run(
      on_full_folder(folder.path(), {binary("nvidia-cuda-mps-control"), "-f", "-M"}), environment);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("No space left on device"), std::string::npos) << outcome.errors;
}

// The log directory: lines are lost, clients are served.
TEST(FullDisk, LogDirectory) {
  if (!can_mount()) GTEST_SKIP() << "cannot make mount namespaces";
  Gpusimd driver("1xL4");
  TempDir folder;
  TempDir logs;
  Environment environment = driver.environment();
  environment["CUDA_MPS_PIPE_DIRECTORY"] = folder / "pipe";
  environment["CUDA_MPS_LOG_DIRECTORY"] = logs.path();
  Process daemon(on_full_folder(logs.path(), {binary("nvidia-cuda-mps-control"), "-f", "-M"}),
                 environment);
  ASSERT_TRUE(eventually([&] { return exists(folder / "pipe/nvidia-cuda-mps-control.pid"); }));
  EXPECT_EQ(probe_lines(environment, {"init", "ctx", "alloc:100"}), "init 0\nctx 0\nalloc 0\n");
  EXPECT_EQ(
      run({binary("nvidia-cuda-mps-control")}, environment, "get_default_active_thread_percentage")
          .output,
      "100.0\n");
}

}  // namespace
}  // namespace gpusim::test
