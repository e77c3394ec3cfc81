// Traces that are no traces: the message names the file, the line, the column and what would be right.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "replay/openb_trace.h"
#include "replay/picture.h"
#include "replay/replay.h"

namespace cotenant::replay {
namespace {

constexpr const char* kNodes = "sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1000,2,T4\n";
constexpr const char* kPods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,100,100,1,500\n";

class TraceFiles {
 public:
  TraceFiles() {
    char name[] = "/tmp/cotenant-trace-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~TraceFiles() {
    for (const char* name : {"/nodes.csv", "/pods.csv", "/pods.csv.xz"}) {
      std::remove((folder_ + name).c_str());
    }
    rmdir(folder_.c_str());
  }
  std::string path(const std::string& name) const { return folder_ + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + name) << text;
    return folder_ + name;
  }

 private:
  std::string folder_;
};

// "" where both are read.
std::string refusal(const std::string& nodes, const std::string& pods) {
  const TraceFiles files;
  const auto trace = read_trace(files.write("/nodes.csv", nodes), files.write("/pods.csv", pods));
  return trace ? std::string() : trace.error().message;
}

TEST(TraceInputTest, RefusalsNameLineAndColumn) {
  struct Row {
    std::string nodes;
    std::string pods;
    const char* want;
  };
  const std::string header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";
  for (const Row& row : {
           Row{"", kPods, "nodes.csv: has no rows"},
           Row{"sn,cpu_milli,memory_mib,gpu,model\n", kPods, "nodes.csv: has no rows"},
           Row{"sn,cpu_milli,gpu,model\nn1,1,1,T4\n", kPods,
               "line 1: the column memory_mib is missing"},
           Row{"sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1000,0,\n", kPods, "no node has a GPU"},
           Row{"sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1000,65,T4\n", kPods,
               "line 2: gpu: '65'"},
           Row{kNodes, "", "pods.csv: has no rows"},
           Row{kNodes, header + "p1,-1,1,1,500,\n",
               "pods.csv: line 2: cpu_milli: '-1' is no whole number"},
           Row{kNodes, header + "p1,99999999999999999999,1,1,500,\n", "line 2: cpu_milli"},
           Row{kNodes, header + "p1,1.5,1,1,500,\n", "line 2: cpu_milli"},
           Row{kNodes, header + "p1,1,1,1,1001,\n", "line 2: gpu_milli"},
           Row{kNodes, header + "p1,1,1,2,500,\n",
               "line 2: gpu_milli: '500' is no whole number from 1000"},
           Row{kNodes, header + "p1,1,1,1,500,H100|A10\n",
               "line 2: gpu_spec: no node has such a model; there are T4"},
           Row{kNodes, header + "p1,1,1,1,500,\np1,1,1,1,500,\n",
               "line 3: name: the name stands there twice"},
           Row{kNodes, header + "p1,1,1,1\n", "line 2: has 4 fields, the header has 6"},
           Row{kNodes, header + "\"p1\",1,1,1,500,\n", "line 2: quotes are not read"},
           Row{kNodes, header + std::string(70000, 'x') + "\n",
               "line 2 is longer than 65536 bytes"},
           Row{kNodes, header + "p1,1,1,0,,\n", "no pod asks for a GPU"},
       }) {
    const std::string got = refusal(row.nodes, row.pods);
    EXPECT_NE(got.find(row.want), std::string::npos) << "no '" << row.want << "' in: " << got;
  }
  EXPECT_EQ(refusal(kNodes, kPods), "");
  EXPECT_EQ(refusal(kNodes, header + "p1,1,1,1,500,H100|T4\r\n\r\n"), "");
}

TEST(TraceInputTest, FilesThatAreNoneAreToldSo) {
  const auto absent = read_trace("/nowhere/nodes.csv", "/nowhere/pods.csv");
  ASSERT_FALSE(absent.has_value());
  EXPECT_NE(absent.error().message.find("/nowhere/nodes.csv: cannot be read"), std::string::npos);
  const TraceFiles files;
  const auto no_xz =
      read_trace(files.write("/nodes.csv", kNodes), files.write("/pods.csv.xz", kPods));
  ASSERT_FALSE(no_xz.has_value());
  EXPECT_NE(no_xz.error().message.find("is no whole xz file"), std::string::npos);
}

// VmHWM, the most memory that this process has held.
std::int64_t peak_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib;
  }
  return 0;
}

// Ten million lines through a pipe: refused at the row that is one too many, with bounded memory, and
// the writer is not waited for.
TEST(TraceInputTest, AStreamOfTenMillionLinesIsRefused) {
  const TraceFiles files;
  const std::string pipe = files.path("/pods.csv");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::signal(SIGPIPE, SIG_IGN);
  std::size_t written = 0;
  std::thread writer([&] {
    const int out = open(pipe.c_str(), O_WRONLY);
    std::string block = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
    for (std::size_t line = 0; line < 10'000'000;) {
      for (int i = 0; i < 1000; ++i) block += fmt::format("p{},100,100,1,500\n", line++);
      std::string_view left = block;
      while (!left.empty()) {
        const ssize_t bytes = write(out, left.data(), left.size());
        if (bytes <= 0) {
          close(out);
          return;
        }
        left.remove_prefix(static_cast<std::size_t>(bytes));
      }
      written = line;
      block.clear();
    }
    close(out);
  });
  const std::int64_t before_kib = peak_kib();
  const auto trace = read_trace(files.write("/nodes.csv", kNodes), pipe);
  writer.join();
  ASSERT_FALSE(trace.has_value());
  EXPECT_NE(trace.error().message.find("line 2000002: there are more than 2000000 rows"),
            std::string::npos)
      << trace.error().message;
  EXPECT_LT(written, 3'000'000U) << "the rest is not read";
  EXPECT_LT(peak_kib() - before_kib, 400 * 1024);
}

TEST(TraceInputTest, SizesMustBeKnownAndInRange) {
  const TraceFiles files;
  const auto trace = read_trace(
      files.write("/nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1000,2,X1\n"),
      files.write("/pods.csv", kPods));
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_FALSE(Replay::make(*trace, {{}, 20000}).has_value()) << "X1 has no known size";
  EXPECT_FALSE(Replay::make(*trace, {-5, {}}).has_value());
  EXPECT_FALSE(Replay::make(*trace, {std::int64_t{1} << 40, {}}).has_value());
  EXPECT_TRUE(Replay::make(*trace, {80000, {}}).has_value());
}

// A million GPUs, and pods of a thousandth of one.
TEST(TraceInputTest, MoreArrivalsThanMemoryHoldsAreRefused) {
  const TraceFiles files;
  std::string nodes = "sn,cpu_milli,memory_mib,gpu,model\n";
  for (int i = 0; i < 16000; ++i) nodes += fmt::format("n{},1000,1000,64,T4\n", i);
  const auto trace = read_trace(
      files.write("/nodes.csv", nodes),
      files.write("/pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1,1,1,1\n"));
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  const auto replay = Replay::make(*trace, {});
  ASSERT_TRUE(replay.has_value());
  EXPECT_TRUE(replay->check_ratio(0.009).has_value());
  const auto refused = replay->check_ratio(1.3);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            "ratio: 1.3 are about 1331200000 arrivals of these pods on these nodes; at most "
            "10000000 are replayed");
}

TEST(PictureTest, HasALineForEachPolicy) {
  const std::string svg = draw_picture(
      {{"Balanced", {{20, 10, 5, 4, 4, 4, 4, 4}}}, {"FGD", {{20, 10, 6, 5, 5, 5, 5, 5}}}});
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find(">Balanced 4.00<"), std::string::npos);
  EXPECT_NE(svg.find(">FGD 5.00<"), std::string::npos);
}

}  // namespace
}  // namespace cotenant::replay
