#!/usr/bin/env bash
# Runs the unit tests of build-tsan (make tsan), which are those of the layers that have threads; without
# the ones that are pure and only slow under this sanitizer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
exec build-tsan/unit_tests --gtest_brief=1 "$@" \
  --gtest_filter='-SqlitePowerFailureTest.*:StoredDatabaseTest.*:AgentLogic*' </dev/null
