#include "adapters/process_shim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "adapters/process_lock.h"
#include "adapters/process_tag.h"
#include "base/process_identity.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using base::UniqueFd;
using SteadyClock = std::chrono::steady_clock;

// From a fork to an exec; more means that the machine does not run programs any more.
constexpr std::chrono::seconds kStartLimit{20};
// The descriptors that the shim expects, and from where on ours are out of their way.
constexpr int kShimStatus = 3;
constexpr int kShimLock = 4;
constexpr int kShimImage = 5;
constexpr int kAboveShims = 10;
constexpr unsigned kExecutable = 0x10;  // MFD_EXEC, Linux 6.3

base::Error shim_io_error(std::string_view doing, int error) {
  return {ErrorCode::kIo, fmt::format("process runtime: {}: {}", doing, std::strerror(error))};
}

Result<UniqueFd> load_shim() {
  const std::string_view image = process_shim_image();
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd file(::memfd_create("cotenant-shim", kFlags | kExecutable));
  if (!file && errno == EINVAL) file.reset(::memfd_create("cotenant-shim", kFlags));
  if (!file) return fail(shim_io_error("memfd_create", errno));
  for (std::size_t at = 0; at < image.size();) {
    const ssize_t count = ::write(file.get(), image.data() + at, image.size() - at);
    if (count < 0) return fail(shim_io_error("memfd", errno));
    at += static_cast<std::size_t>(count);
  }
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  return file;
}

// One for all shims: they share its pages.
const Result<UniqueFd>& shim_file() {
  static const Result<UniqueFd> file = load_shim();
  return file;
}

UniqueFd out_of_the_way(int fd) {
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, kAboveShims));
}

std::vector<std::string> shim_arguments(const ProcessConfig& config, const std::string& folder) {
  std::vector<std::string> words{"cotenant-shim",
                                 "folder=" + folder,
                                 "cwd=" + config.working_directory,
                                 "boot=" + base::current_boot_id(),
                                 fmt::format("log-bytes={}", config.log_bytes),
                                 fmt::format("log-files={}", config.log_files)};
  if (config.keep_stdin) words.push_back("stdin=keep");
  if (config.user) {
    words.push_back(fmt::format("uid={}", config.user->uid));
    words.push_back(fmt::format("gid={}", config.user->gid));
    words.push_back(fmt::format("groups={}", fmt::join(config.user->groups, ",")));
  }
  for (const ProcessLimit& limit : config.limits) {
    words.push_back(fmt::format("limit={}:{}:{}", limit.resource, limit.soft, limit.hard));
  }
  return words;
}

void add_program(std::vector<std::string>& words, const std::vector<std::string>& program) {
  words.emplace_back("--");
  words.insert(words.end(), program.begin(), program.end());
}

std::vector<char*> word_pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// What the shim gets: its descriptors by the numbers that it expects them under.
struct ShimDescriptors {
  std::array<int, 3> streams{-1, -1, -1};  // -1: /dev/null
  int status = -1;
  int lock = -1;  // -1: none
  int image = -1;
};

// errno's kind of number; 0: it runs.
int spawn_shim(std::vector<std::string> arguments, const ProcessConfig& config,
               const ShimDescriptors& descriptors, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int stream = 0; stream < 3; ++stream) {
    if (descriptors.streams[stream] < 0) {
      ::posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
    } else {
      ::posix_spawn_file_actions_adddup2(&actions, descriptors.streams[stream], stream);
    }
  }
  ::posix_spawn_file_actions_adddup2(&actions, descriptors.status, kShimStatus);
  if (descriptors.lock >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, descriptors.lock, kShimLock);
  }
  ::posix_spawn_file_actions_adddup2(&actions, descriptors.image, kShimImage);
  ::posix_spawn_file_actions_addchdir_np(&actions, "/");
  ::posix_spawn_file_actions_addclosefrom_np(&actions, kShimImage + 1);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));

  std::vector<std::string> environment;
  for (const ports::EnvironmentVariable& variable : config.environment) {
    environment.push_back(variable.name + "=" + variable.value);
  }
  const std::string path = fmt::format("/proc/self/fd/{}", kShimImage);
  const int error =
      ::posix_spawn(&pid, path.c_str(), &actions, &attributes, word_pointers(arguments).data(),
                    word_pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

base::Error spawn_error(int error) {
  // Too much for one exec is the definition's fault.
  if (error != E2BIG) return shim_io_error("the shim cannot be started", error);
  return {ErrorCode::kClient, "command and environment together are too long for this system"};
}

// What the shim says, to the end of the pipe; nothing when it says nothing in time.
std::string hear(int fd) {
  std::string words;
  std::array<char, 1024> piece;
  const auto deadline = SteadyClock::now() + kStartLimit;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    pollfd polled{fd, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&polled, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return "";
    const ssize_t count = ::read(fd, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return words;
    words.append(piece.data(), static_cast<std::size_t>(count));
  }
}

// Starts the shim; its end of the returned pipe is closed here.
Result<UniqueFd> launch_shim(std::vector<std::string> arguments, const ProcessConfig& config,
                             const std::array<int, 3>& streams, int lock, pid_t& pid) {
  const Result<UniqueFd>& image = shim_file();
  if (!image) return fail(image.error());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(shim_io_error("pipe", errno));
  UniqueFd words(ends[0]);
  const UniqueFd status(ends[1]);
  const UniqueFd status_copy = out_of_the_way(status.get());
  const UniqueFd image_copy = out_of_the_way(image->get());
  UniqueFd lock_copy;
  if (lock >= 0) lock_copy = out_of_the_way(lock);
  std::array<UniqueFd, 3> stream_copies;
  ShimDescriptors descriptors;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i] < 0) continue;
    stream_copies[i] = out_of_the_way(streams[i]);
    descriptors.streams[i] = stream_copies[i].get();
  }
  descriptors.status = status_copy.get();
  descriptors.lock = lock_copy.get();
  descriptors.image = image_copy.get();
  bool all_there = status_copy && image_copy && (lock < 0 || lock_copy);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    all_there = all_there && (streams[i] < 0 || stream_copies[i]);
  }
  if (!all_there) return fail(shim_io_error("descriptors", EMFILE));
  const int error = spawn_shim(std::move(arguments), config, descriptors, pid);
  if (error != 0) return fail(spawn_error(error));
  return words;
}

}  // namespace

Status start_process(const ProcessConfig& config, const std::string& folder, const UniqueFd& lock) {
  std::vector<std::string> arguments = shim_arguments(config, folder);
  add_program(arguments, config.program);
  pid_t pid = 0;
  const Result<UniqueFd> words =
      launch_shim(std::move(arguments), config, {-1, -1, -1}, lock.get(), pid);
  if (!words) return fail(words.error());
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  const std::string said = hear(words->get());
  if (said == "ok") return {};
  if (said.empty()) {
    return fail(ErrorCode::kIo, "process runtime: the shim ended, or hangs, without a word");
  }
  return fail(ErrorCode::kClient, said);
}

Result<UniqueFd> open_running_shim(const std::string& folder) {
  const Result<bool> locked = is_process_locked(folder);
  if (!locked) return fail(locked.error());
  const auto state = *locked ? read_process_state(folder) : std::nullopt;
  if (!state) return UniqueFd();
  UniqueFd shim(static_cast<int>(::syscall(SYS_pidfd_open, state->shim, 0)));
  // The record may be that of the run before, and its pid another process's by now.
  const std::string id = folder.substr(folder.rfind('/') + 1);
  if (!shim || base::start_environment(state->shim, kProcessTag) != id) return UniqueFd();
  return shim;
}

Result<pid_t> start_exec(const ProcessConfig& config, const std::string& folder,
                         const std::vector<std::string>& command, bool is_terminal,
                         const std::array<int, 3>& streams) {
  std::vector<std::string> arguments = shim_arguments(config, folder);
  arguments.emplace_back(is_terminal ? "exec=terminal" : "exec=pipes");
  arguments.push_back(fmt::format("parent={}", ::getpid()));
  add_program(arguments, command);
  pid_t pid = 0;
  const Result<UniqueFd> words = launch_shim(std::move(arguments), config, streams, -1, pid);
  if (!words) return fail(words.error());
  const std::string said = hear(words->get());
  if (said.empty()) return pid;  // its end was closed by exec
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return fail(ErrorCode::kClient, said);
}

}  // namespace cotenant::adapters
