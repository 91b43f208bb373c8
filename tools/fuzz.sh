#!/bin/sh
# Looks for inputs on which a tool dies: mutated modules for kvbuf-opt and
# kvbuf-compile, then damaged kernels for the emulator. The corpus is what the
# tests and the examples hold; a reproducer that is made a test joins it.
#   tools/fuzz.sh BUILD_DIR SEED SECONDS
# SECONDS are for each of the two. Status 0: nothing was found. What was found is
# in BUILD_DIR/fuzz (modules) and printed (the seed of a round of kernels).
set -eu
build=$(cd "$1" && pwd); seed=$2; seconds=$3
cd "$(dirname "$0")/.."
PATH=$build/bin:$PATH
status=0
echo "modules, seed $seed, $seconds s"
python3 test/Fuzz/mutate.py --seed "$seed" --seconds "$seconds" \
  --keep "$build/fuzz" || status=1
mkdir -p "$build/fuzz"
kvbuf-opt examples/prefill.mlir --kvbuf-lower-to-nvvm=chip=sm_90a \
  -o "$build/fuzz/hopper.mlir"
kvbuf-opt examples/prefill.mlir --kvbuf-lower-to-rocdl=chip=gfx950 \
  -o "$build/fuzz/amd.mlir"
echo "kernels, seeds from $seed on, $seconds s"
end=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$end" ]; do
  # Few rounds at a time: they end soon after their time.
  timeout 600 kvbuf-emu-fuzz --rounds=200 --seed="$seed" \
    test/Emulator/hopper-warp.mlir test/Emulator/warp.mlir \
    test/Emulator/memory-faults.mlir test/Emulator/control-flow.mlir \
    test/Emulator/costs.mlir test/Emulator/async-pipeline.mlir \
    test/Emulator/amd-pipeline.mlir test/Emulator/amd-chip.mlir \
    test/Emulator/untrusted.mlir test/Emulator/Inputs/fuzz-ops.mlir || {
    echo "FAILED: kvbuf-emu-fuzz --rounds=200 --seed=$seed"; status=1; }
  timeout 600 kvbuf-emu-fuzz --rounds=4 --seed="$seed" \
    "$build/fuzz/hopper.mlir" "$build/fuzz/amd.mlir" || {
    echo "FAILED: kvbuf-emu-fuzz --rounds=4 --seed=$seed hopper.mlir amd.mlir"
    status=1; }
  seed=$((seed + 1))
done
exit $status
