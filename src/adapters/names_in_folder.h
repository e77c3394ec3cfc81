// The names of what lies in a folder, in no order; none where it cannot be read. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace cotenant::adapters {

inline std::vector<std::string> names_in_folder(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  return names;
}

}  // namespace cotenant::adapters
