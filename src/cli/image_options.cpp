#include "cli/image_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <map>

namespace cotenant::cli {
namespace {

constexpr std::int64_t kDurationMaxS = 365 * 24 * 3600;

// "90s", "30m", "3h"; a bare number is seconds.
void add_duration(CLI::App* verb, const char* name, std::int64_t& seconds, std::int64_t minimum_s,
                  const char* description) {
  const std::map<std::string, std::int64_t> units{{"s", 1}, {"m", 60}, {"h", 3600}};
  verb->add_option(name, seconds, description)
      ->transform(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::CASE_SENSITIVE, "DURATION"))
      ->check(CLI::Range(minimum_s, kDurationMaxS))
      ->default_str(std::to_string(seconds / 60) + "m");
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string default_registry_config() {
  const std::string folder = variable("DOCKER_CONFIG");
  if (!folder.empty()) return folder + "/config.json";
  const std::string home = variable("HOME");
  return (home.empty() ? "/root" : home) + "/.docker/config.json";
}

void add_image_options(CLI::App* verb, NodeOptions& options) {
  verb->add_option("--image-pull", options.image_pull,
                   "when a registry is asked for a task's image, as ECS_IMAGE_PULL_BEHAVIOR")
      ->check(CLI::IsMember({"default", "always", "once", "prefer-cached"}))
      ->capture_default_str();
  options.registry_config = default_registry_config();
  verb->add_option("--registry-config", options.registry_config,
                   "credentials for registries, as `docker login` writes them")
      ->capture_default_str();
  verb->add_flag("!--no-image-cleanup", options.image_cleanup,
                 "keep every image that cotenant pulled");
  add_duration(verb, "--image-cleanup-interval", options.image_cleanup_interval_s, 1,
               "how often unused images that cotenant pulled are looked for");
  add_duration(verb, "--image-cleanup-age", options.image_cleanup_age_s, 1,
               "how long an image must have been unused to be removed");
  verb->add_option("--image-cleanup-count", options.image_cleanup_count,
                   "how many images are removed at a time")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
  add_duration(verb, "--task-cleanup-wait", options.task_cleanup_wait_s, 1,
               "how long the containers and logs of a stopped task are kept");
}

}  // namespace cotenant::cli
