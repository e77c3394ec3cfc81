// Logs and programs in memory, for tests. Any thread. A log is a list of pieces; with `follow` it
// goes on until end_logs(). A program echoes its input to standard output and ends with it (or with
// close()); its exit code is that which a test sets.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ports/container_streams.h"

namespace cotenant::fakes {

class FakeContainerStreams final : public ports::ContainerStreams {
 public:
  base::Status logs(const std::string& id, const ports::LogRequest& request,
                    const ports::OnOutput& on_output, std::stop_token stop) override {
    std::unique_lock lock(mutex_);
    asked_.push_back({id, request});
    if (logs_error_) return base::fail(*logs_error_);
    std::size_t next = 0;
    while (true) {
      while (next < pieces_.size()) {
        const auto piece = pieces_[next++];
        lock.unlock();
        on_output(piece.first, piece.second);
        lock.lock();
        if (stop.stop_requested()) return {};
      }
      if (!request.follow || ended_) return {};
      wake_.wait(lock, stop, [&] { return next < pieces_.size() || ended_; });
      if (stop.stop_requested()) return {};
    }
  }

  base::Result<std::unique_ptr<ports::ExecSession>> exec(
      const std::string&, const ports::ExecRequest& request) override {
    const std::lock_guard lock(mutex_);
    if (exec_error_) return base::fail(*exec_error_);
    programs_.push_back(request);
    return std::make_unique<Echo>(exit_code_);
  }

  void add_log(ports::OutputStream stream, std::string text) {
    const std::lock_guard lock(mutex_);
    pieces_.emplace_back(stream, std::move(text));
    wake_.notify_all();
  }
  void end_logs() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    wake_.notify_all();
  }
  void fail_logs(base::Error error) {
    const std::lock_guard lock(mutex_);
    logs_error_ = std::move(error);
  }
  void fail_exec(base::Error error) {
    const std::lock_guard lock(mutex_);
    exec_error_ = std::move(error);
  }
  void set_exit_code(int code) {
    const std::lock_guard lock(mutex_);
    exit_code_ = code;
  }
  std::vector<std::pair<std::string, ports::LogRequest>> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::vector<ports::ExecRequest> programs() const {
    const std::lock_guard lock(mutex_);
    return programs_;
  }

 private:
  class Echo final : public ports::ExecSession {
   public:
    explicit Echo(int exit_code) : exit_code_(exit_code) {}
    base::Status read(const ports::OnOutput& on_output) override {
      std::unique_lock lock(mutex_);
      while (true) {
        wake_.wait(lock, [&] { return closed_ || ended_ || !input_.empty(); });
        if (closed_) return base::fail(base::ErrorCode::kUnavailable, "closed");
        if (input_.empty()) return {};
        const std::string piece = std::move(input_.front());
        input_.pop_front();
        lock.unlock();
        on_output(ports::OutputStream::kStdout, piece);
        lock.lock();
      }
    }
    base::Status write(std::string_view input) override {
      const std::lock_guard lock(mutex_);
      input_.emplace_back(input);
      wake_.notify_all();
      return {};
    }
    base::Status end_input() override {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      wake_.notify_all();
      return {};
    }
    base::Status resize(int columns, int rows) override {
      return write(std::to_string(columns) + " by " + std::to_string(rows));
    }
    base::Result<int> exit_code() override { return exit_code_; }
    void close() override {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      wake_.notify_all();
    }

   private:
    const int exit_code_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::string> input_;
    bool ended_ = false;
    bool closed_ = false;
  };

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<std::pair<ports::OutputStream, std::string>> pieces_;
  std::vector<std::pair<std::string, ports::LogRequest>> asked_;
  std::vector<ports::ExecRequest> programs_;
  std::optional<base::Error> logs_error_;
  std::optional<base::Error> exec_error_;
  int exit_code_ = 0;
  bool ended_ = false;
};

}  // namespace cotenant::fakes
