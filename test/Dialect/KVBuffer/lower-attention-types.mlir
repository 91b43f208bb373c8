// V's head size and O's element type apart from Q's: accumulators and O have V's
// columns, Q and K their own; what is stored is rounded to O's type, or kept.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=schedule=BM=64,BN=32,BK=64,warps=4 --kvbuf-lower-problems --canonicalize --split-input-file | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=schedule=split_keys=true,BM=16,BN=16,BK=64,warps=1 --kvbuf-lower-problems --canonicalize --split-input-file | FileCheck %s --check-prefix=SPLIT
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=schedule=split_keys=true,BM=8,BN=16,BK=64,warps=4,swap_a_b=true --kvbuf-lower-problems --canonicalize --split-input-file | FileCheck %s --check-prefix=TEAMS

// CHECK-DAG:  #[[Q:.*]] = #kvbuffer.kv_buffer<64x192xbf16, BK = 64, stages = 1, open>
// CHECK-DAG:  #[[K:.*]] = #kvbuffer.kv_buffer<32x192xbf16, BK = 64, stages = {{[0-9]}}, open>
// CHECK-DAG:  #[[V:.*]] = #kvbuffer.kv_buffer<32x128xbf16, BK = 64, stages = {{[0-9]}}, open>
// CHECK:      gpu.func @narrow_values(
// CHECK-SAME:   kvbuffer.name = "q", kvbuffer.shape = ["batch", "seq_q", 2, 192]
// CHECK-SAME:   kvbuffer.name = "o", kvbuffer.shape = ["batch", "seq_q", 2, 128]
// CHECK-SAME:   dtype = "bf16", head_size = 192, {{.*}}scale = {{0\.0721687[0-9]*}}, {{.*}}v_head_size = 128
// CHECK-NOT:    o_dtype
// CHECK:        kvbuffer.alloc {label = "q"} : <#[[Q]]>
// CHECK:        kvbuffer.alloc {label = "k"} : <#[[K]]>
// CHECK:        kvbuffer.alloc {label = "v"} : <#[[V]]>
// CHECK:        kvbuffer.dram_tile {{.*}} -> <64x192xbf16>
// CHECK:        scf.for
// CHECK:          kvbuffer.cache_tile {{.*}} -> <32x192xbf16>
// CHECK:          kvbuffer.mma {{.*}} {transpose_b} : <64x192xbf16, a>, <32x192xbf16, b>, <64x32xf32, acc>
// CHECK:          kvbuffer.cache_tile {{.*}} -> <32x128xbf16>
// CHECK:          kvbuffer.mma {{.*}} : <64x32xbf16, a>, <32x128xbf16, b>, <64x128xf32, acc>
// CHECK:        kvbuffer.fragment_convert %{{.*}} : <64x128xf32, acc> -> <64x128xbf16, acc>
// CHECK:        kvbuffer.dram_tile {{.*}} -> <64x128xbf16>

// What blocks leave each other has V's columns, and a row's maximum and sum.
// SPLIT:      gpu.func @narrow_values(
// SPLIT-SAME:   memref<2x?x?x16x132xf32> {kvbuffer.access = "workspace"
// SPLIT:        kvbuffer.dram_tile {{.*}} -> <16x192xbf16>
// SPLIT:        kvbuffer.mma {{.*}} {transpose_b} : <16x192xbf16, a>, <16x192xbf16, b>, <16x16xf32, acc>
// SPLIT:        kvbuffer.mma {{.*}} : <16x16xbf16, a>, <16x128xbf16, b>, <16x128xf32, acc>
// SPLIT:        kvbuffer.fragment_convert %{{.*}} : <16x128xf32, acc> -> <16x128xbf16, acc>
// SPLIT:        kvbuffer.dram_tile {{.*}} -> <16x128xbf16>

// Four warps have slices of V's columns.
// TEAMS:      gpu.func @narrow_values(
// TEAMS-SAME:   memref<2x?x4x?x8x36xf32> {kvbuffer.access = "workspace"
// TEAMS:        kvbuffer.shelf slots(16) : <!kvbuffer.fragment<8x32xf32, acc>>
!q = memref<?x?x2x192xbf16>
!k = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 192>
!v = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 128>
!o = memref<?x?x2x128xbf16>
func.func @narrow_values(%q: !q, %k: !k, %v: !v, %o: !o) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !k, !v, !o
  return
}

// -----

// Both sizes are padded to blocks of BK columns, and the last columns of O's last
// slice are none of V's.

// CHECK:      gpu.func @wide_values(
// CHECK-SAME:   dtype = "f16", head_size = 80, {{.*}}o_dtype = "bf16", {{.*}}v_head_size = 112
// CHECK:        kvbuffer.mma {{.*}} {transpose_b} : <64x128xf16, a>, <32x128xf16, b>, <64x32xf32, acc>
// CHECK:        kvbuffer.mma {{.*}} : <64x32xf16, a>, <32x128xf16, b>, <64x128xf32, acc>
// CHECK:        kvbuffer.fragment_convert %{{.*}} : <64x128xf32, acc> -> <64x128xbf16, acc>
// CHECK:        kvbuffer.dram_tile {{.*}} -> <64x112xbf16>
// TEAMS:      gpu.func @wide_values(
// TEAMS:        %[[FIRST:.*]] = arith.muli %{{.*}}, %c32 : index
// TEAMS:        %[[VALID:.*]] = arith.subi %c112, %[[FIRST]] : index
// TEAMS:        kvbuffer.dram_tile {{.*}}, %[[FIRST]]] valid(%{{.*}}, %[[VALID]]) {{.*}} -> <8x32xbf16>
!q = memref<?x?x2x80xf16>
!k = !kvbuffer.cache<dense, f16, heads = 2, head_size = 80>
!v = !kvbuffer.cache<dense, f16, heads = 2, head_size = 112>
!o = memref<?x?x2x112xbf16>
func.func @wide_values(%q: !q, %k: !k, %v: !v, %o: !o) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !k, !v, !o
  return
}

// -----

// Accumulators are f32: nothing is rounded.

// CHECK:      gpu.func @wide_out(
// CHECK-SAME:   o_dtype = "f32"
// CHECK-NOT:    v_head_size
// CHECK:        %[[O:.*]], %{{.*}} = kvbuffer.softmax_finish
// CHECK-NOT:    fragment_convert
// CHECK:        %[[TILE:.*]] = kvbuffer.dram_tile {{.*}} -> <64x64xf32>
// CHECK:        kvbuffer.fragment_store %[[O]], %[[TILE]] : <64x64xf32, acc>, <64x64xf32>
// SPLIT:      gpu.func @wide_out(
// SPLIT:        %[[O:.*]], %{{.*}} = kvbuffer.softmax_finish
// SPLIT:        %[[TILE:.*]] = kvbuffer.dram_tile {{.*}} -> <16x64xf32>
// SPLIT:        kvbuffer.fragment_store %[[O]], %[[TILE]] : <16x64xf32, acc>, <16x64xf32>
!q = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
!o = memref<?x?x2x64xf32>
func.func @wide_out(%q: !q, %k: !kv, %v: !kv, %o: !o) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !o
  return
}
