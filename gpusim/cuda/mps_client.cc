#include "cuda/mps_client.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "common/unix_socket.h"

namespace gpusim::cuda {
namespace {

// Long: a client waits in the pending list until a server is ready.
constexpr int kAnswerTimeoutS = 60;

}  // namespace

CUresult connect_to_mps(const mps::ClientHello& hello, MpsConnection* connection) {
  const char* folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
  if (folder == nullptr || folder[0] == '\0') folder = mps::kDefaultPipeDirectory;
  const int fd = connect_seqpacket(folder, mps::kControlSocket, kAnswerTimeoutS);
  if (fd < 0) {
    const bool unreachable = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
    return unreachable ? CUDA_SUCCESS : CUDA_ERROR_MPS_CONNECTION_FAILED;
  }
  mps::ClientWelcome welcome;
  if (!send_message(fd, &hello, sizeof hello) || !receive_message(fd, &welcome, sizeof welcome) ||
      welcome.magic != mps::kMpsMagic) {
    close(fd);
    return CUDA_ERROR_MPS_CONNECTION_FAILED;
  }
  if (welcome.result != mps::kMpsOk) {
    close(fd);
    return static_cast<CUresult>(welcome.result);
  }
  connection->via_mps = true;
  connection->fd = fd;
  connection->welcome = welcome;
  return CUDA_SUCCESS;
}

}  // namespace gpusim::cuda
