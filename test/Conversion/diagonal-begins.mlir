// What a product begins with, where halves of a block take turns, is the same along a diagonal of
// a tile, or for a key: each lane of a wave computes it for one, and lanes take others' in front of
// the barrier behind which they multiply.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=gfx950 --convert-kvbuffer-to-gpu | FileCheck %s
// RUN: sed -e 's/x128xbf16/x256xbf16/g; s/head_size = 128/head_size = 256/' %s | kvbuf-opt --kvbuf-to-scheduled=chip=gfx950 --convert-kvbuffer-to-gpu | FileCheck %s --check-prefix=NARROW

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 128>

// Of 32 rows a word is of 32 keys, of which a lane has 16; no lane compares scores.
// CHECK-LABEL: gpu.func @causal(
// CHECK:         scf.for
// CHECK-COUNT-2: arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK-NOT:     arith.select {{.*}} : f32
// CHECK-COUNT-32: gpu.shuffle idx
// CHECK-NOT:     gpu.shuffle idx
// CHECK:         kvbuffer.wave_barrier
// CHECK:         scf.for
// CHECK-NOT:     gpu.shuffle idx
// CHECK-LABEL: gpu.func @end(
// NARROW-LABEL: gpu.func @causal(
// NARROW:         scf.for
// NARROW:         arith.select {{.*}} : f32
// NARROW-COUNT-8: gpu.shuffle idx
// NARROW-NOT:     gpu.shuffle idx
// NARROW:         kvbuffer.wave_barrier
// NARROW-LABEL: gpu.func @end(
func.func @causal(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// All 64 keys are one word.
// CHECK:         scf.for
// CHECK:         %[[WORD:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK-NOT:     arith.select {{.*}} : f32
// CHECK-COUNT-32: gpu.shuffle idx %[[WORD]],
// CHECK-NOT:     gpu.shuffle idx
// CHECK:         kvbuffer.wave_barrier
func.func @end(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// Of a table that has a number for each lane of a wave, and no more, each lane reads one in front
// of the loop, and asks for those of its diagonals.
// CHECK-LABEL: gpu.func @table(
// CHECK:         scf.for
// CHECK-NOT:     memref.load %{{.*}} : memref<?xf32,
// CHECK-COUNT-34: gpu.shuffle idx
// CHECK-NOT:     gpu.shuffle idx
// CHECK:         kvbuffer.wave_barrier
// CHECK-LABEL: gpu.func @wide_table(
func.func @table(%q: !qo, %k: !kv, %v: !kv,
    %table: memref<4x64xf32> {kvbuffer.name = "table"}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
    captures(%table : memref<4x64xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index, %table_: memref<4x64xf32>):
      %c0 = arith.constant 0 : index
      %c63 = arith.constant 63 : index
      %distance = arith.subi %position, %key : index
      %least = arith.maxsi %distance, %c0 : index
      %most = arith.minsi %least, %c63 : index
      %b = memref.load %table_[%head, %most] : memref<4x64xf32>
      %t = arith.addf %s, %b : f32
      kvbuffer.yield %t : f32
    }
  return
}

// CHECK:         scf.for
// CHECK:         memref.load %{{.*}} : memref<?xf32,
// CHECK:         kvbuffer.wave_barrier
func.func @wide_table(%q: !qo, %k: !kv, %v: !kv,
    %table: memref<4x65xf32> {kvbuffer.name = "table"}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%table : memref<4x65xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %position: index, %key: index, %table_: memref<4x65xf32>):
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %distance = arith.subi %position, %key : index
      %least = arith.maxsi %distance, %c0 : index
      %most = arith.minsi %least, %c64 : index
      %b = memref.load %table_[%head, %most] : memref<4x65xf32>
      %t = arith.addf %s, %b : f32
      kvbuffer.yield %t : f32
    }
  return
}
