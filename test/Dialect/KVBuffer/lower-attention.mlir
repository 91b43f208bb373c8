// RUN: kvbuf-opt %s --kvbuf-choose-schedule=schedule=BN=64 --kvbuf-lower-problems --canonicalize --split-input-file | FileCheck %s

// CHECK-DAG: #[[Q:.*]] = #kvbuffer.kv_buffer<128x128xbf16, BK = 64, stages = 1, open>
// CHECK-DAG: #[[KV:.*]] = #kvbuffer.kv_buffer<64x128xbf16, BK = 64, stages = 2, open>

// The problem has become a kernel.
// CHECK:     module attributes {gpu.container_module, kvbuffer.target = "sm_80"}
// CHECK-NOT: func.func
// CHECK:     gpu.module @causal_module
// CHECK:     gpu.func @causal(
// CHECK-SAME:  %[[ARGQ:.*]]: memref<?x?x16x128xbf16> {kvbuffer.access = "read", kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 16, 128]}, %[[ARGK:.*]]: !kvbuffer.cache<{{.*}}> {kvbuffer.access = "read", kvbuffer.name = "k"}, %[[ARGV:.*]]: !kvbuffer.cache<{{.*}}> {kvbuffer.access = "read", kvbuffer.name = "v"}, %[[ARGO:.*]]: memref<?x?x16x128xbf16> {kvbuffer.access = "write", kvbuffer.name = "o", kvbuffer.shape = ["batch", "seq_q", 16, 128]}
// CHECK-SAME:  kernel attributes {known_block_size = array<i32: 128, 1, 1>, kvbuffer.phase = #kvbuffer.phase<tile>
// CHECK-SAME:  kvbuffer.problem = #kvbuffer.problem<cache = "dense", causal = true, dtype = "bf16", head_size = 128, heads = 16, kv_heads = 8, lse = false, op = "attention", query = "dense", scale = {{0\.0883883[0-9]*}}, sink = false, softcap = 0.000000e+00, window_left = -1, window_right = -1>

// An item is a tile of queries of a head and a sequence: the tiles of a head read the
// same keys, and later ones see more of them; two heads share a head of the cache.
// CHECK:     %[[TILE:.*]], %[[HEAD:.*]], %[[BATCH:.*]] = kvbuffer.work_item [<"seq_q" by 128, growing, sharing = all>, <16, sharing = 2>, <"batch">] reads product(max(seq_k, 1), 512)
// What a cluster has to agree about follows from its first row.
// CHECK:     %[[ROW:.*]], %[[OWN:.*]] = kvbuffer.item_rows %[[TILE]] by 128
// CHECK:     %[[KVHEAD:.*]] = arith.divui %[[HEAD]], %c2
// CHECK:     %[[QUERIES:.*]] = memref.dim %[[ARGQ]], %c1
// CHECK:     %[[ACTIVE:.*]] = arith.cmpi slt, %[[ROW]], %[[QUERIES]]
// CHECK:     scf.if %[[ACTIVE]]
// CHECK:       %[[KEYS:.*]] = kvbuffer.cache.num_keys %[[ARGK]][%[[BATCH]]] new(%[[QUERIES]])
// CHECK:       %[[LO:.*]], %{{.*}}, %{{.*}}, %{{.*}} = kvbuffer.key_range %[[ROW]] of %[[QUERIES]] keys %[[KEYS]] {BM = 128 : i64, descending, mask = #kvbuffer.mask<causal = true>}
// What a block loads and stores follows from its own.
// CHECK:       %[[LEFT:.*]] = arith.subi %[[QUERIES]], %[[OWN]]
// CHECK:       %[[QBUF:.*]] = kvbuffer.alloc {label = "q"} : <#[[Q]]>
// CHECK:       %[[KBUF:.*]] = kvbuffer.alloc {label = "k"} : <#[[KV]]>
// CHECK:       %[[VBUF:.*]] = kvbuffer.alloc {label = "v"} : <#[[KV]]>
// CHECK:       %[[QT:.*]] = kvbuffer.dram_tile %[[ARGQ]][%[[BATCH]], %[[OWN]], %[[HEAD]]] valid(%[[LEFT]]) :
// CHECK:       kvbuffer.dram_load %[[QT]] into %[[QBUF]] :
// CHECK:       kvbuffer.lds_stage
// CHECK:       %[[LOOP:.*]]:3 = scf.for
// K: look up, load, wait.
// CHECK:         %[[KTILE:.*]] = kvbuffer.cache_tile %[[ARGK]][%[[BATCH]], %[[KVHEAD]], %[[KEY:.*]]] from %[[LO]] upto %[[KEYS]]
// CHECK:         %[[KTOKEN:.*]] = kvbuffer.dram_load %[[KTILE]] into %[[KBUF]] :
// CHECK:         %[[KS:.*]] = kvbuffer.lds_stage %[[KTOKEN]]
// CHECK:         %[[S:.*]] = kvbuffer.mma %{{.*}}, %{{.*}}, %{{.*}} {transpose_b}
// CHECK:         %[[EDGE:.*]] = arith.cmpi slt
// CHECK:         %[[MASKED:.*]] = scf.if %[[EDGE]]
// CHECK:           kvbuffer.mask %[[S]] rows(%[[OWN]], %[[QUERIES]]) keys(%[[KEY]], %[[KEYS]]) {mask = #kvbuffer.mask<causal = true>}
// CHECK:         else
// CHECK:           scf.yield %[[S]]
// CHECK:         %[[P:.*]], %[[MAX:.*]], %[[SUM:.*]], %[[RESCALE:.*]] = kvbuffer.online_softmax %[[MASKED]], {{.*}} {masked, scale = 0.0883883461 : f32}
// CHECK:         %[[ACC:.*]] = kvbuffer.rescale %{{.*}}, %[[RESCALE]]
// CHECK:         %[[VTILE:.*]] = kvbuffer.cache_tile %[[ARGV]][%[[BATCH]], %[[KVHEAD]], %[[KEY]]] from %[[LO]] upto %[[KEYS]]
// CHECK:         %[[VTOKEN:.*]] = kvbuffer.dram_load %[[VTILE]] into %[[VBUF]] :
// CHECK:         kvbuffer.lds_stage %[[VTOKEN]]
// CHECK:         %[[NEXT:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[ACC]] :
// CHECK:         scf.yield %[[NEXT]], %[[MAX]], %[[SUM]]
// CHECK:       %[[RESULT:.*]], %{{.*}} = kvbuffer.softmax_finish %[[LOOP]]#0, %[[LOOP]]#1, %[[LOOP]]#2 {scale = 0.0883883461 : f32}
// CHECK:       %[[OUT:.*]] = kvbuffer.fragment_convert %[[RESULT]]
// CHECK:       %[[OT:.*]] = kvbuffer.dram_tile %[[ARGO]][%[[BATCH]], %[[OWN]], %[[HEAD]]] valid(%[[LEFT]])
// CHECK:       kvbuffer.fragment_store %[[OUT]], %[[OT]]
// CHECK-NOT:   kvbuffer.row_store
// CHECK:     gpu.return
!qo = memref<?x?x16x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
func.func @causal(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// -----

// Ragged queries, pages smaller than the tile, everything optional. Head size 80
// is padded to whole LDS blocks; a soft cap scales before the softmax.

// CHECK:     gpu.func @all(
// CHECK-SAME:  %[[O:[^ ]*]]: memref<?x4x80xf16> {kvbuffer.access = "write", kvbuffer.name = "o", kvbuffer.shape = ["total_q", 4, 80]}, %[[OFFSETS:[^ ]*]]: memref<?xi32> {kvbuffer.access = "read", kvbuffer.name = "q_offsets", kvbuffer.shape = [#kvbuffer.size<sum(batch, 1)>]}, %[[LSE:[^ ]*]]: memref<4x?xf32> {kvbuffer.access = "write", kvbuffer.name = "lse", kvbuffer.shape = [4, "total_q"]}, %[[SINK:[^ ]*]]: memref<?xf32> {kvbuffer.access = "read", kvbuffer.name = "sink", kvbuffer.shape = [4]}
// CHECK-SAME:  cache = "paged"
// CHECK-SAME:  page_size = 16
// CHECK-SAME:  query = "ragged", scale = 5.000000e-01, sink = true, softcap = 3.000000e+01, window_left = 100, window_right = 7
// The sequence and its tile, from a number over all of them.
// CHECK:     %[[NUMBER:.*]], %[[HEADID:.*]] = kvbuffer.work_item [<"total_q" by 128 over "batch" longest "seq_q", growing, sharing = all>, <4, sharing = 4>] reads product(max(product(pages_per_seq, 16), 1), 320)
// CHECK:     %[[TOTAL:.*]] = memref.dim %{{.*}}, %{{.*}} : memref<?x4x80xf16>
// CHECK:     %[[SEQUENCES:.*]] = kvbuffer.launch_size "batch"
// CHECK:     %[[BATCH:.*]], %[[TILE:.*]] = kvbuffer.find_tile %[[NUMBER]] in %[[OFFSETS]] of %[[SEQUENCES]] upto %[[TOTAL]] by 128 : memref<?xi32>
// CHECK:     %[[FIRST32:.*]] = memref.load %[[OFFSETS]][%[[BATCH]]]
// CHECK:     %[[FIRSTANY:.*]] = arith.index_cast %[[FIRST32]]
// CHECK:     %[[FIRSTPOS:.*]] = arith.maxsi %[[FIRSTANY]], %{{.*}}
// CHECK:     %[[FIRST:.*]] = arith.minsi %[[FIRSTPOS]], %[[TOTAL]]
// CHECK:     %[[NEXT32:.*]] = memref.load %[[OFFSETS]]
// CHECK:     %[[NEXTANY:.*]] = arith.index_cast %[[NEXT32]]
// CHECK:     %[[NEXTPOS:.*]] = arith.maxsi %[[NEXTANY]], %[[FIRST]]
// CHECK:     %[[NEXT:.*]] = arith.minsi %[[NEXTPOS]], %[[TOTAL]]
// CHECK:     %[[QUERIES:.*]] = arith.subi %[[NEXT]], %[[FIRST]]
// CHECK:     scf.if
// CHECK:       %[[AT:.*]] = arith.addi %[[FIRST]], %[[ROW:.*]] : index
// CHECK:       kvbuffer.dram_tile %{{.*}}[%[[AT]], %[[HEAD:.*]]] valid(%[[LEFT:.*]]) : memref<?x4x80xf16> -> <128x80xf16>
// CHECK:       scf.for
// CHECK:         kvbuffer.cache_tile {{.*}} -> <64x80xf16, page_size = 16>
// CHECK:         %[[S:.*]] = kvbuffer.softcap %{{.*}} {cap = 3.000000e+01 : f32, scale = 5.000000e-01 : f32}
// A window to the left has a second edge.
// CHECK:         %[[RIGHT:.*]] = arith.cmpi slt
// CHECK:         %[[LEFTEDGE:.*]] = arith.cmpi sge
// CHECK:         %[[EDGE:.*]] = arith.ori %[[RIGHT]], %[[LEFTEDGE]]
// CHECK:         scf.if %[[EDGE]]
// CHECK:         kvbuffer.online_softmax {{.*}} {masked, scale = 1.000000e+00 : f32}
// CHECK:       %[[S0:.*]] = memref.load %[[SINK]][%[[HEAD]]]
// CHECK:       kvbuffer.softmax_finish {{.*}} sink(%[[S0]]) {scale = 1.000000e+00 : f32}
// CHECK:       kvbuffer.fragment_store
// CHECK:       kvbuffer.row_store %{{.*}}, %[[LSE]][%[[HEAD]], %[[AT]]] valid(%[[LEFT]])
!qo = memref<?x4x80xf16>
!kv = !kvbuffer.cache<paged, f16, heads = 1, head_size = 80, page_size = 16>
func.func @all(%q: !qo, %k: !kv, %v: !kv, %o: !qo, %offsets: memref<?xi32>, %lse: memref<4x?xf32>, %sink: memref<?xf32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) lse(%lse) sink(%sink)
      {mask = #kvbuffer.mask<left = 100, right = 7>, scale = 0.5 : f32, softcap = 30.0 : f32}
    : !qo, !kv, !kv, !qo, offsets memref<?xi32>, lse memref<4x?xf32>, sink memref<?xf32>
  return
}

// -----

// The softmax finds the maximum before it scales: a scale that is not positive
// is applied to the scores. No mask: all items are as long.

// CHECK:     gpu.func @negative
// CHECK:     kvbuffer.work_item [<"seq_q" by 128, sharing = all>, <2>, <"batch">]
// CHECK:     kvbuffer.mma {{.*}} {transpose_b}
// CHECK:     kvbuffer.fragment_scale %{{.*}} {factor = -5.000000e-01 : f32}
// CHECK:     kvbuffer.online_softmax {{.*}} {masked, scale = 1.000000e+00 : f32}
!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<continuous, bf16, heads = 2, head_size = 64>
func.func @negative(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {scale = -0.5 : f32} : !qo, !kv, !kv, !qo
  return
}

// -----

// Rows of K and V that hold more than the head: the tile is of whole rows, the
// buffer takes its columns of them.

// CHECK-DAG: #[[WIDEK:.*]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 64, stages = 2, cache_depth = 576, head_dim_offset = 512, open>
// CHECK-DAG: #[[WIDEV:.*]] = #kvbuffer.kv_buffer<64x64xbf16, BK = 64, stages = 2, cache_depth = 512, open>
// CHECK:     gpu.func @wide
// CHECK-SAME:  kvbuffer.problem = #kvbuffer.problem<{{.*}}k_cache_depth = 576, k_head_dim_offset = 512{{.*}}v_cache_depth = 512{{[^_]*}}window_left
// CHECK-DAG: %[[KBUF:.*]] = kvbuffer.alloc {label = "k"} : <#[[WIDEK]]>
// CHECK-DAG: %[[VBUF:.*]] = kvbuffer.alloc {label = "v"} : <#[[WIDEV]]>
// CHECK:     %[[KTILE:.*]] = kvbuffer.cache_tile {{.*}} -> <64x576xbf16>
// CHECK:     kvbuffer.dram_load %[[KTILE]] into %[[KBUF]]
// CHECK:     %[[VTILE:.*]] = kvbuffer.cache_tile {{.*}} -> <64x512xbf16>
// CHECK:     kvbuffer.dram_load %[[VTILE]] into %[[VBUF]]
!qo = memref<?x?x2x64xbf16>
!k = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, cache_depth = 576, head_dim_offset = 512>
!v = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, cache_depth = 512>
func.func @wide(%q: !qo, %k: !k, %v: !v, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !k, !v, !qo
  return
}

// -----

// Other functions stay as they are.
// CHECK:      func.func @other
// CHECK-NEXT:   return
func.func @other() {
  return
}
