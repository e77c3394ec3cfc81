#!/usr/bin/env bash
# run-fuzzers.sh SECONDS [TARGET ...]: runs each fuzz target of build-fuzz (make fuzz) so long, from its
# corpus; what it finds new is kept in build-fuzz/corpus, findings in build-fuzz/findings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=$1
shift
targets=("$@")
if [ $# -eq 0 ]; then for folder in fuzz/corpus/*/ gpusim/fuzz/corpus/*/; do targets+=("$(basename "$folder")"); done; fi
for target in "${targets[@]}"; do
  corpus=fuzz/corpus/$target
  [ -d "$corpus" ] || corpus=gpusim/$corpus
  mkdir -p "build-fuzz/corpus/$target" build-fuzz/findings
  echo "== $target"
  "build-fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="build-fuzz/findings/$target-" \
    "build-fuzz/corpus/$target" "$corpus"
done
