// The form of a *.case file: a story of requests to one control plane, in the user's own language.
//
//   # a comment
//   instance: i1 {"gpus": [{"uuid": "GPU-a", "memoryMib": 24000}]}
//
//   name: a share is placed
//   target: RunTask
//   body: {"taskDefinition": "f"}
//   reply: {"tasks": [{"taskArn": "$t"}], "failures": []}
//
// A line is `key: value` from the first column; lines that begin with a blank, and the rest of an
// open bracket, continue it. `name:` begins a request, which has
//   target:   an operation of ECS (`RunTask`), or any X-Amz-Target that holds a dot
//   header:   Name: value (any number; `Host` has a good value unless given)
//   method:, path:   instead of POST and /
//   body:     as it is sent, valid JSON or not; without it no body
//   status:   200 unless given
//   reply:    what the answer must hold (json_match.h)
//   warning:  a text that an X-Cotenant-Warning header must hold (any number), or `none`
//   each:     rows of `a | b | ...`: the request is made once for each, with %1, %2, ... replaced
// Between requests stand the things that are no HTTP requests:
//   instance: ID JSON          an agent joins (without JSON: as before); its id is ID
//   refused: ID JSON => text   an agent's hello must be refused, with that text in the reason
//   disconnect: ID
//   observe: TASK CONTAINER STATUS [exit=N] [health=H] [bound=PORT:HOSTPORT] [address=A]
//            [reason="..."], CONTAINER ...     the agent reports
//   desired: ID JSON           what the agent has been told to run, as json_match.h compares
//   time: +3700s               the clock goes on, and what is past its time is dropped
//   restart:                   the control plane is loaded again from its store; agents are gone
//   store: refuse | works      commits are refused, or work again
// In values `@repeat(N,text)` stands for N times that text, `@list(N,text)` for the same with
// commas between and % replaced by the number, from 1.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cotenant::test {

struct CaseLine {
  std::string key;
  std::string value;
  int line = 0;
};

// One request (all its lines) or one other step (a single line).
struct CaseStep {
  bool is_request = false;
  std::vector<CaseLine> lines;

  // The first line of that key; null where there is none.
  const CaseLine* find(const std::string& key) const;
};

// Errors name the line.
base::Result<std::vector<CaseStep>> parse_case_file(const std::string& text);

// `@repeat` and `@list`.
base::Result<std::string> expand_macros(const std::string& text);

// The columns of one row of `each:`.
std::vector<std::string> split_columns(const std::string& row);

}  // namespace cotenant::test
