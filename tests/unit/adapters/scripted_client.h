// An HTTP client that answers what a test has written down.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ports/http.h"

namespace cotenant::adapters {

// Answers "METHOD target" from a queue, the last one again and again.
class ScriptedClient final : public ports::HttpClient {
 public:
  using Answer = base::Result<ports::HttpResponse>;

  ScriptedClient& on(const std::string& call, int status, std::string body) {
    answers_[call].push_back(ports::HttpResponse{status, {}, std::move(body)});
    return *this;
  }
  ScriptedClient& on(const std::string& call, base::ErrorCode code) {
    answers_[call].push_back(base::fail(code, "scripted"));
    return *this;
  }

  Answer send(const ports::HttpRequest& request, std::chrono::milliseconds timeout) const override {
    const std::string call = request.method + " " + request.target;
    calls.push_back(call);
    bodies.push_back(request.body);
    timeouts.push_back(timeout);
    auto& queue = answers_[call];
    if (queue.empty()) return base::fail(base::ErrorCode::kIo, "no answer scripted for " + call);
    Answer answer = queue.front();
    if (queue.size() > 1) queue.pop_front();
    return answer;
  }

  base::Status stream(const ports::HttpRequest& request,
                      const std::function<void(std::string_view)>& on_data,
                      std::stop_token) const override {
    calls.push_back(request.method + " " + request.target);
    for (const std::string& piece : pieces) on_data(piece);
    return stream_result;
  }

  base::Result<ports::HttpResponse> receive(const ports::HttpRequest& request,
                                            const std::function<void(std::string_view)>& on_data,
                                            std::stop_token stop) const override {
    requests.push_back(request);
    calls.push_back(request.method + " " + request.target);
    if (hang) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any().wait(lock, stop, [] { return false; });
      return base::fail(base::ErrorCode::kUnavailable, "stopped");
    }
    auto& queue = answers_[calls.back()];
    if (!queue.empty()) return queue.front();
    for (const std::string& piece : pieces) on_data(piece);
    if (!stream_result) return base::fail(stream_result.error());
    return ports::HttpResponse{};
  }

  base::Result<std::variant<std::unique_ptr<ports::ByteStream>, ports::HttpResponse>> upgrade(
      const ports::HttpRequest& request, std::chrono::milliseconds timeout) const override {
    requests.push_back(request);
    if (next_stream) {
      calls.push_back(request.method + " " + request.target);
      return std::move(next_stream);
    }
    const Answer answer = send(request, timeout);
    if (!answer) return base::fail(answer.error());
    return *answer;
  }

  std::size_t count(const std::string& call) const {
    return static_cast<std::size_t>(std::count(calls.begin(), calls.end(), call));
  }

  std::vector<std::string> pieces;
  base::Status stream_result;
  mutable std::unique_ptr<ports::ByteStream> next_stream;  // of upgrade()
  bool hang = false;                                       // receive() waits for its stop
  mutable std::vector<ports::HttpRequest> requests;        // of receive()
  mutable std::vector<std::string> calls;
  mutable std::vector<std::string> bodies;
  mutable std::vector<std::chrono::milliseconds> timeouts;

 private:
  mutable std::map<std::string, std::deque<Answer>> answers_;
};

}  // namespace cotenant::adapters
