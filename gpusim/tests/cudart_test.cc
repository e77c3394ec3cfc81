// libcudart.so.13: programs that were built with `nvcc -cudart shared` (there is no nvcc here:
// cudart_program.cc declares and calls what nvcc would).
#include <gtest/gtest.h>

#include "tests/harness.h"

namespace gpusim::test {
namespace {

std::string run_program(const Environment& environment, std::vector<std::string> steps) {
  steps.insert(steps.begin(), GPUSIM_CUDART_PROGRAM);
  const Outcome outcome = run(steps, environment);
  EXPECT_EQ(outcome.errors, "");
  return outcome.output;
}

TEST(Cudart, DevicesMemoryAndCopies) {
  Gpusimd driver("1xL4,1xT4");
  EXPECT_EQ(run_program(driver.environment(),
                        {"count", "name:0", "set:1", "info", "copy", "last", "set:2", "last"}),
            "count 0 2\nname 0 NVIDIA L4\nset 0 1\ninfo 0 14783 14911\ncopy 0\nlast 0 0\n"
            "set 101 1\nlast 101 0\n");
}

// Two programs with different ceilings each stop at theirs.
TEST(Cudart, CeilingUnderMps) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.start_server();
  EXPECT_EQ(run_program(mps.client("0=512M"), {"fill:64", "last"}), "fill 2 6\nlast 2 0\n");
  EXPECT_EQ(run_program(mps.client("0=256M"), {"fill:64", "info"}), "fill 2 2\ninfo 0 0 22563\n");
}

TEST(Cudart, KernelsAndFaults) {
  Gpusimd driver("1xL4");
  const std::string lines = run_program(driver.environment(), {"spin", "fault", "copy"});
  EXPECT_TRUE(took_ms(lines.substr(0, lines.find('\n')), 50)) << lines;
  EXPECT_NE(lines.find("\nfault 0 700 an illegal memory access was encountered\ncopy 700\n"),
            std::string::npos)
      << lines;
}

TEST(Cudart, WithoutADriver) {
  Gpusimd driver("1xL4");
  Environment environment = driver.environment();
  environment["GPUSIM_DIR"] = "/nowhere";
  EXPECT_EQ(run_program(environment, {"count", "fill:1"}), "count 100 0\nfill 100 0\n");
}

}  // namespace
}  // namespace gpusim::test
