// Where clusters lose by few query rows, the launch takes the kernel without them: by
// the condition that the artifact's manifest has, as IR.
//
// RUN: kvbuf-opt %s --kvbuf-outline-kernels=chip=sm_90a --canonicalize --cse | FileCheck %s
// RUN: kvbuf-opt %s --kvbuf-outline-kernels='chip=sm_90a alternatives=false' | FileCheck %s --check-prefix=ONE
// RUN: kvbuf-opt %s --kvbuf-outline-kernels='chip=sm_90a schedule=cluster=2' | FileCheck %s --check-prefix=ASKED

!q = memref<?x?x4x128xbf16>
!c = !kvbuffer.cache<dense, bf16, heads = 4, head_size = 128>

// CHECK-LABEL: func.func @open
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref
// CHECK: %{{.*}}, %{{.*}}, %[[SIZES:.*]]:4, %{{.*}}:4 = memref.extract_strided_metadata %[[Q]]
// CHECK-DAG: %[[TILES:.*]] = arith.ceildivui %[[SIZES]]#1, %c128
// CHECK-DAG: %[[PAIRS:.*]] = arith.ceildivui %[[SIZES]]#1, %c256
// CHECK-DAG: arith.muli %[[TILES]],
// CHECK-DAG: arith.muli %[[PAIRS]],
// CHECK: %[[GAIN:.*]] = arith.minsi
// CHECK: %[[MANY:.*]] = arith.minsi %{{.*}}, %[[GAIN]]
// CHECK: %[[FITS:.*]] = arith.subi %c131073, %{{.*}}
// CHECK: %[[ALL:.*]] = arith.minsi %[[MANY]], %[[FITS]]
// CHECK: %[[GAINS:.*]] = arith.cmpi sgt, %[[ALL]], %c0
// CHECK: %[[SUITS:.*]] = arith.andi %{{.*}}, %[[GAINS]]
// CHECK: scf.if %[[SUITS]]
// CHECK: gpu.launch_func @kvbuf_kernels::@open_attention clusters in (%c2, %c1, %c1)
// CHECK: else
// CHECK: scf.if
// CHECK: gpu.launch_func @kvbuf_kernels::@open_attention_of_many_keys blocks
// CHECK: else
// CHECK: gpu.launch_func @kvbuf_kernels::@open_attention_of_few_rows blocks
// CHECK: gpu.launch_func @kvbuf_kernels::@open_attention_without_clusters blocks
// CHECK: else
// CHECK: gpu.launch_func @kvbuf_kernels::@open_attention_without_maps blocks

// ONE: gpu.launch_func
// ONE-NOT: gpu.launch_func
// ASKED: gpu.launch_func @kvbuf_kernels::@open_attention clusters in
// ASKED-NOT: _without_clusters
func.func @open(%q: !q, %k: !q, %v: !q, %o: !q) {
  %kc = kvbuffer.make_cache %k : !q -> !c
  %vc = kvbuffer.make_cache %v : !q -> !c
  kvbuffer.attention q(%q) k(%kc) v(%vc) out(%o) : !q, !c, !c, !q
  return
}
