// Calls into libcuda.so.1 and libnvidia-ml.so.1 by name, without NVIDIA's headers, so that the same
// program runs against the real libraries and gpusim's.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace gpu_facts {

class Library {
 public:
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_NOW)) {
    if (handle_ != nullptr) return;
    fprintf(stderr, "%s\n", dlerror());
    exit(3);
  }
  // -1: there is no such function, as in an older driver.
  template <typename... Parameters>
  int call(const char* name, std::type_identity_t<Parameters>... arguments) const {
    void* address = dlsym(handle_, name);
    if (address == nullptr) return -1;
    return reinterpret_cast<int (*)(Parameters...)>(address)(arguments...);
  }

 private:
  void* handle_;
};

// One row of the table. The values do not depend on the model: codes, and relations between amounts.
inline void row(const char* name, const std::string& value) {
  printf("%-52s %s\n", name, value.c_str());
}
inline void row(const char* name, int code) {
  row(name, std::to_string(code));
}
inline void row(const char* name, bool holds) {
  row(name, std::string(holds ? "yes" : "no"));
}

}  // namespace gpu_facts
