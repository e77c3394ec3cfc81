// The agent's options about images and about what is left of stopped tasks. Private to cli.
#pragma once

#include <string>

#include "cli/options.h"

namespace CLI {
class App;
}

namespace cotenant::cli {

void add_image_options(CLI::App* verb, NodeOptions& options);

// Where `docker login` of this user keeps credentials: $DOCKER_CONFIG, else ~/.docker, else
// /root/.docker.
std::string default_registry_config();

}  // namespace cotenant::cli
