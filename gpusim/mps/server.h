// nvidia-cuda-mps-server: the process through which clients reach the devices. Forked by the
// control daemon, it holds a context per visible device and admits clients to gpusimd with their
// limits.
#pragma once

namespace gpusim::mps {

// Runs on descriptor kChannelFd. 0 after an orderly shutdown, 1 when it cannot start or loses the
// driver.
int run_server();

}  // namespace gpusim::mps
