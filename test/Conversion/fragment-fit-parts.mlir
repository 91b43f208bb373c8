// An operand of bf16 becomes two of e4m3 side by side: what rounding leaves, and what it
// makes. An infinity, of which x - x is no number, becomes one.
// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu --canonicalize --cse | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 32, warps = 1, mma_shape = [16, 8, 32]>
#qbuf = #kvbuffer.kv_buffer<16x32xbf16, BK = 32>
!acc = !kvbuffer.fragment<16x8xf32, acc>
!q = memref<?x?x1x32xbf16>

module attributes {kvbuffer.target = "sm_89"} {
  gpu.module @m {
    // CHECK-LABEL: gpu.func @parts
    // The largest has the exponent 7, and 2^(7 - (e - 127)) the field 261 - e.
    // CHECK:      arith.subi %c262_i32,
    // CHECK:      %[[WIDE:.*]] = vector.interleave %{{.*}}, %{{.*}} : vector<2xf32> -> vector<4xf32>
    // CHECK-NEXT: %[[NONE:.*]] = arith.subf %[[WIDE]], %[[WIDE]]
    // CHECK-NEXT: %[[X:.*]] = arith.addf %[[WIDE]], %[[NONE]]
    // Finite ones end at the largest number of the format.
    // CHECK:      %[[UPPER:.*]] = arith.truncf %{{.*}} : vector<4xf32> to vector<4xf8E4M3FN>
    // CHECK-NEXT: %[[BACK:.*]] = arith.extf %[[UPPER]] : vector<4xf8E4M3FN> to vector<4xf32>
    // CHECK-NEXT: %[[LEFT:.*]] = arith.subf %[[X]], %[[BACK]]
    // CHECK:      %[[REST:.*]] = arith.truncf %{{.*}} : vector<4xf32> to vector<4xf8E4M3FN>
    // The rest is multiplied first, and the other part added to that.
    // CHECK:      %[[FIRST:.*]] = kvbuffer.lane_mma {{.*}}%[[REST]]
    // CHECK:      kvbuffer.lane_mma {{.*}}%[[UPPER]]
    gpu.func @parts(%x: !q {kvbuffer.name = "x"}, %s: memref<1xf32> {kvbuffer.name = "s"},
                    %out: memref<?x?x1x8xbf16> {kvbuffer.name = "out"})
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [1, 1, 1]} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %scale = memref.load %s[%c0] : memref<1xf32>
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %tile = kvbuffer.dram_tile %x[%c0, %c0, %c0] valid(%c16) : !q -> !kvbuffer.tile<16x32xbf16>
      %token = kvbuffer.dram_load %tile into %buf : !kvbuffer.tile<16x32xbf16>, !kvbuffer.buffer<#qbuf>
      %staged = kvbuffer.lds_stage %token {younger = 0 : i64} : !kvbuffer.token<#qbuf>
      %a = kvbuffer.fragment_load %staged[0, 0] : !kvbuffer.staged<#qbuf> -> !kvbuffer.fragment<16x32xbf16, a>
      %parts, %factor = kvbuffer.fragment_fit %a times(%scale)
        : !kvbuffer.fragment<16x32xbf16, a> -> !kvbuffer.fragment<16x64xf8E4M3FN, a>, !kvbuffer.fragment<16x1xf32, row>
      %rest = kvbuffer.fragment_slice %parts[0, 0] : !kvbuffer.fragment<16x64xf8E4M3FN, a> -> !kvbuffer.fragment<16x32xf8E4M3FN, a>
      %upper = kvbuffer.fragment_slice %parts[0, 32] : !kvbuffer.fragment<16x64xf8E4M3FN, a> -> !kvbuffer.fragment<16x32xf8E4M3FN, a>
      %b = kvbuffer.fragment_fill 1.0 : !kvbuffer.fragment<32x8xf8E4M3FN, b>
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %p = kvbuffer.mma %rest, %b, %zero : !kvbuffer.fragment<16x32xf8E4M3FN, a>, !kvbuffer.fragment<32x8xf8E4M3FN, b>, !acc
      %p1 = kvbuffer.mma %upper, %b, %p : !kvbuffer.fragment<16x32xf8E4M3FN, a>, !kvbuffer.fragment<32x8xf8E4M3FN, b>, !acc
      %r = kvbuffer.rescale %p1, %factor : !acc, !kvbuffer.fragment<16x1xf32, row>
      %o = kvbuffer.fragment_convert %r : !acc -> !kvbuffer.fragment<16x8xbf16, acc>
      %to = kvbuffer.dram_tile %out[%c0, %c0, %c0] valid(%c16) : memref<?x?x1x8xbf16> -> !kvbuffer.tile<16x8xbf16>
      kvbuffer.fragment_store %o, %to : !kvbuffer.fragment<16x8xbf16, acc>, !kvbuffer.tile<16x8xbf16>
      gpu.return
    }
  }
}
