// JSON files that verbs take: a task definition, or an input of RunTask.
#pragma once

#include <string>

#include "base/result.h"
#include "codec/json.h"

namespace cotenant::cli {

// A path rather than the name of a definition: it has a slash, ends in .json, or there is such a file.
bool names_file(const std::string& what);

// The object in the file. Errors: kNotFound, kClient; they begin with the path.
base::Result<codec::Json> read_json_file(const std::string& path);

}  // namespace cotenant::cli
