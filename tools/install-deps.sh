#!/bin/sh
# Installs the Debian packages of packages.txt, or those named as arguments, that
# are missing. Asks for sudo only when it is not root and something is missing.
# With MLIR_DIR set, LLVM and MLIR are taken from there and only the other
# packages are looked at.
set -eu
here=$(dirname "$0")
missing=
[ $# -gt 0 ] || set -- $(cat "$here/packages.txt")
for p in "$@"; do
  case "$p" in *mlir-22*|llvm-22*) [ -z "${MLIR_DIR:-}" ] || continue ;; esac
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' ||
    missing="$missing $p"
done
[ -n "$missing" ] || exit 0
echo "Installing:$missing"
as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
if ! $as_root apt-get install -y -qq $missing >/dev/null 2>&1; then
  $as_root apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq $missing >/dev/null
fi
