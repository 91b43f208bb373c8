// Where keys are split and someone asks for larger tiles, what the chip would have on
// its way by more tiles or other warps gives way, as far as nobody asks for that.

// DEFINE: %{schedule} =
// DEFINE: %{run} = kvbuf-opt %s --kvbuf-choose-schedule="chip=sm_80 other-by-launch=true schedule=%{schedule}"

// Four warps with three slots of 16 keys each: 4 x (3 x 2 x 16 x 256 + 4 x 130 x 8)
// bytes of the 166912 that a block may have.
// REDEFINE: %{schedule} = split_keys=true
// RUN: %{run} | FileCheck %s --check-prefix=LARGER
// LARGER: BN = 16, BK = {{[0-9]+}}, stages = 3, warps = 4

// Of 64 keys four warps would take 409856 bytes, one takes 98304.
// REDEFINE: %{schedule} = split_keys=true,BN=64,split_size=128
// RUN: %{run} | FileCheck %s --check-prefix=WARPS
// WARPS: BN = 64, BK = {{[0-9]+}}, stages = 3, warps = 1

// Of 128 keys three slots would take 196608 bytes, two take 131072.
// REDEFINE: %{schedule} = split_keys=true,BN=128
// RUN: %{run} | FileCheck %s --check-prefix=SLOTS
// SLOTS: BN = 128, BK = {{[0-9]+}}, stages = 2, warps = 1

// What is asked for stays, and so it is refused.
// REDEFINE: %{schedule} = split_keys=true,BN=64,warps=4,stages=3
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=ASKED
// ASKED: error: 'kvbuffer.attention' op the schedule needs 409856 bytes of shared memory, sm_80 has 166912 for a block
// REDEFINE: %{schedule} = split_keys=true,BK=0
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=NOSIZE
// NOSIZE: error: {{.*}}BK

!qo = memref<?x1x32x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
