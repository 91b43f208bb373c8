// What becomes of problems: kernels in one gpu.module, and launches in their place
// whose numbers are computed from sizes and strides.
//
// RUN: kvbuf-opt %s --kvbuf-outline-kernels='chip=sm_80 alternatives=false' --canonicalize --cse | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-outline-kernels='chip=sm_80' | FileCheck %s --check-prefix=BOTH
// RUN: kvbuf-opt %s --kvbuf-outline-kernels='chip=sm_90a' --canonicalize --cse | FileCheck %s --check-prefix=MAPS
// RUN: kvbuf-opt %s --kvbuf-outline-kernels='chip=gfx942 targets=false checks=false' | FileCheck %s --check-prefix=CDNA

// Nothing of the dialect is left, and stock mlir-opt reads it.
// RUN: kvbuf-opt %s --kvbuf-outline-kernels=chip=sm_90a | mlir-opt -o %t

!q = memref<?x?x4x64xbf16>
!kv = memref<?x?x2x64xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>

// CHECK: module attributes {gpu.container_module}
// CHECK-LABEL: func.func @twice
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<?x?x4x64xbf16>
// CHECK: memref.extract_strided_metadata %[[Q]]
// Sizes of different tensors agree, and copies of 16 bytes can take them.
// CHECK: cf.assert %{{.*}}, "tensor 'k' of a kvbuffer.attention: dimension 0 is not what other tensors or the kernel say"
// CHECK: cf.assert %{{.*}}, "a kvbuffer.attention: addresses and strides of tensors are no multiples of 16 bytes, which the kernel needs"
// Tiles of 128 rows; heads, as often as it takes rounds of 32768 sequences;
// sequences of a round; no launch without blocks.
// CHECK: %[[TILES:.*]] = arith.ceildivui %{{.*}}, %c128
// CHECK: %[[ROUNDS:.*]] = arith.ceildivui %[[BATCH:.*]], %c32768
// CHECK: %[[Y:.*]] = arith.muli %[[ROUNDS]], %c4
// CHECK: %[[Z:.*]] = arith.minsi %[[BATCH]], %c32768
// CHECK: scf.if
// CHECK: gpu.launch_func @kvbuf_kernels::@twice_attention blocks in (%[[TILES]], %[[Y]], %[[Z]]) threads in (%c128, %c1, %c1) dynamic_shared_memory_size %{{.*}} args(%{{.*}} : !llvm.ptr, %{{.*}} : i64
// The second differs in nothing but values, and has the same kernel; the third has
// a mask.
// CHECK: gpu.launch_func @kvbuf_kernels::@twice_attention blocks
// CHECK: scf.for
// CHECK: gpu.launch_func @kvbuf_kernels::@twice_attention_1 blocks
// CHECK-NOT: kvbuffer
// CHECK: gpu.module @kvbuf_kernels [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">]
// CHECK: llvm.func @twice_attention(
// CHECK: llvm.func @twice_attention_1(
// CHECK-NOT: kvbuffer

// BOTH: scf.if
// BOTH: gpu.launch_func @kvbuf_kernels::@twice_attention blocks
// BOTH: else
// BOTH: gpu.launch_func @kvbuf_kernels::@twice_attention_unaligned blocks

// Tensor maps by value, a counter that is zero, and a grid for the device.
// MAPS: call @mgpuTensorMapEncodeTiled
// MAPS: %[[COUNTER:.*]] = gpu.alloc
// MAPS: gpu.memset
// MAPS: gpu.launch_func @kvbuf_kernels::@twice_attention clusters in ({{.*}}) blocks in
// MAPS-SAME: !llvm.array<16 x i64>
// MAPS: gpu.dealloc
// MAPS: gpu.launch_func @kvbuf_kernels::@twice_attention_without_maps blocks
// MAPS: func.func private @mgpuTensorMapEncodeTiled(

// CDNA-NOT: cf.assert
// CDNA: gpu.module @kvbuf_kernels {
// CDNA: rocdl.kernel
func.func @twice(%q: !q, %k: !kv, %v: !kv, %o: !q, %p: !q, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kc = kvbuffer.make_cache %k : !kv -> !c
  %vc = kvbuffer.make_cache %v : !kv -> !c
  kvbuffer.attention q(%q) k(%kc) v(%vc) out(%o) : !q, !c, !c, !q
  kvbuffer.attention q(%o) k(%kc) v(%vc) out(%p) : !q, !c, !c, !q
  scf.for %i = %c0 to %n step %c1 {
    kvbuffer.attention q(%p) k(%kc) v(%vc) out(%o) {mask = #kvbuffer.mask<causal = true>} : !q, !c, !c, !q
  }
  return
}
