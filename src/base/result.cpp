#include "base/result.h"

namespace cotenant::base {

std::string_view error_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidParameter:
      return "InvalidParameterException";
    case ErrorCode::kClient:
      return "ClientException";
    case ErrorCode::kClusterNotFound:
      return "ClusterNotFoundException";
    case ErrorCode::kClusterContainsTasks:
      return "ClusterContainsTasksException";
    case ErrorCode::kClusterContainsContainerInstances:
      return "ClusterContainsContainerInstancesException";
    case ErrorCode::kResourceNotFound:
      return "ResourceNotFoundException";
    case ErrorCode::kTargetNotFound:
      return "TargetNotFoundException";
    case ErrorCode::kAttributeLimitExceeded:
      return "AttributeLimitExceededException";
    case ErrorCode::kUnsupportedFeature:
      return "UnsupportedFeatureException";
    case ErrorCode::kConflict:
      return "ConflictException";
    case ErrorCode::kAccessDenied:
      return "AccessDeniedException";
    case ErrorCode::kMissingAuthenticationToken:
      return "MissingAuthenticationTokenException";
    case ErrorCode::kIncompleteSignature:
      return "IncompleteSignatureException";
    case ErrorCode::kInvalidSignature:
      return "InvalidSignatureException";
    case ErrorCode::kUnrecognizedClient:
      return "UnrecognizedClientException";
    case ErrorCode::kExpiredToken:
      return "ExpiredTokenException";
    case ErrorCode::kLimitExceeded:
      return "LimitExceededException";
    case ErrorCode::kThrottling:
      return "ThrottlingException";
    case ErrorCode::kSerialization:
      return "SerializationException";
    case ErrorCode::kUnknownOperation:
      return "UnknownOperationException";
    case ErrorCode::kServer:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
    case ErrorCode::kIo:
    case ErrorCode::kProtocol:
      return "ServerException";
  }
  return "ServerException";
}

bool is_client_fault(ErrorCode code) {
  return error_name(code) != "ServerException";
}

}  // namespace cotenant::base
