#!/usr/bin/env bash
# run-clang-tidy.sh [FILE ...]: clang-tidy on the sources of src/ (default: all), with the checks of
# .clang-tidy. Several files are looked at as one, as they are compiled: the headers cost more than the
# code, so that all of src/ takes minutes and not an hour.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset dev -B build-tidy -DCOTENANT_UNITY=ON -DCOTENANT_TESTS=OFF \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
# What is generated at build time must be there to be included.
cmake --build build-tidy --target src/generated/api_shapes.cpp src/generated/pause_program.cpp >/dev/null

python3 - "$@" <<'PYTHON' |
import json, os, sys
wanted = [os.path.abspath(name) for name in sys.argv[1:]]
top = os.getcwd()
for entry in json.load(open("build-tidy/compile_commands.json")):
    source = entry["file"]
    ours = source.startswith((f"{top}/src/", f"{top}/build-tidy/src/"))
    text = open(source).read() if wanted and ours else ""
    if ours and (not wanted or source in wanted or any(f'"{name}"' in text for name in wanted)):
        sys.stdout.write(source + "\0")
PYTHON
  xargs -0 -r -n 1 -P "${JOBS:-$(nproc)}" nice clang-tidy -p build-tidy --quiet \
    --extra-arg=-Wno-unknown-warning-option 2> >(grep -v 'warnings generated' >&2)
