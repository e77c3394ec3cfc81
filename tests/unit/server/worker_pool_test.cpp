#include "server/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>

namespace cotenant::server {
namespace {

TEST(WorkerPoolTest, JobsRunAtTheSameTime) {
  WorkerPool pool(3, 8);
  std::promise<void> all_there;
  auto opened = all_there.get_future().share();
  std::atomic<int> inside{0};
  std::promise<void> done;
  std::atomic<int> finished{0};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pool.post([&] {
      // The last to come opens the door: with fewer threads nobody would.
      if (++inside == 3) all_there.set_value();
      opened.wait();
      if (++finished == 3) done.set_value();
    }));
  }
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST(WorkerPoolTest, AFullQueueRefuses) {
  std::promise<void> release;
  auto opened = release.get_future().share();
  std::promise<void> started;
  std::atomic<int> ran{0};
  {
    WorkerPool pool(1, 2);
    ASSERT_TRUE(pool.post([&] {
      started.set_value();
      opened.wait();
    }));
    started.get_future().wait();
    EXPECT_TRUE(pool.post([&] { ++ran; }));
    EXPECT_TRUE(pool.post([&] { ++ran; }));
    EXPECT_FALSE(pool.post([&] { ran += 100; }));
    release.set_value();
  }
  EXPECT_EQ(ran, 2) << "what was queued ran before the pool went, what was refused never";
}

}  // namespace
}  // namespace cotenant::server
