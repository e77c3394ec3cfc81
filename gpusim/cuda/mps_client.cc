#include "cuda/mps_client.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/unix_socket.h"

namespace gpusim::cuda {
namespace {

// Long: a client waits in the pending list until a server is ready.
constexpr int kAnswerTimeoutS = 60;

int goodbye_fd = -1;
pid_t goodbye_owner = 0;

// Runs at exit(), not when the process is killed: the server can tell the two apart.
__attribute__((destructor)) void say_goodbye() {
  if (goodbye_fd < 0 || goodbye_owner != getpid()) return;
  send_message(goodbye_fd, &mps::kGoodbye, sizeof mps::kGoodbye, MSG_DONTWAIT);
}

}  // namespace

CUresult connect_to_mps(const mps::ClientHello& hello, MpsConnection* connection) {
  const char* folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
  const bool is_default = folder == nullptr || folder[0] == '\0';
  if (is_default) folder = mps::kDefaultPipeDirectory;
  int fd = connect_seqpacket(folder, mps::kControlSocket, kAnswerTimeoutS);
  if (fd < 0 && is_default && errno == ENOENT) {  // root's under MPS v3
    fd = connect_seqpacket(mps::kDefaultV3PipeDirectory, mps::kControlSocket, kAnswerTimeoutS);
  }
  if (fd < 0) {
    const bool unreachable = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
    return unreachable ? CUDA_SUCCESS : CUDA_ERROR_MPS_CONNECTION_FAILED;
  }
  mps::ClientWelcome welcome;
  // What comes along with a good answer is the connection to the server itself.
  int server_fd = -1;
  const bool answered = send_message(fd, &hello, sizeof hello) &&
                        receive_message_with_fd(fd, &welcome, sizeof welcome, &server_fd) &&
                        welcome.magic == mps::kMpsMagic;
  close(fd);
  if (answered && welcome.result != mps::kMpsOk) return static_cast<CUresult>(welcome.result);
  if (!answered || server_fd < 0) {
    if (server_fd >= 0) close(server_fd);
    return CUDA_ERROR_MPS_CONNECTION_FAILED;
  }
  fd = server_fd;
  // 470 and 535: the named region must be there, or client and server do not share their /dev/shm.
  welcome.shared_memory[sizeof welcome.shared_memory - 1] = '\0';
  char path[sizeof "/dev/shm" + sizeof welcome.shared_memory] = "/dev/shm";
  strcat(path, welcome.shared_memory);
  if (welcome.shared_memory[0] != '\0' && access(path, R_OK | W_OK) != 0) {
    close(fd);
    return CUDA_ERROR_MPS_CONNECTION_FAILED;
  }
  goodbye_fd = fd;
  goodbye_owner = getpid();
  connection->via_mps = true;
  connection->fd = fd;
  connection->welcome = welcome;
  return CUDA_SUCCESS;
}

}  // namespace gpusim::cuda
