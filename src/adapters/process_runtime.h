// Containers without a container engine: a task's containers are processes of this machine. They have
// the environment, the GPU and the MPS limit that a container would have, and no isolation at all: the
// host's files, network, users and processes are theirs too (docs/operations.md).
//
// One folder a container below `folder` (process_record.h) holds all that is known: a new object finds
// the same containers, also after this process was killed, because each process has a shim of its own
// (process_shim.h) that outlives us. Exit codes as Docker's: 128 + the signal; 137 also when the shim
// itself was killed, 255 when the machine went down under it.
//
// Any thread. Errors as the port says; kIo where the folder cannot be written.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "adapters/process_record.h"
#include "ports/container_runtime.h"

namespace cotenant::adapters {

class ProcessRuntime final : public ports::ContainerRuntime {
 public:
  // Makes the folder where it is not there. Errors: kIo.
  static base::Result<std::unique_ptr<ProcessRuntime>> open(const std::string& folder);

  base::Result<ports::EngineInfo> info() override;
  base::Result<std::vector<ports::ContainerState>> list(const std::string& label,
                                                        const std::string& value) override;
  base::Result<std::string> create(const ports::ContainerSpec& spec) override;
  base::Status start(const std::string& id) override;
  // SIGTERM goes to the process group; after the time-out, and when the program itself has ended
  // otherwise, SIGKILL to everything that it has left.
  base::Status stop(const std::string& id, std::int64_t timeout_s) override;
  base::Status remove(const std::string& id) override;
  base::Status import_image(const std::string& image, const std::string& tar,
                            const std::string& program) override;
  // There are no volumes.
  base::Status remove_unused_volumes(const std::string&, const std::string&) override { return {}; }
  base::Status watch(const std::string& label, const std::string& value,
                     const std::function<void()>& on_change, std::stop_token stop) override;

 private:
  using Config = std::shared_ptr<const ProcessConfig>;

  explicit ProcessRuntime(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_of(const std::string& id) const { return folder_ + "/" + id; }
  std::vector<std::string> ids() const;
  // kNotFound: no such container.
  base::Result<Config> config(const std::string& id);
  // Nothing when it was removed meanwhile.
  base::Result<std::optional<ports::ContainerState>> inspect(const std::string& id);
  // Its shim has ended without a word.
  void bury(const std::string& id, const ProcessStateRecord& state);

  const std::string folder_;
  std::mutex create_mutex_;  // names are unique
  std::mutex mutex_;         // guards what follows
  std::map<std::string, Config> configs_;
};

}  // namespace cotenant::adapters
