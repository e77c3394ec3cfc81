#include "server/core_loop.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server_world.h"

namespace cotenant::server::test {
namespace {

using Fault = fakes::MemoryStore::Fault;

class CoreLoopTest : public testing::Test {
 protected:
  std::unique_ptr<CoreLoop> make_loop(std::function<void(const base::Error&)> on_failed = nullptr) {
    auto engine = CoreEngine::load(store_, clock_, 1);
    EXPECT_TRUE(engine);
    return std::make_unique<CoreLoop>(std::move(*engine), std::move(on_failed));
  }

  // The loop's thread waits inside a reply until release_ is set. Returns when it does.
  void block(CoreLoop& loop) {
    std::promise<void> inside;
    ASSERT_TRUE(
        loop.post(core::Expire{}, [&, opened = release_.get_future().share()](
                                      const base::Result<core::Reply>&, const core::State&) {
          inside.set_value();
          opened.wait();
        }));
    inside.get_future().wait();
  }

  static CommandDone count(std::atomic<int>& counter) {
    return [&](const base::Result<core::Reply>&, const core::State&) { ++counter; };
  }

  fakes::MemoryStore store_;
  fakes::SettableClock clock_{kStart};
  std::promise<void> release_;
};

TEST_F(CoreLoopTest, ApplyAndReadAnswer) {
  auto loop = make_loop();
  auto name = loop->apply<std::string>(core::CreateCluster{"a"},
                                       [](const core::Reply& reply, const core::State& state) {
                                         const auto& made = std::get<core::ClusterReply>(reply);
                                         return state.clusters.at(made.name).name;
                                       });
  ASSERT_TRUE(name);
  EXPECT_EQ(*name, "a");
  auto clusters =
      loop->read<std::size_t>([](const core::State& state) { return state.clusters.size(); });
  ASSERT_TRUE(clusters);
  EXPECT_EQ(*clusters, 2U);

  auto refused = loop->apply<int>(run_command("nobody"),
                                  [](const core::Reply&, const core::State&) { return 1; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kClient);
}

TEST_F(CoreLoopTest, AFullQueueThrottlesAllButDisconnections) {
  auto loop = make_loop();
  block(*loop);
  std::atomic<int> answered{0};
  for (std::size_t i = 0; i < base::limits::kQueuedRequests; ++i) {
    ASSERT_TRUE(loop->post(core::Expire{}, count(answered))) << i;
  }
  const auto full = loop->post(core::CreateCluster{"a"}, count(answered));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, base::ErrorCode::kThrottling);
  const auto read = loop->read<int>([](const core::State&) { return 1; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, base::ErrorCode::kThrottling);
  EXPECT_TRUE(loop->post_always(core::DisconnectInstance{"i1", 1}, count(answered)));

  release_.set_value();
  loop.reset();
  EXPECT_EQ(answered, static_cast<int>(base::limits::kQueuedRequests) + 1)
      << "each once, and the refused one never";
  EXPECT_EQ(store_.records().count("cluster/a"), 0U);
}

TEST_F(CoreLoopTest, StopAnswersWhatWaitsAndTakesNoMore) {
  auto loop = make_loop();
  CoreLoop* const raw = loop.get();
  block(*loop);
  std::atomic<int> answered{0};
  constexpr int kWaiting = 600;  // more than one batch
  for (int i = 0; i < kWaiting; ++i) {
    ASSERT_TRUE(loop->post(core::CreateCluster{"c" + std::to_string(i)}, count(answered)));
  }
  std::promise<base::Status> late;
  ASSERT_TRUE(loop->post(core::Expire{}, [&](const base::Result<core::Reply>&, const core::State&) {
    late.set_value(raw->post(core::Expire{}, nullptr));
  }));
  std::thread stopper([&] { loop.reset(); });
  // Until the destructor has said so, new work is taken; it waits behind the one that blocks.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (raw->post_always(core::DisconnectInstance{"nobody", 0}, nullptr) &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  release_.set_value();
  stopper.join();
  EXPECT_EQ(answered, kWaiting);
  EXPECT_EQ(store_.records().count("cluster/c599"), 1U);
  const base::Status status = late.get_future().get();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, base::ErrorCode::kServer);
}

TEST_F(CoreLoopTest, FailureIsReportedOnce) {
  std::atomic<int> reports{0};
  std::promise<std::string> message;
  auto loop = make_loop([&](const base::Error& error) {
    if (++reports == 1) message.set_value(error.message);
  });
  store_.set_fault(Fault::kUnknownStored);
  for (int i = 0; i < 3; ++i) {
    auto reply = loop->apply<int>(core::CreateCluster{"c" + std::to_string(i)},
                                  [](const core::Reply&, const core::State&) { return 1; });
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, base::ErrorCode::kServer);
  }
  EXPECT_NE(message.get_future().get().find("fsync failed"), std::string::npos);
  auto read = loop->read<int>([](const core::State&) { return 1; });
  ASSERT_FALSE(read) << "the state may hold what was never stored";
  EXPECT_EQ(base::error_name(read.error().code), "ServerException");
  loop.reset();
  EXPECT_EQ(reports, 1);
}

TEST_F(CoreLoopTest, ARefusedStoreIsProbedWithoutBeingAsked) {
  auto loop = make_loop();
  const auto create = [&] {
    return loop->apply<int>(core::CreateCluster{"a"},
                            [](const core::Reply&, const core::State&) { return 1; });
  };
  store_.set_fault(Fault::kRefused);
  EXPECT_FALSE(create());
  store_.set_fault(Fault::kNone);
  EXPECT_FALSE(create()) << "the probe is due in a second";
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool works = false;
  while (!works && std::chrono::steady_clock::now() < deadline) works = create().has_value();
  EXPECT_TRUE(works);
}

TEST_F(CoreLoopTest, ManyThreadsAreAllAnswered) {
  auto loop = make_loop();
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        auto made = loop->apply<int>(core::CreateCluster{fmt::format("c{}-{}", thread, i)},
                                     [](const core::Reply&, const core::State&) { return 1; });
        auto read = loop->read<int>([](const core::State&) { return 1; });
        if (made && read) ++answered;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, 200);
  EXPECT_EQ(store_.records().size(), 201U);
}

}  // namespace
}  // namespace cotenant::server::test
