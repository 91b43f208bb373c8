// What a cluster's blocks do together: neighbouring tiles of queries, or heads that
// share K and V.

// DEFINE: %{schedule} = cluster=2
// DEFINE: %{passes} = kvbuf-lower-attention,canonicalize,gpu.module(gpu.func(kvbuf-pair-tiles,canonicalize,cse))
// DEFINE: %{run} = kvbuf-opt %s --split-input-file --pass-pipeline="builtin.module(kvbuf-choose-schedule{chip=sm_90a schedule=%{schedule}},%{passes})"
// RUN: %{run} | FileCheck %s
// RUN: %{run} --remark-format=emitRemark --remarks-filter=kvbuf-pair-tiles 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REDEFINE: %{schedule} = cluster=1
// RUN: %{run} | FileCheck %s --check-prefix=ALONE
// A problem that brings its schedule: numbers of a ragged batch are of pairs, too.
// RUN: kvbuf-opt %S/Inputs/ragged-pairs.mlir --pass-pipeline="builtin.module(%{passes})" | FileCheck %s --check-prefix=RAGGED
// RAGGED: %{{.*}}, %[[TILE:.*]] = kvbuffer.find_tile %{{.*}} by 256
// RAGGED: arith.muli %[[TILE]], %c256

!qo = memref<?x?x4x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 128>

// REMARK: pair-tiles.mlir:{{.*}} remark: [Passed] cluster{{.*}}"clusters of ", Remark=2, Remark=" blocks take neighbouring tiles"
// CHECK-LABEL: gpu.func @full
// CHECK-SAME:    known_cluster_size = array<i32: 2, 1, 1>
// CHECK:         %[[X:.*]] = gpu.block_id x
// CHECK:         %[[FIRST:.*]] = arith.muli %[[X]], %c256
// CHECK:         %[[RANK:.*]] = gpu.cluster_block_id x
// CHECK:         %[[PART:.*]] = arith.muli %[[RANK]], %c128
// CHECK:         %[[ROW:.*]] = arith.addi %[[FIRST]], %[[PART]]
// CHECK:         %[[QUERIES:.*]] = memref.dim
// Whether there is something to do, and for which keys, is the cluster's matter.
// CHECK:         %[[ACTIVE:.*]] = arith.cmpi slt, %[[FIRST]], %[[QUERIES]]
// CHECK:         scf.if %[[ACTIVE]]
// CHECK:           kvbuffer.key_range %[[FIRST]] of %[[QUERIES]] {{.*}}BM = 256
// Rows are the block's own.
// CHECK:           %[[LEFT:.*]] = arith.subi %[[QUERIES]], %[[ROW]]
// CHECK:           kvbuffer.dram_tile %{{.*}}, %[[ROW]], %{{.*}}] valid(%[[LEFT]])
// CHECK:           kvbuffer.mask %{{.*}} rows(%[[ROW]], %[[QUERIES]])
// CHECK:           kvbuffer.dram_tile %{{.*}}, %[[ROW]], %{{.*}}] valid(%[[LEFT]])
// ALONE-LABEL: gpu.func @full
// ALONE-NOT:     cluster
// ALONE:         kvbuffer.key_range {{.*}}BM = 128
func.func @full(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}

// -----

!qo = memref<?x?x8x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>

// REMARK: pair-tiles.mlir:{{.*}} remark: [Passed] cluster{{.*}}"clusters of ", Remark=2, Remark=" blocks take heads that share a head of the cache"
// CHECK-LABEL: gpu.func @shared
// CHECK-SAME:    known_cluster_size = array<i32: 1, 2, 1>
// CHECK:         %[[Y:.*]] = gpu.block_id y
// CHECK:         %[[FIRST:.*]] = arith.muli %[[Y]], %c2
// CHECK:         %[[RANK:.*]] = gpu.cluster_block_id y
// CHECK:         %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[RANK]]
// Four heads share, so two numbers do.
// CHECK:         %[[KVHEAD:.*]] = arith.divui %[[Y]], %c2
// CHECK:         kvbuffer.key_range {{.*}}BM = 128
// CHECK:         kvbuffer.dram_tile %arg0[%{{.*}}, %{{.*}}, %[[HEAD]]]
// CHECK:         kvbuffer.cache_tile %arg1[%{{.*}}, %[[KVHEAD]],
// CHECK:         kvbuffer.dram_tile %arg3[%{{.*}}, %{{.*}}, %[[HEAD]]]
// ALONE-LABEL: gpu.func @shared
// ALONE:         arith.divui %{{.*}}, %c4
func.func @shared(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}

// -----

// Three heads that share make no pairs of heads.
!qo = memref<?x?x6x128xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>

// CHECK-LABEL: gpu.func @odd
// CHECK-SAME:    known_cluster_size = array<i32: 2, 1, 1>
// CHECK:         kvbuffer.key_range {{.*}}BM = 256
func.func @odd(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
