# The pause program (src/agent/pause/pause.cc): static, without any library, and its bytes compiled into
# cotenant_agent, which must exist already. Flags of the build (sanitizers, optimisation) do not
# concern it.
set(pause_source ${CMAKE_SOURCE_DIR}/src/agent/pause/pause.cc)
set(pause_program ${CMAKE_CURRENT_BINARY_DIR}/generated/pause)
set(pause_cpp ${CMAKE_CURRENT_BINARY_DIR}/generated/pause_program.cpp)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/generated)

add_custom_command(
  OUTPUT ${pause_program}
  COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -Os -static -nostdlib -ffreestanding -fno-exceptions
    -fno-stack-protector -fno-asynchronous-unwind-tables -Wall -Wextra -Werror
    -Wl,--build-id=none -s -o ${pause_program} ${pause_source}
  DEPENDS ${pause_source}
  COMMENT "Building the pause program"
  VERBATIM)
add_custom_command(
  OUTPUT ${pause_cpp}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/embed-program.py ${pause_program} ${pause_cpp}
  DEPENDS ${pause_program} ${CMAKE_SOURCE_DIR}/scripts/embed-program.py
  COMMENT "Embedding the pause program"
  VERBATIM)
target_sources(cotenant_agent PRIVATE ${pause_cpp})
