#!/usr/bin/env bash
# install-deps.sh [build|run|test|format|lint|fuzz|bench ...]: installs from Debian 12 what is absent for the purposes
# named (default: build). Looks for each tool first, so that tools which came another way are used as
# they are; never removes or replaces a package.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# purpose | package | how to tell that it is there | what it is for
# "how": command names, all of which must be found; or "dpkg", the package itself; or "fn:NAME".
readonly TABLE='
build|g++|g++|the compiler
build|cmake|cmake ctest|configures the build
build|ninja-build|ninja|runs the build
build|ccache|ccache|makes rebuilds fast
build|mold|mold|the linker
build|python3|fn:has_python|generates the API tables
build|libboost1.81-dev|dpkg|Boost headers (Asio, Beast, JSON)
build|libexpected-dev|dpkg|tl::expected
build|libfmt-dev|dpkg|text formatting
build|libssl-dev|dpkg|TLS, signatures
build|libsqlite3-dev|dpkg|the embedded store
build|libcli11-dev|dpkg|the command line
build|liblzma-dev|dpkg|reads compressed traces
build|libyaml-cpp-dev|dpkg|reads CDI specs
build|libtomlplusplus-dev|dpkg|reads MPS v3 configuration files (gpusim)
build|libre2-dev|dpkg|regular expressions in placement constraints
build|prometheus-cpp-dev|dpkg|metrics
build|libgtest-dev|dpkg|the unit tests
build|libgmock-dev|dpkg|the unit tests
run|docker.io|dockerd docker containerd|the container engine and its client
run|iptables|iptables|the bridge network of a private engine
run|apparmor|fn:apparmor_served|the engine needs its parser where the kernel has AppArmor on
run|busybox-static|busybox|the shell in the example image
test|podman|podman|the second container engine of the end-to-end tests
test|nodejs|node|runs the end-to-end tests
test|npm|npm|fetches the AWS SDK for them
test|prometheus|promtool|checks the metrics
test|python3-boto3|fn:has_boto3|the AWS SDK for Python, for the end-to-end tests
test|awscli|fn:has_awscli|the AWS CLI, for the end-to-end tests
test|docker-registry|docker-registry|the registry of the image tests
format|clang-format|clang-format|make format, make lint
lint|clang-tidy|clang-tidy|make lint
fuzz|clang|clang++|the compiler of the fuzz targets
fuzz|libclang-rt-14-dev|fn:has_libfuzzer|libFuzzer and the sanitizers for it
bench|libbenchmark-dev|dpkg|times small functions
'

has_python() { python3 -c 'import json, os, socket, sys, urllib.request' 2>/dev/null; }
has_boto3() { /usr/bin/python3 -c 'import boto3' 2>/dev/null; }
has_awscli() { test -x /usr/bin/aws; }
apparmor_served() {
  ! grep -qs Y /sys/module/apparmor/parameters/enabled || command -v apparmor_parser >/dev/null
}
has_libfuzzer() {
  printf 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n' |
    clang++ -x c++ -fsanitize=fuzzer,address -o /dev/null - 2>/dev/null
}
has_package() { [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# is_there PACKAGE HOW
is_there() {
  case "$2" in
    dpkg) has_package "$1" ;;
    fn:*) "${2#fn:}" ;;
    *)
      local tool
      for tool in $2; do command -v "$tool" >/dev/null || return 1; done
      ;;
  esac
}

purposes=("$@")
[ $# -gt 0 ] || purposes=(build)
for purpose in "${purposes[@]}"; do
  case "$purpose" in
    build | run | test | format | lint | fuzz | bench) ;;
    *) die "unknown purpose '$purpose'; there are: build run test format lint fuzz bench" ;;
  esac
done

absent=()
while IFS='|' read -r purpose package how why; do
  [ -n "$purpose" ] || continue
  case " ${purposes[*]} " in *" $purpose "*) ;; *) continue ;; esac
  is_there "$package" "$how" && continue
  say "absent: $package ($why)"
  absent+=("$package")
done <<<"$TABLE"
[ "${#absent[@]}" -gt 0 ] || exit 0

command -v apt-get >/dev/null || die "this is no Debian (no apt-get); install by hand: ${absent[*]}"
case " ${absent[*]} " in
  *" libboost1.81-dev "*)
    if has_package libboost1.74-dev; then
      die "libboost1.81-dev is needed and conflicts with libboost1.74-dev, which is installed.
Nothing is removed by this script. If you do not need 1.74, remove it yourself, then try again:
  apt-get remove libboost1.74-dev"
    fi
    ;;
esac

require_root "install packages (${absent[*]})"
apt=(as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l apt-get -o DPkg::Lock::Timeout=300)
say "installing from Debian: ${absent[*]}"
"${apt[@]}" update -q </dev/null || die "apt-get update failed: is there a network? Its text is above"
"${apt[@]}" install -q -y --no-remove --no-install-recommends "${absent[@]}" </dev/null ||
  die "apt-get could not install: ${absent[*]}
Its text is above. Nothing was removed: if it asks for removals, another package is in the way."
