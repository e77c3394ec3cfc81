#!/usr/bin/env bash
# run-benches.sh [SUBJECT ...]: runs bench/SUBJECT/run of each subject (default: all) with the build
# folder as its argument, and prints what machine the tables below are of.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

cpu=$(awk -F ': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)
memory_gib=$(awk '/^MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo)
printf 'machine: %s, %s cores, %s GiB, Linux %s, load %s\n' "${cpu:-unknown CPU}" "$(nproc)" \
  "$memory_gib" "$(uname -r)" "$(cut -d ' ' -f 1 /proc/loadavg)"

subjects=("$@")
if [ $# -eq 0 ]; then
  for run in bench/*/run; do
    [ -x "$run" ] && subjects+=("$(basename "$(dirname "$run")")")
  done
fi
for subject in "${subjects[@]}"; do
  [ -x "bench/$subject/run" ] || die "there is no bench/$subject/run"
  printf '\n== %s\n' "$subject"
  "bench/$subject/run" build-release
done
