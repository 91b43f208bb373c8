// Results on their way from accumulators to DRAM: which lanes exchange what, and
// how wide the stores are. One warp, 16 queries.

// RUN: split-file %s %t
// RUN: kvbuf-opt %t/odd.mlir --kvbuf-to-thread="schedule=BM=16,BN=16,BK=32,warps=1,stages=1,split_masks=false" | FileCheck %s
// RUN: kvbuf-opt %t/odd.mlir --kvbuf-to-thread="schedule=BM=16,BN=16,BK=32,warps=1,stages=1,split_masks=false" | FileCheck %s --check-prefix=COUNT
// RUN: kvbuf-opt %t/even.mlir --kvbuf-to-thread="chip=gfx950" | FileCheck %s --check-prefix=QUERIES

// 56 columns are seven vectors of 8; of each, a lane of a quad holds the word
// l % 4. Four vectors: bits 0 and 1 of the lane, two words to and two from each
// other lane. A lane with bit 0 set gives the even word and keeps the odd one.
// CHECK:      arith.muli %{{.*}}, %arg16 : index
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
// Behind 48 columns each lane its own word.
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
// QUERIES-NOT: gpu.shuffle {{.*}} : i32
// QUERIES:     vector.store {{.*}} {alignment = 8 : i64} : {{.*}}, vector<4xbf16>
// QUERIES-NOT: gpu.shuffle {{.*}} : i32

//--- odd.mlir
!qo = memref<?x?x1x56xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 56>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

//--- even.mlir
!qo = memref<?x?x1x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
