#include "options.h"

#include <stdlib.h>
#include <string.h>

namespace shim {
namespace {

bool parse_groups(char* text, Options* options) {
  for (char* part = strtok(text, ","); part != nullptr; part = strtok(nullptr, ",")) {
    if (options->group_count == kMaxGroups) return false;
    options->groups[options->group_count++] = static_cast<gid_t>(strtoul(part, nullptr, 10));
  }
  return true;
}

// "RESOURCE:SOFT:HARD", numbers; -1 is unlimited.
bool parse_limit(const char* text, Options* options) {
  if (options->limit_count == kMaxLimits) return false;
  char* end = nullptr;
  Limit limit;
  limit.resource = static_cast<int>(strtol(text, &end, 10));
  if (*end != ':') return false;
  limit.value.rlim_cur = static_cast<rlim_t>(strtoll(end + 1, &end, 10));
  if (*end != ':') return false;
  limit.value.rlim_max = static_cast<rlim_t>(strtoll(end + 1, &end, 10));
  options->limits[options->limit_count++] = limit;
  return *end == '\0';
}

bool parse_word(const char* name, char* value, Options* options) {
  if (strcmp(name, "folder") == 0) {
    options->folder = value;
  } else if (strcmp(name, "cwd") == 0) {
    options->working_directory = value;
  } else if (strcmp(name, "boot") == 0) {
    options->boot_id = value;
  } else if (strcmp(name, "log-bytes") == 0) {
    options->log_bytes = strtol(value, nullptr, 10);
  } else if (strcmp(name, "log-files") == 0) {
    options->log_files = static_cast<int>(strtol(value, nullptr, 10));
  } else if (strcmp(name, "stdin") == 0) {
    options->keep_stdin = strcmp(value, "keep") == 0;
  } else if (strcmp(name, "exec") == 0) {
    options->exec_only = true;
    options->has_terminal = strcmp(value, "terminal") == 0;
  } else if (strcmp(name, "parent") == 0) {
    options->parent = static_cast<pid_t>(strtol(value, nullptr, 10));
  } else if (strcmp(name, "uid") == 0) {
    options->change_user = true;
    options->uid = static_cast<uid_t>(strtoul(value, nullptr, 10));
  } else if (strcmp(name, "gid") == 0) {
    options->gid = static_cast<gid_t>(strtoul(value, nullptr, 10));
  } else if (strcmp(name, "groups") == 0) {
    return parse_groups(value, options);
  } else if (strcmp(name, "limit") == 0) {
    return parse_limit(value, options);
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool parse_options(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--") == 0) {
      options->program = argv + i + 1;
      break;
    }
    char* equals = strchr(argv[i], '=');
    if (equals == nullptr) return false;
    *equals = '\0';
    if (!parse_word(argv[i], equals + 1, options)) return false;
  }
  return options->folder != nullptr && options->log_bytes > 0 && options->log_files > 0 &&
         options->program != nullptr && options->program[0] != nullptr;
}

}  // namespace shim
