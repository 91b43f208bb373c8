#!/bin/sh
# The emulator's speed on one core, with its default checks and without, and on
# two.
#   benchmark/emulator.sh [BUILD_DIR] [kernel.mlir]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build}
kernel=${2:-$here/examples/prefill.mlir}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/bin/kvbuf-compile" "$kernel" --target=sm_80 -o "$work/kernel.kvbuf"

measure() {
  title=$1; shift
  "$build/bin/kvbuf-run" "$work/kernel.kvbuf" --device=emulator --report \
    --emulator jobs=${jobs:-1} --size batch=1 --size seq_q=512 --size seq_k=512 "$@" |
    sed -n 's/^ *lane_instructions_per_second  *//p' |
    awk -v title="$title" \
      '{ printf "%-28s %6.1f million lane-instructions/s\n", title, $1 / 1e6 }'
}

measure "default checks"
measure "no checks but bounds" --emulator races=false \
  --emulator uninitialized=false --emulator landing_checks=false
measure "default, portable code" --emulator portable=true
jobs=2 measure "default checks, two cores"
