# All from Debian bookworm; scripts/install-deps.sh installs them.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Boost 1.81 REQUIRED) # header-only use; Boost.JSON is compiled into codec/json.cpp
find_package(SQLite3 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(COTENANT_TESTS)
  find_package(GTest REQUIRED)
endif()
