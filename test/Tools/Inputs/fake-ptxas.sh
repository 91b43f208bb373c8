#!/bin/sh
# Stands in for ptxas: says what a real one says of a kernel that spills and
# whose speed suffered, and writes "CUBIN" and its own arguments.
# Asked for help, it names an option that only later ones know where it is told
# to.
if [ "$1" = --help ]; then
  [ -z "${FAKE_PTXAS_SPLITS:-}" ] || echo "--split-compile <N>"
  exit 0
fi
out=
args="$*"
while [ $# -gt 0 ]; do
  [ "$1" = -o ] && out=$2
  shift
done
cat >&2 <<LOG
ptxas info    : 0 bytes gmem
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma instructions in the function 'exp2'
ptxas info    : Compiling entry function 'exp2' for 'sm_80'
ptxas info    : Function properties for exp2
    64 bytes stack frame, 24 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 64 bytes cumulative stack size, 4096 bytes smem, 372 bytes cmem[0]
LOG
if [ -n "${FAKE_PTXAS_FAILS:-}" ]; then
  echo "ptxas fatal   : Unsupported .version 9.9; current version is '8.0'" >&2
  exit 255
fi
printf 'CUBIN %s' "$args" >"$out"
