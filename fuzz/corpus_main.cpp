// Runs a fuzz target over every file of the folders given, and over every beginning of each: what was
// cut short must be survived too.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz_target.h"

int main(int argc, char** argv) {
  std::size_t files = 0;
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file),
                             std::istreambuf_iterator<char>()};
      ++files;
      const std::size_t step = text.size() / 200 + 1;
      for (std::size_t size = text.size();; size -= std::min(size, step)) {
        ++inputs;
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), size);
        if (size == 0) break;
      }
    }
  }
  std::printf("%zu inputs of %zu files\n", inputs, files);
  return files == 0 ? 1 : 0;
}
