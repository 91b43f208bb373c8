// Split keys for a number of query rows that types do not say: a block has a tile of
// them, and finds its sequence's rows on the device.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_80 schedule=split_keys=true" | FileCheck %s
// RUN: sed 's/memref<?x8x6x64xbf16>/memref<?x8x384x64xbf16>/g' %s | not kvbuf-opt --kvbuf-to-tile="chip=sm_80 schedule=split_keys=true" 2>&1 | FileCheck %s --check-prefix=GROUP
// GROUP: split_keys = true needs a query row of each of the 192 heads that share a head of the cache in one tile; BM = 128 has no room for them

!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!paged = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 16>
!open = memref<?x?x6x64xbf16>
!ragged = memref<?x6x64xbf16>

// Ten queries of three heads have room in a tile. The workspace has a place for each
// tile of queries and head.
// CHECK-LABEL: gpu.func @open
// CHECK-SAME: memref<2x?x?x30x68xf32> {{.*}}kvbuffer.shape = [2, #kvbuffer.size<product(2, max(1, ceildiv(seq_q, 10)))>
// CHECK: %{{.*}}, %[[SPLIT_AND_TILE:.*]], %{{.*}} = kvbuffer.work_item [<2>, <product({{.*}})>, <"batch">]{{$}}
// CHECK: %[[TILES:.*]] = kvbuffer.launch_value max(1, ceildiv(seq_q, 10))
// CHECK: %[[TILE:.*]] = arith.remui %[[SPLIT_AND_TILE]], %[[TILES]]
// CHECK: %[[SPLIT:.*]] = arith.divui %[[SPLIT_AND_TILE]], %[[TILES]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[TILE]], %c10
// CHECK: %[[QUERIES:.*]] = memref.dim
// CHECK: kvbuffer.key_range %[[FIRST]] of %[[QUERIES]] {{.*}}BM = 30 : i64, group = 3
// CHECK: kvbuffer.dram_tile %{{.*}}[%{{.*}}, %[[FIRST]], %{{.*}}] valid(%[[ROWS:[0-9]+]]) {group = 3 : i64}
// CHECK: kvbuffer.partial_store {{.*}} valid(%[[ROWS]])
func.func @open(%q: !open, %k: !kv, %v: !kv, %o: !open) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
    : !open, !kv, !kv, !open
  return
}

// A sequence without a row of the tile has no work.
// CHECK-LABEL: gpu.func @ragged
// CHECK: kvbuffer.share_work
// CHECK: ^bb0(%[[ITEM:.*]]: index):
// CHECK: %[[LOADED:.*]] = memref.load %{{.*}}[%[[ITEM]]] : memref<?xi32>
// CHECK: %[[COUNT:.*]] = arith.subi
// CHECK: kvbuffer.cache.num_keys {{.*}}[%[[ITEM]]] new(%[[COUNT]])
// CHECK: %[[HAS:.*]] = arith.cmpi sgt, %[[COUNT]], %{{.*}} : index
// CHECK: %[[UNITS:.*]] = arith.select %[[HAS]], %{{.*}}, %c0 : index
// CHECK: kvbuffer.yield %[[UNITS]] : index
// CHECK: scf.for
// CHECK: scf.if
// CHECK: kvbuffer.dram_tile %{{.*}}[%{{[0-9]+}}, %{{[0-9]+}}] valid({{.*}}) {group = 3 : i64} : memref<?x6x64xbf16>
func.func @ragged(%q: !ragged, %k: !paged, %v: !paged, %o: !ragged, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) {}
    : !ragged, !paged, !paged, !ragged, offsets memref<?xi32>
  return
}

// More rows than a tile has, as many as the type says: a region sees each row's own
// head.
// CHECK-LABEL: gpu.func @region
// CHECK: kvbuffer.map
// CHECK: ^bb0(%{{.*}}: f32, %[[ROW:.*]]: index, %{{.*}}: index):
// CHECK: %[[IN_GROUP:.*]] = arith.remui %[[ROW]], %c3
// CHECK: %[[HEAD:.*]] = arith.addi %{{.*}}, %[[IN_GROUP]]
// CHECK: memref.load %{{.*}}[%[[HEAD]]] : memref<6xf32>
func.func @region(%q: memref<?x8x6x64xbf16>, %k: !kv, %v: !kv, %slopes: memref<6xf32>, %o: memref<?x8x6x64xbf16>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    : memref<?x8x6x64xbf16>, !kv, !kv, memref<?x8x6x64xbf16>
    captures(%slopes : memref<6xf32>)
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index, %slopes_: memref<6xf32>):
      %slope = memref.load %slopes_[%head] : memref<6xf32>
      %t = arith.mulf %s, %slope : f32
      kvbuffer.yield %t : f32
    }
  return
}

// A tile of 32 rows of 128 elements, beside a place among sequences of any lengths:
// queries are in LDS, and read for each tile of keys. With them a multiprocessor has
// room for six blocks (sm_80, of 163 KiB: four).
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_90 schedule=split_keys=true" | FileCheck %s --check-prefix=WIDE
// WIDE-DAG: #[[QBUF:.*]] = #kvbuffer.kv_buffer<32x128xbf16, BK = 64, swizzle = [3, 0, 3]>
// WIDE-LABEL: gpu.func @wide
// WIDE: %[[SLOT:.*]] = kvbuffer.alloc {label = "q"} : <#[[QBUF]]>
// WIDE: product(sms, 6)
// WIDE-NOT: kvbuffer.tile_fragment
// WIDE: %[[TILE:.*]] = kvbuffer.dram_tile {{.*}} {group = 4 : i64} : memref<?x8x128xbf16>
// WIDE: %[[TOKEN:.*]] = kvbuffer.dram_load %[[TILE]] into %[[SLOT]]
// WIDE: %[[STAGED:.*]] = kvbuffer.lds_stage %[[TOKEN]]
// WIDE: scf.for
// WIDE: %[[Q:.*]] = kvbuffer.fragment_load %[[STAGED]][0, 0]
// WIDE: kvbuffer.mma %[[Q]]
// CHECK-LABEL: gpu.func @wide
// CHECK: product(sms, 4)
!tokens = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 1>
!rows = memref<?x8x128xbf16>
func.func @wide(%q: !rows, %k: !tokens, %v: !tokens, %o: !rows, %offsets: memref<?xi32>) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) offsets(%offsets) {}
    : !rows, !tokens, !tokens, !rows, offsets memref<?xi32>
  return
}

// Of dense caches they stay in registers.
// WIDE-LABEL: gpu.func @dense
// WIDE: kvbuffer.tile_fragment
// WIDE-NOT: kvbuffer.dram_load {{.*}} into %qbuf
!row4 = memref<?x?x8x128xbf16>
!dense = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
func.func @dense(%q: !row4, %k: !dense, %v: !dense, %o: !row4) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !row4, !dense, !dense, !row4
  return
}
