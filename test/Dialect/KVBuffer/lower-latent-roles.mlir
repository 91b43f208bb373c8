// Latent attention where groups of warps multiply together: teams of the scores, of each
// half of O's columns, and one that moves. The halves of a row's values take turns in the
// slots of one ring, which all three read.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_90a schedule=equal_shares=false" | FileCheck %s
// Where lengths may differ, each team walks over the pieces of the block's share, and
// counts fillings and entries on.
// RUN: kvbuf-opt %s --kvbuf-to-tile=chip=sm_90a | FileCheck %s --check-prefix=SHARES
// RUN: sed '/^.. CHECK-LABEL: gpu.func @few/,$d' %s | kvbuf-opt - --kvbuf-to-tile="chip=sm_90a schedule=equal_shares=false,overlap=true" | FileCheck %s --check-prefix=AHEAD
// Who asks for no producers gets the program of alike warps.
// RUN: kvbuf-opt %s --kvbuf-to-tile="chip=sm_90a schedule=producers=0" | FileCheck %s --check-prefix=ALIKE

!q = memref<?x1x128x576xbf16>
!o = memref<?x1x128x512xbf16>
!rows = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 64>

// Queries: 384 columns are in registers, 192 in LDS.
// CHECK-DAG: #[[Q:.*]] = #kvbuffer.kv_buffer<64x192xbf16, {{.*}}cache_depth = 576, head_dim_offset = 384>
// CHECK-DAG: #[[HALF:.*]] = #kvbuffer.kv_buffer<64x256xbf16, {{.*}}stages = 5, {{.*}}cache_depth = 576>
// CHECK-DAG: #[[REST:.*]] = #kvbuffer.kv_buffer<64x64xbf16, {{.*}}stages = 2, {{.*}}head_dim_offset = 512>

// Of @ahead: 256 columns are in registers, 320 in LDS; the rest of rows has one slot.
// AHEAD-DAG: #[[QA:.*]] = #kvbuffer.kv_buffer<64x320xbf16, {{.*}}cache_depth = 576, head_dim_offset = 256>
// AHEAD-DAG: #[[RESTA:.*]] = #kvbuffer.kv_buffer<64x64xbf16, swizzle = {{.*}}head_dim_offset = 512>

// SHARES-LABEL: gpu.func @latent
// SHARES: kvbuffer.share_pairs {{.*}} pause %c4
// SHARES: kvbuffer.team @scores
// SHARES-NEXT: scf.for %{{.*}} = %first to %end step %c1 iter_args(%{{.*}} = %start, %[[TILES:.*]] = %c0, %[[PIECES:.*]] = %c0)
// SHARES: kvbuffer.ring_wait %{{.*}}[%[[PIECES]]]
// SHARES: scf.for
// SHARES: arith.addi %[[TILES]], %{{.*}}
// SHARES: kvbuffer.ring_wait
// SHARES: kvbuffer.team @left
// SHARES-NEXT: scf.for
// SHARES: kvbuffer.team @right
// SHARES-NEXT: scf.for
// SHARES: kvbuffer.team @load
// SHARES-NEXT: scf.for

// ALIKE-LABEL: gpu.func @latent
// ALIKE-NOT: kvbuffer.teams

// CHECK-LABEL: gpu.func @latent
// CHECK-SAME: known_block_size = array<i32: 512, 1, 1>
// CHECK: kvbuffer.ring {{.*}} from @load to [@scores] : <#[[Q]]>
// CHECK: %[[H:.*]] = kvbuffer.ring {{.*}} from @load to [@scores, @left, @right] : <#[[HALF]]>
// CHECK: %[[T:.*]] = kvbuffer.ring {{.*}} from @load to [@scores] : <#[[REST]]>
// CHECK: %[[P:.*]] = kvbuffer.ring {{.*}} from @scores to [@left, @right]
// CHECK: kvbuffer.team @scores warps(4) registers(168)
// CHECK: scf.for
// Four products go on with each other; behind the last but one the second half begins.
// CHECK: kvbuffer.ring_wait %[[H]]
// CHECK: %[[S0:.*]] = kvbuffer.mma_start
// CHECK: kvbuffer.ring_wait %[[T]]
// CHECK: %[[S1:.*]] = kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[S0]] :
// CHECK: kvbuffer.ring_wait %[[H]]
// CHECK: %[[S2:.*]] = kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[S1]] :
// CHECK: %[[S3:.*]] = kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[S2]] :
// CHECK: kvbuffer.mma_wait %[[S2]] {younger = 1 : i64}
// CHECK-NEXT: kvbuffer.queue_put
// CHECK-NEXT: %[[S:.*]] = kvbuffer.mma_wait %[[S3]] {younger = 0 : i64}
// Maxima stay behind, but in the first two tiles; rows of a warp decide together.
// CHECK: %[[EARLY:.*]] = arith.cmpi sle, %{{.*}}, %c1_i32
// CHECK: %{{.*}}, %[[F:.*]], %{{.*}} = kvbuffer.raise_max %{{.*}}, %{{.*}} exact(%[[EARLY]]) {scale
// CHECK: kvbuffer.carry_excess %{{.*}}, %[[F]],
// CHECK: kvbuffer.softmax_tail
// CHECK-NEXT: kvbuffer.queue_put %[[F]]
// CHECK-NEXT: kvbuffer.ring_put %{{.*}} into %[[P]]
// The other half's weights are computed when those of the first are on their way.
// CHECK-NEXT: kvbuffer.fragment_slice %{{.*}}[0, 32]
// CHECK-NEXT: kvbuffer.softmax_head
// CHECK-NEXT: kvbuffer.softmax_tail
// CHECK-NEXT: kvbuffer.ring_put %{{.*}} into %[[P]]
// CHECK: kvbuffer.team @left warps(4) registers(160)
// Queries pass by, and the other half.
// CHECK: kvbuffer.ring_wait %[[H]][%c0]
// CHECK-NEXT: kvbuffer.ring_release %[[H]][%c0]
// CHECK: kvbuffer.ring_wait %[[H]][%c1]
// CHECK-NEXT: kvbuffer.ring_release %[[H]][%c1]
// CHECK: scf.for
// CHECK: %[[SLOT:.*]] = kvbuffer.ring_wait %[[H]][%[[N:.*]]]
// CHECK: kvbuffer.ring_wait %[[H]][%[[N1:.*]]]
// CHECK-NEXT: kvbuffer.ring_release %[[H]][%[[N1]]]
// CHECK: kvbuffer.queue_take
// CHECK-COUNT-2: kvbuffer.rescale %{{.*}} : <64x128xf32, acc>
// CHECK: %[[W:.*]] = kvbuffer.ring_wait %[[P]]
// CHECK: kvbuffer.staged_view %[[SLOT]][0, 0]
// CHECK: %[[O0:.*]] = kvbuffer.mma_start %[[W]],
// CHECK: kvbuffer.staged_view %[[SLOT]][0, 128]
// CHECK: %[[O1:.*]] = kvbuffer.mma_start %[[W]],
// CHECK: %[[W1:.*]] = kvbuffer.ring_wait %[[P]]
// CHECK: kvbuffer.staged_view %[[SLOT]][32, 0]
// CHECK: kvbuffer.mma_start %[[W1]], %{{.*}}, %[[O0]] :
// CHECK: kvbuffer.staged_view %[[SLOT]][32, 128]
// CHECK: kvbuffer.mma_start %[[W1]], %{{.*}}, %[[O1]] :
// CHECK-COUNT-2: kvbuffer.mma_wait
// CHECK-NEXT: kvbuffer.ring_release %[[H]][%[[N]]]
// CHECK-NEXT: kvbuffer.ring_release %[[P]]
// CHECK-NEXT: kvbuffer.ring_release %[[P]]
// Each half joins its own slices of split keys: the last block those of a few pieces, all
// blocks those of more, of which each has a share: 32 rows of a slice of up to eight pieces,
// 16 of up to 16, eight of more.
// CHECK-COUNT-4: kvbuffer.partial_store
// CHECK: kvbuffer.arrive_last %{{.*}}[%c0,
// CHECK: arith.cmpi ult, %{{.*}}, %c9
// CHECK: kvbuffer.after_all %{{.*}}[%c0, {{.*}}shares({{.*}}patient
// CHECK: kvbuffer.partial_join {{.*}} from %{{.*}} -> <32x64xf32, acc>, <32x1xf32, row>
// CHECK: arith.cmpi ult, %{{.*}}, %c17
// CHECK: kvbuffer.after_all %{{.*}}[%c0,
// CHECK: kvbuffer.partial_join {{.*}} from %{{.*}} -> <16x64xf32, acc>, <16x1xf32, row>
// CHECK: kvbuffer.after_all %{{.*}}[%c0,
// CHECK: kvbuffer.partial_join {{.*}} from %{{.*}} -> <8x64xf32, acc>, <8x1xf32, row>
// CHECK: kvbuffer.team @right warps(4) registers(160)
// CHECK: kvbuffer.arrive_last %{{.*}}[%c2,
// CHECK: kvbuffer.after_all %{{.*}}[%c1,
// Queries of 64 heads are whole tiles.
// CHECK: kvbuffer.team @load warps(4) registers(24)
// CHECK: kvbuffer.ring_load %{{.*}} {whole} : <64x576xbf16>
// CHECK: kvbuffer.cache_tile
// CHECK: kvbuffer.ring_load %{{.*}} into %[[H]][%{{.*}}] :
// CHECK: kvbuffer.ring_load %{{.*}} into %[[H]][%{{.*}}] {first_col = 256 : i64}
// CHECK: kvbuffer.ring_load %{{.*}} into %[[T]]
// CHECK-NOT: kvbuffer.ring_load
func.func @latent(%q: !q, %rows: !rows, %o: !o) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !q, !rows, !rows, !o
  return
}

// Where scores run ahead, a part of the next tile's begins before the softmax of one.
// CHECK-LABEL: gpu.func @ahead
// AHEAD-LABEL: gpu.func @ahead
// AHEAD: kvbuffer.ring {{.*}} from @load to [@scores] : <#[[QA]]>
// AHEAD: %[[H:.*]] = kvbuffer.ring {{.*}} from @load to [@scores, @left, @right] : <#[[HALFA:.*]]>
// AHEAD: %[[T:.*]] = kvbuffer.ring {{.*}} from @load to [@scores] : <#[[RESTA]]>
// AHEAD: %[[P:.*]] = kvbuffer.ring {{.*}} from @scores to [@left, @right]
// AHEAD: kvbuffer.team @scores warps(4) registers(168)
// AHEAD: %[[QUERIES:.*]] = kvbuffer.ring_wait %[[OWN:.*]][%c0]
// The first tile's scores, if there is one.
// AHEAD: %[[FIRST:.*]] = scf.if
// AHEAD-COUNT-3: kvbuffer.mma_start
// AHEAD: kvbuffer.mma_wait
// AHEAD-COUNT-3: kvbuffer.ring_release
// AHEAD: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %{{.*}} = %[[FIRST]])
// AHEAD: kvbuffer.ring_wait %[[H]]
// AHEAD: %[[S0:.*]] = kvbuffer.mma_start
// AHEAD: %{{.*}}, %[[F:.*]], %{{.*}} = kvbuffer.raise_max
// AHEAD: kvbuffer.softmax_tail
// AHEAD-COUNT-2: kvbuffer.queue_put %[[F]]
// AHEAD: kvbuffer.ring_put %{{.*}} into %[[P]]
// Parts with fewer slots come behind it.
// AHEAD: kvbuffer.ring_wait %[[T]]
// AHEAD: %[[S1:.*]] = kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[S0]] :
// AHEAD: kvbuffer.ring_wait %[[H]]
// AHEAD: %[[S2:.*]] = kvbuffer.mma_start %{{.*}}, %{{.*}}, %[[S1]] :
// AHEAD: kvbuffer.mma_wait %[[S2]] {younger = 0 : i64}
// AHEAD-COUNT-3: kvbuffer.ring_release
// AHEAD: scf.yield
// Queries are given back before the last tile's weights.
// AHEAD: kvbuffer.ring_release %[[OWN]][%c0]
// AHEAD: scf.if
// AHEAD: kvbuffer.raise_max
// AHEAD: kvbuffer.ring_put %{{.*}} into %[[P]]
// AHEAD-COUNT-4: kvbuffer.queue_put
// No half waits for the next tile's scores.
// AHEAD: kvbuffer.team @right
// AHEAD-NOT: kvbuffer.queue_take
// AHEAD: scf.for
func.func @ahead(%q: memref<?x1x64x576xbf16>, %rows: !rows, %o: memref<?x1x64x512xbf16>) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : memref<?x1x64x576xbf16>, !rows, !rows, memref<?x1x64x512xbf16>
  return
}

// Where rows may not depend on others, maxima are those of all scores.
// CHECK-LABEL: gpu.func @invariant
// CHECK-NOT: kvbuffer.raise_max
// CHECK: kvbuffer.online_softmax
func.func @invariant(%q: !q, %rows: !rows, %o: !o) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) {batch_invariant} : !q, !rows, !rows, !o
  return
}

// Several query rows of few heads are one tile of alike warps.
// CHECK-LABEL: gpu.func @few
// CHECK-NOT: kvbuffer.teams
func.func @few(%q: memref<?x2x16x576xbf16>, %rows: !rows, %o: memref<?x2x16x512xbf16>) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : memref<?x2x16x576xbf16>, !rows, !rows, memref<?x2x16x512xbf16>
  return
}

// Rows of small pages are copied by pairs of warps, and queries by none: lanes read what
// goes into registers from memory, and no queries pass by.
!listed = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 576, page_size = 1>
// CHECK-LABEL: gpu.func @listed
// CHECK: %[[H:.*]] = kvbuffer.ring {{.*}} from @load to [@scores, @left, @right] : <#[[HALF]]>
// CHECK: kvbuffer.team @scores warps(4) registers(168)
// CHECK: kvbuffer.tile_fragment %{{.*}} : <64x256xbf16> -> <64x256xbf16, a>
// CHECK: kvbuffer.tile_fragment %{{.*}} : <64x128xbf16> -> <64x128xbf16, a>
// CHECK: kvbuffer.team @left
// CHECK-NOT: kvbuffer.ring_release
// CHECK: scf.for
func.func @listed(%q: !q, %rows: !listed, %o: !o) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o) : !q, !listed, !listed, !o
  return
}

// Four blocks a sequence, two for each row: pairs would leave lanes no registers.
// SHARES-LABEL: gpu.func @rows
// SHARES-NOT: kvbuffer.share_pairs
// SHARES: kvbuffer.share_work
func.func @rows(%q: memref<?x2x128x576xbf16>, %rows: !rows, %o: memref<?x2x128x512xbf16>) {
  kvbuffer.attention q(%q) k(%rows) v(%rows) out(%o)
    : memref<?x2x128x576xbf16>, !rows, !rows, memref<?x2x128x512xbf16>
  return
}
