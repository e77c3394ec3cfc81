// Explain: cotenant's own, a dry run of RunTask.
#include "codec/explain_request.h"
#include "codec/explanation_json.h"
#include "core/placement/explain.h"
#include "server/api_functions.h"

namespace cotenant::server::api {

Result<ApiReply> explain(const ApiContext& context, const Json& body) {
  auto decoded = codec::decode_explain(body);
  if (!decoded) return base::fail(decoded.error());
  auto explained = context.loop.what_if<Result<core::Explanation>>(
      [&](core::State& state, const core::Context& core_context) {
        return core::explain(state, decoded->value, core_context);
      });
  if (!explained) return base::fail(explained.error());
  if (!*explained) return base::fail(explained->error());
  return ApiReply{codec::encode_explanation(context.arns, **explained),
                  std::move(decoded->warnings)};
}

}  // namespace cotenant::server::api
