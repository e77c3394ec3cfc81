#include "core/task_definition.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "builders.h"

namespace cotenant::core {
namespace {

using test::container;
using test::definition;

TEST(TaskNeedTest, SumsUpTheGpuRequests) {
  struct Row {
    std::string_view name;
    std::vector<GpuRequest> requests;
    TaskGpuNeed want;
  };
  const Row rows[] = {
      {"none", {NoGpu{}, NoGpu{}}, {}},
      {"one share", {SharedGpu{1000, {}}}, {1000, 1, 0, false}},
      {"shares add up, percent plays no part",
       {SharedGpu{1000, 80}, NoGpu{}, SharedGpu{500, 90}},
       {1500, 2, 0, false}},
      {"whole GPUs add up", {WholeGpus{2, false}, WholeGpus{1, false}}, {0, 0, 3, false}},
      {"ALL", {WholeGpus{0, true}, NoGpu{}}, {0, 0, 0, true}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    TaskDefinition task = definition("f", {});
    for (const GpuRequest& request : row.requests) {
      task.containers.push_back(container("c" + std::to_string(task.containers.size()), request));
    }
    const TaskGpuNeed got = task_need(task).gpu;
    EXPECT_EQ(got.shared_memory_mib, row.want.shared_memory_mib);
    EXPECT_EQ(got.shared_containers, row.want.shared_containers);
    EXPECT_EQ(got.whole_count, row.want.whole_count);
    EXPECT_EQ(got.whole_all, row.want.whole_all);
    EXPECT_EQ(got.is_shared(), row.want.shared_containers > 0);
    EXPECT_EQ(got.is_whole(), row.want.whole_count > 0 || row.want.whole_all);
    EXPECT_EQ(got.is_none(), !got.is_shared() && !got.is_whole());
  }
}

// ECS API reference, ContainerDefinition.memoryReservation: it is subtracted when it is given.
TEST(TaskNeedTest, ReservesMemoryReservationElseMemory) {
  TaskDefinition task = definition("f", {container("a"), container("b"), container("c")});
  task.containers[0].memory_mib = 1000;
  task.containers[0].memory_reservation_mib = 300;
  task.containers[1].memory_mib = 50;
  task.containers[2].memory_mib.reset();
  EXPECT_EQ(task_need(task).memory_mib, 350);
  EXPECT_EQ(task_need(task).cpu_units, 3 * 256);
}

TEST(FindContainerTest, FindsByName) {
  const TaskDefinition task = definition("f", {container("a"), container("b")});
  ASSERT_NE(find_container(task, "b"), nullptr);
  EXPECT_EQ(find_container(task, "b")->image, "example/b");
  EXPECT_EQ(find_container(task, "c"), nullptr);
}

}  // namespace
}  // namespace cotenant::core
