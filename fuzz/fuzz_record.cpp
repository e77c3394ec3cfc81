// Input: records, each a line: the key, a tab, the value.
#include <map>
#include <string>

#include "codec/record.h"
#include "fuzz_target.h"

namespace {

using namespace cotenant;

std::map<std::string, std::string> records_of(std::string_view text) {
  std::map<std::string, std::string> records;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t tab = std::min(line.find('\t'), line.size());
    records[std::string(line.substr(0, tab))] = line.substr(std::min(tab + 1, line.size()));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return records;
}

std::map<std::string, std::string> encode(const core::State& state) {
  std::map<std::string, std::string> records;
  const auto add = [&](const core::RecordRef& ref) {
    const auto value = codec::encode_record(state, ref);
    FUZZ_CHECK(value.has_value());
    records[codec::record_key(ref)] = *value;
  };
  using Kind = core::RecordKind;
  for (const auto& [name, cluster] : state.clusters) add({Kind::kCluster, name});
  for (const auto& [family, entry] : state.families) {
    for (const auto& [revision, definition] : entry.revisions) {
      add({Kind::kTaskDefinition, family, revision});
    }
  }
  for (const auto& [id, instance] : state.instances) add({Kind::kInstance, id});
  for (const auto& [id, task] : state.tasks) add({Kind::kTask, id});
  for (const auto& [key, token] : state.client_tokens) add({Kind::kClientToken, key});
  return records;
}

}  // namespace

// A damaged database is refused or read, never worse; what is read is stored and read again the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto state = codec::decode_records(records_of(fuzz::as_text(data, size)));
  if (!state) {
    FUZZ_CHECK(!state.error().message.empty());
    return 0;
  }
  const auto records = encode(*state);
  const auto again = codec::decode_records(records);
  FUZZ_CHECK(again.has_value());
  FUZZ_CHECK(encode(*again) == records);
  return 0;
}
