#!/usr/bin/env bash
# Runs the unit tests of build-asan (make asan) with strict sanitizer settings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=1
export UBSAN_OPTIONS=print_stacktrace=1
exec build-asan/unit_tests --gtest_brief=1 </dev/null
