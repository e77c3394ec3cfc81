// The Docker Engine API's transport: one engine behind an HTTP client, spoken to in the newest
// version that both sides know. Shared by the adapters of one engine.
//
// Any thread; calls do not wait for each other. Errors: kUnavailable (the engine does not answer),
// kTimeout, kProtocol.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "adapters/docker_json.h"
#include "codec/json.h"
#include "ports/http.h"

namespace cotenant::adapters {

// Limits of the ECS agent (dockerclient/timeout) for calls that only ask.
inline constexpr std::chrono::milliseconds kDockerQueryTimeout = std::chrono::seconds(30);

class DockerClient {
 public:
  struct Call {
    std::string doing;  // for messages: "start container abc"
    std::string method;
    std::string path;  // below the version's path
    std::chrono::milliseconds timeout{};
    std::string body = {};
    std::vector<ports::HttpHeader> headers = {};
    std::string prefix = {};  // of another API than the version's: "/v4.0.0/libpod"
  };
  using OnData = std::function<void(std::string_view)>;

  explicit DockerClient(std::shared_ptr<const ports::HttpClient> client);

  // The engine's version, asked for once and again after the engine went away (it may be upgraded).
  base::Result<DockerVersion> version();
  void forget_version();
  // Grows whenever the engine was found away: what was known of it before may be wrong.
  std::uint64_t absences() const;
  void note_gone();

  // One request; any status comes back as a response.
  base::Result<ports::HttpResponse> send(const Call& call);
  // The same, where 200 with JSON is the only success.
  base::Result<codec::Json> get_json(const Call& call);
  // As ports::HttpClient has them; a call's time limit does not apply.
  base::Result<ports::HttpResponse> receive(const Call& call, const OnData& on_data,
                                            std::stop_token stop);
  // Errors also: those of docker_error() for a refusal.
  base::Result<std::unique_ptr<ports::ByteStream>> upgrade(const Call& call);
  base::Status stream(const Call& call, const OnData& on_data, std::stop_token stop);

 private:
  base::Result<ports::HttpRequest> make_request(const Call& call);
  base::Error failed(const Call& call, const base::Error& error);

  const std::shared_ptr<const ports::HttpClient> client_;
  mutable std::mutex mutex_;  // guards what follows
  std::optional<DockerVersion> version_;
  std::uint64_t absences_ = 0;
};

}  // namespace cotenant::adapters
