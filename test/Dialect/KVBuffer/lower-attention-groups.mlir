// Scales of groups of a token's elements. Each group of K's columns has a product of
// its own, which is multiplied by the tokens' scales and added to the others'; each
// group of V's columns has weights of its own. The last group has the padding, too.

// RUN: kvbuf-opt %s --kvbuf-choose-schedule=schedule=BM=64,BN=32,BK=32,warps=2 --kvbuf-lower-problems --canonicalize | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=schedule=BM=64,BN=32,BK=32,warps=2,full_kv=false --kvbuf-lower-problems --canonicalize | FileCheck %s --check-prefix=BLOCKS
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=schedule=BM=64,BN=32,BK=16,warps=2,v_path=streaming --kvbuf-lower-problems --canonicalize | FileCheck %s --check-prefix=STRIPS
// RUN: kvbuf-opt %s --kvbuf-choose-schedule=schedule=split_keys=true,BM=8,BN=16,BK=32,warps=1,swap_a_b=true --kvbuf-lower-problems --canonicalize | FileCheck %s --check-prefix=SPLIT

// CHECK:      %[[K0:.*]] = kvbuffer.map
// CHECK:      kvbuffer.cache_scale %arg1[{{.*}}, %c0]
// CHECK:      %[[K1:.*]] = kvbuffer.map
// CHECK:      kvbuffer.cache_scale %arg1[{{.*}}, %c48]
// CHECK:      %[[Q:.*]] = kvbuffer.fragment_load %qs[0, 0] : {{.*}} -> <64x48xbf16, a>
// CHECK:      %[[K:.*]] = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : {{.*}} -> <32x48xbf16, b>
// CHECK:      %[[P0:.*]] = kvbuffer.mma %[[Q]], %[[K]], %zero
// CHECK:      %[[S0:.*]] = kvbuffer.map %[[P0]], %[[K0]] :
// CHECK-NEXT: ^{{.*}}(%[[X:.*]]: f32, %[[SCALE:.*]]: f32, %{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:   %[[Y:.*]] = arith.mulf %[[X]], %[[SCALE]]
// CHECK-NEXT:   kvbuffer.yield %[[Y]]
// CHECK:      %[[Q1:.*]] = kvbuffer.fragment_load %qs[0, 48] : {{.*}} -> <64x48xbf16, a>
// CHECK:      %[[KF1:.*]] = kvbuffer.fragment_load %ks[0, 48] contracted(cols) : {{.*}} -> <32x48xbf16, b>
// CHECK:      %[[P1:.*]] = kvbuffer.mma %[[Q1]], %[[KF1]], %zero
// CHECK:      %[[S:.*]] = kvbuffer.map %[[S0]], %[[P1]], %[[K1]] :
// CHECK-NEXT: ^{{.*}}(%[[SUM:.*]]: f32, %[[X1:.*]]: f32, %[[SCALE1:.*]]: f32, %{{.*}}: index, %{{.*}}: index):
// CHECK-NEXT:   %[[Y1:.*]] = arith.mulf %[[X1]], %[[SCALE1]]
// CHECK-NEXT:   %[[Z:.*]] = arith.addf %[[SUM]], %[[Y1]]
// CHECK-NEXT:   kvbuffer.yield %[[Z]]
// CHECK:      kvbuffer.mask %[[S]]
// CHECK:      kvbuffer.cache_scale %arg2[{{.*}}, %c0]
// CHECK:      kvbuffer.cache_scale %arg2[{{.*}}, %c48]
// CHECK:      %[[W0:.*]] = kvbuffer.fragment_convert
// CHECK:      %[[W1:.*]] = kvbuffer.fragment_convert
// CHECK:      %[[V0:.*]] = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : {{.*}} -> <32x48xf16, b>
// CHECK:      %[[A0:.*]] = kvbuffer.mma %[[W0]], %[[V0]], %
// CHECK:      %[[V1:.*]] = kvbuffer.fragment_load %vs[0, 48] contracted(rows) : {{.*}} -> <32x48xf16, b>
// CHECK:      kvbuffer.mma %[[W1]], %[[V1]], %[[A0]] {column = 48 : i64}

// The second of three blocks of 32 columns has the end of the first group, and the
// beginning of the other.
// BLOCKS:     %[[P0:.*]] = kvbuffer.mma %{{.*}}, %{{.*}}, %zero{{.*}} : <64x32xbf16, a>, <32x32xbf16, b>
// BLOCKS:     %[[P1:.*]] = kvbuffer.mma %{{.*}}, %{{.*}}, %[[P0]] {transpose_b} : <64x16xbf16, a>, <32x16xbf16, b>
// BLOCKS:     kvbuffer.map %[[P1]], %
// BLOCKS:     kvbuffer.fragment_load %qs[0, 48]
// BLOCKS:     kvbuffer.fragment_load %ks{{.*}}[0, 16] contracted(cols) : {{.*}} -> <32x16xbf16, b>
// BLOCKS:     %[[P2:.*]] = kvbuffer.mma %{{.*}}, %{{.*}}, %zero
// BLOCKS:     %[[P3:.*]] = kvbuffer.mma %{{.*}}, %{{.*}}, %[[P2]] {transpose_b} : <64x32xbf16, a>, <32x32xbf16, b>
// BLOCKS:     kvbuffer.map %{{.*}}, %[[P3]], %
// BLOCKS:     %[[W0:.*]] = kvbuffer.fragment_convert
// BLOCKS:     %[[W1:.*]] = kvbuffer.fragment_convert
// BLOCKS:     kvbuffer.mma %[[W0]], {{.*}} : <64x32xf16, a>, <32x32xf16, b>
// BLOCKS:     kvbuffer.mma %[[W0]], {{.*}} {column = 32 : i64} : <64x32xf16, a>, <32x16xf16, b>
// BLOCKS:     kvbuffer.mma %[[W1]], {{.*}} {column = 48 : i64} : <64x32xf16, a>, <32x16xf16, b>
// BLOCKS:     kvbuffer.mma %[[W1]], {{.*}} {column = 64 : i64} : <64x32xf16, a>, <32x32xf16, b>

// A strip is 16 keys.
// STRIPS:     %[[W0:.*]] = kvbuffer.fragment_convert
// STRIPS:     %[[W1:.*]] = kvbuffer.fragment_convert
// STRIPS:     %[[A:.*]] = kvbuffer.fragment_slice %[[W0]][0, 0]
// STRIPS:     kvbuffer.mma %[[A]], {{.*}} : <64x16xf16, a>, <16x48xf16, b>
// STRIPS:     %[[B:.*]] = kvbuffer.fragment_slice %[[W1]][0, 0]
// STRIPS:     kvbuffer.mma %[[B]], {{.*}} {column = 48 : i64} : <64x16xf16, a>, <16x32xf16, b>
// STRIPS:     kvbuffer.fragment_slice %[[W0]][0, 16]
// STRIPS:     kvbuffer.fragment_slice %[[W1]][0, 16]

// All scales of a tile are asked for before its products.
// SPLIT:      kvbuffer.cache_scale %arg1[{{.*}}, %c0]
// SPLIT:      kvbuffer.cache_scale %arg1[{{.*}}, %c48]
// SPLIT:      kvbuffer.cache_scale %arg2[{{.*}}, %c0]
// SPLIT:      kvbuffer.cache_scale %arg2[{{.*}}, %c48]
// SPLIT:      kvbuffer.dram_load
// SPLIT:      kvbuffer.fragment_slice %{{.*}}[0, 0] : <8x96xf16, a> -> <8x48xf16, a>
// SPLIT:      %[[P0:.*]] = kvbuffer.mma {{.*}} {transpose_b} : <8x48xf16, a>, <16x48xf16, b>
// SPLIT:      %[[S0:.*]] = kvbuffer.map %[[P0]], %
// SPLIT:      kvbuffer.fragment_slice %{{.*}}[0, 48] : <8x96xf16, a> -> <8x48xf16, a>
// SPLIT:      %[[P1:.*]] = kvbuffer.mma {{.*}} {transpose_b} : <8x48xf16, a>, <16x48xf16, b>
// SPLIT:      kvbuffer.map %[[S0]], %[[P1]], %
// SPLIT:      %[[A0:.*]] = kvbuffer.mma {{.*}} : <8x16xf16, a>, <16x48xf16, b>
// SPLIT:      kvbuffer.mma %{{.*}}, %{{.*}}, %[[A0]] {column = 48 : i64}

!q = memref<?x?x2x80xbf16>
!kv = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 80, scale = f32, granularity = 48>
func.func @groups(%q: !q, %k: !kv, %v: !kv, %o: !q) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !kv, !kv, !q
  return
}
