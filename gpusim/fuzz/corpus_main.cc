// Runs a fuzz target over every file of the folders given, and over every beginning of each: what was
// cut short must be survived too.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      ++files;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      const size_t step = text.size() / 40 + 1;
      for (size_t size = text.size();; size -= std::min(size, step)) {
        LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), size);
        if (size == 0) break;
      }
    }
  }
  printf("%zu files\n", files);
  return files == 0 ? 1 : 0;
}
