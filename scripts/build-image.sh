#!/usr/bin/env bash
# build-image.sh DOCKER_HOST BUILD_DIR IMAGE: makes the image of the example worker from files of this
# machine (no registry, no network): the worker, the glibc that it was linked with, and busybox.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -eq 3 ] || { printf 'usage: build-image.sh DOCKER_HOST BUILD_DIR IMAGE\n' >&2; exit 2; }
docker_host=$1 build_dir=$2 image=$3
worker=$build_dir/examples/gpu-worker/gpu-worker
[ -x "$worker" ] || die "$worker is absent; run: make build"

busybox=$(command -v busybox) || die "busybox is absent; scripts/install-deps.sh run installs it"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# lib and lib64 are links into /usr, as in Debian's own images, so that a library which is mounted at
# /usr/lib/<machine>-linux-gnu lies where ld.so looks by default.
multiarch=/usr/lib/$(uname -m)-linux-gnu
mkdir -p "$root/bin" "$root/etc" "$root/tmp" "$root/usr/lib64" "$root$multiarch" \
  "$root/proc" "$root/sys" "$root/dev"
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"
chmod 1777 "$root/tmp"
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"

install -m 0755 "$worker" "$root/bin/gpu-worker"
install -m 0755 "$busybox" "$root/bin/busybox"
for name in sh cat echo env grep kill ls ps sleep test true; do
  ln -s busybox "$root/bin/$name"
done

# Each library at the path where its program looks for it (a static busybox has none); libdl and libpthread because the driver's
# library, mounted at run time, may name them (they are empty since glibc 2.34).
libraries=$({ ldd "$worker"; ldd "$busybox" 2>/dev/null || true; } | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | sort -u)
for library in $libraries "$multiarch/libdl.so.2" "$multiarch/libpthread.so.0"; do
  [ -f "$library" ] || continue
  mkdir -p "$root$(dirname "$library")"
  install -m 0755 "$(readlink -f "$library")" "$root$library"
done

tar -C "$root" --create --owner=0 --group=0 --numeric-owner . |
  DOCKER_HOST=$docker_host docker import --change 'ENTRYPOINT ["/bin/gpu-worker"]' \
    --change 'ENV PATH=/bin' - "$image" >/dev/null ||
  die "the engine at $docker_host did not take the image"
say "$image"
