// gpusim: looks at a running gpusimd.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/driver_client.h"
#include "tool/smi.h"

namespace gpusim {
namespace {

constexpr char kUsage[] =
    "usage: gpusim [--dir DIR] COMMAND\n"
    "\n"
    "  smi   GPUs and the processes on them\n"
    "  cdi   the CDI spec of the simulated GPUs\n"
    "\n"
    "DIR is gpusimd's folder; default: GPUSIM_DIR, else /run/gpusim.\n";

int run_smi(const std::string& folder) {
  DriverClient client;
  std::string table;
  Status status = client.connect_to(folder.c_str(), Role::kObserver);
  if (status == Status::kOk) status = smi_table(&client, &table);
  if (status != Status::kOk) {
    fmt::print(stderr, "gpusim: no gpusimd serves {}\n", folder);
    return 1;
  }
  fmt::print("{}", table);
  return 0;
}

int run_cdi(const std::string& folder) {
  const std::string path = folder + "/cdi/nvidia.yaml";
  std::ifstream file(path);
  if (!file) {
    fmt::print(stderr, "gpusim: cannot read {}; is gpusimd running?\n", path);
    return 1;
  }
  const std::string spec{std::istreambuf_iterator<char>(file), {}};
  fmt::print("{}", spec);
  return 0;
}

struct Verb {
  const char* name;
  int (*run)(const std::string& folder);
};
constexpr Verb kVerbs[] = {{"smi", run_smi}, {"cdi", run_cdi}};

int run(int argc, char** argv) {
  std::string folder = driver_folder();
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--dir" && i + 1 < argc) {
      folder = argv[++i];
    } else if (word.starts_with("--dir=")) {
      folder = word.substr(strlen("--dir="));
    } else if (word == "--help" || word == "-h") {
      fmt::print("{}", kUsage);
      return 0;
    } else {
      words.push_back(word);
    }
  }
  if (words.size() == 1) {
    for (const Verb& verb : kVerbs) {
      if (words[0] == verb.name) return verb.run(folder);
    }
    fmt::print(stderr, "gpusim: unknown command '{}'\n", words[0]);
  }
  fmt::print(stderr, "{}", kUsage);
  return 2;
}

}  // namespace
}  // namespace gpusim

int main(int argc, char** argv) {
  try {
    return gpusim::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpusim: {}\n", error.what());
    return 1;
  }
}
