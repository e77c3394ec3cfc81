#include "driver/fleet_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <set>

#include "common/text.h"

namespace gpusim {
namespace {

// Thrown within this file only; its text names the member.
struct BadMember {
  std::string text;
};

[[noreturn]] void refuse(const std::string& member, const std::string& why) {
  throw BadMember{fmt::format("{}: {}", member, why)};
}

void check_members(const YAML::Node& node, const std::string& where,
                   const std::set<std::string>& known) {
  if (!node.IsMap()) refuse(where, "is not an object");
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const auto name = entry.first.as<std::string>("");
    if (!known.contains(name)) {
      refuse(where + "." + name, fmt::format("is unknown; known: {}", fmt::join(known, ", ")));
    }
    if (!seen.insert(name).second) refuse(where + "." + name, "is there twice");
  }
}

std::optional<uint64_t> number(const YAML::Node& node, const std::string& where, const char* name,
                               uint64_t lowest, uint64_t highest) {
  const YAML::Node value = node[name];
  if (!value) return std::nullopt;
  uint64_t result = 0;
  if (!value.IsScalar() || !parse_number(value.Scalar(), &result) || result < lowest ||
      result > highest) {
    refuse(where + "." + name, fmt::format("is not a whole number from {} to {}", lowest, highest));
  }
  return result;
}

bool is_uuid(std::string_view text) {
  if (text.size() != 40 || !text.starts_with("GPU-")) return false;
  for (size_t i = 4; i < text.size(); ++i) {
    const bool dash = i == 12 || i == 17 || i == 22 || i == 27;
    const char c = text[i];
    if (dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

GpuSpec parse_gpu(const YAML::Node& node, const std::string& where) {
  check_members(node, where,
                {"model", "count", "mig", "memory_mib", "reserved_mib", "context_mib",
                 "mps_server_mib", "uuid"});
  if (!node["model"] || !node["model"].IsScalar()) {
    refuse(where + ".model", "is missing; known models: " + known_models());
  }
  std::string text = node["model"].Scalar();
  if (const YAML::Node mig = node["mig"]) {
    if (!mig.IsSequence() || mig.size() == 0) refuse(where + ".mig", "is not a list of profiles");
    for (size_t i = 0; i < mig.size(); ++i) {
      text += (i == 0 ? ":" : "+") + mig[i].as<std::string>("");
    }
  }
  auto parsed = parse_gpu_model(text);
  if (const auto* why = std::get_if<std::string>(&parsed)) {
    refuse(where + ".model", fmt::format("'{}' {}; known models: {}", text, *why, known_models()));
  }
  GpuSpec spec = std::get<GpuSpec>(std::move(parsed));
  constexpr uint64_t kMostMib = 16 * 1024 * 1024;
  if (const auto mib = number(node, where, "memory_mib", 1024, kMostMib)) {
    spec.total_mib = static_cast<uint32_t>(*mib);
  }
  const uint64_t total = spec.total_mib != 0 ? spec.total_mib : spec.model->total_mib;
  const struct {
    const char* name;
    uint32_t* to;
  } kParts[] = {{"reserved_mib", &spec.reserved_mib},
                {"context_mib", &spec.context_mib},
                {"mps_server_mib", &spec.mps_server_mib}};
  for (const auto& part : kParts) {
    if (const auto mib = number(node, where, part.name, 0, total / 2)) {
      *part.to = static_cast<uint32_t>(*mib);
    }
  }
  if (node["uuid"]) {
    spec.uuid = node["uuid"].as<std::string>("");
    if (!is_uuid(spec.uuid)) {
      refuse(where + ".uuid", "is not of the form GPU-8-4-4-4-12 in lower-case hexadecimal digits");
    }
  }
  return spec;
}

Fleet parse(const YAML::Node& root) {
  check_members(root, "fleet", {"driver", "seed", "gpus"});
  Fleet fleet;
  if (root["driver"]) fleet.driver = root["driver"].as<std::string>("?");
  fleet.seed = number(root, "fleet", "seed", 0, UINT64_MAX);
  const YAML::Node gpus = root["gpus"];
  if (!gpus || !gpus.IsSequence() || gpus.size() == 0) refuse("gpus", "is not a list of GPUs");
  std::set<std::string> uuids;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const std::string where = fmt::format("gpus[{}]", i);
    const GpuSpec spec = parse_gpu(gpus[i], where);
    const uint64_t count = number(gpus[i], where, "count", 1, kMaxDevices).value_or(1);
    if (!spec.uuid.empty() && (count != 1 || !uuids.insert(spec.uuid).second)) {
      refuse(where + ".uuid", "is for one GPU only");
    }
    fleet.gpus.insert(fleet.gpus.end(), count, spec);
    if (count_devices(fleet.gpus) > kMaxDevices) {
      refuse(where, fmt::format("exceeds the limit of {} GPUs", kMaxDevices));
    }
  }
  return fleet;
}

}  // namespace

std::variant<Fleet, std::string> read_fleet_file(const std::string& path) {
  try {
    return parse(YAML::LoadFile(path));
  } catch (const BadMember& bad) {
    return fmt::format("--file {}: {}", path, bad.text);
  } catch (const YAML::BadFile&) {
    return fmt::format("--file {}: cannot be read", path);
  } catch (const YAML::Exception& error) {
    return fmt::format("--file {}: line {}: {}", path, error.mark.line + 1, error.msg);
  }
}

}  // namespace gpusim
