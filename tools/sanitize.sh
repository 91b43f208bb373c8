#!/bin/sh
# Builds with sanitizers in a folder of its own, and runs there the unit tests, the
# tests of the dialect and the emulator, and two dozen kernels on four chips.
#   tools/sanitize.sh [BUILD_DIR [JOBS]]       (build-sanitize, 2)
# LLVM's libraries have no sanitizer, so three checks of memory are off that ask both
# sides: of containers, of LLVM's allocators, and of leaks.
set -eu
build=${1:-build-sanitize}; jobs=${2:-2}
cd "$(dirname "$0")/.."
tools/configure.sh "$build" -DKVBUF_SANITIZE=address,undefined
ninja -C "$build" -j "$jobs" --quiet kvbuf-opt kvbuf-compile kvbuf-run \
  KVBufferC kvbuf-emu-test kvbuf-layout-test
export ASAN_OPTIONS=detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0
export UBSAN_OPTIONS=print_stacktrace=1
lit=$(sed -n 's/^LLVM_EXTERNAL_LIT:[^=]*=//p' "$build/CMakeCache.txt")
# Debian's mlir-opt has no sanitizer and cannot load a plugin that has: its four tests
# are left out.
exec "$lit" -j "$jobs" -v "$build/test" --filter-out 'bufferize|own-scores-tensors' \
  --filter \
  'Layout/|Dialect/KVBuffer/.*\.mlir|Emulator/[^/]*\.mlir|Kernels/(heads|decode)\.test'
