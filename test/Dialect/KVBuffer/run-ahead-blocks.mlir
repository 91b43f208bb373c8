// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=blocks,loads},canonicalize,kvbuf-count-waits)))' --split-input-file | FileCheck %s
// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=blocks,loads})))' --split-input-file --remark-format=emitRemark --remarks-filter=kvbuf-run-ahead 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// A list of places that the kernel only reads is read ahead with a block, in the
// iterations that there are; one that it may write keeps the loop as it is.
// DEFINE: %{place} =
// DEFINE: %{listed} = sed -e '%{place}' -e 's/cache_tile %k.%c0, %c0, %i. from/cache_tile %k[%c0, %c0, %at] from/' -e 's/%a: index, %b: index/&, %list: memref<?xindex>/' %s | kvbuf-opt -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=blocks},canonicalize)))' --split-input-file 2>&1 | FileCheck %s
// REDEFINE: %{place} = s/[%]tile = kvbuffer.cache_tile %k.%c0, %c0, %i. from/%at = memref.load %list[%i] : memref<?xindex>\n&/
// RUN: %{listed} --check-prefix=READ
// READ-LABEL:  gpu.func @three_slots
// READ:          scf.if %{{.*}} -> (index) {
// READ-NEXT:       memref.load
// READ:          scf.for
// READ:            memref.load
// READ:            scf.if %{{.*}} -> (index) {
// READ-NEXT:         memref.load
// REDEFINE: %{place} = s/[%]tile = kvbuffer.cache_tile %k.%c0, %c0, %i. from/%at = memref.load %list[%i] : memref<?xindex>\nmemref.store %at, %list[%i] : memref<?xindex>\n&/
// RUN: %{listed} --check-prefix=WRITTEN
// WRITTEN: warning: not prefetched: a tile's place depends on this op, which cannot run ahead of its iteration
// WRITTEN-NEXT: memref.load %list

// K and V of two blocks each, two slots: behind the wait for a block the next is
// loaded, behind the last one the first of the next iteration, from a tile of its
// own and not past the last. Each wait leaves the loads behind the awaited one in
// flight: none here.

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 32, full_kv = false, stages = 2>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 32, full_kv = false, stages = 2>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 32>
!tile = !kvbuffer.tile<16x32xbf16>
gpu.module @m {
  // CHECK-LABEL: gpu.func @two_slots
  // CHECK-SAME:    %[[K:[^:]*]]: !kvbuffer.cache<{{[^>]*}}>, %[[V:[^:]*]]: !kvbuffer.cache<{{[^>]*}}>, %[[N:[^:]*]]: index
  // CHECK:         %[[SOME:.*]] = arith.cmpi sgt, %[[N]], %c0
  // CHECK:         %[[KT:.*]] = kvbuffer.cache_tile %[[K]]{{.*}} if %[[SOME]]
  // CHECK:         %[[FIRST:.*]] = kvbuffer.dram_load %[[KT]] into %kbuf[%c0] if %[[SOME]] :
  // CHECK-NOT:     kvbuffer.dram_load
  // CHECK:         scf.for %[[I:.*]] = %c0 to %[[N]] step %c1 iter_args(%[[K0:.*]] = %[[FIRST]])
  // CHECK:           %[[MORE:.*]] = arith.cmpi slt, %[[I]], %{{.*}}
  // CHECK:           kvbuffer.lds_stage %[[K0]] {younger = 0 : i64}
  // CHECK:           %[[K1:.*]] = kvbuffer.dram_load %{{.*}} into %kbuf[%c1] {block = 1 : i64} :
  // CHECK:           kvbuffer.lds_stage %[[K1]] {younger = 0 : i64}
  // CHECK:           %[[V0:.*]] = kvbuffer.dram_load %{{.*}} into %vbuf[%c0] :
  // CHECK:           kvbuffer.lds_stage %[[V0]] {younger = 0 : i64}
  // CHECK:           %[[V1:.*]] = kvbuffer.dram_load %{{.*}} into %vbuf[%c1] {block = 1 : i64} :
  // CHECK:           kvbuffer.lds_stage %[[V1]] {younger = 0 : i64}
  // CHECK:           %[[KTN:.*]] = kvbuffer.cache_tile %[[K]]{{.*}} if %[[MORE]]
  // CHECK:           %[[KN:.*]] = kvbuffer.dram_load %[[KTN]] into %kbuf[%c0] if %[[MORE]] {whole} :
  // CHECK-NOT:       kvbuffer.dram_load
  // CHECK:           scf.yield %[[KN]]
  gpu.func @two_slots(%k: !kv, %v: !kv, %n: index, %keys: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %vbuf = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
    // REMARK: run-ahead-blocks.mlir:[[#@LINE+1]]:{{.*}} remark: [Passed] blocks{{.*}}loads run {{.*}}1{{.*}} block(s) ahead
    scf.for %i = %c0 to %n step %c1 {
      %key = arith.muli %i, %c16 : index
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %k0 = kvbuffer.dram_load %kt into %kbuf[%c0] : !tile, !kvbuffer.buffer<#kbuf>
      %ks0 = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
      %k1 = kvbuffer.dram_load %kt into %kbuf[%c1] {block = 1 : i64} : !tile, !kvbuffer.buffer<#kbuf>
      %ks1 = kvbuffer.lds_stage %k1 : !kvbuffer.token<#kbuf>
      %vt = kvbuffer.cache_tile %v[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %v0 = kvbuffer.dram_load %vt into %vbuf[%c0] : !tile, !kvbuffer.buffer<#vbuf>
      %vs0 = kvbuffer.lds_stage %v0 : !kvbuffer.token<#vbuf>
      %v1 = kvbuffer.dram_load %vt into %vbuf[%c1] {block = 1 : i64} : !tile, !kvbuffer.buffer<#vbuf>
      %vs1 = kvbuffer.lds_stage %v1 : !kvbuffer.token<#vbuf>
    } {kvbuffer.whole_after_first}
    gpu.return
  }
}

// -----

// Three slots: two blocks ahead, and a wait leaves one load in flight.

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 32, full_kv = false, stages = 3>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 32>
!tile = !kvbuffer.tile<16x32xbf16>
gpu.module @m {
  // CHECK-LABEL: gpu.func @three_slots
  // CHECK:         %[[A:.*]] = kvbuffer.dram_load %{{.*}} into %{{.*}}[%{{.*}}] if %{{[^ ]*}} :
  // CHECK:         %[[B:.*]] = kvbuffer.dram_load %{{.*}} into %{{.*}}[%{{.*}}] if %{{[^ ]*}} {block = 1 : i64} :
  // CHECK-NOT:     kvbuffer.dram_load
  // CHECK:         scf.for {{.*}} iter_args(%[[K0:.*]] = %[[A]], %[[K1:.*]] = %[[B]])
  // CHECK:           kvbuffer.lds_stage %[[K0]] {younger = 1 : i64}
  // CHECK:           %[[N0:.*]] = kvbuffer.dram_load %{{.*}} if %{{[^ ]*}} :
  // CHECK:           kvbuffer.lds_stage %[[K1]] {younger = 1 : i64}
  // CHECK:           %[[N1:.*]] = kvbuffer.dram_load %{{.*}} if %{{[^ ]*}} {block = 1 : i64} :
  // CHECK:           scf.yield %[[N0]], %[[N1]]
  gpu.func @three_slots(%k: !kv, %n: index, %a: index, %b: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    scf.for %i = %c0 to %n step %c1 {
      %tile = kvbuffer.cache_tile %k[%c0, %c0, %i] from %c0 upto %n : !kv -> !tile
      %t0 = kvbuffer.dram_load %tile into %buf[%a] : !tile, !kvbuffer.buffer<#kbuf>
      %s0 = kvbuffer.lds_stage %t0 : !kvbuffer.token<#kbuf>
      %t1 = kvbuffer.dram_load %tile into %buf[%b] {block = 1 : i64} : !tile, !kvbuffer.buffer<#kbuf>
      %s1 = kvbuffer.lds_stage %t1 : !kvbuffer.token<#kbuf>
    }
    gpu.return
  }
}

// -----

// What cannot be pipelined stays as it is, and says why.

#one = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 32, full_kv = false, stages = 1>
#two = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 32, full_kv = false, stages = 2>
!tile = !kvbuffer.tile<16x32xbf16>
gpu.module @m {
  // CHECK-LABEL: gpu.func @left_alone
  // CHECK-NOT:     kvbuffer.dram_load
  // CHECK:         scf.for
  gpu.func @left_alone(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b1 = kvbuffer.alloc : !kvbuffer.buffer<#one>
    %b2 = kvbuffer.alloc : !kvbuffer.buffer<#two>
    // A buffer of one slot asks for none.
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b1[%c0] : !tile, !kvbuffer.buffer<#one>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#one>
    }
    // REMARK: run-ahead-blocks.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] blocks{{.*}}not prefetched: {{.*}}a wait is not for one load of its own iteration
    scf.for %i = %c0 to %n step %c1 {
      %t0 = kvbuffer.dram_load %tile into %b2[%c0] : !tile, !kvbuffer.buffer<#two>
      %t1 = kvbuffer.dram_load %tile into %b2[%c1] {block = 1 : i64} : !tile, !kvbuffer.buffer<#two>
      %s:2 = kvbuffer.lds_stage %t0, %t1 : !kvbuffer.token<#two>, !kvbuffer.token<#two>
    }
    // REMARK: run-ahead-blocks.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] blocks{{.*}}not prefetched: {{.*}}a load is not awaited in its own iteration
    scf.for %i = %c0 to %n step %c1 {
      %t0 = kvbuffer.dram_load %tile into %b2[%c0] : !tile, !kvbuffer.buffer<#two>
      %t1 = kvbuffer.dram_load %tile into %b2[%c1] {block = 1 : i64} : !tile, !kvbuffer.buffer<#two>
      %s = kvbuffer.lds_stage %t0 : !kvbuffer.token<#two>
    }
    gpu.return
  }
}
