// The shim's command line: NAME=VALUE words, then "--", then the program's own words. Written by
// adapters/process_shim.cpp, which is always of the same build, so nothing here is for people.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

namespace shim {

constexpr int kMaxLimits = 16;  // Linux knows 16
constexpr int kMaxGroups = 64;

struct Limit {
  int resource;
  rlimit value;
};

struct Options {
  const char* folder = nullptr;  // the container's, absolute
  const char* working_directory = "/";
  const char* boot_id = "";
  long log_bytes = 10L * 1024 * 1024;  // of one file
  int log_files = 3;
  bool keep_stdin = false;
  bool exec_only = false;     // become the program, with the streams that there are; no supervision
  bool has_terminal = false;  // with exec_only: the streams are a terminal
  pid_t parent = 0;           // with exec_only: whose end is to be the program's
  bool change_user = false;
  uid_t uid = 0;
  gid_t gid = 0;
  gid_t groups[kMaxGroups];
  int group_count = 0;
  Limit limits[kMaxLimits];
  int limit_count = 0;
  char** program = nullptr;  // its argv, ended by a null pointer
};

bool parse_options(int argc, char** argv, Options* options);

}  // namespace shim
