#include "server_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/unique_fd.h"
#include "keep_alive_client.h"

namespace cotenant::tests {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

int free_port() {
  const base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), raw, size) != 0 || ::getsockname(socket.get(), raw, &size) != 0)
    return 0;
  return ntohs(address.sin_port);
}

ServerProcess::ServerProcess(const std::string& data_dir, int port)
    : error_file_(data_dir + ".stderr") {
  const char* binary = std::getenv("COTENANT_TEST_BINARY");
  if (binary == nullptr) return;
  const std::string listen = fmt::format("127.0.0.1:{}", port);
  pid_ = ::fork();
  if (pid_ == 0) {
    const int errors = ::open(error_file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(errors, STDERR_FILENO);
    ::dup2(errors, STDOUT_FILENO);
    const std::string run_dir = data_dir + ".run";
    ::execl(binary, binary, "server", "--data-dir", data_dir.c_str(), "--run-dir", run_dir.c_str(),
            "--listen", listen.c_str(), "--auth", "off", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  while (!answers_ && Clock::now() < deadline && ::waitpid(pid_, nullptr, WNOHANG) == 0) {
    answers_ = KeepAliveClient(port, "").post("ListClusters", "{}").has_value();
    if (!answers_) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

ServerProcess::~ServerProcess() {
  kill();
}

void ServerProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int ServerProcess::wait_for_exit(int seconds) {
  const auto deadline = Clock::now() + std::chrono::seconds(seconds);
  int status = 0;
  while (Clock::now() < deadline) {
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return -1;
}

std::string ServerProcess::errors() const {
  std::ifstream file(error_file_);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace cotenant::tests
