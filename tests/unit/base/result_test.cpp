#include "base/result.h"

#include <gtest/gtest.h>

#include <string>

#include "base/assert.h"

namespace cotenant::base {
namespace {

TEST(ResultTest, ErrorNamesAreThoseOfTheEcsApi) {
  struct Row {
    ErrorCode code;
    std::string_view want;
    bool client_fault;
  };
  const Row rows[] = {
      {ErrorCode::kInvalidParameter, "InvalidParameterException", true},
      {ErrorCode::kClient, "ClientException", true},
      {ErrorCode::kServer, "ServerException", false},
      {ErrorCode::kClusterNotFound, "ClusterNotFoundException", true},
      {ErrorCode::kClusterContainsTasks, "ClusterContainsTasksException", true},
      {ErrorCode::kClusterContainsContainerInstances, "ClusterContainsContainerInstancesException",
       true},
      {ErrorCode::kResourceNotFound, "ResourceNotFoundException", true},
      {ErrorCode::kUnsupportedFeature, "UnsupportedFeatureException", true},
      {ErrorCode::kConflict, "ConflictException", true},
      {ErrorCode::kAccessDenied, "AccessDeniedException", true},
      {ErrorCode::kLimitExceeded, "LimitExceededException", true},
      {ErrorCode::kThrottling, "ThrottlingException", true},
      {ErrorCode::kSerialization, "SerializationException", true},
      {ErrorCode::kUnknownOperation, "UnknownOperationException", true},
      {ErrorCode::kNotFound, "ServerException", false},
      {ErrorCode::kUnavailable, "ServerException", false},
      {ErrorCode::kTimeout, "ServerException", false},
      {ErrorCode::kIo, "ServerException", false},
      {ErrorCode::kProtocol, "ServerException", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(error_name(row.code), row.want);
    EXPECT_EQ(is_client_fault(row.code), row.client_fault) << row.want;
  }
}

TEST(ResultTest, FailCarriesCodeAndMessageIntoAnyResult) {
  const Result<int> from_parts = fail(ErrorCode::kConflict, "family: taken");
  ASSERT_FALSE(from_parts.has_value());
  EXPECT_EQ(from_parts.error().code, ErrorCode::kConflict);
  EXPECT_EQ(from_parts.error().message, "family: taken");

  const Status passed_on = fail(from_parts.error());
  ASSERT_FALSE(passed_on.has_value());
  EXPECT_EQ(passed_on.error().message, "family: taken");
}

TEST(AssertDeathTest, NamesTheBrokenExpressionAndItsPlace) {
  const int taken = 3;
  COTENANT_ASSERT(taken == 3);
  EXPECT_DEATH(COTENANT_ASSERT(taken == 4), "assertion failed: taken == 4 \\(.*result_test.cpp:");
}

}  // namespace
}  // namespace cotenant::base
