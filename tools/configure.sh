#!/bin/sh
# Configures a build directory with the project's defaults.
#   tools/configure.sh BUILD_DIR [more CMake arguments]
# KVBUF_WERROR=ON in the environment makes warnings errors, as in CI.
set -eu
build=$1; shift
here=$(cd "$(dirname "$0")/.." && pwd)
set -- -G Ninja -DCMAKE_BUILD_TYPE=Release -DKVBUF_UNITY=ON \
  -DKVBUF_WERROR="${KVBUF_WERROR:-OFF}" "$@"
if command -v clang++-22 >/dev/null; then
  set -- "$@" -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22
fi
if command -v ld.lld-22 >/dev/null; then
  set -- "$@" -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld \
    -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld -DCMAKE_MODULE_LINKER_FLAGS=-fuse-ld=lld
fi
if command -v ccache >/dev/null; then
  set -- "$@" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
exec cmake -S "$here" -B "$build" "$@" >/dev/null
