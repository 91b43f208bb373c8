// RUN: kvbuf-opt %s --kvbuf-choose-target=chip=sm_80 --kvbuf-lower-append --split-input-file | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-choose-target=chip=gfx942 --kvbuf-lower-append --split-input-file | FileCheck %s --check-prefix=DIES

!new = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>

// Sixteen lanes a head, sixteen heads a block.
// CHECK-LABEL: gpu.func @ragged(
// CHECK-SAME:    %[[K:.*]]: memref<?x8x128xbf16, {{.*}}> {kvbuffer.access = "read", kvbuffer.name = "k_new", kvbuffer.shape = ["total_new", 8, 128]}
// CHECK-SAME:    kvbuffer.access = "read_write", kvbuffer.index = i64, kvbuffer.name = "k"}
// CHECK-SAME:    kvbuffer.name = "offsets", kvbuffer.shape = [#kvbuffer.size<sum(batch, 1)>]}
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<ceildiv(product(total_new, 8), 16)>, 1, 1]
// CHECK-SAME:    kvbuffer.phase = #kvbuffer.phase<thread>
// CHECK-SAME:    kvbuffer.problem = #kvbuffer.problem<at = false, cache = "paged", head_size = 128, heads = 8, k_cache_depth = 128, k_head_dim_offset = 0, new = "ragged", op = "cache_append", page_size = 16, v_cache_depth = 128, v_head_dim_offset = 0, values = true>
// The tokens are on their way before the search for their sequence.
// CHECK:         vector.load %[[K]]{{.*}} {alignment = 16 : i64}
// CHECK:         vector.load
// CHECK:         scf.while
// CHECK:         kvbuffer.cache.cache_length
// CHECK:         kvbuffer.cache.store {{.*}} {alignment = 16 : i64} : vector<8xbf16>
// CHECK:         kvbuffer.cache.store
// CHECK-NOT:     arith.extf
// Each of a chip's eight dies has a run of blocks: 3 and 11 follow each other.
// DIES-LABEL:    gpu.func @ragged(
// DIES:          %[[ROWS:.*]] = arith.muli %{{.*}}, %{{.*}} : index
// DIES:          %[[BLOCKS:.*]] = arith.ceildivui %[[ROWS]], %{{.*}} : index
// DIES:          %[[TOTAL:.*]] = arith.index_castui %[[BLOCKS]] : index to i32
// DIES:          %[[DIE:.*]] = arith.remui %{{.*}}, %c8_i32
// DIES:          %[[EACH:.*]] = arith.divui %[[TOTAL]], %c8_i32
// DIES:          %[[MORE:.*]] = arith.remui %[[TOTAL]], %c8_i32
// DIES:          arith.muli %[[DIE]], %[[EACH]] : i32
// DIES:          arith.minui %[[DIE]], %[[MORE]] : i32
func.func @ragged(%k: !new, %v: !new, %kc: !paged {kvbuffer.index = i64}, %vc: !paged, %o: memref<?xi32>) {
  kvbuffer.cache_append k(%k : !new) to(%kc : !paged) v(%v : !new) to(%vc : !paged) offsets(%o : memref<?xi32>)
  return
}

// -----

!new = memref<4x?x2x80xf32>
!dense = !kvbuffer.cache<dense, f8E5M2, heads = 2, head_size = 80, scale = f32, granularity = 80>

// Types that fix a size fix it in the grid. A scale of five lanes' elements: eight
// lanes a head, so that all meet by halves.
// CHECK-LABEL: gpu.func @dense(
// CHECK-SAME:    kvbuffer.shape = [4, "seq_new", 2, 80]
// CHECK-SAME:    kvbuffer.name = "at", kvbuffer.shape = ["batch"]
// CHECK-SAME:    kvbuffer.name = "cos", kvbuffer.shape = ["positions", 16]
// CHECK-SAME:    kvbuffer.grid = [#kvbuffer.size<ceildiv(product(4, seq_new, 2), 32)>, 1, 1]
// CHECK-SAME:    k_granularity = 80
// CHECK-SAME:    rope = "interleaved"
// CHECK:         vector.load {{.*}} vector<16xf32>
// CHECK:         memref.load
// CHECK:         vector.shuffle
// CHECK-COUNT-3: gpu.shuffle  xor
// CHECK:         kvbuffer.cache.store_scale
// CHECK:         arith.truncf {{.*}} : vector<16xf32> to vector<16xf8E5M2>
// CHECK:         kvbuffer.cache.store
func.func @dense(%k: !new, %kc: !dense, %at: memref<?xi32>, %cos: memref<?x16xf32>, %sin: memref<?x16xf32>) {
  kvbuffer.cache_append k(%k : !new) to(%kc : !dense) at(%at : memref<?xi32>)
    rope(%cos, %sin : memref<?x16xf32>, memref<?x16xf32>) {interleaved}
  return
}

// -----

// V's heads of another size: 24 lanes have 8 elements of K, 8 of them 16 of V, whose
// scales they make; as many as a power of two lie within a wave.
// CHECK-LABEL: gpu.func @sizes(
// CHECK-SAME:    kvbuffer.shape = ["total_new", 8, 192]}
// CHECK-SAME:    kvbuffer.shape = ["total_new", 8, 128]}
// CHECK-SAME:    head_size = 192, {{.*}}v_head_size = 128
// CHECK:         %[[LANE:.*]] = arith.remui %thread_id_x, %c32{{.*}}
// CHECK:         %[[EXISTS:.*]] = arith.cmpi slt, %[[TOKEN:.*]], %
// CHECK:         %[[OFK:.*]] = arith.cmpi slt, %[[LANE]], %c24{{.*}}
// CHECK:         %[[K:.*]] = arith.andi %[[EXISTS]], %[[OFK]]
// CHECK:         %[[OFV:.*]] = arith.cmpi slt, %[[LANE]], %c8{{.*}}
// CHECK:         %[[V:.*]] = arith.andi %[[EXISTS]], %[[OFV]]
// CHECK:         %[[FIRST:.*]] = arith.muli %[[LANE]], %c16{{.*}}
// CHECK:         %[[DIM:.*]] = arith.select %[[V]], %[[FIRST]], %
// CHECK:         arith.select %[[EXISTS]], %[[TOKEN]], %
// CHECK:         scf.if %[[K]] -> (vector<8xbf16>)
// CHECK:         scf.if %[[V]] -> (vector<16xbf16>)
// CHECK:         scf.if %[[K]] {
// CHECK:         gpu.shuffle xor
// CHECK:         scf.if %[[V]] {
// CHECK:         kvbuffer.cache.store {{.*}} : vector<16xf8E4M3FN>
!newk = memref<?x8x192xbf16, strided<[?, ?, 1]>>
!newv = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!kc = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 192, page_size = 16>
!vc = !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 16, scale = f32, granularity = 32>
func.func @sizes(%k: !newk, %v: !newv, %kc: !kc, %vc: !vc, %o: memref<?xi32>) {
  kvbuffer.cache_append k(%k : !newk) to(%kc : !kc) v(%v : !newv) to(%vc : !vc) offsets(%o : memref<?xi32>)
  return
}
