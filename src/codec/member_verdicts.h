// What becomes of each member that ECS knows: carried out, stored and shown with a warning, or
// refused by name. A member that would change what the program does if it were ignored is never
// ignored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"

namespace cotenant::codec {

enum class Verdict { kCarried, kWarned, kRefused };

struct MemberVerdict {
  std::string_view member;
  Verdict verdict = Verdict::kCarried;
  std::string_view text;  // what happens instead (kWarned), or the remedy (kRefused)
};

// The shapes that have a table. A member in none of a table's rows is unknown to ECS.
const std::vector<MemberVerdict>& task_definition_members();
const std::vector<MemberVerdict>& container_definition_members();
const std::vector<MemberVerdict>& volume_members();
const std::vector<MemberVerdict>& port_mapping_members();
const std::vector<MemberVerdict>& log_configuration_members();
const std::vector<MemberVerdict>& run_task_members();
const std::vector<MemberVerdict>& start_task_members();
const std::vector<MemberVerdict>& task_override_members();
const std::vector<MemberVerdict>& container_override_members();

// Applies a table to an object. Values without effect (null, false, empty list, object or string)
// count as absent. Appends warnings; the error is UnsupportedFeatureException naming prefix +
// member.
base::Status apply_verdicts(const std::vector<MemberVerdict>& table, const Json& object,
                            const std::string& prefix, std::vector<std::string>& warnings);

}  // namespace cotenant::codec
