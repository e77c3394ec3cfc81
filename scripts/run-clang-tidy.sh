#!/usr/bin/env bash
# run-clang-tidy.sh [FILE ...]: clang-tidy on these sources (default: all of src/ that are tracked), with
# the compile commands of a build without unity, so that each file is looked at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset dev -B build-tidy -DCOTENANT_UNITY=OFF -DCOTENANT_TESTS=OFF \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
files=("$@")
if [ $# -eq 0 ]; then mapfile -t files < <(git ls-files 'src/*.cpp'); fi
printf '%s\0' "${files[@]}" |
  xargs -0 -n 4 -P "${JOBS:-$(nproc)}" clang-tidy -p build-tidy --quiet \
    --extra-arg=-Wno-unknown-warning-option 2> >(grep -v 'warnings generated' >&2)
