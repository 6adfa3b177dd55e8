#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs, through apt, the build's system packages that are missing; does nothing when none is.
# With --tests also what the tests and ./check use where it is there.
set -euo pipefail

packages=(build-essential ccache cmake git libzstd-dev mold ninja-build python3-venv
  zlib1g-dev)
# ./check formats with the first, C++ tests need the second; the tests of code for ARM use the others (75 MB
# to download, as much as LLVM). A distribution without them leaves these steps to a machine that has them.
optional=(clang-format-19 libgtest-dev qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
  gcc-arm-linux-gnueabihf libc6-dev-armhf-cross)

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
available() { [[ $(apt-cache policy "$1" 2>/dev/null) == *"Candidate: "[!\(]* ]]; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

if ! command -v apt-get >/dev/null; then
  echo "no apt-get here; these packages (or their equivalents) are expected: ${packages[*]}," \
    "and llvm-dev with liblld-dev, version 19 or newer" >&2
  exit 0
fi

updated=false
update() {
  $updated && return
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "system packages are missing and this user can neither be root nor use sudo; install as root:" \
      "${missing[*]} llvm-22-dev liblld-22-dev (or the same of 19 to 21)" >&2
    exit 1
  fi
  as_root apt-get update -qq || echo "apt-get update failed; going on with the package lists at hand" >&2
  updated=true
}

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done

# The newest LLVM whose development files and LLD are there, else the newest that can be had.
llvm=
for version in 22 21 20 19; do
  if installed "llvm-$version-dev" && installed "liblld-$version-dev"; then llvm=$version && break; fi
done
if [ -z "$llvm" ]; then
  update
  for version in 22 21 20 19; do
    if available "llvm-$version-dev" && available "liblld-$version-dev"; then
      llvm=$version
      missing+=("llvm-$version-dev" "liblld-$version-dev")
      break
    fi
  done
  [ -n "$llvm" ] || { echo "no LLVM from 19 to 22 in the package lists" >&2; exit 1; }
fi

if [ "${1:-}" = --tests ]; then
  for package in "${optional[@]}"; do
    installed "$package" && continue
    update
    if available "$package"; then missing+=("$package"); fi
  done
fi

if [ ${#missing[@]} -gt 0 ]; then
  update
  echo "== system packages: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
