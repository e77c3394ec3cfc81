#include "adapters/cdi_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

namespace cotenant::adapters {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

bool is_spec_name(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".json" || extension == ".yaml" || extension == ".yml";
}

Result<std::vector<fs::path>> spec_files(const std::string& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error) {
    const bool missing = error == std::errc::no_such_file_or_directory;
    return fail(missing ? ErrorCode::kNotFound : ErrorCode::kIo,
                fmt::format("CDI folder {}: {}", folder, error.message()));
  }
  std::vector<fs::path> files;
  while (entry != fs::directory_iterator()) {
    if (is_spec_name(entry->path())) files.push_back(entry->path());
    if (files.size() > CdiRegistry::kFilesMax) {
      return fail(ErrorCode::kLimitExceeded,
                  fmt::format("CDI folder {}: more than {} specs", folder, CdiRegistry::kFilesMax));
    }
    entry.increment(error);
    if (error) {
      return fail(ErrorCode::kIo, fmt::format("CDI folder {}: {}", folder, error.message()));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> read_file(const fs::path& path) {
  std::error_code error;
  // A FIFO would block the reader for ever.
  if (!fs::is_regular_file(path, error)) {
    return fail(ErrorCode::kIo, fmt::format("CDI spec {}: is not a regular file", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(CdiSpec::kFileBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof())) {
    return fail(ErrorCode::kIo, fmt::format("CDI spec {}: cannot be read", path.string()));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

Result<CdiRegistry> CdiRegistry::load(const std::string& folder) {
  const Result<std::vector<fs::path>> files = spec_files(folder);
  if (!files) return fail(files.error());
  CdiRegistry registry;
  for (const fs::path& path : *files) {
    const Result<std::string> text = read_file(path);
    if (!text) {
      registry.problems_.push_back(text.error().message);
      continue;
    }
    Result<CdiSpec> spec = parse_cdi_spec(path.string(), *text);
    if (spec) {
      registry.add(path.string(), std::move(*spec));
    } else {
      registry.problems_.push_back(spec.error().message);
    }
  }
  return registry;
}

void CdiRegistry::add(std::string file, CdiSpec spec) {
  specs_.emplace_back(std::move(file), std::move(spec));
}

Result<CdiEdits> CdiRegistry::resolve(std::string_view kind,
                                      const std::vector<std::string>& device_names) const {
  CdiEdits edits;
  std::set<const CdiSpec*> used;
  for (const std::string& name : device_names) {
    const CdiDevice* device = nullptr;
    const CdiSpec* owner = nullptr;
    std::string_view owner_file;
    for (const auto& [file, spec] : specs_) {
      const CdiDevice* found = spec.kind == kind ? spec.find(name) : nullptr;
      if (found == nullptr) continue;
      if (device != nullptr) {
        return fail(ErrorCode::kConflict,
                    fmt::format("CDI device {}={} is defined in both {} and {}", kind, name,
                                owner_file, file));
      }
      device = found;
      owner = &spec;
      owner_file = file;
    }
    if (device == nullptr) {
      std::vector<std::string_view> known;
      for (const auto& [file, spec] : specs_) {
        if (spec.kind != kind) continue;
        for (const CdiDevice& other : spec.devices) known.push_back(other.name);
      }
      std::string text = fmt::format(
          "no CDI device {}={}; there {}", kind, name,
          known.empty() ? "is none of that kind" : fmt::format("are: {}", fmt::join(known, ", ")));
      if (!problems_.empty()) text += fmt::format(" (left out: {})", fmt::join(problems_, "; "));
      return fail(ErrorCode::kNotFound, std::move(text));
    }
    if (used.insert(owner).second) edits.append(owner->edits);
    edits.append(device->edits);
  }
  return edits;
}

}  // namespace cotenant::adapters
