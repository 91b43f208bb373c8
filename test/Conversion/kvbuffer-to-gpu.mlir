// One warp, one tile of 16 queries and 16 keys of 32 elements: small enough that
// every instruction can be counted by hand.

// RUN: kvbuf-opt %s --kvbuf-to-thread="schedule=BM=16,BN=16,BK=32,warps=1,stages=1,split_masks=false" | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-to-thread="schedule=BM=16,BN=16,BK=32,warps=1,stages=1,split_masks=false" | FileCheck %s --check-prefix=COUNT
// RUN: kvbuf-opt %s --kvbuf-to-thread="schedule=BM=16,BN=16,BK=32,warps=1,stages=1,sums_in_lds=true,split_masks=false" | FileCheck %s --check-prefix=SUMS

!qo = memref<?x?x2x32xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 32>

// A tensor becomes its address, the strides but the innermost, and the sizes that
// the kernel asks for.
// CHECK:      gpu.func @attend(%arg0: memref<bf16>, %arg1: index, %arg2: index, %arg3: index, %arg4: i32,
// CHECK-SAME:   %arg5: memref<bf16>, %arg6: index, %arg7: index, %arg8: index, %arg9: i32,
// CHECK-SAME:   kvbuffer.kernel = {alignment = 16 : i64, args = [{kind = "pointer", tensor = "q"}, {dim = 0 : i64, kind = "stride", tensor = "q"}, {dim = 1 : i64, kind = "stride", tensor = "q"}, {dim = 2 : i64, kind = "stride", tensor = "q"}, {kind = "size", name = "seq_q"}, {kind = "pointer", tensor = "k"}
// Q, K and V: 16 x 32 x 2 bytes each, at multiples of 1024.
// CHECK-SAME:   block = [32, 1, 1], dynamic_shared_bytes = 3072 : i64, entry = "attend", grid = [{ceildiv = ["seq_q", 16]}, {product = [2, {ceildiv = ["batch", 32768]}]}, {min = ["batch", 32768]}]}
// CHECK-SAME:   kvbuffer.phase = #kvbuffer.phase<thread>
// CHECK:        nvgpu.device_async_copy
// CHECK:        nvgpu.device_async_create_group
// CHECK:        nvgpu.device_async_wait %{{.*}} {numGroups = 0 : i32}
// CHECK:        gpu.barrier
// CHECK:        scf.for
// The row maximum crosses the lanes of a quad, bits 0 and 1.
// CHECK:          gpu.shuffle xor %{{.*}}, %c1_i32, %c32_i32 : f32
// CHECK:          gpu.shuffle xor %{{.*}}, %c2_i32, %c32_i32 : f32
// CHECK:        gpu.return

// S = Q K^T: 2 steps of 16 columns, 2 groups of 8 keys. O = P V: 1 step of 16
// keys, 4 groups of 8 columns.
// COUNT-COUNT-8: kvbuffer.lane_mma
// COUNT-NOT:     kvbuffer.lane_mma

// Row sums in LDS: a slot of two f32 a lane behind the tiles, 256 bytes rounded up.
// SUMS: dynamic_shared_bytes = 4096 : i64
// SUMS: vector.store {{.*}}alignment = 8 : i64{{.*}}vector<2xf32>
// SUMS: scf.for
// SUMS: vector.load {{.*}}alignment = 8 : i64{{.*}}vector<2xf32>
func.func @attend(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
