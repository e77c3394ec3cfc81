#!/usr/bin/env bash
# on_podman.sh DIR BUILD_DIR SUBJECT...: end-to-end tests against a private Podman service in DIR instead of
# Docker. Exit 77 where Podman is absent.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scripts=$here/../../scripts
dir=$1 build_dir=$2
shift 2

if ! command -v podman >/dev/null; then
  echo "SKIPPED, NOTHING WAS TESTED ON PODMAN: it is not installed (scripts/install-deps.sh test installs it)"
  exit 77
fi
"$scripts/podman-engine.sh" stop "$dir"  # of a run that was killed
trap '"$scripts/podman-engine.sh" stop "$dir"' EXIT
COTENANT_TEST_DOCKER_HOST=$("$scripts/podman-engine.sh" start "$dir")
export COTENANT_TEST_DOCKER_HOST COTENANT_BUILD_DIR=$build_dir
"$scripts/build-image.sh" "$COTENANT_TEST_DOCKER_HOST" "$build_dir" cotenant/gpu-worker:latest
for subject in "$@"; do
  "$here/node_modules/.bin/node-e2e" --test-reporter=spec "$here/$subject.test.mjs"
done
