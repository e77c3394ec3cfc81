#!/usr/bin/env bash
# with-docker-engine.sh CMD...: runs CMD with a private Docker engine, named to it by DOCKER_HOST and
# COTENANT_TEST_DOCKER_HOST, and stops the engine again, whatever becomes of CMD. The exit status is
# CMD's.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/common.sh
. "$scripts/common.sh"

[ $# -gt 0 ] || { printf 'usage: with-docker-engine.sh CMD...\n' >&2; exit 2; }

parent=$(mktemp -d /tmp/cotenant-engine.XXXXXX)
finish() {
  local status=$?
  trap - EXIT
  "$scripts/docker-engine.sh" stop "$parent/e" || status=1
  rmdir "$parent" || status=1
  exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

DOCKER_HOST=$("$scripts/docker-engine.sh" start "$parent/e")
export DOCKER_HOST COTENANT_TEST_DOCKER_HOST="$DOCKER_HOST"
# In the background, and waited for: bash runs a trap only between commands.
"$@" <&0 &
child=$!
trap 'kill -TERM "$child" 2>/dev/null; wait "$child" || true; exit 130' INT
trap 'kill -TERM "$child" 2>/dev/null; wait "$child" || true; exit 143' TERM
wait "$child"
