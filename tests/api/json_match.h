// Does an answer hold what a case wants of it?
//
// Objects: every wanted member must match; others may be there. Arrays: the same length, element by
// element; an array whose first element is "~" wants each of its others matched by some element.
// null: no such member. Strings: "?" any value, "~text" a string that holds the text (several:
// "~a~~b"), "$name" the value of that variable, or takes it when the variable is new; else equal,
// after `$name` inside the string is replaced. Numbers, true, false: equal.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "codec/json.h"

namespace cotenant::test {

using Variables = std::map<std::string, std::string>;

// Errors name the path, what came and what was wanted. Variables are taken only on success.
base::Status match_json(const codec::Json& wanted, const codec::Json& came, Variables& variables);

// `$name` replaced by its value everywhere. Errors: a variable that is not known.
base::Result<std::string> substitute(const std::string& text, const Variables& variables);

}  // namespace cotenant::test
