// Input: an operation's name, a line feed, a body.
#include <string>
#include <variant>

#include "codec/api_schema.h"
#include "codec/ecs_request.h"
#include "codec/json.h"
#include "codec/record.h"
#include "core/reducer.h"
#include "fuzz_target.h"

namespace {

using namespace cotenant;

// A definition that was accepted is stored, read back and means the same.
void check_definition(const core::RegisterTaskDefinition& command) {
  core::State state = core::initial_state(1);
  base::Prng prng(1);
  const auto outcome = core::apply(state, command, core::Context{1, prng});
  FUZZ_CHECK(outcome.has_value());
  std::map<std::string, std::string> records;
  for (const core::RecordRef& ref : outcome->effects.changed_records) {
    const auto value = codec::encode_record(state, ref);
    FUZZ_CHECK(value.has_value());
    records[codec::record_key(ref)] = *value;
  }
  const auto restored = codec::decode_records(records);
  FUZZ_CHECK(restored.has_value());
  for (const core::RecordRef& ref : outcome->effects.changed_records) {
    FUZZ_CHECK(codec::encode_record(*restored, ref) == records[codec::record_key(ref)]);
  }
  const auto before = core::task_need(*core::latest_definition(state, command.definition.family));
  const auto after =
      core::task_need(*core::latest_definition(*restored, command.definition.family));
  FUZZ_CHECK(before.cpu_units == after.cpu_units && before.memory_mib == after.memory_mib);
  FUZZ_CHECK(before.gpu.shared_memory_mib == after.gpu.shared_memory_mib &&
             before.gpu.whole_count == after.gpu.whole_count &&
             before.gpu.whole_all == after.gpu.whole_all);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const std::size_t line = std::min(text.find('\n'), text.size());
  const codec::Operation* operation = codec::find_operation(text.substr(0, line));
  if (operation == nullptr) return 0;
  const auto body = codec::Json::parse(text.substr(std::min(line + 1, text.size())));
  if (!body || !body->is_object()) return 0;
  const auto warnings = codec::check_input(*operation, *body);
  if (!warnings) {
    FUZZ_CHECK(!warnings.error().message.empty());
    FUZZ_CHECK(base::is_client_fault(warnings.error().code));
    return 0;
  }
  const std::string_view name = text.substr(0, line);
  if (name == "RegisterTaskDefinition") {
    const auto decoded = codec::decode_register_task_definition(*body);
    if (decoded) check_definition(decoded->value);
    if (!decoded) FUZZ_CHECK(base::is_client_fault(decoded.error().code));
  } else if (name == "RunTask") {
    const auto decoded = codec::decode_run_task(*body);
    if (!decoded) FUZZ_CHECK(base::is_client_fault(decoded.error().code));
  } else if (name == "StopTask") {
    (void)codec::decode_stop_task(*body);
  } else if (name == "ListTasks") {
    (void)codec::decode_list_tasks(*body);
  } else if (name == "CreateCluster") {
    (void)codec::decode_create_cluster(*body);
  }
  return 0;
}
