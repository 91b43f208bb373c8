// What a map reads by how far the key is behind the row is the same along a diagonal of a
// tile: each lane of a wave reads the word of one, for every 32 keys beside 32 rows, and lanes
// take others' where scores need them, behind the next barrier.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=gfx950 --convert-kvbuffer-to-gpu | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=gfx942 --convert-kvbuffer-to-gpu | FileCheck %s
// Where a wave has 16 rows a word is of 48 keys: of the 32 of a tile each lane has 8.
// RUN: sed -e 's/x128xbf16/x256xbf16/g; s/head_size = 128/head_size = 256/' %s | kvbuf-opt --kvbuf-to-scheduled=chip=gfx950 --convert-kvbuffer-to-gpu | FileCheck %s --check-prefix=NARROW

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 128>

// CHECK-LABEL: gpu.func @relative(
// CHECK:         scf.for
// CHECK-COUNT-2: kvbuffer.wave_barrier
// CHECK:         %[[WORD:.*]] = memref.load {{.*}} : memref<?xf32,
// CHECK-NOT:     gpu.shuffle idx
// CHECK:         kvbuffer.wave_barrier
// CHECK:         %[[LANE:.*]] = arith.addi %{{.*}} overflow<nsw> : i32
// CHECK:         %[[FIRST:.*]] = arith.addi %[[LANE]], %c0_i32{{.*}} overflow<nsw> : i32
// CHECK:         gpu.shuffle idx %[[WORD]], %[[FIRST]],
// CHECK:         %[[NEXT:.*]] = arith.addi %[[LANE]], %c1_i32{{.*}} overflow<nsw> : i32
// CHECK:         gpu.shuffle idx %[[WORD]], %[[NEXT]],
// CHECK-COUNT-14: gpu.shuffle idx %[[WORD]],
// CHECK-NOT:     gpu.shuffle idx %[[WORD]],
// CHECK:         kvbuffer.wave_barrier
// NARROW-LABEL: gpu.func @relative(
// NARROW:         scf.for
// NARROW-COUNT-2: kvbuffer.wave_barrier
// NARROW:         %[[WORD:.*]] = memref.load {{.*}} : memref<?xf32,
// NARROW-NOT:     memref.load {{.*}} : memref<?xf32,
// NARROW:         kvbuffer.wave_barrier
// NARROW-COUNT-8: gpu.shuffle idx %[[WORD]],
// NARROW-NOT:     gpu.shuffle idx
// NARROW:         kvbuffer.wave_barrier
func.func @relative(%q: !qo, %k: !kv, %v: !kv,
    %table: memref<4x81xf32> {kvbuffer.name = "table"}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%table : memref<4x81xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index, %table_: memref<4x81xf32>):
      %c40 = arith.constant 40 : index
      %cm40 = arith.constant -40 : index
      %distance = arith.subi %key, %position : index
      %least = arith.maxsi %distance, %cm40 : index
      %most = arith.minsi %least, %c40 : index
      %bucket = arith.addi %most, %c40 : index
      %b = memref.load %table_[%head, %bucket] : memref<4x81xf32>
      %t = arith.addf %s, %b : f32
      kvbuffer.yield %t : f32
    }
  return
}

// One that follows from the row, too, each score reads for itself.
// CHECK-LABEL: gpu.func @by_row(
// CHECK-NOT:     gpu.shuffle idx
func.func @by_row(%q: !qo, %k: !kv, %v: !kv,
    %table: memref<4x82xf32> {kvbuffer.name = "table"}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%table : memref<4x82xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index, %table_: memref<4x82xf32>):
      %c1 = arith.constant 1 : index
      %c40 = arith.constant 40 : index
      %cm40 = arith.constant -40 : index
      %distance = arith.subi %key, %position : index
      %least = arith.maxsi %distance, %cm40 : index
      %most = arith.minsi %least, %c40 : index
      %bucket = arith.addi %most, %c40 : index
      %odd = arith.andi %row, %c1 : index
      %at = arith.addi %bucket, %odd : index
      %b = memref.load %table_[%head, %at] : memref<4x82xf32>
      %t = arith.addf %s, %b : f32
      kvbuffer.yield %t : f32
    }
  return
}
