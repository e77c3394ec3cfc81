// A stand-in for nvidia-cuda-mps-control, as a shell script: the daemon with its pid file, a server
// as the daemon's child, and the console. FAKE_MODE in its environment chooses how it misbehaves.
// Each console command is a line in log/commands; the daemon's arguments, environment and
// descriptors are in log/.
#pragma once

namespace cotenant::adapters {

inline constexpr char kFakeMpsControl[] = R"sh(#!/bin/sh
pipe=$CUDA_MPS_PIPE_DIRECTORY
log=$CUDA_MPS_LOG_DIRECTORY
pid_file=$pipe/nvidia-cuda-mps-control.pid

start_server() {
  # Bounded, so that a test that fails leaves nothing for long.
  sleep 60 &
  echo $! > "$log/server.new"
  mv "$log/server.new" "$pipe/server"
}

if [ "$1" = --daemon ]; then
  case $FAKE_MODE in ignores-term) trap '' TERM ;; esac
  echo "$2" > "$log/arguments"
  env > "$log/environment"
  readlink /proc/$$/fd/* > "$log/descriptors"
  pwd > "$log/directory"
  mkfifo "$pipe/log"
  exec 3<> "$pipe/log"
  : > "$pipe/control"
  echo $$ > "$log/pid.new"
  mv "$log/pid.new" "$pid_file"
  case $FAKE_MODE in
    dies-at-once) echo "no GPU for me" > "$log/control.log"; exit 1 ;;
  esac
  while read -r command <&3; do
    case $command in
      start) start_server ;;
      stop) read -r pid < "$pipe/server"; kill "$pid"; rm -f "$pipe/server" ;;
      quit) rm -f "$pid_file"; exit 0 ;;
    esac
  done
fi

if [ "$1" = -d ]; then
  case $FAKE_MODE in
    launch-fails) echo "An instance of this daemon is already running" >&2; exit 1 ;;
    launch-hangs) exec sleep 60 ;;
  esac
  setsid "$0" --daemon "$*" < /dev/null > /dev/null 2>&1 &
  exit 0
fi

command=
read -r command  # without a newline at its end read answers 1, but it has read
echo "$command" >> "$log/commands"
mode=$FAKE_MODE
[ ! -e "$log/mode" ] || read -r mode < "$log/mode"
read -r pid 2> /dev/null < "$pid_file" && kill -0 "$pid" 2> /dev/null || {
  echo "Cannot find MPS control daemon process" >&2
  exit 1
}
case $mode in
  console-hangs) exec sleep 60 ;;
  collides)
    echo x >> "$log/collisions"
    if [ $(($(wc -l < "$log/collisions") % 3)) -ne 0 ]; then
      echo "Lost connection to MPS control daemon" >&2
      exit 1
    fi ;;
  console-refuses) echo "go away" >&2; exit 3 ;;
esac
server=
[ ! -e "$pipe/server" ] || read -r server < "$pipe/server"
case $command in
  get_default_active_thread_percentage)
    case $mode in nonsense) echo "a lot" ;; *) echo 100.0 ;; esac ;;
  "start_server -uid 0")
    case $mode in no-server) ;; *) echo start > "$pipe/log" ;; esac ;;
  get_server_list) [ -z "$server" ] || echo "$server" ;;
  get_server_status\ *)
    case $mode in
      slow)
        echo x >> "$log/asked"
        if [ "$(wc -l < "$log/asked")" -lt 4 ]; then echo INITIALIZING; else echo ACTIVE; fi ;;
      never-active) echo INITIALIZING ;;
      fault) echo FAULT ;;
      *) if [ "${command#* }" = "$server" ]; then echo ACTIVE; else echo "Server not found"; fi ;;
    esac ;;
  shutdown_server\ *\ -f) echo stop > "$pipe/log" ;;
  quit) case $mode in ignores-quit | ignores-term) ;; *) echo quit > "$pipe/log" ;; esac ;;
  *) echo "unknown command" >&2; exit 2 ;;
esac
)sh";

}  // namespace cotenant::adapters
