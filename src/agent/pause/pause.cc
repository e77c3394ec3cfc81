// The first process of a task that has a network of its own, or whose containers see each other's
// processes: it holds the namespaces, reaps orphans, and ends when it is told to. Built static and
// without any library, so that its image is this one file; agent/pause_image.h imports it.
//
// As process 1 of its container it would ignore SIGTERM by default: it takes signals by waiting for
// them instead of by handlers.
namespace {

using Word = long;

#if defined(__x86_64__)
constexpr Word kSigprocmask = 14, kSigtimedwait = 128, kWait4 = 61, kExit = 231;
Word call(Word number, Word a, Word b, Word c, Word d) {
  Word result;
  register Word r10 asm("r10") = d;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
constexpr Word kSigprocmask = 135, kSigtimedwait = 137, kWait4 = 260, kExit = 94;
Word call(Word number, Word a, Word b, Word c, Word d) {
  register Word x8 asm("x8") = number;
  register Word x0 asm("x0") = a;
  register Word x1 asm("x1") = b;
  register Word x2 asm("x2") = c;
  register Word x3 asm("x3") = d;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#else
#error "pause.cpp: the system calls of this processor are not known"
#endif

constexpr Word kBlock = 0;  // SIG_BLOCK
constexpr Word kInterrupt = 2, kTerminate = 15, kChild = 17;
constexpr Word kNoHang = 1;  // WNOHANG
constexpr Word kSetBytes = 8;

}  // namespace

extern "C" [[noreturn]] void _start() {
  const unsigned long signals =
      (1UL << (kInterrupt - 1)) | (1UL << (kTerminate - 1)) | (1UL << (kChild - 1));
  const Word set = reinterpret_cast<Word>(&signals);
  call(kSigprocmask, kBlock, set, 0, kSetBytes);
  for (;;) {
    const Word signal = call(kSigtimedwait, set, 0, 0, kSetBytes);
    if (signal == kInterrupt || signal == kTerminate) call(kExit, 0, 0, 0, 0);
    while (call(kWait4, -1, 0, kNoHang, 0) > 0) {
    }
  }
}
