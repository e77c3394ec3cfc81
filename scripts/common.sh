# shellcheck shell=bash
# Sourced by the scripts of this folder: messages, root rights, deadlines.

# /usr/sbin holds dockerd and iptables; an ordinary user's PATH may lack it.
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export PATH

say() { printf '%s\n' "$*"; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# What goes before a command that needs root rights.
ROOT=()
if [ "$(id -u)" -ne 0 ]; then ROOT=(sudo); fi

as_root() { "${ROOT[@]}" "$@"; }

# require_root PURPOSE: whether as_root can work at all.
require_root() {
  [ "${#ROOT[@]}" -eq 0 ] || command -v sudo >/dev/null ||
    die "root rights are needed to $1; run it as root, or install sudo"
}

# wait_for SECONDS COMMAND...: until the command succeeds; 1 when the deadline has passed.
wait_for() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}
