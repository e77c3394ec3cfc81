#include "adapters/cdi_spec.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <functional>
#include <initializer_list>
#include <set>
#include <utility>

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

constexpr int kNewestMajor = 1;
constexpr int kNewestMinor = 1;

// Thrown and caught within this file only, like yaml-cpp's own exceptions.
struct Invalid {
  std::string text;
};

[[noreturn]] void invalid(const std::string& member, std::string_view problem) {
  throw Invalid{member.empty() ? std::string(problem) : fmt::format("{}: {}", member, problem)};
}

std::string join(const std::string& member, std::string_view name) {
  return member.empty() ? std::string(name) : fmt::format("{}.{}", member, name);
}

using Reader = std::function<void(const YAML::Node&, const std::string& member)>;

// Hands each member to its reader; refuses unknown and repeated ones, and reports those required.
void read_map(const YAML::Node& node, const std::string& member,
              std::initializer_list<std::pair<std::string_view, Reader>> readers,
              std::initializer_list<std::string_view> required = {}) {
  if (!node.IsMap()) invalid(member, "must be a map");
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) invalid(member, "has a member whose name is not text");
    const std::string name = entry.first.Scalar().substr(0, CdiSpec::kTextBytesMax);
    const auto reader = std::find_if(readers.begin(), readers.end(),
                                     [&](const auto& known) { return known.first == name; });
    if (reader == readers.end()) invalid(join(member, name), "is no member known here");
    if (!seen.insert(name).second) invalid(join(member, name), "is given twice");
    reader->second(entry.second, join(member, name));
  }
  for (const std::string_view name : required) {
    if (!seen.contains(std::string(name))) invalid(join(member, name), "is missing");
  }
}

void read_list(const YAML::Node& node, const std::string& member, std::size_t max,
               const Reader& reader) {
  if (node.IsNull()) return;
  if (!node.IsSequence()) invalid(member, "must be a list");
  if (node.size() > max) {
    invalid(member, fmt::format("has {} entries; at most {} are read", node.size(), max));
  }
  std::size_t index = 0;
  for (const auto& element : node) reader(element, fmt::format("{}[{}]", member, index++));
}

std::string text_of(const YAML::Node& node, const std::string& member) {
  if (!node.IsScalar()) invalid(member, "must be text");
  if (node.Scalar().size() > CdiSpec::kTextBytesMax) {
    invalid(member, fmt::format("is longer than {} bytes", CdiSpec::kTextBytesMax));
  }
  if (node.Scalar().find('\0') != std::string::npos) invalid(member, "has a zero byte");
  return node.Scalar();
}

std::string path_of(const YAML::Node& node, const std::string& member) {
  std::string path = text_of(node, member);
  if (!path.starts_with('/')) invalid(member, fmt::format("'{}' must be an absolute path", path));
  return path;
}

std::int64_t integer_of(const YAML::Node& node, const std::string& member, std::int64_t max) {
  const std::string text = text_of(node, member);
  std::int64_t value = -1;
  const bool octal = text.size() > 1 && text[0] == '0';  // fileMode: 0666
  const char* begin = text.data() + (text.starts_with("0o") ? 2 : 0);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value, octal ? 8 : 10);
  if (error != std::errc() || stop != end || value < 0 || value > max) {
    invalid(member, fmt::format("'{}' must be an integer in 0..{}", text, max));
  }
  return value;
}

Reader into(std::string& out) {
  return [&out](const YAML::Node& node, const std::string& member) { out = text_of(node, member); };
}

Reader path_into(std::string& out) {
  return [&out](const YAML::Node& node, const std::string& member) { out = path_of(node, member); };
}

// For members that are checked and that nothing here needs.
Reader checked_integer(std::int64_t max, bool* seen = nullptr) {
  return [max, seen](const YAML::Node& node, const std::string& member) {
    integer_of(node, member, max);
    if (seen != nullptr) *seen = true;
  };
}

void ignored(const YAML::Node&, const std::string&) {}

Reader texts_into(std::vector<std::string>& out) {
  return [&out](const YAML::Node& node, const std::string& member) {
    read_list(node, member, CdiSpec::kEntriesMax,
              [&](const YAML::Node& element, const std::string& where) {
                out.push_back(text_of(element, where));
              });
  };
}

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// SPEC.md: letters, digits and `others`, beginning and ending with a letter or digit.
bool is_cdi_name(std::string_view name, std::string_view others) {
  if (name.empty() || !is_alphanumeric(name.front()) || !is_alphanumeric(name.back())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return is_alphanumeric(c) || others.find(c) != std::string_view::npos;
  });
}

void read_version(const YAML::Node& node, const std::string& member) {
  const std::string text = text_of(node, member);
  int parts[3] = {-1, -1, -1};
  const char* at = text.data();
  const char* end = at + text.size();
  for (int i = 0; i < 3; ++i) {
    const auto [stop, error] = std::from_chars(at, end, parts[i]);
    const bool separator_follows = i == 2 ? stop == end : stop != end && *stop == '.';
    if (error != std::errc() || parts[i] < 0 || !separator_follows) {
      invalid(member, fmt::format("'{}' must be a version such as 0.5.0", text));
    }
    at = stop + 1;
  }
  if (std::pair(parts[0], parts[1]) > std::pair(kNewestMajor, kNewestMinor)) {
    invalid(member, fmt::format("{} is newer than {}.{}, the newest that is known here", text,
                                kNewestMajor, kNewestMinor));
  }
}

void read_kind(const YAML::Node& node, const std::string& member, std::string& out) {
  out = text_of(node, member);
  const std::size_t slash = out.find('/');
  if (slash == std::string::npos || !is_cdi_name(out.substr(0, slash), "-_.") ||
      !is_cdi_name(out.substr(slash + 1), "-_")) {
    invalid(member, fmt::format("'{}' must be of the form vendor/class, as nvidia.com/gpu", out));
  }
}

ports::EnvironmentVariable read_variable(const YAML::Node& node, const std::string& member) {
  const std::string text = text_of(node, member);
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    invalid(member, fmt::format("'{}' must be of the form NAME=value", text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

CdiDeviceNode read_device_node(const YAML::Node& node, const std::string& member) {
  constexpr std::int64_t kIdMax = UINT32_MAX;
  CdiDeviceNode result;
  const Reader permissions = [&](const YAML::Node& value, const std::string& where) {
    result.permissions = text_of(value, where);
    if (result.permissions.empty() ||
        result.permissions.find_first_not_of("rwm") != std::string::npos) {
      invalid(where, fmt::format("'{}' must be made of r, w and m", result.permissions));
    }
  };
  const Reader type = [&](const YAML::Node& value, const std::string& where) {
    const std::string text = text_of(value, where);
    if (text != "b" && text != "c" && text != "u" && text != "p" && !text.empty()) {
      invalid(where, fmt::format("'{}' must be b, c, u or p", text));
    }
  };
  read_map(node, member,
           {{"path", path_into(result.path)},
            {"hostPath", path_into(result.host_path)},
            {"type", type},
            {"major", checked_integer(kIdMax)},
            {"minor", checked_integer(kIdMax)},
            {"fileMode", checked_integer(kIdMax, &result.has_mode_or_owner)},
            {"permissions", permissions},
            {"uid", checked_integer(kIdMax, &result.has_mode_or_owner)},
            {"gid", checked_integer(kIdMax, &result.has_mode_or_owner)}},
           {"path"});
  if (result.host_path.empty()) result.host_path = result.path;
  return result;
}

CdiMount read_mount(const YAML::Node& node, const std::string& member) {
  CdiMount result;
  read_map(node, member,
           {{"hostPath", path_into(result.host_path)},
            {"containerPath", path_into(result.container_path)},
            {"options", texts_into(result.options)},
            {"type", into(result.type)}},
           {"hostPath", "containerPath"});
  return result;
}

CdiHook read_hook(const YAML::Node& node, const std::string& member) {
  CdiHook result;
  std::vector<std::string> unused;
  read_map(node, member,
           {{"hookName", into(result.hook_name)},
            {"path", path_into(result.path)},
            {"args", texts_into(unused)},
            {"env", texts_into(unused)},
            {"timeout", checked_integer(INT32_MAX)}},
           {"hookName", "path"});
  return result;
}

void read_edits(const YAML::Node& node, const std::string& member, CdiEdits& out) {
  if (node.IsNull()) return;
  const auto list_of = [](auto& list, auto read) -> Reader {
    return [&list, read](const YAML::Node& value, const std::string& where) {
      read_list(value, where, CdiSpec::kEntriesMax,
                [&](const YAML::Node& element, const std::string& element_where) {
                  list.push_back(read(element, element_where));
                });
    };
  };
  const auto read_gid = [](const YAML::Node& value, const std::string& where) {
    return static_cast<std::uint32_t>(integer_of(value, where, UINT32_MAX));
  };
  read_map(node, member,
           {{"env", list_of(out.environment, read_variable)},
            {"deviceNodes", list_of(out.device_nodes, read_device_node)},
            {"mounts", list_of(out.mounts, read_mount)},
            {"hooks", list_of(out.hooks, read_hook)},
            {"additionalGids", list_of(out.additional_gids, read_gid)}});
}

CdiDevice read_device(const YAML::Node& node, const std::string& member) {
  CdiDevice device;
  const Reader name = [&](const YAML::Node& value, const std::string& where) {
    device.name = text_of(value, where);
    if (!is_cdi_name(device.name, "-_.:")) {
      invalid(where,
              fmt::format("'{}' must be letters, digits and -_.: , beginning and ending with "
                          "a letter or digit",
                          device.name));
    }
  };
  const Reader edits = [&](const YAML::Node& value, const std::string& where) {
    read_edits(value, where, device.edits);
  };
  read_map(node, member, {{"name", name}, {"annotations", ignored}, {"containerEdits", edits}},
           {"name", "containerEdits"});
  return device;
}

CdiSpec read_spec(const YAML::Node& root) {
  CdiSpec spec;
  const Reader kind = [&](const YAML::Node& node, const std::string& member) {
    read_kind(node, member, spec.kind);
  };
  const Reader devices = [&](const YAML::Node& node, const std::string& member) {
    read_list(node, member, CdiSpec::kDevicesMax,
              [&](const YAML::Node& element, const std::string& where) {
                CdiDevice device = read_device(element, where);
                if (spec.find(device.name) != nullptr) {
                  invalid(where + ".name", fmt::format("'{}' is given twice", device.name));
                }
                spec.devices.push_back(std::move(device));
              });
  };
  const Reader edits = [&](const YAML::Node& node, const std::string& member) {
    read_edits(node, member, spec.edits);
  };
  read_map(root, "",
           {{"cdiVersion", read_version},
            {"kind", kind},
            {"annotations", ignored},
            {"devices", devices},
            {"containerEdits", edits}},
           {"cdiVersion", "kind", "devices"});
  return spec;
}

// Replaces the element whose key is the same, else appends.
template <class Element, class Key>
void put(std::vector<Element>& list, const Element& element, Key key) {
  const auto same = [&](const Element& other) {
    return std::invoke(key, other) == std::invoke(key, element);
  };
  std::erase_if(list, same);
  list.push_back(element);
}

}  // namespace

bool CdiMount::read_only() const {
  return std::find(options.begin(), options.end(), "ro") != options.end();
}

void CdiEdits::append(const CdiEdits& later) {
  for (const auto& variable : later.environment) {
    put(environment, variable, &ports::EnvironmentVariable::name);
  }
  for (const CdiDeviceNode& node : later.device_nodes) {
    put(device_nodes, node, &CdiDeviceNode::path);
  }
  for (const CdiMount& mount : later.mounts) put(mounts, mount, &CdiMount::container_path);
  hooks.insert(hooks.end(), later.hooks.begin(), later.hooks.end());
  for (const std::uint32_t gid : later.additional_gids) put(additional_gids, gid, std::identity{});
}

const CdiDevice* CdiSpec::find(std::string_view device_name) const {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const CdiDevice& device) {
    return device.name == device_name;
  });
  return found == devices.end() ? nullptr : &*found;
}

base::Result<CdiSpec> parse_cdi_spec(std::string_view file, const std::string& text) {
  const auto fail = [&](std::string_view problem) {
    return base::fail(ErrorCode::kInvalidParameter, fmt::format("CDI spec {}: {}", file, problem));
  };
  if (text.size() > CdiSpec::kFileBytesMax) {
    return fail(fmt::format("is larger than {} bytes", CdiSpec::kFileBytesMax));
  }
  try {
    return read_spec(YAML::Load(text));
  } catch (const Invalid& problem) {
    return fail(problem.text);
  } catch (const std::exception& problem) {  // yaml-cpp's own and the library's
    return fail(problem.what());
  }
}

}  // namespace cotenant::adapters
