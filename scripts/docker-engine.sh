#!/usr/bin/env bash
# A private Docker engine for demo and tests. It meets neither another engine of the machine nor a
# second one of its own kind: socket, data and state lie below DIR, and it lives in a network
# namespace of its own, so that its bridge and its iptables rules are its own and vanish with it. It
# therefore reaches no network and no registry. Works without systemd.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
usage: docker-engine.sh start DIR   start an engine; prints its DOCKER_HOST
       docker-engine.sh stop DIR    stop it with all its containers, and remove DIR
       docker-engine.sh env DIR     print "export DOCKER_HOST=..."
DIR is a short absolute path that is not there yet, for example /tmp/cotenant-engine.
TEXT
}

readonly START_DEADLINE_S=60
readonly STOP_DEADLINE_S=30
# Unix socket paths end at 107 bytes, and containerd's are 45 longer than DIR.
readonly DIR_BYTES_MAX=60

check_dir() {
  case "$dir" in
    /*) ;;
    *) die "DIR must be an absolute path, not '$dir'" ;;
  esac
  case "$dir" in
    *[!A-Za-z0-9/._-]*) die "DIR may have letters, digits and / . _ - only: '$dir'" ;;
    */../* | */.. | */./* | */. | */) die "DIR must be a plain path without . and .. : '$dir'" ;;
  esac
  [ "${#dir}" -le "$DIR_BYTES_MAX" ] ||
    die "DIR has ${#dir} characters; unix sockets below it allow $DIR_BYTES_MAX: '$dir'"
}

# The process in pid file $1, if it is ours: its command line names a path below DIR.
our_pid() {
  local pid
  pid=$(as_root cat "$1" 2>/dev/null) || return 1
  case "$pid" in '' | *[!0-9]*) return 1 ;; esac
  as_root cat "/proc/$pid/cmdline" 2>/dev/null | tr '\0' '\n' | grep -qF "$dir/" || return 1
  printf '%s' "$pid"
}

gone() { [ -z "$(our_pid "$1")" ]; }

# The containers' default limit must not be above the machine's own: raising a hard limit needs
# CAP_SYS_RESOURCE.
write_config() {
  local limit
  limit=$(ulimit -Hn)
  case "$limit" in *[!0-9]*) limit=1048576 ;; esac
  cat >"$dir/daemon.json" <<TEXT
{
  "default-ulimits": {"nofile": {"Name": "nofile", "Hard": $limit, "Soft": $limit}},
  "group": "$(id -g)"
}
TEXT
}

start() {
  command -v dockerd >/dev/null || die "dockerd is absent; scripts/install-deps.sh run installs it"
  command -v docker >/dev/null || die "docker is absent; scripts/install-deps.sh run installs it"
  if [ -e "$dir/marker.cotenant-engine" ]; then
    say "an engine was left in $dir; it is replaced" >&2
    stop
  fi
  mkdir -p "$(dirname "$dir")"
  mkdir "$dir" || die "$dir must not be there already"
  : >"$dir/marker.cotenant-engine"
  write_config

  local -a namespace=(unshare --net) network=()
  if ! as_root "${namespace[@]}" true 2>/dev/null; then
    say "no network namespace can be made here: the engine has no bridge (networkMode none, host)" >&2
    namespace=()
    network=(--iptables=false --bridge=none)
  elif ! as_root "${namespace[@]}" iptables -t nat -L -n >/dev/null 2>&1; then
    say "iptables does not work here: the engine has no bridge (networkMode none, host)" >&2
    network=(--iptables=false --bridge=none)
  fi

  # In a session of its own: Ctrl-C ends the caller, who then stops the engine in good order.
  "${ROOT[@]}" setsid "${namespace[@]}" dockerd --config-file "$dir/daemon.json" \
    -H "unix://$dir/docker.sock" --data-root "$dir/data" --exec-root "$dir/exec" \
    -p "$dir/docker.pid" "${network[@]}" >"$dir/log" 2>&1 </dev/null &
  local launcher=$!

  local deadline=$((SECONDS + START_DEADLINE_S))
  until DOCKER_HOST="unix://$dir/docker.sock" docker version >/dev/null 2>&1; do
    if [ ! -d "/proc/$launcher" ] || [ "$SECONDS" -ge "$deadline" ]; then
      tail -n 30 "$dir/log" >&2
      stop
      die "dockerd did not answer within $START_DEADLINE_S s, or ended; its last lines are above"
    fi
    sleep 0.1
  done
  disown "$launcher"
  say "unix://$dir/docker.sock"
}

# Containers first: dockerd itself would wait for each of them up to its stop time-out.
remove_containers() {
  local ids
  ids=$(DOCKER_HOST="unix://$dir/docker.sock" timeout 10 docker ps --all --quiet 2>/dev/null) || return 0
  [ -z "$ids" ] || printf '%s\n' "$ids" |
    DOCKER_HOST="unix://$dir/docker.sock" xargs timeout 30 docker rm --force --volumes >/dev/null 2>&1 || true
}

# end PIDFILE SIGNAL SECONDS: whether the process of the pid file has gone.
end() {
  local pid
  pid=$(our_pid "$1") || return 0
  as_root kill "-$2" "$pid" 2>/dev/null || true
  wait_for "$3" gone "$1"
}

stop() {
  [ -e "$dir" ] || return 0
  [ -e "$dir/marker.cotenant-engine" ] || die "$dir was not made by this script; left alone"
  if our_pid "$dir/docker.pid" >/dev/null; then remove_containers; fi
  # dockerd removes its pid file when it ends well; keep a copy to name the same process below.
  as_root cp "$dir/docker.pid" "$dir/stopping.pid" 2>/dev/null || true
  as_root cp "$dir/exec/containerd/containerd.pid" "$dir/containerd.pid" 2>/dev/null || true
  local pid_file
  for pid_file in "$dir/stopping.pid" "$dir/containerd.pid"; do
    end "$pid_file" TERM "$STOP_DEADLINE_S" || end "$pid_file" KILL 5 ||
      die "the process in $pid_file does not end"
  done
  end_shims
  unmount_below
  as_root rm -rf --one-file-system "$dir"
}

# Containers outlive a dockerd that was killed: each has a shim, whose child is its first process, and
# with that all of the container's processes end.
end_shims() {
  local proc pid child children
  for proc in /proc/[0-9]*; do
    pid=${proc#/proc/}
    tr '\0' '\n' 2>/dev/null <"$proc/cmdline" | grep -qxF "$dir/exec/containerd/containerd.sock" ||
      continue
    children=()
    read -r -a children 2>/dev/null <"$proc/task/$pid/children" || true
    for child in "${children[@]}"; do as_root kill -KILL "$child" 2>/dev/null || true; done
    as_root kill -KILL "$pid" 2>/dev/null || true
    wait_for 5 test ! -e "$proc" || true
  done
  # The control groups of containers whose shim could not clean up.
  local id
  for id in $(as_root ls "$dir/data/containers" 2>/dev/null); do
    as_root rmdir /sys/fs/cgroup/*/docker/"$id" /sys/fs/cgroup/docker/"$id" 2>/dev/null || true
  done
}

unmount_below() {
  local mount_point
  awk -v prefix="$dir/" 'index($5, prefix) == 1 { print $5 }' /proc/self/mountinfo | sort -r |
    while IFS= read -r mount_point; do
      as_root umount "$mount_point" || as_root umount --lazy "$mount_point" || true
    done
}

[ $# -eq 2 ] || { usage >&2; exit 2; }
dir=$2
check_dir
case "$1" in
  start) require_root "start a Docker engine"; start ;;
  stop) require_root "stop a Docker engine"; stop ;;
  env) say "export DOCKER_HOST=unix://$dir/docker.sock" ;;
  *) usage >&2; exit 2 ;;
esac
