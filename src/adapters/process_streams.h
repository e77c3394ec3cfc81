// Logs of, and programs beside, the containers of the `process` runtime. Any thread. Errors as the port
// says.
//
// A program of exec() gets the container's environment, folder and user. It is no part of the container:
// it ends when the container does, and with its session.
#pragma once

#include <memory>
#include <string>

#include "adapters/process_record.h"
#include "base/result.h"
#include "ports/container_streams.h"

namespace cotenant::adapters {

class ProcessStreams final : public ports::ContainerStreams {
 public:
  explicit ProcessStreams(std::string folder) : folder_(std::move(folder)) {}

  base::Status logs(const std::string& id, const ports::LogRequest& request,
                    const ports::OnOutput& on_output, std::stop_token stop) override;
  base::Result<std::unique_ptr<ports::ExecSession>> exec(
      const std::string& id, const ports::ExecRequest& request) override;

 private:
  base::Result<ProcessConfig> config(const std::string& id) const;

  const std::string folder_;
};

}  // namespace cotenant::adapters
