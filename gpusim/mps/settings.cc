#include "mps/settings.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "common/driver_client.h"
#include "common/text.h"

namespace gpusim::mps {
namespace {

constexpr uint32_t kMaxMs = 3600 * 1000;
constexpr size_t kMaxFileSize = 65536;

struct ChoiceKey {
  const char* name;
  Choice Settings::*member;
};
constexpr ChoiceKey kChoices[] = {
    {"collide", &Settings::collide},           {"old_wording", &Settings::old_wording},
    {"named_memory", &Settings::named_memory}, {"uuid_defaults", &Settings::uuid_defaults},
    {"terminate", &Settings::terminate},
};

struct NumberKey {
  const char* name;
  uint32_t Settings::*member;
  uint32_t max;
};
constexpr NumberKey kNumbers[] = {
    {"collide_ms", &Settings::collide_ms, kMaxMs},
    {"initializing_ms", &Settings::initializing_ms, kMaxMs},
    {"slow_ms", &Settings::slow_ms, kMaxMs},
    {"hello_timeout_ms", &Settings::hello_timeout_ms, kMaxMs},
    {"kill_wedges_percent", &Settings::kill_wedges_percent, 100},
};

constexpr std::array<const char*, 3> kChoiceNames = {"auto", "off", "on"};

}  // namespace

std::optional<std::string> Settings::set(std::string_view key, std::string_view value) {
  for (const ChoiceKey& choice : kChoices) {
    if (key != choice.name) continue;
    for (size_t i = 0; i < kChoiceNames.size(); ++i) {
      if (value != kChoiceNames[i]) continue;
      this->*choice.member = static_cast<Choice>(i);
      return std::nullopt;
    }
    return fmt::format("{} is on, off or auto, not '{}'", key, value);
  }
  for (const NumberKey& number : kNumbers) {
    if (key != number.name) continue;
    uint64_t parsed = 0;
    if (!parse_number(value, &parsed) || parsed > number.max) {
      return fmt::format("{} is a whole number up to {}, not '{}'", key, number.max, value);
    }
    this->*number.member = static_cast<uint32_t>(parsed);
    return std::nullopt;
  }
  return fmt::format("there is no key '{}'", key);
}

std::optional<std::string> Settings::set_all(std::string_view text) {
  std::optional<std::string> first;
  while (!text.empty()) {
    std::string_view line = take_field(&text, '\n');
    line = take_field(&line, '#');
    while (!line.empty()) {
      std::string_view value = take_field(&line, ',');
      if (trim(value).empty()) continue;
      const std::string_view key = trim(take_field(&value, '='));
      const auto error = set(key, trim(value));
      if (error && !first) first = error;
    }
  }
  return first;
}

std::string Settings::text() const {
  std::string out;
  for (const ChoiceKey& choice : kChoices) {
    out += fmt::format("{}={}\n", choice.name,
                       kChoiceNames[static_cast<size_t>(this->*choice.member)]);
  }
  for (const NumberKey& number : kNumbers) {
    out += fmt::format("{}={}\n", number.name, this->*number.member);
  }
  return out;
}

Settings load_settings(std::string* error) {
  Settings settings;
  error->clear();
  const std::string path = std::string(driver_folder()) + "/mps.conf";
  if (std::ifstream file(path); file) {
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (text.size() > kMaxFileSize) text.resize(kMaxFileSize);
    if (const auto complaint = settings.set_all(text)) *error = path + ": " + *complaint;
  }
  if (const char* text = getenv("GPUSIM_MPS")) {
    const auto complaint = settings.set_all(text);
    if (complaint && error->empty()) *error = "GPUSIM_MPS: " + *complaint;
  }
  return settings;
}

}  // namespace gpusim::mps
