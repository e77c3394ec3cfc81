# All from Debian bookworm; scripts/install-deps.sh installs them.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Boost 1.81 REQUIRED) # header-only use; Boost.JSON is compiled into codec/json.cpp
find_package(OpenSSL 3 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(yaml-cpp REQUIRED)
# Debian's RE2 brings no CMake package.
find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
find_library(RE2_LIBRARY re2 REQUIRED)
add_library(re2::re2 UNKNOWN IMPORTED)
set_target_properties(re2::re2 PROPERTIES
  IMPORTED_LOCATION ${RE2_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${RE2_INCLUDE_DIR})
# Its package file asks for what only its other libraries need.
find_path(PROMETHEUS_CPP_INCLUDE prometheus/text_serializer.h REQUIRED)
find_library(PROMETHEUS_CPP_CORE prometheus-cpp-core REQUIRED)
add_library(cotenant_prometheus_core INTERFACE)
target_include_directories(cotenant_prometheus_core SYSTEM INTERFACE ${PROMETHEUS_CPP_INCLUDE})
target_link_libraries(cotenant_prometheus_core INTERFACE ${PROMETHEUS_CPP_CORE})
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(COTENANT_TESTS)
  find_package(GTest REQUIRED)
endif()
