// A folder for one test, removed with everything in it. Everybody may pass through it (mkdtemp
// makes it private), as MPS needs.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace cotenant::adapters {

class TempFolder {
 public:
  TempFolder() {
    std::string path = "/tmp/cotenant-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr || ::chmod(path.c_str(), 0755) != 0) {
      ADD_FAILURE() << "cannot make " << path;
    }
    path_ = path;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cotenant::adapters
