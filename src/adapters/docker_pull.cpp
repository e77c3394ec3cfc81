#include "adapters/docker_pull.h"

#include <algorithm>
#include <array>

#include "base/base64.h"
#include "codec/json.h"

namespace cotenant::adapters {
namespace {

using codec::Json;

bool mentions(std::string_view text, std::string_view lower_case_words) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::search(text.begin(), text.end(), lower_case_words.begin(), lower_case_words.end(),
                     same) != text.end();
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

}  // namespace

bool DockerPull::feed(std::string_view piece) {
  const ports::PullProgress before = progress_;
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    piece.remove_prefix(end == std::string_view::npos ? piece.size() : end + 1);
    skipping_ = skipping_ || line_.size() + part.size() > kLineBytesMax;
    if (!skipping_) line_ += part;
    if (end == std::string_view::npos) break;
    if (!skipping_) read_line(line_);
    line_.clear();
    skipping_ = false;
  }
  sum_up();
  return before.layers != progress_.layers || before.layers_done != progress_.layers_done ||
         before.bytes_done != progress_.bytes_done;
}

void DockerPull::read_line(std::string_view line) {
  const base::Result<Json> json = Json::parse(line);
  if (!json || !json->is_object()) return;
  std::string error = json->string_or("error", "");
  if (const Json* detail = json->find("errorDetail"); detail != nullptr && error.empty()) {
    error = detail->string_or("message", "");
  }
  if (!error.empty()) {
    error_ = error;
    return;
  }
  const std::string status = json->string_or("status", "");
  // Podman ends with the image's id instead of a status.
  if (starts_with_any(status, {"Status: ", "Digest: "}) ||
      (status.empty() && json->find("stream") == nullptr && json->find("id") != nullptr)) {
    complete_ = true;
    return;
  }
  const std::string id = json->string_or("id", "");
  // "Pulling from library/busybox" carries the tag as id.
  if (id.empty() || starts_with_any(status, {"Pulling from", "Already exists"})) return;
  if (!layers_.contains(id) && layers_.size() >= kLayersMax) return;
  Layer& layer = layers_[id];
  if (starts_with_any(status, {"Pull complete", "Download complete"})) {
    layer.bytes_done = layer.bytes_total;
    layer.done = layer.done || status.starts_with("Pull");
  }
  const Json* detail = json->find("progressDetail");
  if (detail == nullptr || status != "Downloading") return;
  layer.bytes_total = std::max<std::int64_t>(0, detail->integer_or("total", layer.bytes_total));
  layer.bytes_done =
      std::clamp<std::int64_t>(detail->integer_or("current", 0), 0, layer.bytes_total);
}

void DockerPull::sum_up() {
  progress_ = {};
  for (const auto& [id, layer] : layers_) {
    ++progress_.layers;
    progress_.layers_done += layer.done ? 1 : 0;
    progress_.bytes_done += layer.bytes_done;
    progress_.bytes_total += layer.bytes_total;
  }
}

base::ErrorCode classify_pull_error(std::string_view text) {
  constexpr std::array<std::string_view, 5> kAbsent = {
      "pull access denied", "repository does not exist", "manifest unknown", "no such image",
      "name unknown"};
  constexpr std::array<std::string_view, 8> kFinal = {
      "unauthorized",         "authentication required", "no basic auth credentials",
      "invalid reference",    "incorrect username",      "access forbidden",
      "no matching manifest", "unsupported media type"};
  const auto any = [&](const auto& words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view part) { return mentions(text, part); });
  };
  if (any(kAbsent)) return base::ErrorCode::kNotFound;
  if (any(kFinal)) return base::ErrorCode::kClient;
  return base::ErrorCode::kIo;
}

PullTarget pull_target(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return {std::string(image), ""};
  const std::size_t slash = image.rfind('/');
  const std::size_t colon = image.rfind(':');
  if (colon == std::string_view::npos || (slash != std::string_view::npos && colon < slash)) {
    return {std::string(image), "latest"};
  }
  return {std::string(image.substr(0, colon)), std::string(image.substr(colon + 1))};
}

std::string registry_auth_header(const ports::RegistryCredentials& credentials) {
  Json json = Json::object();
  if (!credentials.identity_token.empty()) {
    json.set("identitytoken", credentials.identity_token);
  } else {
    json.set("username", credentials.username);
    json.set("password", credentials.password);
  }
  json.set("serveraddress", credentials.server);
  return base::base64url_encode(json.dump());
}

}  // namespace cotenant::adapters
