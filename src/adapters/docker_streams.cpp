#include "adapters/docker_streams.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "adapters/docker_errors.h"
#include "adapters/docker_frames.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using codec::Json;

Json text_array(const std::vector<std::string>& texts) {
  Json array = Json::array();
  for (const std::string& text : texts) array.push(text);
  return array;
}

// The engine starts a program, and notes its end, a moment after its connection says so.
constexpr std::chrono::milliseconds kSettleStep{20};
constexpr int kResizeTries = 25;
constexpr int kExitTries = 250;

class DockerExec final : public ports::ExecSession {
 public:
  DockerExec(std::shared_ptr<DockerClient> engine, std::string id, bool tty,
             std::unique_ptr<ports::ByteStream> stream)
      : engine_(std::move(engine)), id_(std::move(id)), tty_(tty), stream_(std::move(stream)) {}

  Status read(const ports::OnOutput& on_output) override {
    DockerFrames frames(tty_);
    std::string piece;
    while (true) {
      const Result<bool> more = stream_->read(piece);
      if (!more) return fail(more.error());
      if (!*more) return {};
      if (Status fed = frames.feed(piece, on_output); !fed) return fed;
    }
  }
  Status write(std::string_view input) override { return stream_->write(input); }
  Status end_input() override { return stream_->end_writing(); }
  Status resize(int columns, int rows) override {
    const std::string doing = "resize the terminal";
    const DockerClient::Call call{
        doing, "POST", fmt::format("/exec/{}/resize?h={}&w={}", percent_encode(id_), rows, columns),
        kDockerQueryTimeout};
    for (int tries = 1;; ++tries) {
      const Result<ports::HttpResponse> response = engine_->send(call);
      if (!response) return fail(response.error());
      if (response->status == 200 || response->status == 201) return {};
      if (tries == kResizeTries) return fail(docker_error(doing, *response));
      std::this_thread::sleep_for(kSettleStep);
    }
  }
  Result<int> exit_code() override {
    const std::string doing = "ask a program's exit code";
    const DockerClient::Call call{doing, "GET", fmt::format("/exec/{}/json", percent_encode(id_)),
                                  kDockerQueryTimeout};
    Result<Json> body = engine_->get_json(call);
    for (int tries = 1; body && body->bool_or("Running", false); ++tries) {
      if (tries == kExitTries) {
        return fail(ErrorCode::kClient, "the program has closed its output and goes on");
      }
      std::this_thread::sleep_for(kSettleStep);
      body = engine_->get_json(call);
    }
    if (!body) return fail(body.error());
    const Json* code = body->find("ExitCode");
    if (code == nullptr || !code->is_integer() || !std::in_range<int>(code->as_integer())) {
      return fail(ErrorCode::kProtocol, doing + ": the answer has no ExitCode");
    }
    return static_cast<int>(code->as_integer());
  }
  void close() override { stream_->close(); }

 private:
  const std::shared_ptr<DockerClient> engine_;
  const std::string id_;
  const bool tty_;
  const std::unique_ptr<ports::ByteStream> stream_;
};

}  // namespace

DockerStreams::DockerStreams(std::shared_ptr<DockerClient> engine) : engine_(std::move(engine)) {}

Result<bool> DockerStreams::has_terminal(const std::string& id) {
  const Result<Json> body = engine_->get_json(
      {fmt::format("inspect container {}", id), "GET",
       fmt::format("/containers/{}/json", percent_encode(id)), kDockerQueryTimeout});
  if (!body) return fail(body.error());
  const Json* config = body->find("Config");
  return config != nullptr && config->bool_or("Tty", false);
}

Status DockerStreams::logs(const std::string& id, const ports::LogRequest& request,
                           const ports::OnOutput& on_output, std::stop_token stop) {
  const std::string doing = fmt::format("read the logs of container {}", id);
  if (id.empty()) return fail(ErrorCode::kClient, doing + ": the id must not be empty");
  const Result<bool> is_raw = has_terminal(id);
  if (!is_raw) return fail(is_raw.error());
  std::string path =
      fmt::format("/containers/{}/logs?stdout=1&stderr=1&follow={:d}&timestamps={:d}",
                  percent_encode(id), request.follow, request.timestamps);
  if (request.tail) path += fmt::format("&tail={}", *request.tail);
  if (request.since_ms > 0) {
    path += fmt::format("&since={}.{:03}", request.since_ms / 1000, request.since_ms % 1000);
  }
  DockerFrames frames(*is_raw);
  Status fed;
  std::stop_source give_up;
  const std::stop_callback on_stop(stop, [&] { give_up.request_stop(); });
  const Result<ports::HttpResponse> response = engine_->receive(
      {doing, "GET", path},
      [&](std::string_view piece) {
        if (fed) fed = frames.feed(piece, on_output);
        if (!fed) give_up.request_stop();
      },
      give_up.get_token());
  if (!fed) return fail(fed.error().code, fmt::format("{}: {}", doing, fed.error().message));
  if (stop.stop_requested()) return {};
  if (!response) return fail(response.error());
  if (response->status == 200) return {};
  return fail(docker_error(doing, *response));
}

Result<std::unique_ptr<ports::ExecSession>> DockerStreams::exec(const std::string& id,
                                                                const ports::ExecRequest& request) {
  const std::string doing = fmt::format("run a program in container {}", id);
  if (id.empty()) return fail(ErrorCode::kClient, doing + ": the id must not be empty");
  const Json body = Json::object({{"AttachStdin", request.with_input},
                                  {"AttachStdout", true},
                                  {"AttachStderr", true},
                                  {"Tty", request.tty},
                                  {"Cmd", text_array(request.command)}});
  const Result<ports::HttpResponse> made =
      engine_->send({doing, "POST", fmt::format("/containers/{}/exec", percent_encode(id)),
                     kDockerQueryTimeout, body.dump()});
  if (!made) return fail(made.error());
  if (made->status != 201) {
    base::Error error = docker_error(doing, *made);
    if (made->status == 409) error.code = ErrorCode::kConflict;
    return fail(std::move(error));
  }
  const Result<Json> answer = Json::parse(made->body);
  const std::string exec_id = answer ? answer->string_or("Id", "") : "";
  if (exec_id.empty()) return fail(ErrorCode::kProtocol, doing + ": the answer has no Id");
  Result<std::unique_ptr<ports::ByteStream>> stream = engine_->upgrade(
      {doing, "POST", fmt::format("/exec/{}/start", percent_encode(exec_id)), kDockerQueryTimeout,
       Json::object({{"Detach", false}, {"Tty", request.tty}}).dump()});
  if (!stream) return fail(stream.error());
  return std::make_unique<DockerExec>(engine_, exec_id, request.tty, std::move(*stream));
}

}  // namespace cotenant::adapters
