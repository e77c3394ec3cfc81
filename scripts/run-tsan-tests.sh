#!/usr/bin/env bash
# Runs, of build-tsan (make tsan), the unit tests of the layers that have threads. The others are
# pure and only cost time under this sanitizer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
readonly filter='*HttpServer*:*HttpClient*:*WebSocket*:*CoreLoop*:*AgentHub*:*AgentLoop*:*WorkerPool*:*ChildProcess*:*MpsDaemon*:*DockerRuntime*:*SqliteStore*:*ApiHandler*'
exec build-tsan/unit_tests --gtest_brief=1 --gtest_filter="$filter" </dev/null
