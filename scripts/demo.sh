#!/usr/bin/env bash
# make demo: GPU sharing behind the ECS API, on a simulated GPU, step by step. Each step shows its
# command and the real output, and is checked: the demo fails when a step does not do what it says.
# Leaves nothing behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

readonly IMAGE=cotenant/gpu-worker:latest
readonly DEADLINE_S=60
binary=$PWD/build/cotenant
[ -x "$binary" ] || die "$binary is absent; run: make build"

bold='' dim='' plain=''
if [ -t 1 ]; then bold=$'\e[1;36m' dim=$'\e[2m' plain=$'\e[0m'; fi

work=$(mktemp -d /tmp/cotenant-demo.XXXXXX)
chmod 0711 "$work" # the MPS server and the containers pass through it
log=$work/up.log
up_pid='' private_engine='' made_image='' downed=''

heading() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
explain() { printf '%s\n' "$@"; }
show() { printf '%s$ %s%s\n' "$dim" "$*" "$plain"; }
cotenant() { "$binary" "$@"; }

# Shows the command, runs it, shows its output; it must succeed.
step() {
  show "$@"
  "$@" </dev/null || fail "exit status $? of: $*"
}

fail() {
  printf '\nFAILED: %s\n' "$*" >&2
  if [ -s "$log" ]; then
    printf -- '--- the last lines of cotenant up:\n' >&2
    tail -n 40 "$log" >&2
  fi
  exit 1
}

# Ends `cotenant up`; what it has started goes on.
end_up() {
  [ -n "$up_pid" ] || return 0
  kill -TERM "$up_pid" 2>/dev/null || true
  wait "$up_pid" 2>/dev/null || true
  up_pid=''
}

finish() {
  local status=$?
  trap - EXIT INT TERM HUP
  end_up
  if [ -z "$downed" ] && [ -d "$work/data" ]; then
    "$binary" down --data-dir "$work/data" --docker-host "$DOCKER_HOST" >>"$log" 2>&1 </dev/null || {
      printf 'cotenant down failed:\n' >&2
      tail -n 10 "$log" >&2
      status=1
    }
  fi
  if [ -n "$private_engine" ]; then
    scripts/docker-engine.sh stop "$private_engine" || status=1
  elif [ -n "$made_image" ]; then
    docker image rm --force "$IMAGE" >/dev/null || status=1
  fi
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

facts() { python3 scripts/demo-facts.py "$work/run/api.sock" "$1"; }

# ---- The engine

heading "Preparing"
explain "The GPU in this demo is SIMULATED: two NVIDIA L4 that exist only as a program. Placement, limits," \
  "containers, CUDA calls and their errors are real code paths; no kernel computes anything."

docker_answers() { timeout 10 docker version >/dev/null 2>&1; }
if [ -n "${DOCKER_HOST:-}" ] && docker_answers; then
  explain "Docker engine: $DOCKER_HOST (from DOCKER_HOST)"
elif DOCKER_HOST=unix:///var/run/docker.sock docker_answers; then
  export DOCKER_HOST=unix:///var/run/docker.sock
  explain "Docker engine: $DOCKER_HOST"
else
  explain "Docker engine: none answers, so a private one is started for the demo, and stopped afterwards"
  private_engine=$work/e
  DOCKER_HOST=$(scripts/docker-engine.sh start "$private_engine") || { private_engine=''; exit 1; }
  export DOCKER_HOST
  explain "Docker engine: $DOCKER_HOST"
fi
docker image inspect "$IMAGE" >/dev/null 2>&1 || made_image=yes
scripts/build-image.sh "$DOCKER_HOST" build "$IMAGE" >/dev/null
explain "Image:         $IMAGE, a small CUDA program that holds GPU memory"

# ---- Start

heading "Start cotenant: control plane and agent in one process"
# The default port, or any free one where that is taken.
port=$(python3 -c '
import socket
for port in 8484, 0:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            continue
        print(listener.getsockname()[1])
        break')
export COTENANT_ENDPOINT=http://127.0.0.1:$port
# Every AWS SDK and CLI, and cotenant's own, signs with what this file holds.
export AWS_SHARED_CREDENTIALS_FILE=$work/data/credentials
up=(up --listen "127.0.0.1:$port" --data-dir "$work/data" --run-dir "$work/run"
  --simulate-gpus 2xL4 --docker-host "$DOCKER_HOST")
show "cotenant ${up[*]} &"
"$binary" "${up[@]}" >"$log" 2>&1 </dev/null &
up_pid=$!

two_gpus() { kill -0 "$up_pid" 2>/dev/null && [ "$(facts gpus 2>/dev/null | wc -l)" -eq 2 ]; }
wait_for "$DEADLINE_S" two_gpus || fail "cotenant up did not offer two GPUs within $DEADLINE_S s"
step cotenant gpus
[ "$(facts gpus | awk '$2 == "IDLE" && $3 == $4' | wc -l)" -eq 2 ] || fail "both GPUs should be IDLE"

# ---- Share

# gpu_of FAMILY: the GPU of its running containers; empty when there is not exactly one.
gpu_of() {
  facts containers | awk -v family="$1" '$1 == family { print $4 }' | sort -u |
    awk '{ gpu = $1 } END { if (NR == 1) print gpu }'
}
runtime_id() {
  facts containers | awk -v family="$1" -v name="$2" '$1 == family && $2 == name { print $3 }'
}

heading "Three models share one GPU"
explain "examples/three-models.json asks for 8192, 8192 and 4096 MiB: ordinary ECS," \
  "resourceRequirements[].sharingStrategy.nvidiaMps.memory."
step cotenant run examples/three-models.json --wait
first_gpu=$(gpu_of three-models)
[ -n "$first_gpu" ] || fail "the three containers should run on one GPU"
step cotenant gpus
[ "$(facts gpus | awk -v gpu="$first_gpu" '$1 == gpu { print $2, $4 - $3, $5 }')" = "NVIDIA_MPS 20480 3" ] ||
  fail "$first_gpu should be NVIDIA_MPS, with 20480 MiB given to 3 containers"
explain "All three are on $first_gpu: 20480 MiB are given away, the other GPU is still idle."

heading "A fourth, of 6144 MiB, does not fit there and goes to the other GPU"
step cotenant run examples/fourth.json --wait
second_gpu=$(gpu_of fourth)
if [ -z "$second_gpu" ] || [ "$second_gpu" = "$first_gpu" ]; then
  fail "the fourth should be on the other GPU"
fi
step cotenant gpus

heading "A whole GPU while none is idle: refused, and told why"
show cotenant run examples/whole-gpu.json --wait
status=0
cotenant run examples/whole-gpu.json --wait >"$work/output" 2>"$work/refusal" </dev/null || status=$?
cat "$work/output" "$work/refusal"
[ "$status" -eq 1 ] || fail "the task should have been refused, exit status 1, not $status"
grep -q 'RESOURCE:GPU' "$work/refusal" || fail "the reason should be RESOURCE:GPU"

# ---- The ceiling

heading "A worker that wants more than its share meets its ceiling"
explain "examples/grow.json has 2048 MiB. It takes 1024 and, two seconds later, asks for 4096 more."
step cotenant run examples/grow.json --wait
greedy=$(runtime_id grow greedy)
[ -n "$greedy" ] || fail "the container 'greedy' should be running"
[ "$(gpu_of grow)" = "$first_gpu" ] || fail "it should be on $first_gpu, beside the three models"
# prints CONTAINER PATTERN: whether its log has such a line.
prints() {
  local text
  text=$(docker logs "$1" 2>&1) && grep -q -e "$2" <<<"$text"
}
wait_for "$DEADLINE_S" prints "$greedy" 'refused at MiB .* CUDA_ERROR_OUT_OF_MEMORY' ||
  fail "the worker should have been refused memory by CUDA_ERROR_OUT_OF_MEMORY"
wait_for "$DEADLINE_S" prints "$greedy" ' holds .* free 0 MiB ' ||
  fail "the worker should go on at its ceiling"
step docker logs "${greedy:0:12}"
explain "It was refused by CUDA_ERROR_OUT_OF_MEMORY at its ceiling (its CUDA context counts too), and goes on."

heading "Its neighbours on the same GPU have kept what they hold"
for held in chat:6144 embedding:7168 rerank:3072; do
  neighbour=$(runtime_id three-models "${held%:*}")
  [ -n "$neighbour" ] || fail "the container '${held%:*}' should be running"
  step docker logs --tail 1 "${neighbour:0:12}"
  [[ "$(docker logs --tail 1 "$neighbour" 2>&1)" == *" holds ${held#*:} MiB "* ]] ||
    fail "'${held%:*}' should hold ${held#*:} MiB"
done

heading "What runs where"
step cotenant gpus
step cotenant ps

# ---- The end

heading "Stop all tasks: the GPUs are idle again"
mapfile -t containers < <(facts containers | awk '{ print $3 }')
[ "${#containers[@]}" -eq 5 ] || fail "five containers should be running, not ${#containers[@]}"
step cotenant stop --all --wait
step cotenant gpus
[ "$(facts gpus | awk '$2 == "IDLE" && $3 == $4' | wc -l)" -eq 2 ] || fail "both GPUs should be IDLE again"

heading "Remove cotenant from this machine"
explain "First cotenant itself is ended; that alone would leave containers, MPS and the simulated GPU running."
end_up
step cotenant down --data-dir "$work/data" --docker-host "$DOCKER_HOST"
downed=yes

for container in "${containers[@]}"; do
  if docker inspect "$container" >/dev/null 2>&1; then fail "container $container was left behind"; fi
done
# The processes that name the demo's folder, but for this script's own.
left=''
for proc in /proc/[0-9]*; do
  arguments=$(tr '\0' ' ' 2>/dev/null <"$proc/cmdline" || true)
  case "$arguments" in
    *"$work/e/"*) ;; # the private engine, which is stopped below
    *"$work/"*) left="$left ${proc#/proc/}:$arguments" ;;
  esac
done
[ -z "$left" ] || fail "processes were left behind:$left"
for folder in "$work/run" "$work/data"; do
  [ ! -e "$folder" ] || fail "$folder was left behind: $(find "$folder")"
done
explain "" "Nothing is left behind: no container, no process, no folder."
heading "The demo did what it said"
