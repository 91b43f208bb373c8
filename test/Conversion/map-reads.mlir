// What a map reads of no element stands before the wait for the product whose elements it
// takes: numbers of columns, of rows, of both. What it reads by an element stands behind.
// Words of columns come in pairs, where those of the tensor begin at 8 bytes.

// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=sm_90a --convert-kvbuffer-to-gpu | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-to-scheduled=chip=gfx950 --convert-kvbuffer-to-gpu | FileCheck %s --check-prefix=TURNS

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 128>

// What is only compared lanes have no register of for each key: for a warp's 128 keys, four
// a lane, they find out whether it is the same for all, and what follows for the two rows.
// CHECK-LABEL: gpu.func @documents(
// CHECK:         scf.while (%{{.*}} = %true
// CHECK:         scf.for
// CHECK:           kvbuffer.wgmma c(
// CHECK-NOT:       vector.load
// CHECK-COUNT-7:   memref.load %{{.*}} : memref<?xi32>
// CHECK-NOT:       memref.load
// CHECK:           %[[DIFFER:.*]] = kvbuffer.lane_any
// CHECK-NEXT:      %[[CHANGE:.*]] = kvbuffer.lane_any
// CHECK-NEXT:      kvbuffer.wgmma_wait {{.*}}pending = 1
// CHECK:           scf.if %[[CHANGE]]
// CHECK:             scf.if %[[DIFFER]]
// CHECK-COUNT-32:      gpu.shuffle idx
// CHECK:             } else {
// CHECK-NOT:           gpu.shuffle
// CHECK-COUNT-64:      arith.select
// CHECK-NOT:           arith.select
// CHECK:             }
// CHECK:           } else {
// CHECK-NOT:         arith.select
// CHECK:           }
// Where halves of a block take turns it is one word a lane, on its way beside the scores.
// What is computed of these stands in front of branches that few tiles take, behind the
// question; one side leaves elements as they are.
// TURNS-LABEL: gpu.func @documents(
// TURNS:         kvbuffer.lane_any
// TURNS:         scf.for
// TURNS:           kvbuffer.wave_barrier
// TURNS:           %[[WORD:.*]] = memref.load %{{.*}} : memref<?xi32,
// TURNS-NOT:       memref.load %{{.*}} : memref<?xi32,
// TURNS:           kvbuffer.lane_mma
// TURNS:           kvbuffer.wave_barrier
// TURNS:           kvbuffer.wave_barrier
// TURNS-NOT:       kvbuffer.lane_mma
// TURNS:           gpu.subgroup_broadcast %[[WORD]], first_active_lane
// TURNS:           %[[CHANGE:.*]] = kvbuffer.lane_any
// TURNS-NEXT:      scf.if %[[CHANGE]]
// TURNS-NEXT:        %[[DIFFER:.*]] = kvbuffer.lane_any
// TURNS-NEXT:        scf.if %[[DIFFER]]
// TURNS-COUNT-32:      gpu.shuffle idx %[[WORD]]
// TURNS:             } else {
// TURNS-NEXT:          scf.yield
// TURNS-NEXT:        }
// TURNS-NEXT:        %[[GOES:.*]] = arith.select %[[DIFFER]], %false
// TURNS-COUNT-32:    arith.select %[[GOES]]
// TURNS:           } else {
// TURNS-NEXT:        scf.yield
// TURNS-NEXT:      }
// TURNS:           kvbuffer.lane_mma
func.func @documents(%q: !qo, %k: !kv, %v: !kv,
    %doc: memref<?x?xi32> {kvbuffer.name = "doc", kvbuffer.shape = ["batch", "seq_k"]}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%doc : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %d: memref<?x?xi32>):
      %x = memref.load %d[%batch, %row] : memref<?x?xi32>
      %y = memref.load %d[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      kvbuffer.yield %same : i1
    }
  return
}

// Of which more is asked: 32 keys a lane, and two rows.
// CHECK-LABEL: gpu.func @levels(
// CHECK:         kvbuffer.wgmma_wait {{.*}}pending = 1
// CHECK:         scf.while (%{{.*}} = %true,
// CHECK:         scf.for
// CHECK-NOT:       memref.load {{.*}}xi32
// CHECK:           kvbuffer.wgmma c(
// CHECK:           memref.load %{{.*}} : memref<?xi32>
// CHECK:           memref.extract_aligned_pointer_as_index
// CHECK:           %[[REST:.*]] = arith.andi %{{.*}}, %c7{{.*}} : index
// CHECK:           %[[EVEN:.*]] = arith.cmpi eq, %[[REST]], %c0{{.*}} : index
// CHECK-NEXT:      scf.if %[[EVEN]]
// CHECK-COUNT-16:    vector.load %{{.*}} {alignment = 8 : i64} : memref<?xi32>, vector<2xi32>
// CHECK:           } else {
// CHECK-COUNT-32:    memref.load %{{.*}}xi32
// CHECK:           }
// CHECK:           memref.load %{{.*}} : memref<?xi32>
// CHECK-NOT:       memref.load
// CHECK:           kvbuffer.wgmma_wait {{.*}}pending = 1
// CHECK-NOT:       memref.load
// CHECK:           kvbuffer.wgmma_wait
func.func @levels(%q: !qo, %k: !kv, %v: !kv,
    %doc: memref<?x?xi32> {kvbuffer.name = "doc", kvbuffer.shape = ["batch", "seq_k"]}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%doc : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %d: memref<?x?xi32>):
      %x = memref.load %d[%batch, %row] : memref<?x?xi32>
      %y = memref.load %d[%batch, %key] : memref<?x?xi32>
      %same = arith.cmpi sle, %x, %y : i32
      kvbuffer.yield %same : i1
    }
  return
}

// A bias of f32 as well, by the position, whose tiles no box has: in pairs for each of a
// lane's two rows. The lines of the tile before, 64 keys of 4 bytes, are asked for a tile
// ahead.
// CHECK-LABEL: gpu.func @bias(
// CHECK:         kvbuffer.wgmma_wait {{.*}}pending = 1
// CHECK:         scf.while (%{{.*}} = %true,
// CHECK:         scf.for
// CHECK:           kvbuffer.wgmma c(
// CHECK-COUNT-4:   memref.prefetch %{{.*}}, read, locality<2>, data : memref<?xf32>
// CHECK:           %[[EVEN:.*]] = arith.cmpi eq, %{{.*}}, %c0{{.*}} : index
// CHECK-NEXT:      scf.if %[[EVEN]]
// CHECK-COUNT-16:    vector.load %{{.*}} {alignment = 8 : i64} : memref<?xf32>, vector<2xf32>
// CHECK:           } else {
// CHECK-COUNT-32:    memref.load %{{.*}} : memref<?xf32>
// CHECK:           }
// CHECK-NOT:       memref.load
// CHECK:           kvbuffer.wgmma_wait {{.*}}pending = 1
// CHECK-NOT:       memref.load
// CHECK:           kvbuffer.wgmma_wait
func.func @bias(%q: !qo, %k: !kv, %v: !kv,
    %bias: memref<4x?x?xf32> {kvbuffer.name = "bias", kvbuffer.shape = [4, "seq_q", "seq_k"]}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%bias : memref<4x?x?xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %b: memref<4x?x?xf32>):
      %x = memref.load %b[%head, %at, %key] : memref<4x?x?xf32>
      %t = arith.addf %s, %x : f32
      kvbuffer.yield %t : f32
    }
  return
}

// What is true or false of a key alone, a list's entry that is one: lanes of a warp, which
// have 32 of 128 columns each, find it out for four each, before the wait, and vote.
// CHECK-LABEL: gpu.func @listed(
// CHECK:         scf.while (%{{.*}} = %true,
// CHECK:         scf.for
// CHECK:           kvbuffer.wgmma c(
// CHECK-NOT:       vector.load
// CHECK-COUNT-4:   kvbuffer.lane_vote
// CHECK-NOT:       memref.load
// CHECK:           kvbuffer.wgmma_wait
// CHECK-NOT:       memref.load
// CHECK:           arith.andi %{{.*}}, %c1_i32
func.func @listed(%q: !qo, %k: !kv, %v: !kv,
    %names: memref<?x?xi32> {kvbuffer.name = "names", kvbuffer.shape = ["batch", "seq_k"]}, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
    captures(%names : memref<?x?xi32>)
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index, %n: memref<?x?xi32>):
      %named = memref.load %n[%batch, %key] : memref<?x?xi32>
      %c9 = arith.constant 9 : i32
      %exists = arith.cmpi ult, %named, %c9 : i32
      kvbuffer.yield %exists : i1
    }
  return
}
