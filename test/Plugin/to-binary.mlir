// Kernels leave through stock mlir-opt: what the dialect has at the target stage
// becomes inline assembly, and gpu-module-to-binary does the rest. For sm_90a the
// products, and in a cluster the arrivals and words at other blocks' barriers, are
// such ops.

// DEFINE: %{lower} = mlir-opt --load-dialect-plugin=%lib/KVBufferPlugin.so --load-pass-plugin=%lib/KVBufferPlugin.so %s

// RUN: %{lower} --pass-pipeline='builtin.module(kvbuf-lower-to-nvvm{chip=sm_90a schedule=cluster=2},gpu.module(convert-kvbuffer-to-inline-asm,convert-nvvm-to-llvm),nvvm-attach-target{chip=sm_90a features=+ptx87 O=3},gpu-module-to-binary{format=isa})' -o %t.mlir
// RUN: FileCheck %s --check-prefix=HOPPER < %t.mlir
// HOPPER:     gpu.binary @prefill_module [#gpu.object<#nvvm.target<{{.*}}chip = "sm_90a"
// HOPPER-DAG: .visible .entry prefill(
// HOPPER-DAG: wgmma.mma_async.sync.aligned
// HOPPER-DAG: wgmma.wait_group.sync.aligned
// HOPPER-DAG: mapa.shared::cluster.u32
// HOPPER-NOT: kvbuffer.wgmma

// Without that pass the translation names what it cannot take.
// RUN: not %{lower} --pass-pipeline='builtin.module(kvbuf-lower-to-nvvm{chip=sm_90a},gpu.module(convert-nvvm-to-llvm),nvvm-attach-target{chip=sm_90a},gpu-module-to-binary{format=isa})' 2>&1 | FileCheck %s --check-prefix=WITHOUT
// WITHOUT: error: {{.*}}kvbuffer.wgmma

// The other chips have no such ops.
// RUN: %{lower} --pass-pipeline='builtin.module(kvbuf-lower-to-nvvm{chip=sm_80},gpu.module(convert-kvbuffer-to-inline-asm,convert-nvvm-to-llvm),nvvm-attach-target{chip=sm_80 O=3},gpu-module-to-binary{format=isa})' | FileCheck %s --check-prefix=AMPERE
// AMPERE: gpu.binary @prefill_module
// AMPERE-SAME: mma.sync.aligned.m16n8k16
// RUN: %{lower} --pass-pipeline='builtin.module(kvbuf-lower-to-rocdl{chip=gfx942},gpu.module(convert-kvbuffer-to-inline-asm),rocdl-attach-target{chip=gfx942},gpu-module-to-binary{format=isa})' | FileCheck %s --check-prefix=CDNA
// CDNA: gpu.binary @prefill_module
// CDNA-SAME: v_mfma_f32

!qo = memref<?x?x16x128xbf16, strided<[?, ?, ?, 1]>>
!kv = !kvbuffer.cache<dense, bf16, heads = 16, head_size = 128>

func.func @prefill(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) {mask = #kvbuffer.mask<causal = true>}
    : !qo, !kv, !kv, !qo
  return
}
