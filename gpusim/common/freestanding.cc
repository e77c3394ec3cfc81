// What keeps libcuda.so.1 and libnvidia-ml.so.1 loadable in old glibc images.
//
// A throwing path would pull the C++ unwinder out of libgcc, and that of a current compiler needs
// _dl_find_object from glibc 2.35. The two libraries therefore never throw: they are compiled
// without exceptions, bring their own allocation functions, and turn the library's "throw" helpers
// into an abort. All of this is hidden, so nothing of it reaches the program that loads us.
#include <cstdlib>
#include <new>

void* operator new(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
void* operator new[](std::size_t size) {
  return operator new(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace std {
[[noreturn]] void __throw_length_error(const char*);
[[noreturn]] void __throw_out_of_range_fmt(const char*, ...);
[[noreturn]] void __throw_bad_alloc();
[[noreturn]] void __throw_bad_array_new_length();
[[noreturn]] void __throw_system_error(int);
void __throw_length_error(const char*) {
  abort();
}
void __throw_out_of_range_fmt(const char*, ...) {
  abort();
}
void __throw_bad_alloc() {
  abort();
}
void __throw_bad_array_new_length() {
  abort();
}
void __throw_system_error(int) {
  abort();
}
}  // namespace std
