#include "composition.h"

#include <utility>

#include "adapters/docker_images.h"
#include "adapters/docker_runtime.h"
#include "adapters/docker_streams.h"
#include "adapters/gpu_wiring.h"
#include "adapters/mps_daemon.h"
#include "adapters/nvml_driver.h"
#include "adapters/process_gpu_wiring.h"
#include "adapters/process_images.h"
#include "adapters/process_runtime.h"
#include "adapters/process_streams.h"
#include "adapters/sqlite_store.h"
#include "net/http_client.h"

namespace cotenant {
namespace {

base::Result<std::unique_ptr<ports::Store>> open_store(const std::string& data_dir) {
  auto store = adapters::SqliteStore::open(data_dir + "/cotenant.db");
  if (!store) return base::fail(store.error());
  return std::unique_ptr<ports::Store>(std::move(*store));
}

base::Result<cli::EngineAdapters> make_engine(const std::string& docker_host) {
  auto client = net::make_http_client(docker_host);
  if (!client) {
    return base::fail(client.error().code, "--docker-host: " + client.error().message);
  }
  const auto engine = std::make_shared<adapters::DockerClient>(std::move(*client));
  return cli::EngineAdapters{std::make_unique<adapters::DockerRuntime>(engine),
                             std::make_unique<adapters::DockerImages>(engine),
                             std::make_unique<adapters::DockerStreams>(engine)};
}

base::Result<cli::EngineAdapters> make_process_engine(const std::string& folder) {
  auto runtime = adapters::ProcessRuntime::open(folder);
  if (!runtime) return base::fail(runtime.error());
  return cli::EngineAdapters{std::move(*runtime), std::make_unique<adapters::ProcessImages>(),
                             std::make_unique<adapters::ProcessStreams>(folder)};
}

}  // namespace

cli::Composition make_composition() {
  cli::Composition composition;
  composition.open_store = open_store;
  composition.make_engine = make_engine;
  composition.make_process_engine = make_process_engine;
  composition.make_process_gpu_wiring = [](const std::string& cdi_dir) {
    return std::make_unique<adapters::ProcessGpuWiring>(cdi_dir);
  };
  composition.make_gpu_driver = [](const std::string& nvml_library) {
    return std::make_unique<adapters::NvmlDriver>(nvml_library);
  };
  composition.make_gpu_wiring = [](const std::string& cdi_dir) {
    return std::make_unique<adapters::CdiGpuWiring>(cdi_dir);
  };
  composition.make_mps_control = [](const cli::MpsOptions& options) {
    adapters::MpsDaemonOptions daemon;
    daemon.run_dir = options.run_dir;
    daemon.control_binary = options.control_binary;
    daemon.environment = options.environment;
    return std::make_unique<adapters::MpsDaemon>(std::move(daemon));
  };
  return composition;
}

}  // namespace cotenant
