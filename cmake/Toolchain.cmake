# Warnings are errors; the linker and the compiler cache are used where they are installed.
option(COTENANT_TESTS "Build the tests" ON)
option(COTENANT_UNITY "Compile several files of a target as one" ON)
option(COTENANT_SANITIZE "Address and undefined-behaviour sanitizers" OFF)
option(COTENANT_SANITIZE_THREADS "Thread sanitizer" OFF)
option(COTENANT_FUZZ "Build the fuzz targets with libFuzzer (clang)" OFF)
option(COTENANT_BENCH "Build the measuring programs of bench/" OFF)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
# Paths in the objects (__FILE__, debug lines) are relative to the repository: a build elsewhere gives
# the same bytes, and finds them in the compiler cache.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

find_program(COTENANT_CCACHE ccache)
if(COTENANT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${COTENANT_CCACHE})
endif()

find_program(COTENANT_MOLD mold)
if(COTENANT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(COTENANT_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

if(COTENANT_SANITIZE_THREADS)
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Asio puts fences around its handlers, which the sanitizer does not model; it takes locks there too.
    add_compile_options(-Wno-tsan)
  endif()
  add_link_options(-fsanitize=thread)
endif()
if(COTENANT_FUZZ)
  # Coverage for libFuzzer in everything; its main() is linked into the targets of fuzz/ only.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
