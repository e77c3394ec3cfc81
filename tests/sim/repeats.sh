#!/usr/bin/env bash
# repeats.sh COTENANT_SIM: two runs of one seed are the same event by event, another seed is another run.
set -euo pipefail
lines() { "$1" --seed "$2" --print | grep -v '^seeds '; }
first=$(lines "$1" 42)
[ "$first" = "$(lines "$1" 42)" ] || { echo "seed 42 gave two different runs"; exit 1; }
[ "$first" != "$(lines "$1" 43)" ] || { echo "seeds 42 and 43 gave the same run"; exit 1; }
[ "$(wc -l <<<"$first")" -gt 200 ] || { echo "hardly anything happened"; exit 1; }
