#!/usr/bin/env bash
# A private Podman service for trying and testing: its socket answers the Docker API, and its images and
# containers lie below DIR, apart from those of the machine's own Podman. Works without systemd, and
# where limits may not be raised. Needs Debian's podman and runc (crun 1.8 refuses hybrid cgroups).
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
usage: podman-engine.sh start DIR   start a service; prints its DOCKER_HOST
       podman-engine.sh stop DIR    stop it with all its containers, and remove DIR
DIR is a short absolute path that is not there yet, for example /tmp/cotenant-podman.
TEXT
}

readonly START_DEADLINE_S=60

# As the service sees the machine: what it has mounted for its containers is in mounts of its own.
podman_here() {
  local enter=() pid
  pid=$(cat "$dir/podman.pid" 2>/dev/null || true)
  if [ -n "$pid" ] && [ -e "/proc/$pid/ns/mnt" ]; then enter=(nsenter "--mount=/proc/$pid/ns/mnt"); fi
  CONTAINERS_CONF="$dir/containers.conf" CONTAINERS_STORAGE_CONF="$dir/storage.conf" "${enter[@]}" podman "$@"
}

write_config() {
  cat >"$dir/containers.conf" <<'TEXT'
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
TEXT
  cat >"$dir/storage.conf" <<TEXT
[storage]
driver = "vfs"
runroot = "$dir/run"
graphroot = "$dir/data"
TEXT
}

answers() { curl --silent --fail --max-time 5 --unix-socket "$dir/podman.sock" http://podman/_ping >/dev/null 2>&1 ||
  DOCKER_HOST="unix://$dir/podman.sock" docker version >/dev/null 2>&1; }

start() {
  command -v podman >/dev/null || die "podman is absent; apt-get install podman runc"
  mkdir -p "$(dirname "$dir")"
  mkdir "$dir" || die "$dir must not be there already"
  : >"$dir/marker.cotenant-podman"
  write_config
  # A network of its own, so that no bridge stays behind. Podman looks for CDI specs in /run/cdi (and
  # /etc/cdi); this one sees DIR/cdi there.
  mkdir -p "$dir/cdi" /run/cdi
  CONTAINERS_CONF="$dir/containers.conf" CONTAINERS_STORAGE_CONF="$dir/storage.conf" \
    setsid unshare --mount --propagation slave --net sh -c \
    'mount --bind "$1/cdi" /run/cdi && exec podman system service --time=0 "unix://$1/podman.sock"' \
    sh "$dir" >"$dir/log" 2>&1 </dev/null &
  echo $! >"$dir/podman.pid"
  wait_for "$START_DEADLINE_S" answers ||
    { tail -n 30 "$dir/log" >&2; stop; die "podman did not answer within $START_DEADLINE_S s"; }
  disown
  say "unix://$dir/podman.sock"
}

stop() {
  [ -e "$dir" ] || return 0
  [ -e "$dir/marker.cotenant-podman" ] || die "$dir was not made by this script; left alone"
  podman_here rm --all --force --time 0 >/dev/null 2>&1 || true
  local pid
  pid=$(cat "$dir/podman.pid" 2>/dev/null || true)
  if [ -n "$pid" ] && tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$dir/"; then
    kill "$pid" 2>/dev/null || true
    wait_for 20 test ! -e "/proc/$pid" || kill -KILL "$pid" 2>/dev/null || true
  fi
  rmdir /run/cdi 2>/dev/null || true  # only an empty one goes
  rm -rf --one-file-system "$dir"
}

[ $# -eq 2 ] || { usage >&2; exit 2; }
dir=$2
case "$dir" in
  /*[!A-Za-z0-9/._-]* | [!/]*) die "DIR must be an absolute path of letters, digits and / . _ -: '$dir'" ;;
esac
case "$1" in
  start) require_root "start a Podman service"; start ;;
  stop) require_root "stop a Podman service"; stop ;;
  *) usage >&2; exit 2 ;;
esac
