// The pause program's bytes (src/agent/pause/pause.cc), made by cmake/PauseProgram.cmake.
#pragma once

#include <string_view>

namespace cotenant::agent {

std::string_view pause_program();

}  // namespace cotenant::agent
