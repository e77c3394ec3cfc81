#include "net/http_body_queue.h"

#include <gtest/gtest.h>

#include <string>

#include "ports/http_body.h"

namespace cotenant::net {
namespace {

TEST(HttpBodyQueueTest, WakesItsConnectionOnceUntilItLooks) {
  HttpBodyQueue queue;
  EXPECT_TRUE(queue.write("a"));
  EXPECT_FALSE(queue.write("b"));
  EXPECT_EQ(queue.take().data, "ab");
  EXPECT_TRUE(queue.write("c"));
}

// The connection that was woken has a chunk on its way and so has not looked; with a peer that takes
// nothing it never would.
TEST(HttpBodyQueueTest, TellsOfAnOverflowThoughAWakeUpIsPending) {
  HttpBodyQueue queue;
  EXPECT_TRUE(queue.write(std::string(ports::kStreamQueueBytesMax, 'x')));
  EXPECT_FALSE(queue.overflow());
  EXPECT_TRUE(queue.write("y"));
  ASSERT_TRUE(queue.overflow());
  EXPECT_NE(queue.overflow()->find("reads too slowly"), std::string::npos);
  EXPECT_FALSE(queue.write("z"));
}

}  // namespace
}  // namespace cotenant::net
