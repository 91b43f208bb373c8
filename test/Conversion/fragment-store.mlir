// Results on their way from accumulators to DRAM: which lanes exchange what, and
// how wide the stores are. One warp, 16 rows.

// DEFINE: %{pass} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu,canonicalize,cse))"
// RUN: %{pass} %s | FileCheck %s
// RUN: %{pass} %s | FileCheck %s --check-prefix=COUNT
// RUN: sed -e 's/sm_80/gfx950/' -e 's/16, 8, 16./16, 16, 32], swap_a_b = true/' -e 's/56/64/g' %s | %{pass} | FileCheck %s --check-prefix=AMD

// 56 columns are seven vectors of 8; of each, a lane of a quad holds the word
// l % 4. Four vectors: bits 0 and 1 of the lane, two words to and two from each
// other lane. A lane with bit 0 set gives the even word and keeps the odd one.
// CHECK:      arith.muli %{{.*}}, %arg8 : index
// CHECK:      %[[VALID:.*]] = arith.cmpi slt
// CHECK-NEXT: %[[QUAD:.*]] = arith.andi %[[LANE:.*]], %c3_i32 : i32
// CHECK-NEXT: %[[COL:.*]] = arith.shli %[[QUAD]], %c3_i32 : i32
// CHECK:      %[[LINE:.*]] = arith.addi
// CHECK-NEXT: %[[COLX:.*]] = arith.index_cast %[[COL]]
// CHECK-NEXT: %[[FROM:.*]] = arith.addi %[[LINE]], %[[COLX]]
// CHECK:      %[[BIT0:.*]] = arith.andi %[[LANE]], %c1_i32 : i32
// CHECK-NEXT: %[[ODD:.*]] = arith.cmpi ne, %[[BIT0]], %c0_i32
// CHECK-NEXT: %[[G0:.*]] = arith.select %[[ODD]], %[[W0:.*]], %[[W1:.*]] : i32
// CHECK-NEXT: %[[T0:.*]], %{{.*}} = gpu.shuffle xor %[[G0]], %c1_i32, %c32_i32 : i32
// CHECK-NEXT: %[[A0:.*]] = arith.select %[[ODD]], %[[T0]], %[[W0]] : i32
// CHECK-NEXT: %[[A1:.*]] = arith.select %[[ODD]], %[[W1]], %[[T0]] : i32
// CHECK-NEXT: %[[G1:.*]] = arith.select %[[ODD]], %[[W2:.*]], %[[W3:.*]] : i32
// CHECK-NEXT: %[[T1:.*]], %{{.*}} = gpu.shuffle xor %[[G1]], %c1_i32, %c32_i32 : i32
// CHECK-NEXT: %[[A2:.*]] = arith.select %[[ODD]], %[[T1]], %[[W2]] : i32
// CHECK-NEXT: %[[A3:.*]] = arith.select %[[ODD]], %[[W3]], %[[T1]] : i32
// CHECK-NEXT: %[[BIT1:.*]] = arith.andi %[[LANE]], %c2_i32 : i32
// CHECK-NEXT: %[[HIGH:.*]] = arith.cmpi ne, %[[BIT1]], %c0_i32
// CHECK-NEXT: %[[G2:.*]] = arith.select %[[HIGH]], %[[A0]], %[[A2]] : i32
// CHECK-NEXT: %[[T2:.*]], %{{.*}} = gpu.shuffle xor %[[G2]], %c2_i32, %c32_i32 : i32
// CHECK-NEXT: %[[V0:.*]] = arith.select %[[HIGH]], %[[T2]], %[[A0]] : i32
// CHECK-NEXT: %[[V2:.*]] = arith.select %[[HIGH]], %[[A2]], %[[T2]] : i32
// CHECK-NEXT: %[[G3:.*]] = arith.select %[[HIGH]], %[[A1]], %[[A3]] : i32
// CHECK-NEXT: %[[T3:.*]], %{{.*}} = gpu.shuffle xor %[[G3]], %c2_i32, %c32_i32 : i32
// CHECK-NEXT: %[[V1:.*]] = arith.select %[[HIGH]], %[[T3]], %[[A1]] : i32
// CHECK-NEXT: %[[V3:.*]] = arith.select %[[HIGH]], %[[A3]], %[[T3]] : i32
// CHECK-NEXT: %[[WORDS:.*]] = vector.from_elements %[[V0]], %[[V1]], %[[V2]], %[[V3]] : vector<4xi32>
// CHECK-NEXT: %[[EIGHT:.*]] = vector.bitcast %[[WORDS]] : vector<4xi32> to vector<8xbf16>
// Only then lanes whose row is not valid stay out. Lane i of a quad stores the
// i-th vector.
// CHECK-NEXT: scf.if %[[VALID]] {
// CHECK-NEXT:   vector.store %[[EIGHT]], %{{.*}}[%[[FROM]]] {alignment = 16 : i64}
// CHECK-NEXT: }
// Two of the three that are left: bit 0 chooses the vector, bit 1 the half of it.
// CHECK-NEXT: %[[VECTOR:.*]] = arith.shli %[[BIT0]], %c3_i32 : i32
// CHECK-NEXT: %[[HALF:.*]] = arith.shli %[[BIT1]], %c1_i32 : i32
// CHECK-NEXT: %[[COL2:.*]] = arith.xori %[[VECTOR]], %[[HALF]] : i32
// CHECK-NEXT: %[[COL2X:.*]] = arith.index_cast %[[COL2]]
// CHECK-NEXT: %[[FROM2:.*]] = arith.addi %[[LINE]], %[[COL2X]]
// CHECK:      gpu.shuffle xor %{{.*}}, %c1_i32, %c32_i32 : i32
// CHECK-NOT:  gpu.shuffle
// CHECK:      %[[FOUR:.*]] = vector.bitcast %{{.*}} : vector<2xi32> to vector<4xbf16>
// CHECK-NEXT: scf.if %[[VALID]] {
// CHECK-NEXT:   %[[AT2:.*]] = arith.addi %[[FROM2]], %c32
// CHECK-NEXT:   vector.store %[[FOUR]], %{{.*}}[%[[AT2]]] {alignment = 8 : i64}
// After 48 columns each lane its own word.
// CHECK-NEXT:   %[[COL3:.*]] = arith.shli %[[QUAD]], %c1_i32 : i32
// CHECK-NEXT:   %[[COL3X:.*]] = arith.index_cast %[[COL3]]
// CHECK-NEXT:   %[[FROM3:.*]] = arith.addi %[[LINE]], %[[COL3X]]
// CHECK-NEXT:   %[[AT3:.*]] = arith.addi %[[FROM3]], %c48
// CHECK-NEXT:   vector.store %{{.*}}[%[[AT3]]] {alignment = 4 : i64} : {{.*}}, vector<2xbf16>
// CHECK-NEXT: }

// A lane holds two rows, each with 4 + 1 shuffles.
// COUNT-COUNT-10: gpu.shuffle xor {{.*}} : i32
// COUNT-NOT:      gpu.shuffle xor {{.*}} : i32

// A lane of AMD's holds four columns, two words: nothing is exchanged.
// AMD-NOT: gpu.shuffle {{.*}} : i32
// AMD:     vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xbf16>
// AMD-NOT: gpu.shuffle {{.*}} : i32

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 32, stages = 1, warps = 1, mma_shape = [16, 8, 16]>
#left = #kvbuffer.kv_buffer<16x32xbf16>
#right = #kvbuffer.kv_buffer<32x56xbf16, BK = 32>
!x = memref<?x?x1x56xbf16, strided<[?, ?, ?, 1]>>
!a = !kvbuffer.fragment<16x32xbf16, a>
!b = !kvbuffer.fragment<32x56xbf16, b>
!acc = !kvbuffer.fragment<16x56xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @product(%w: memref<16x32xbf16> {kvbuffer.name = "w"}, %x: !x {kvbuffer.name = "x", kvbuffer.shape = ["batch", 32, 1, 56]}, %y: !x {kvbuffer.name = "y", kvbuffer.shape = ["batch", "n", 1, 56]})
        kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [#kvbuffer.size<ceildiv(n, 16)>, 1, "batch"]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %number = gpu.block_id x
      %batch = gpu.block_id z
      %n = memref.dim %y, %c1 : !x
      %row = arith.muli %number, %c16 : index
      %rows = arith.subi %n, %row : index
      %w_slot = kvbuffer.alloc : !kvbuffer.buffer<#left>
      %x_slot = kvbuffer.alloc : !kvbuffer.buffer<#right>
      %wt = kvbuffer.dram_tile %w[%c0, %c0] valid(%c16, %c32) : memref<16x32xbf16> -> !kvbuffer.tile<16x32xbf16>
      %wl = kvbuffer.dram_load %wt into %w_slot[%c0] : !kvbuffer.tile<16x32xbf16>, !kvbuffer.buffer<#left>
      %xt = kvbuffer.dram_tile %x[%batch, %c0, %c0] valid(%c32) : !x -> !kvbuffer.tile<32x56xbf16>
      %xl = kvbuffer.dram_load %xt into %x_slot[%c0] : !kvbuffer.tile<32x56xbf16>, !kvbuffer.buffer<#right>
      %ws, %xs = kvbuffer.lds_stage %wl, %xl {younger = 0 : i64} : !kvbuffer.token<#left>, !kvbuffer.token<#right>
      %wf = kvbuffer.fragment_load %ws[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
      %xf = kvbuffer.fragment_load %xs[0, 0] contracted(rows) : !kvbuffer.staged<#right> -> !b
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %values = kvbuffer.mma %wf, %xf, %zero : !a, !b, !acc
      %rounded = kvbuffer.fragment_convert %values : !acc -> !kvbuffer.fragment<16x56xbf16, acc>
      %tile = kvbuffer.dram_tile %y[%batch, %row, %c0] valid(%rows) : !x -> !kvbuffer.tile<16x56xbf16>
      kvbuffer.fragment_store %rounded, %tile : !kvbuffer.fragment<16x56xbf16, acc>, !kvbuffer.tile<16x56xbf16>
      gpu.return
    }
  }
}
