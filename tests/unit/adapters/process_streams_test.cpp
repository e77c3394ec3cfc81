// Real processes: their logs, and programs beside them.
#include "adapters/process_streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "adapters/process_log.h"
#include "adapters/process_record.h"
#include "adapters/process_runtime.h"
#include "base/process_identity.h"
#include "unit/adapters/temp_folder.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using ports::ExecRequest;
using ports::LogRequest;
using ports::OutputStream;

// What came, by stream, and marked in one text.
struct ProcessHeard {
  std::mutex mutex;
  std::string out;
  std::string err;
  ports::OnOutput sink() {
    return [this](OutputStream stream, std::string_view text) {
      const std::lock_guard lock(mutex);
      (stream == OutputStream::kStdout ? out : err).append(text);
    };
  }
  std::string out_now() {
    const std::lock_guard lock(mutex);
    return out;
  }
};

class ProcessStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = ProcessRuntime::open(folder_.path());
    ASSERT_TRUE(opened);
    runtime_ = std::move(*opened);
  }
  void TearDown() override {
    for (const std::string& id : ids_) EXPECT_TRUE(runtime_->stop(id, 0));
  }
  std::string run(const std::string& script, const std::string& max_size = "1m") {
    ports::ContainerSpec spec;
    spec.name = "c" + std::to_string(ids_.size());
    spec.entry_point = {"/bin/sh", "-c"};
    spec.command = {script};
    spec.environment = {{"OF_THE_CONTAINER", "yes"}};
    spec.working_directory = folder_.path();
    spec.host.log = core::LogSettings{"json-file", {{"max-size", max_size}, {"max-file", "3"}}};
    const auto id = runtime_->create(spec);
    EXPECT_TRUE(id);
    EXPECT_TRUE(runtime_->start(*id));
    ids_.push_back(*id);
    return *id;
  }
  void wait_for_end(const std::string& id) {
    LogRequest request;
    request.follow = true;
    EXPECT_TRUE(streams_.logs(id, request, [](OutputStream, std::string_view) {}, {}));
  }
  std::unique_ptr<ports::ExecSession> exec(const std::string& id, const ExecRequest& request) {
    auto session = streams_.exec(id, request);
    EXPECT_TRUE(session) << session.error().message;
    return session ? std::move(*session) : nullptr;
  }

  TempFolder folder_;
  std::unique_ptr<ProcessRuntime> runtime_;
  ProcessStreams streams_{folder_.path()};
  std::vector<std::string> ids_;
};

TEST(ProcessLogFeedTest, AnyPiecesGiveTheSameOutput) {
  const std::string log =
      "2026-12-01T10:00:00.000000000Z stdout F one\n"
      "2026-12-01T10:00:01.000000000Z stderr F bad\n"
      "torn by a full disk\n"
      "2026-12-01T10:00:02.000000000Z stdout P two-\n"
      "2026-12-01T10:00:02.100000000Z stdout F three\n"
      "2026-12-01T10:00:03.000000000Z stdout F \n"
      "2026-12-01T10:00:04.000000000Z stdout P end";
  struct Row {
    LogRequest request;
    std::int64_t skip;
    std::string out;
    std::string err;
  };
  LogRequest plain;
  LogRequest timed;
  timed.timestamps = true;
  LogRequest late;
  late.since_ms = 1'796'119'202'000;  // 10:00:02
  const Row rows[] = {
      {plain, 0, "one\ntwo-three\n\nend", "bad\n"},
      {plain, 2, "two-three\n\nend", ""},
      {late, 0, "two-three\n\nend", ""},
      {timed, 2,
       "2026-12-01T10:00:02.000000000Z two-three\n2026-12-01T10:00:03.000000000Z \n"
       "2026-12-01T10:00:04.000000000Z end",
       ""},
  };
  for (const Row& row : rows) {
    for (std::size_t piece = 1; piece <= log.size() + 1; piece += 7) {
      ProcessHeard heard;
      const ports::OnOutput sink = heard.sink();
      ProcessLogFeed feed(row.request, row.skip, sink);
      const std::string whole = log + "\n";
      for (std::size_t at = 0; at < whole.size(); at += piece) feed.feed(whole.substr(at, piece));
      EXPECT_EQ(heard.out, row.out) << piece;
      EXPECT_EQ(heard.err, row.err) << piece;
      EXPECT_EQ(feed.lines(), 4) << piece;
    }
  }
}

TEST_F(ProcessStreamsTest, LogsOfAProgramThatHasEnded) {
  const std::string id = run("echo one; echo two; echo bad >&2; printf end");
  wait_for_end(id);
  ProcessHeard all;
  ASSERT_TRUE(streams_.logs(id, {}, all.sink(), {}));
  EXPECT_EQ(all.out, "one\ntwo\nend");
  EXPECT_EQ(all.err, "bad\n");
  ProcessHeard none;
  LogRequest request;
  request.tail = 0;
  ASSERT_TRUE(streams_.logs(id, request, none.sink(), {}));
  EXPECT_EQ(none.out, "end") << "what stands without an end of line is no line yet";
  EXPECT_EQ(streams_.logs(std::string(64, 'a'), {}, none.sink(), {}).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(streams_.logs("../" + id, {}, none.sink(), {}).error().code, ErrorCode::kNotFound);
}

TEST_F(ProcessStreamsTest, FollowsThroughRotationsToTheEnd) {
  const std::string go = folder_.path() + "/go";
  const std::string id = run(
      "echo first; while ! test -e " + go +
          "; do sleep 0.02; done; i=0; while [ $i -lt 100 ]; do echo line-$i; i=$((i+1)); sleep 0.002; "
          "done; echo last",
      "2k");
  ProcessHeard heard;
  base::Status ended = base::fail(ErrorCode::kServer, "not yet");
  std::jthread follower([&] {
    LogRequest request;
    request.follow = true;
    ended = streams_.logs(id, request, heard.sink(), {});
  });
  while (heard.out_now().find("first") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ASSERT_EQ(::system(("touch " + go).c_str()), 0);
  follower.join();
  ASSERT_TRUE(ended);
  EXPECT_NE(heard.out.find("line-0\n"), std::string::npos);
  EXPECT_TRUE(heard.out.ends_with("last\n")) << heard.out;
}

TEST_F(ProcessStreamsTest, AFollowerMissesNothingOfSeveralRotations) {
  ports::ContainerSpec spec;
  spec.name = "never started";
  spec.entry_point = {"/bin/true"};
  const auto id = runtime_->create(spec);
  ASSERT_TRUE(id);
  const std::string folder = folder_.path() + "/" + *id;
  const std::string log = folder + "/log";
  const auto print = [&](const std::string& line) {
    std::ofstream(log, std::ios::app) << "2026-12-01T10:00:00.000000000Z stdout F " << line << "\n";
  };
  const auto rotate = [&] {
    if (std::filesystem::exists(log + ".1")) std::filesystem::rename(log + ".1", log + ".2");
    std::filesystem::rename(log, log + ".1");
  };
  print("first");
  std::string out;
  LogRequest request;
  request.follow = true;
  ASSERT_TRUE(streams_.logs(*id, request,
                            [&](OutputStream, std::string_view text) {
                              out += text;
                              if (out != "first\n") return;
                              // All this happens while the reader is busy with what it has.
                              print("second");
                              rotate();
                              print("third");
                              rotate();
                              print("fourth");
                              EXPECT_TRUE(write_process_exit(folder, {0, "", 1}));
                            },
                            {}));
  EXPECT_EQ(out, "first\nsecond\nthird\nfourth\n");
}

TEST_F(ProcessStreamsTest, AFollowerIsStopped) {
  const std::string id = run("exec sleep 1000");
  std::stop_source stop;
  base::Status ended = base::fail(ErrorCode::kServer, "not yet");
  std::jthread follower([&] {
    LogRequest request;
    request.follow = true;
    ended = streams_.logs(
        id, request, [](OutputStream, std::string_view) {}, stop.get_token());
  });
  stop.request_stop();
  follower.join();
  EXPECT_TRUE(ended);
}

TEST_F(ProcessStreamsTest, ExecRunsInTheContainersEnvironment) {
  const std::string id = run("exec sleep 1000");
  ExecRequest request;
  request.command = {"/bin/sh", "-c", "echo $OF_THE_CONTAINER $(pwd); echo bad >&2; cat; exit 6"};
  request.with_input = true;
  const auto session = exec(id, request);
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->write("typed\n"));
  ASSERT_TRUE(session->end_input());
  ProcessHeard heard;
  ASSERT_TRUE(session->read(heard.sink()));
  EXPECT_EQ(heard.out, "yes " + folder_.path() + "\ntyped\n");
  EXPECT_EQ(heard.err, "bad\n");
  EXPECT_EQ(session->exit_code().value_or(-1), 6);
}

TEST_F(ProcessStreamsTest, ExecHasATerminalWhereOneIsAskedFor) {
  const std::string id = run("exec sleep 1000");
  ExecRequest request;
  request.command = {"/bin/sh", "-c", "test -t 0 && test -t 1 && read line && stty size && exit 3"};
  request.with_input = true;
  request.tty = true;
  const auto session = exec(id, request);
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->resize(97, 31));
  ASSERT_TRUE(session->write("\n"));
  ProcessHeard heard;
  ASSERT_TRUE(session->read(heard.sink()));
  EXPECT_NE(heard.out.find("31 97"), std::string::npos) << heard.out;
  EXPECT_EQ(session->exit_code().value_or(-1), 3);
}

TEST_F(ProcessStreamsTest, ExecEndsWithItsContainer) {
  const std::string id = run("exec sleep 1000");
  ExecRequest request;
  request.command = {"/bin/sleep", "1000"};
  const auto session = exec(id, request);
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(runtime_->stop(id, 10));
  ASSERT_TRUE(session->read([](OutputStream, std::string_view) {}));
  EXPECT_EQ(session->exit_code().value_or(-1), 137);
  EXPECT_EQ(streams_.exec(id, request).error().code, ErrorCode::kConflict);
}

// As it does when the agent is killed.
TEST_F(ProcessStreamsTest, WhatExecLeavesBehindEndsWithItsContainer) {
  const std::string id = run("exec sleep 1000");
  ExecRequest request;
  request.command = {"/bin/sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"};
  const auto session = exec(id, request);
  ASSERT_NE(session, nullptr);
  ProcessHeard heard;
  ASSERT_TRUE(session->read(heard.sink()));
  const pid_t left = std::stoi(heard.out);
  const auto identity = base::identify_process(left);
  ASSERT_TRUE(identity);
  ASSERT_TRUE(runtime_->stop(id, 10));
  EXPECT_TRUE(base::wait_until_gone(*identity, std::chrono::seconds(30)));
}

TEST_F(ProcessStreamsTest, ExecEndsWithTheThreadThatBeganIt) {
  const std::string id = run("exec sleep 1000");
  ExecRequest request;
  request.command = {"/bin/sleep", "1000"};
  std::unique_ptr<ports::ExecSession> session;
  std::jthread([&] { session = exec(id, request); }).join();
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->read([](OutputStream, std::string_view) {}));
  EXPECT_EQ(session->exit_code().value_or(-1), 137);
}

TEST_F(ProcessStreamsTest, AProgramThatReadsNothingHoldsNobodyUpOnceItsSessionIsClosed) {
  const std::string id = run("exec sleep 1000");
  ExecRequest request;
  request.command = {"/bin/sleep", "1000"};
  request.with_input = true;
  const auto session = exec(id, request);
  ASSERT_NE(session, nullptr);
  base::Status written;
  std::jthread writer(
      [&] { written = session->write(std::string(std::size_t{4} * 1024 * 1024, 'x')); });
  session->close();
  writer.join();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kUnavailable);
}

TEST_F(ProcessStreamsTest, ExecSaysWhatIsWrong) {
  const std::string id = run("exec sleep 1000");
  ExecRequest request;
  request.command = {"/no/such/program"};
  const auto refused = streams_.exec(id, request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kClient);
  EXPECT_NE(refused.error().message.find("program '/no/such/program'"), std::string::npos);
  EXPECT_EQ(streams_.exec(std::string(64, 'b'), request).error().code, ErrorCode::kNotFound);

  request.command = {"/bin/sleep", "1000"};
  const auto session = exec(id, request);
  ASSERT_NE(session, nullptr);
  session->close();
  EXPECT_EQ(session->read([](OutputStream, std::string_view) {}).error().code,
            ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace cotenant::adapters
