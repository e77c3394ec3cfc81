// Errors are values. A function that can fail returns Result<T> (or Status); no exception crosses a
// module. The message names the member or the thing concerned and says what would be right.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace cotenant::base {

// The first group are the exceptions of the ECS API (names: error_name()); the second group stays
// inside cotenant and is shown to a client as ServerException unless a caller translates it.
enum class ErrorCode {
  kInvalidParameter,
  kClient,
  kServer,
  kClusterNotFound,
  kClusterContainsTasks,
  kClusterContainsContainerInstances,
  kResourceNotFound,
  kTargetNotFound,
  kAttributeLimitExceeded,
  kUnsupportedFeature,
  kConflict,
  kAccessDenied,
  kMissingAuthenticationToken,
  kIncompleteSignature,
  kInvalidSignature,
  kUnrecognizedClient,
  kExpiredToken,
  kLimitExceeded,
  kThrottling,
  kSerialization,
  kUnknownOperation,

  kNotFound,
  kUnavailable,
  kTimeout,
  kIo,
  kProtocol,
};

// The name that ECS puts into `__type`, e.g. "InvalidParameterException".
std::string_view error_name(ErrorCode code);

// True when the caller is at fault (HTTP 400), false for the server (HTTP 500).
bool is_client_fault(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kServer;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace cotenant::base
