#!/usr/bin/env bash
# Installs what tests/e2e/package-lock.json names into tests/e2e/node_modules, and makes
# tests/e2e/node_modules/.bin/node-e2e the Node to run the tests with: the machine's own where it is
# new enough for the AWS SDK, else the one that npm has brought.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/../tests/e2e"

readonly NODE_MAJOR_MIN=20

new_enough() {
  local major
  major=$("$1" --print 'process.versions.node.split(".")[0]' 2>/dev/null) || return 1
  [ "$major" -ge "$NODE_MAJOR_MIN" ]
}

command -v npm >/dev/null || die "npm is absent; scripts/install-deps.sh test installs it"
own_node=$(command -v node || true)
omit=()
if [ -n "$own_node" ] && new_enough "$own_node"; then omit=(--omit=optional); fi

stamp=node_modules/.installed-from
wanted=$(sha256sum package-lock.json; printf '%s\n' "${omit[@]}")
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error "${omit[@]}" </dev/null ||
    die "npm could not fetch the packages of tests/e2e/package-lock.json; is there a network?"
fi

node=$own_node
if [ "${#omit[@]}" -eq 0 ]; then
  node=
  for candidate in "$PWD"/node_modules/node-linux-*/bin/node; do
    if new_enough "$candidate"; then node=$candidate; fi
  done
fi
[ -n "$node" ] || die "no Node $NODE_MAJOR_MIN or newer for this machine ($(uname -m)); install one"
mkdir -p node_modules/.bin
ln -sf "$node" node_modules/.bin/node-e2e
printf '%s\n' "$wanted" >"$stamp"
