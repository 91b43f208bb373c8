// What kvbuffer.wgmma, kvbuffer.wgmma_wait and what reaches into other blocks of a
// cluster are in PTX. The target stage keeps
// the ops themselves; inline assembly is written on the way out of MLIR.

// RUN: kvbuf-compile %s --target=sm_90a --emit=asm | FileCheck %s
// RUN: kvbuf-compile %s --target=sm_90a --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: kvbuf-compile %s --target=sm_90a --emit=target | FileCheck %s --check-prefix=TARGET

// TARGET-NOT: llvm.inline_asm
// TARGET:     kvbuffer.wgmma a_desc

module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // Both operands in LDS, from zero: only the first step does not add. a and b
    // are K-major, neither is transposed.
    // CHECK-LABEL: .entry in_lds(
    // CHECK:      wgmma.fence.sync.aligned;
    // CHECK-NEXT: add.s64 a, %rd{{[0-9]+}}, 0;
    // CHECK-NEXT: add.s64 b, %rd{{[0-9]+}}, 0;
    // CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {[[D:(%r[0-9]+, ){7}%r[0-9]+]]}, a, b, zero, 1, 1, 0, 0;
    // CHECK-NEXT: add.s64 a, %rd{{[0-9]+}}, 2;
    // CHECK-NEXT: add.s64 b, %rd{{[0-9]+}}, 256;
    // CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {[[D]]}, a, b, add, 1, 1, 0, 0;
    // CHECK-NEXT: wgmma.commit_group.sync.aligned;
    // CHECK-NOT:  wgmma.mma_async
    // CHECK:      wgmma.wait_group.sync.aligned 1;

    // Uses of the results hang on the wait's.
    // LLVM-LABEL: @in_lds(
    // LLVM:       call { float, float, float, float, float, float, float, float } asm sideeffect "{{.*}}", "=f,=f,=f,=f,=f,=f,=f,=f,l,l"(i64 %{{.*}}, i64 %{{.*}})
    // LLVM:       call { float, float, float, float, float, float, float, float } asm sideeffect "wgmma.wait_group.sync.aligned 1;", "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,~{memory}"
    llvm.func @in_lds(%a: i64, %b: i64, %out: !llvm.ptr) attributes {nvvm.kernel, gpu.kernel, kvbuffer.phase = #kvbuffer.phase<target>} {
      %s:2 = kvbuffer.wgmma a_desc(%a) b(%b) {a_steps = array<i64: 0, 2>, b_steps = array<i64: 0, 256>, element = bf16, n = 16 : i64} : vector<4xf32>, vector<4xf32>
      %r:2 = kvbuffer.wgmma_wait %s#0, %s#1 {pending = 1 : i64} : vector<4xf32>, vector<4xf32>
      llvm.store %r#0, %out : vector<4xf32>, !llvm.ptr
      llvm.store %r#1, %out : vector<4xf32>, !llvm.ptr
      llvm.return
    }

    // a in registers, adding to what there is: the accumulators are tied to the
    // results, four words of a go into each step, b is MN-major (last number).
    // CHECK-LABEL: .entry in_registers(
    // CHECK:      wgmma.fence.sync.aligned;
    // CHECK-NEXT: add.s64 b, %rd{{[0-9]+}}, 0;
    // CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {[[E:(%r[0-9]+, ){3}%r[0-9]+]]}, {[[A:(%r[0-9]+, ){3}%r[0-9]+]]}, b, add, 1, 1, 1;
    // CHECK-NEXT: add.s64 b, %rd{{[0-9]+}}, 128;
    // CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {[[E]]}, {[[A]]}, b, add, 1, 1, 1;
    // CHECK-NEXT: wgmma.commit_group.sync.aligned;
    // CHECK:      wgmma.wait_group.sync.aligned 0;
    // LLVM-LABEL: @in_registers(
    // LLVM:       asm sideeffect "{{.*}}", "=f,=f,=f,=f,r,r,r,r,r,r,r,r,l,0,1,2,3"(i32
    llvm.func @in_registers(%w: vector<2xf16>, %x: vector<2xf16>, %b: i64, %c: vector<4xf32>, %out: !llvm.ptr) attributes {nvvm.kernel, gpu.kernel, kvbuffer.phase = #kvbuffer.phase<target>} {
      %s = kvbuffer.wgmma c(%c : vector<4xf32>) a(%w, %x, %w, %x, %w, %x, %w, %x : vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>) b(%b) {a_steps = array<i64>, b_steps = array<i64: 0, 128>, element = f16, n = 8 : i64, transpose_b} : vector<4xf32>
      %r = kvbuffer.wgmma_wait %s {pending = 0 : i64} : vector<4xf32>
      llvm.store %r, %out : vector<4xf32>, !llvm.ptr
      llvm.return
    }

    // 8-bit floats: 32 a step, two kinds of them, nothing transposed.
    // CHECK-LABEL: .entry of_bytes(
    // CHECK:      wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {{.*, [{].*[}]}}, b, zero, 1, 1;
    // CHECK:      wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {{.*}}, a, b, zero, 1, 1;
    llvm.func @of_bytes(%w: vector<4xi8>, %a: i64, %b: i64, %out: !llvm.ptr) attributes {nvvm.kernel, gpu.kernel, kvbuffer.phase = #kvbuffer.phase<target>} {
      %s = kvbuffer.wgmma a(%w, %w, %w, %w : vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>) b(%b) {a_element = f8E4M3FN, a_steps = array<i64>, b_steps = array<i64: 0>, element = f8E5M2, n = 8 : i64} : vector<4xf32>
      %r = kvbuffer.wgmma_wait %s {pending = 0 : i64} : vector<4xf32>
      llvm.store %r, %out : vector<4xf32>, !llvm.ptr
      %t = kvbuffer.wgmma a_desc(%a) b(%b) {a_steps = array<i64: 0>, b_steps = array<i64: 0>, element = f8E4M3FN, n = 8 : i64} : vector<4xf32>
      %u = kvbuffer.wgmma_wait %t {pending = 0 : i64} : vector<4xf32>
      llvm.store %u, %out : vector<4xf32>, !llvm.ptr
      llvm.return
    }

    // From zero with a in registers: results are written before all of a has been
    // read, so that they must not share registers with it.
    // LLVM-LABEL: @fresh(
    // LLVM:       asm sideeffect "{{.*}}", "=&f,=&f,=&f,=&f,r,r,r,r,l"(i32
    llvm.func @fresh(%w: vector<2xbf16>, %b: i64, %out: !llvm.ptr) attributes {nvvm.kernel, gpu.kernel, kvbuffer.phase = #kvbuffer.phase<target>} {
      %s = kvbuffer.wgmma a(%w, %w, %w, %w : vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>) b(%b) {a_steps = array<i64>, b_steps = array<i64: 0>, element = bf16, n = 8 : i64} : vector<4xf32>
      %r = kvbuffer.wgmma_wait %s {pending = 0 : i64} : vector<4xf32>
      llvm.store %r, %out : vector<4xf32>, !llvm.ptr
      llvm.return
    }

    // The plain form of the arrival, under a predicate; a word and its barrier in
    // the same block.
    // CHECK-LABEL: .entry in_cluster(
    // CHECK:      mapa.shared::cluster.u32 there, %r{{[0-9]+}}, [[RANK:%r[0-9]+]];
    // CHECK-NEXT: @%p{{[0-9]+}} mbarrier.arrive.shared::cluster.b64 _, [there];
    // CHECK:      mapa.shared::cluster.u32 there, %r{{[0-9]+}}, [[RANK]];
    // CHECK-NEXT: mapa.shared::cluster.u32 barrier, %r{{[0-9]+}}, [[RANK]];
    // CHECK-NEXT: st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [there], %r{{[0-9]+}}, [barrier];
    // CHECK:      st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [there], {%r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}}, [barrier];
    // CHECK:      mapa.shared::cluster.u32 there, [[FROM:%r[0-9]+]], [[RANK]];
    // CHECK-NEXT: mapa.shared::cluster.u32 barrier, %r{{[0-9]+}}, [[RANK]];
    // CHECK-NEXT: @%p{{[0-9]+}} cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], [[[FROM]]], %r{{[0-9]+}}, [barrier];
    llvm.func @in_cluster(%at: i32, %rank: i32, %value: i32, %four: vector<4xi32>) attributes {nvvm.kernel, gpu.kernel, nvvm.cluster_dim = array<i32: 2, 1, 1>, kvbuffer.phase = #kvbuffer.phase<target>} {
      %barrier = llvm.inttoptr %at : i32 to !llvm.ptr<3>
      %first = llvm.icmp "eq" %value, %at : i32
      kvbuffer.cluster_arrive %barrier in %rank if %first : !llvm.ptr<3>
      kvbuffer.cluster_store %value to %barrier completes %barrier in %rank : i32, !llvm.ptr<3>
      kvbuffer.cluster_store %four to %barrier completes %barrier in %rank : vector<4xi32>, !llvm.ptr<3>
      kvbuffer.cluster_copy %value from %barrier completes %barrier in %rank if %first : !llvm.ptr<3>
      llvm.return
    }
  }
}
