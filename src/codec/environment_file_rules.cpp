#include "codec/environment_file_rules.h"

#include <fmt/format.h>

#include "codec/invalid.h"

namespace cotenant::codec {

base::Status check_environment_files(const std::vector<std::string>& files,
                                     const std::string& prefix) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string path = fmt::format("{}environmentFiles[{}].value", prefix, i);
    if (files[i].starts_with("arn:")) {
      return base::fail(
          base::ErrorCode::kUnsupportedFeature,
          path +
              ": cotenant fetches nothing from S3; give the absolute path of a file on the "
              "instance, with type s3, which is the only one that ECS has");
    }
    if (!files[i].starts_with('/') || !files[i].ends_with(".env")) {
      return invalid(path, "must be the absolute path of a file on the instance that ends in .env");
    }
  }
  return {};
}

}  // namespace cotenant::codec
