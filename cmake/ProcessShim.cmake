# The shim of the `process` runtime (src/adapters/shim/): static, without the C++ library, and its bytes
# part of cotenant_adapters, which must exist already. Flags of the build (sanitizers, optimisation)
# do not concern it.
file(GLOB shim_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/adapters/shim/*.cc)
file(GLOB shim_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/adapters/shim/*.h)
set(shim_program ${CMAKE_CURRENT_BINARY_DIR}/generated/cotenant-shim)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/generated)

add_custom_command(
  OUTPUT ${shim_program}
  COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -Os -static -fno-exceptions -fno-rtti
    -fno-threadsafe-statics -fno-asynchronous-unwind-tables -Wall -Wextra -Wpedantic -Wshadow
    -Wconversion -Werror -nodefaultlibs -Wl,--build-id=none -s -o ${shim_program} ${shim_sources}
    -Wl,--start-group -lc -lgcc -lgcc_eh -Wl,--end-group
  DEPENDS ${shim_sources} ${shim_headers}
  COMMENT "Building the shim of the process runtime"
  VERBATIM)
# The assembler takes the bytes in (process_shim_image.cpp).
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/adapters/process_shim_image.cpp PROPERTIES
  OBJECT_DEPENDS ${shim_program}
  SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_DEFINITIONS COTENANT_PROCESS_SHIM="${shim_program}")
