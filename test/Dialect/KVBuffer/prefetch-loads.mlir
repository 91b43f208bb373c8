// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-prefetch-loads,canonicalize)))' --split-input-file | FileCheck %s
// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-prefetch-loads)))' --split-input-file --remark-format=emitRemark --remarks-filter=kvbuf-prefetch-loads 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Two slots: the loads of iteration 0 stand in front of the loop, those of
// iteration i + 1 behind the wait of iteration i; none runs past the last tile.
// The waits for K and V are one.

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 16>
!tile = !kvbuffer.tile<16x16xbf16>
!b = !kvbuffer.fragment<16x16xbf16, b>
!a = !kvbuffer.fragment<16x16xbf16, a>
!acc = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // CHECK-LABEL: gpu.func @two_slots
  // CHECK-SAME:    %[[K:[^:]*]]: !kvbuffer.cache<{{[^>]*}}>, %[[V:[^:]*]]: !kvbuffer.cache<{{[^>]*}}>, %[[N:[^:]*]]: index
  // CHECK:         %[[KBUF:.*]] = kvbuffer.alloc : <#kbuf>
  // CHECK:         %[[VBUF:.*]] = kvbuffer.alloc : <#vbuf>
  // CHECK:         %[[SOME:.*]] = arith.cmpi sgt, %[[N]], %c0
  // CHECK:         %[[KT0:.*]] = kvbuffer.cache_tile %[[K]]{{.*}} if %[[SOME]]
  // CHECK:         %[[K0:.*]] = kvbuffer.dram_load %[[KT0]] into %[[KBUF]][%{{.*}}] if %[[SOME]]
  // CHECK:         %[[VT0:.*]] = kvbuffer.cache_tile %[[V]]{{.*}} if %[[SOME]]
  // CHECK:         %[[V0:.*]] = kvbuffer.dram_load %[[VT0]] into %[[VBUF]][%{{.*}}] if %[[SOME]]
  // CHECK:         scf.for %[[I:.*]] = %c0 to %[[N]] step %c1 iter_args(%{{.*}} = %{{.*}}, %[[KNOW:.*]] = %[[K0]], %[[VNOW:.*]] = %[[V0]])
  // CHECK:           %[[MORE:.*]] = arith.cmpi slt, %[[I]], %{{.*}}
  // CHECK:           %[[KS:.*]], %[[VS:.*]] = kvbuffer.lds_stage %[[KNOW]], %[[VNOW]] :
  // CHECK:           %[[NEXT:.*]] = arith.addi %[[I]], %c1
  // CHECK:           %[[SLOT:.*]] = arith.remui %{{.*}}, %c2
  // CHECK:           %[[KT1:.*]] = kvbuffer.cache_tile %[[K]]{{.*}} if %[[MORE]]
  // CHECK:           %[[K1:.*]] = kvbuffer.dram_load %[[KT1]] into %[[KBUF]][%[[SLOT]]] if %[[MORE]]
  // CHECK:           %[[VT1:.*]] = kvbuffer.cache_tile %[[V]]{{.*}} if %[[MORE]]
  // CHECK:           %[[V1:.*]] = kvbuffer.dram_load %[[VT1]] into %[[VBUF]][%[[SLOT]]] if %[[MORE]]
  // CHECK-NOT:       kvbuffer.lds_stage
  // CHECK:           kvbuffer.fragment_load %[[KS]]
  // CHECK:           kvbuffer.fragment_load %[[VS]]
  // CHECK:           scf.yield %{{.*}}, %[[K1]], %[[V1]]
  gpu.func @two_slots(%k: !kv, %v: !kv, %n: index, %keys: index, %q: !a, %out: !tile) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %vbuf = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    // REMARK: prefetch-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Passed] prefetch{{.*}}loads run {{.*}}1{{.*}} iteration(s) ahead
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %key = arith.muli %i, %c16 : index
      %slot = arith.remui %i, %c2 : index
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %k0 = kvbuffer.dram_load %kt into %kbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %acc {transpose_b} : !a, !b, !acc
      %vt = kvbuffer.cache_tile %v[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %v0 = kvbuffer.dram_load %vt into %vbuf[%slot] : !tile, !kvbuffer.buffer<#vbuf>
      %vs = kvbuffer.lds_stage %v0 : !kvbuffer.token<#vbuf>
      %vf = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !b
      %o = kvbuffer.mma %q, %vf, %s : !a, !b, !acc
      scf.yield %o : !acc
    }
    %r16 = kvbuffer.fragment_convert %r : !acc -> !kvbuffer.fragment<16x16xbf16, acc>
    kvbuffer.fragment_store %r16, %out : !kvbuffer.fragment<16x16xbf16, acc>, !tile
    gpu.return
  }
}

// -----

// Three slots: two iterations ahead. Where only the first iteration's tile can
// have invalid rows, the loop loads whole ones.

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 3>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 16>
gpu.module @m {
  // CHECK-LABEL: gpu.func @three_slots
  // CHECK:         %[[T0:.*]] = kvbuffer.dram_load %{{.*}} into %{{.*}}[%{{.*}}] if %{{[^ ]*}} :
  // CHECK:         %[[T1:.*]] = kvbuffer.dram_load %{{.*}} into %{{.*}}[%{{.*}}] if %{{[^ ]*}} :
  // CHECK-NOT:     kvbuffer.dram_load
  // CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %[[T0]], %[[B:.*]] = %[[T1]])
  // CHECK:           kvbuffer.lds_stage %[[A]]
  // CHECK:           %[[T2:.*]] = kvbuffer.dram_load %{{.*}} into %{{.*}}[%{{.*}}] if %{{[^ ]*}} {whole} :
  // CHECK:           scf.yield %[[B]], %[[T2]]
  gpu.func @three_slots(%k: !kv, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    scf.for %i = %c0 to %n step %c1 {
      %slot = arith.remui %i, %c3 : index
      %tile = kvbuffer.cache_tile %k[%c0, %c0, %i] from %c0 upto %n : !kv -> !kvbuffer.tile<16x16xbf16>
      %t = kvbuffer.dram_load %tile into %buf[%slot] : !kvbuffer.tile<16x16xbf16>, !kvbuffer.buffer<#kbuf>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
    } {kvbuffer.whole_after_first}
    gpu.return
  }
}

// -----

#one = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 1>
#two = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
gpu.module @m {
  // Loops that cannot be pipelined stay as they are.
  // CHECK-LABEL: gpu.func @left_alone
  // CHECK-NOT:     kvbuffer.dram_load
  // CHECK:         scf.for
  gpu.func @left_alone(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %buf1 = kvbuffer.alloc : !kvbuffer.buffer<#one>
    %buf2 = kvbuffer.alloc : !kvbuffer.buffer<#two>
    // REMARK: prefetch-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}a buffer of one slot cannot be loaded while it is read
    scf.for %i = %c0 to %n step %c1 {
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}}[%c0] :
      %t = kvbuffer.dram_load %tile into %buf1[%c0] : !tile, !kvbuffer.buffer<#one>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#one>
    }
    // REMARK: prefetch-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}a slot is not the iteration modulo the number of slots
    scf.for %i = %c0 to %n step %c1 {
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}}[%c0] :
      %t = kvbuffer.dram_load %tile into %buf2[%c0] : !tile, !kvbuffer.buffer<#two>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
    }
    // REMARK: prefetch-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}a load is not awaited once in its own iteration
    scf.for %i = %c0 to %n step %c1 {
      %slot = arith.remui %i, %c2 : index
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}} :
      %t = kvbuffer.dram_load %tile into %buf2[%slot] : !tile, !kvbuffer.buffer<#two>
    }
    %t0 = kvbuffer.dram_load %tile into %buf2[%c0] : !tile, !kvbuffer.buffer<#two>
    // REMARK: prefetch-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}a load of another iteration is awaited
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%now = %t0) -> !kvbuffer.token<#two> {
      %s = kvbuffer.lds_stage %now : !kvbuffer.token<#two>
      %slot = arith.remui %i, %c2 : index
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}} :
      %t = kvbuffer.dram_load %tile into %buf2[%slot] : !tile, !kvbuffer.buffer<#two>
      scf.yield %t : !kvbuffer.token<#two>
    }
    // REMARK: prefetch-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}the loop's step is not 1
    scf.for %i = %c0 to %n step %c2 {
      %slot = arith.remui %i, %c2 : index
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}} :
      %t = kvbuffer.dram_load %tile into %buf2[%slot] : !tile, !kvbuffer.buffer<#two>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
    }
    gpu.return
  }
}
