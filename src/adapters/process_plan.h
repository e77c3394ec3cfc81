// Makes a process of a container: what a container would see at its own paths, the process sees where
// it lies on the host.
//
//  * A mount of the platform's (the MPS socket, the driver's files) whose two paths differ is followed
//    by the variable that names a folder above it: CUDA_MPS_PIPE_DIRECTORY becomes the daemon's own
//    folder. A mounted shared library is found by LD_LIBRARY_PATH. Others are files of a driver that
//    lies where it lies.
//  * A mount of the task's must have the same path on both sides.
//  * The environment is the definition's, and PATH, HOME and HOSTNAME as engines give them; nothing of
//    the agent's.
//
// Reads the user database; else pure. Errors: kClient, naming the member of the task definition.
#pragma once

#include "adapters/process_record.h"
#include "base/result.h"
#include "ports/container_runtime.h"

namespace cotenant::adapters {

base::Result<ProcessConfig> plan_process(const ports::ContainerSpec& spec);

}  // namespace cotenant::adapters
