// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=loads},canonicalize)))' --split-input-file | FileCheck %s
// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=loads})))' --split-input-file --remark-format=emitRemark --remarks-filter=kvbuf-run-ahead 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: kvbuf-opt %s -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=loads})))' --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=WARNING --implicit-check-not=warning:

// Two slots: the loads of iteration 0 stand in front of the loop, those of
// iteration i + 1 behind the wait and the first product of iteration i; none runs past the last tile.
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
  // The loads stand behind the first product, which they need not hold up.
  // CHECK:           kvbuffer.fragment_load %[[KS]]
  // CHECK:           kvbuffer.mma {{.*}} {transpose_b}
  // CHECK:           %[[SLOT:.*]] = arith.remui %{{.*}}, %c2
  // CHECK:           %[[KT1:.*]] = kvbuffer.cache_tile %[[K]]{{.*}} if %[[MORE]]
  // CHECK:           %[[K1:.*]] = kvbuffer.dram_load %[[KT1]] into %[[KBUF]][%[[SLOT]]] if %[[MORE]]
  // CHECK:           %[[VT1:.*]] = kvbuffer.cache_tile %[[V]]{{.*}} if %[[MORE]]
  // CHECK:           %[[V1:.*]] = kvbuffer.dram_load %[[VT1]] into %[[VBUF]][%[[SLOT]]] if %[[MORE]]
  // CHECK-NOT:       kvbuffer.lds_stage
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
    // REMARK: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Passed] prefetch{{.*}}loads run {{.*}}1{{.*}} iteration(s) ahead
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

// Tiles that a list names: its entry of the next iteration is read ahead, where there
// is one. A list that the kernel writes is read in its own iteration, and with it the
// tile.

#kbuf = #kvbuffer.kv_buffer<16x16xbf16, BK = 16, stages = 2>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 16>
!tile = !kvbuffer.tile<16x16xbf16>
!b = !kvbuffer.fragment<16x16xbf16, b>
!a = !kvbuffer.fragment<16x16xbf16, a>
!acc = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // CHECK-LABEL: gpu.func @listed
  // CHECK-SAME:    %[[N:[^:]*]]: index, %{{[^:]*}}: index, %{{[^:]*}}: !kvbuffer.fragment<{{[^>]*}}>, %[[LIST:[^:]*]]: memref<?xindex>
  // CHECK:         %[[SOME:.*]] = arith.cmpi sgt, %[[N]], %c0
  // CHECK:         %[[FIRST:.*]] = scf.if %[[SOME]] -> (index) {
  // CHECK-NEXT:      memref.load %[[LIST]][%c0]
  // CHECK:         } else {
  // CHECK-NEXT:      scf.yield %c0
  // CHECK:         kvbuffer.cache_tile %{{.*}}[%c0, %c0, %[[FIRST]]]{{.*}} if %[[SOME]]
  // CHECK:         scf.for %[[I:.*]] = %c0 to %[[N]]
  // CHECK:           %[[MORE:.*]] = arith.cmpi slt, %[[I]], %{{.*}}
  // CHECK:           arith.remui
  // CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[I]], %c1
  // CHECK-NEXT:      %[[KEY:.*]] = scf.if %[[MORE]] -> (index) {
  // CHECK-NEXT:        memref.load %[[LIST]][%[[NEXT]]]
  // CHECK:           kvbuffer.cache_tile %{{.*}}[%c0, %c0, %[[KEY]]]{{.*}} if %[[MORE]]
  // CHECK-LABEL: gpu.func @written
  // CHECK-NOT:     scf.if
  // CHECK:         scf.for
  // CHECK-NOT:     scf.if
  // CHECK:           kvbuffer.cache_tile
  gpu.func @listed(%k: !kv, %n: index, %keys: index, %q: !a, %list: memref<?xindex>, %out: !tile) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    // REMARK: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Passed] prefetch{{.*}}loads run {{.*}}1{{.*}} iteration(s) ahead
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %slot = arith.remui %i, %c2 : index
      %key = memref.load %list[%i] : memref<?xindex>
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %k0 = kvbuffer.dram_load %kt into %kbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %acc {transpose_b} : !a, !b, !acc
      scf.yield %s : !acc
    }
    %r16 = kvbuffer.fragment_convert %r : !acc -> !kvbuffer.fragment<16x16xbf16, acc>
    kvbuffer.fragment_store %r16, %out : !kvbuffer.fragment<16x16xbf16, acc>, !tile
    gpu.return
  }
  gpu.func @written(%k: !kv, %n: index, %keys: index, %q: !a, %list: memref<?xindex>, %out: !tile) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %slot = arith.remui %i, %c2 : index
      // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}which cannot run ahead of its iteration
      // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: a tile's place depends on this op, which cannot run ahead of its iteration; expected a memref.load of an argument that the kernel only reads
      %key = memref.load %list[%i] : memref<?xindex>
      memref.store %i, %list[%key] : memref<?xindex>
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %k0 = kvbuffer.dram_load %kt into %kbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %acc {transpose_b} : !a, !b, !acc
      scf.yield %s : !acc
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
    // REMARK: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}a buffer of one slot cannot be loaded while it is read
    scf.for %i = %c0 to %n step %c1 {
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}}[%c0] :
      %t = kvbuffer.dram_load %tile into %buf1[%c0] : !tile, !kvbuffer.buffer<#one>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#one>
    }
    // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}a slot is not the iteration, or one a fixed number of iterations away, modulo the number of slots
    // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: a slot is not the iteration, or one a fixed number of iterations away, modulo the number of slots
    scf.for %i = %c0 to %n step %c1 {
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}}[%c0] :
      %t = kvbuffer.dram_load %tile into %buf2[%c0] : !tile, !kvbuffer.buffer<#two>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
    }
    // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}a load is not awaited once in its own iteration
    // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: a load is not awaited once in its own iteration
    scf.for %i = %c0 to %n step %c1 {
      %slot = arith.remui %i, %c2 : index
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}} :
      %t = kvbuffer.dram_load %tile into %buf2[%slot] : !tile, !kvbuffer.buffer<#two>
    }
    // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}the loop compares its index without signs
    // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: the loop compares its index without signs
    scf.for unsigned %i = %c0 to %n step %c1 {
      %slot = arith.remui %i, %c2 : index
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}} :
      %t = kvbuffer.dram_load %tile into %buf2[%slot] : !tile, !kvbuffer.buffer<#two>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
    }
    // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}all warps meet in the loop's body
    // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: all warps meet in the loop's body
    scf.for %i = %c0 to %n step %c1 {
      %slot = arith.remui %i, %c2 : index
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}} :
      %t = kvbuffer.dram_load %tile into %buf2[%slot] : !tile, !kvbuffer.buffer<#two>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
      kvbuffer.meet
    }
    // Nothing is lost where loads run ahead and a meeting is what frees slots.
    %first = kvbuffer.dram_load %tile into %buf2[%c0] : !tile, !kvbuffer.buffer<#two>
    %turns = scf.for %i = %c0 to %n step %c1 iter_args(%now = %first) -> !kvbuffer.token<#two> {
      %s = kvbuffer.lds_stage %now : !kvbuffer.token<#two>
      kvbuffer.meet
      %next = arith.addi %i, %c1 : index
      %slot = arith.remui %next, %c2 : index
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}}[%{{.*}}] :
      %t = kvbuffer.dram_load %tile into %buf2[%slot] : !tile, !kvbuffer.buffer<#two>
      scf.yield %t : !kvbuffer.token<#two>
    }
    %t0 = kvbuffer.dram_load %tile into %buf2[%c0] : !tile, !kvbuffer.buffer<#two>
    // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}a load of another iteration is awaited
    // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: a load of another iteration is awaited
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%now = %t0) -> !kvbuffer.token<#two> {
      %s = kvbuffer.lds_stage %now : !kvbuffer.token<#two>
      %slot = arith.remui %i, %c2 : index
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}} :
      %t = kvbuffer.dram_load %tile into %buf2[%slot] : !tile, !kvbuffer.buffer<#two>
      scf.yield %t : !kvbuffer.token<#two>
    }
    // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: {{.*}}the loop's step is not 1
    // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: the loop's step is not 1
    scf.for %i = %c0 to %n step %c2 {
      %slot = arith.remui %i, %c2 : index
      // CHECK: kvbuffer.dram_load %{{.*}} into %{{.*}} :
      %t = kvbuffer.dram_load %tile into %buf2[%slot] : !tile, !kvbuffer.buffer<#two>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
    }
    gpu.return
  }
}

// -----

// A rotated loop: K is a tile ahead, so its first tile is loaded and multiplied
// before the loop, and V's last one after it. Slots are (i + 1) mod 2 and i mod 2.
// The loop's first loads are issued before the wait for K's first tile, and V's
// last tile is loaded by the loop's last iteration.

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 16>
!tile = !kvbuffer.tile<16x16xbf16>
!b = !kvbuffer.fragment<16x16xbf16, b>
!a = !kvbuffer.fragment<16x16xbf16, a>
!acc = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // CHECK-LABEL: gpu.func @rotated
  // CHECK-SAME:    %[[K:[^:]*]]: !kvbuffer.cache<{{[^>]*}}>, %[[V:[^:]*]]: !kvbuffer.cache<{{[^>]*}}>, %[[N:[^:]*]]: index
  // CHECK-DAG:     %[[KBUF:.*]] = kvbuffer.alloc : <#kbuf>
  // CHECK-DAG:     %[[VBUF:.*]] = kvbuffer.alloc : <#vbuf>
  // CHECK:         %[[FIRST:.*]] = kvbuffer.dram_load %{{.*}} into %[[KBUF]][%c0] :
  // One V more than K: up to tile %n, the last.
  // CHECK-DAG:     %[[K1:.*]] = kvbuffer.dram_load %{{.*}} into %[[KBUF]][%c1] if %[[SOME:[^ ]*]] :
  // CHECK-DAG:     %[[V0:.*]] = kvbuffer.dram_load %{{.*}} into %[[VBUF]][%c0] if %[[SOMEV:[^ ]*]] :
  // CHECK:         %[[KS0:.*]] = kvbuffer.lds_stage %[[FIRST]] :
  // CHECK:         kvbuffer.fragment_load %[[KS0]]
  // CHECK:         %[[LOOP:.*]]:3 = scf.for %[[I:.*]] = %c0 to %[[N]] step %c1 iter_args(%{{.*}} = %{{.*}}, %[[KNOW:.*]] = %[[K1]], %[[VNOW:.*]] = %[[V0]])
  // CHECK-DAG:       %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[LAST:.*]] : index
  // CHECK-DAG:       %[[MOREV:.*]] = arith.cmpi sle, %[[I]], %[[LAST]] : index
  // CHECK:           kvbuffer.lds_stage %[[KNOW]], %[[VNOW]] :
  // CHECK:           %[[K2:.*]] = kvbuffer.dram_load %{{.*}} into %[[KBUF]][%{{.*}}] if %[[MORE]] :
  // CHECK:           %[[V1:.*]] = kvbuffer.dram_load %{{.*}} into %[[VBUF]][%{{.*}}] if %{{.*}} :
  // CHECK:           scf.yield %{{.*}}, %[[K2]], %[[V1]]
  // CHECK-NOT:     kvbuffer.dram_load
  // CHECK:         kvbuffer.lds_stage %[[LOOP]]#2
  gpu.func @rotated(%k: !kv, %v: !kv, %n: index, %keys: index, %q: !a, %out: !tile) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %vbuf = kvbuffer.alloc : !kvbuffer.buffer<#vbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %kt0 = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %keys : !kv -> !tile
    %k0 = kvbuffer.dram_load %kt0 into %kbuf[%c0] : !tile, !kvbuffer.buffer<#kbuf>
    %ks0 = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
    %kf0 = kvbuffer.fragment_load %ks0[0, 0] : !kvbuffer.staged<#kbuf> -> !b
    %s0 = kvbuffer.mma %q, %kf0, %zero {transpose_b} : !a, !b, !acc
    // REMARK: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Passed] prefetch{{.*}}loads run {{.*}}1{{.*}} iteration(s) ahead
    %r, %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %now = %s0) -> (!acc, !acc) {
      %next = arith.addi %i, %c1 : index
      %key1 = arith.muli %next, %c16 : index
      %slot1 = arith.remui %next, %c2 : index
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %key1] from %c0 upto %keys : !kv -> !tile
      %k1 = kvbuffer.dram_load %kt into %kbuf[%slot1] : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k1 : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %zero {transpose_b} : !a, !b, !acc
      %key = arith.muli %i, %c16 : index
      %slot = arith.remui %i, %c2 : index
      %vt = kvbuffer.cache_tile %v[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %v0 = kvbuffer.dram_load %vt into %vbuf[%slot] : !tile, !kvbuffer.buffer<#vbuf>
      %vs = kvbuffer.lds_stage %v0 : !kvbuffer.token<#vbuf>
      %vf = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !b
      %o = kvbuffer.mma %q, %vf, %now : !a, !b, !acc
      scf.yield %o, %s : !acc, !acc
    }
    %key = arith.muli %n, %c16 : index
    %slot = arith.remui %n, %c2 : index
    %vt = kvbuffer.cache_tile %v[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
    %v1 = kvbuffer.dram_load %vt into %vbuf[%slot] : !tile, !kvbuffer.buffer<#vbuf>
    %vs = kvbuffer.lds_stage %v1 : !kvbuffer.token<#vbuf>
    %vf = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#vbuf> -> !b
    %o = kvbuffer.mma %q, %vf, %last : !a, !b, !acc
    %r16 = kvbuffer.fragment_convert %o : !acc -> !kvbuffer.fragment<16x16xbf16, acc>
    kvbuffer.fragment_store %r16, %out : !kvbuffer.fragment<16x16xbf16, acc>, !tile
    gpu.return
  }
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 3>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 16>
!tile = !kvbuffer.tile<16x16xbf16>
gpu.module @m {
  // A load after the loop of another tile than the loop's next stays.
  // CHECK-LABEL: gpu.func @other_tile
  // CHECK:         scf.for
  // CHECK:           arith.cmpi slt
  // CHECK-NOT:       arith.cmpi
  // CHECK:         kvbuffer.dram_load
  gpu.func @other_tile(%k: !kv, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    scf.for %i = %c0 to %n step %c1 {
      %slot = arith.remui %i, %c3 : index
      %tile = kvbuffer.cache_tile %k[%c0, %c0, %i] from %c0 upto %n : !kv -> !tile
      %t = kvbuffer.dram_load %tile into %buf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
    }
    %slot = arith.remui %n, %c3 : index
    %tile = kvbuffer.cache_tile %k[%c0, %c0, %c3] from %c0 upto %n : !kv -> !tile
    %t = kvbuffer.dram_load %tile into %buf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
    %s = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
    gpu.return
  }

  // What stays as it is, with a warning.
  // CHECK-LABEL: gpu.func @lost
  gpu.func @lost(%k: !kv, %tile: !tile, %n: index, %some: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    // Slot 1, which the loop's second load fills, two iterations ahead before the
    // loop, may still be read there.
    %t0 = kvbuffer.dram_load %tile into %buf[%c1] : !tile, !kvbuffer.buffer<#kbuf>
    %s0 = kvbuffer.lds_stage %t0 : !kvbuffer.token<#kbuf>
    // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}a slot may still be read when the loop begins
    // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: a slot may still be read when the loop begins
    scf.for %i = %c0 to %n step %c1 {
      %slot = arith.remui %i, %c3 : index
      %t = kvbuffer.dram_load %tile into %buf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
    }
    gpu.return
  }

  gpu.func @twice(%k: !kv, %tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}two loads fill the slots of one buffer
    // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: two loads fill the slots of one buffer
    scf.for %i = %c0 to %n step %c1 {
      %slot = arith.remui %i, %c3 : index
      %t = kvbuffer.dram_load %tile into %buf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
      %next = arith.addi %i, %c1 : index
      %other = arith.remui %next, %c3 : index
      %t1 = kvbuffer.dram_load %tile into %buf[%other] : !tile, !kvbuffer.buffer<#kbuf>
      %s1 = kvbuffer.lds_stage %t1 : !kvbuffer.token<#kbuf>
    }
    gpu.return
  }

  // The loop around this one may still read slot 1 of its last time.
  gpu.func @nested(%k: !kv, %tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    scf.for %j = %c0 to %n step %c1 {
      // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}a slot may still be read when the loop begins
      // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: a slot may still be read when the loop begins
      scf.for %i = %c0 to %n step %c1 {
        %slot = arith.remui %i, %c3 : index
        %t = kvbuffer.dram_load %tile into %buf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
        %s = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
      }
    }
    gpu.return
  }

  gpu.func @branch(%k: !kv, %tile: !tile, %n: index, %some: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    scf.for %i = %c0 to %n step %c1 {
      %slot = arith.remui %i, %c3 : index
      scf.if %some {
        // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}a load stands inside of a branch
        // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: a load stands inside of a branch
        %t = kvbuffer.dram_load %tile into %buf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
        %s = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
      }
    }
    gpu.return
  }
}

// -----

// Look-ups run an iteration further ahead than loads (look_ahead).

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, stages = 2, warps = 1, mma_shape = [16, 8, 16], look_ahead = true>
!kv = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 16, page_size = 16>
!tile = !kvbuffer.tile<16x16xbf16>
!b = !kvbuffer.fragment<16x16xbf16, b>
!a = !kvbuffer.fragment<16x16xbf16, a>
!acc = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // CHECK-LABEL: gpu.func @looks_ahead
  // CHECK:         %[[T0:.*]] = kvbuffer.cache_tile %{{.*}} if %[[SOME:.*]] :
  // CHECK:         %[[K0:.*]] = kvbuffer.dram_load %[[T0]] into {{.*}} if %[[SOME]] :
  // CHECK:         %[[T1:.*]] = kvbuffer.cache_tile %{{.*}} if %[[TWO:.*]] :
  // CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[NOW:.*]] = %[[K0]], {{.*}}%[[NEXT:.*]] = %[[T1]]{{.*}})
  // CHECK:           kvbuffer.lds_stage %[[NOW]]
  // CHECK:           kvbuffer.mma
  // CHECK:           %[[K1:.*]] = kvbuffer.dram_load %[[NEXT]] into
  // CHECK:           %[[T2:.*]] = kvbuffer.cache_tile
  // CHECK:           scf.yield %{{.*}}, %[[K1]], {{.*}}%[[T2]]
  gpu.func @looks_ahead(%k: !kv, %n: index, %keys: index, %q: !a) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %key = arith.muli %i, %c16 : index
      %slot = arith.remui %i, %c2 : index
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %k0 = kvbuffer.dram_load %kt into %kbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %acc {transpose_b} : !a, !b, !acc
      scf.yield %s : !acc
    }
    gpu.return
  }
}

// -----

// So do those of pages smaller than a tile, where lanes make them (sm_80, gfx950); where
// few pages are looked up as the tile is loaded (gfx950), nothing runs further ahead.

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, stages = 2, warps = 1, mma_shape = [16, 8, 16], look_ahead = true>
!kv = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 16, page_size = 1>
!tile = !kvbuffer.tile<16x16xbf16, page_size = 1>
!b = !kvbuffer.fragment<16x16xbf16, b>
!a = !kvbuffer.fragment<16x16xbf16, a>
!acc = !kvbuffer.fragment<16x16xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
gpu.module @m {
  // CHECK-LABEL: gpu.func @small_pages
  // CHECK:         %[[K0:.*]] = kvbuffer.dram_load
  // CHECK:         %[[T1:.*]] = kvbuffer.cache_tile
  // CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[K0]], {{.*}}%[[NEXT:.*]] = %[[T1]]{{.*}})
  // CHECK:           %[[K1:.*]] = kvbuffer.dram_load %[[NEXT]] into
  // CHECK:           %[[T2:.*]] = kvbuffer.cache_tile
  // CHECK:           scf.yield %{{.*}}, %[[K1]], {{.*}}%[[T2]]
  gpu.func @small_pages(%k: !kv, %n: index, %keys: index, %q: !a) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %key = arith.muli %i, %c16 : index
      %slot = arith.remui %i, %c2 : index
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %k0 = kvbuffer.dram_load %kt into %kbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %acc {transpose_b} : !a, !b, !acc
      scf.yield %s : !acc
    }
    gpu.return
  }
}
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 16, 32], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, stages = 2, warp_size = 64>
#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, stages = 2, warps = 1, mma_shape = [16, 16, 32], look_ahead = true>
!kv = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 32, page_size = 16>
!tile = !kvbuffer.tile<32x32xbf16, page_size = 16>
!b = !kvbuffer.fragment<32x32xbf16, b>
!a = !kvbuffer.fragment<16x32xbf16, a>
!acc = !kvbuffer.fragment<16x32xf32, acc>
module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  // CHECK-LABEL: gpu.func @at_the_load
  // CHECK:         scf.for
  // CHECK:           %[[T:.*]] = kvbuffer.cache_tile
  // CHECK:           kvbuffer.dram_load %[[T]] into
  gpu.func @at_the_load(%k: !kv, %n: index, %keys: index, %q: !a) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %key = arith.muli %i, %c32 : index
      %slot = arith.remui %i, %c2 : index
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %k0 = kvbuffer.dram_load %kt into %kbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %acc {transpose_b} : !a, !b, !acc
      scf.yield %s : !acc
    }
    gpu.return
  }
}
}

// -----

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 16, 32], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, stages = 2, warp_size = 64>
#schedule = #kvbuffer.schedule<BM = 16, BN = 32, BK = 32, stages = 2, warps = 1, mma_shape = [16, 16, 32], look_ahead = true>
!kv = !kvbuffer.cache<paged, bf16, heads = 1, head_size = 32, page_size = 4>
!tile = !kvbuffer.tile<32x32xbf16, page_size = 4>
!b = !kvbuffer.fragment<32x32xbf16, b>
!a = !kvbuffer.fragment<16x32xbf16, a>
!acc = !kvbuffer.fragment<16x32xf32, acc>
module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  // Two loads are waited for one by one: what is looked up between them waits for
  // the first only.
  // CHECK-LABEL: gpu.func @by_lane
  // CHECK:         scf.for
  // CHECK:           kvbuffer.dram_load %[[K:arg[0-9]+]] into
  // CHECK:           %[[KNEXT:.*]] = kvbuffer.cache_tile
  // CHECK:           %[[VNEXT:.*]] = kvbuffer.cache_tile
  // CHECK:           kvbuffer.dram_load %[[V:arg[0-9]+]] into
  // CHECK:           kvbuffer.mma
  // CHECK:           scf.yield {{.*}}%[[KNEXT]]{{.*}}%[[VNEXT]]
  gpu.func @by_lane(%k: !kv, %v: !kv, %n: index, %keys: index, %q: !a) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %vbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %key = arith.muli %i, %c32 : index
      %slot = arith.remui %i, %c2 : index
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %k0 = kvbuffer.dram_load %kt into %kbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %vt = kvbuffer.cache_tile %v[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
      %v0 = kvbuffer.dram_load %vt into %vbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %acc {transpose_b} : !a, !b, !acc
      %vs = kvbuffer.lds_stage %v0 : !kvbuffer.token<#kbuf>
      %vf = kvbuffer.fragment_load %vs[0, 0] : !kvbuffer.staged<#kbuf> -> !b
      %t = kvbuffer.mma %q, %vf, %s {transpose_b} : !a, !b, !acc
      scf.yield %t : !acc
    }
    gpu.return
  }
}
}

// -----

// In a loop around: where copies count although they copy nothing, those beyond
// the last tile are awaited before the next loop fills their slots. A
// kvbuffer.meet lets the loads of three slots run ahead.

#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 16, 32], BN = 32, WN = 32, BK = 32, num_threads = 64, depth = 32, stages = 3, warp_size = 64>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 32>
!tile = !kvbuffer.tile<32x32xbf16>
!b = !kvbuffer.fragment<32x32xbf16, b>
!a = !kvbuffer.fragment<16x32xbf16, a>
!acc = !kvbuffer.fragment<16x32xf32, acc>
module attributes {kvbuffer.target = "gfx950"} {
gpu.module @m {
  // CHECK-LABEL: gpu.func @around
  // CHECK:         scf.for
  // CHECK:           kvbuffer.meet
  // CHECK:           kvbuffer.dram_load
  // CHECK:           kvbuffer.dram_load
  // CHECK:           %[[R:.*]]:3 = scf.for
  // CHECK:             kvbuffer.lds_stage
  // CHECK:             kvbuffer.dram_load
  // CHECK:             scf.yield
  // CHECK-NEXT:      }
  // CHECK-NEXT:      kvbuffer.lds_stage %[[R]]#1, %[[R]]#2
  gpu.func @around(%k: !kv, %n: index, %keys: index, %q: !a) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c32 = arith.constant 32 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    scf.for %j = %c0 to %n step %c1 {
      kvbuffer.meet
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
        %key = arith.muli %i, %c32 : index
        %slot = arith.remui %i, %c3 : index
        %kt = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
        %k0 = kvbuffer.dram_load %kt into %kbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
        %ks = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
        %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
        %s = kvbuffer.mma %q, %kf, %acc {transpose_b} : !a, !b, !acc
        scf.yield %s : !acc
      }
    }
    gpu.return
  }
}
}

// -----

// A tile's row is computed by a branch that uses what the body computes.
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 16>
!tile = !kvbuffer.tile<16x16xbf16>
!b = !kvbuffer.fragment<16x16xbf16, b>
!a = !kvbuffer.fragment<16x16xbf16, a>
!acc = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // CHECK-LABEL: gpu.func @row_of_a_branch
  // The branch runs ahead with its load, and with what it uses.
  // CHECK:         %[[K0:.*]] = kvbuffer.dram_load
  // CHECK:         scf.for %[[I:.*]] = %c0 to {{.*}}, %[[NOW:.*]] = %[[K0]])
  // CHECK:           kvbuffer.lds_stage %[[NOW]]
  // CHECK:           %[[NEXT:.*]] = arith.addi %[[I]], %c1
  // CHECK:           %[[KEY:.*]] = arith.muli %[[NEXT]], %c16
  // CHECK:           %[[ROW:.*]] = scf.if
  // CHECK:             arith.addi %[[KEY]]
  // CHECK:           kvbuffer.cache_tile {{.*}}, %[[ROW]]]
  // CHECK:           kvbuffer.dram_load
  gpu.func @row_of_a_branch(%k: !kv, %n: index, %keys: index, %q: !a, %odd: i1, %out: !tile) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %kbuf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    // REMARK: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Passed] prefetch{{.*}}loads run {{.*}}1{{.*}} iteration(s) ahead
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %key = arith.muli %i, %c16 : index
      %slot = arith.remui %i, %c2 : index
      %row = scf.if %odd -> index {
        %later = arith.addi %key, %keys : index
        scf.yield %later : index
      } else {
        scf.yield %c0 : index
      }
      %kt = kvbuffer.cache_tile %k[%c0, %c0, %row] from %c0 upto %keys : !kv -> !tile
      %k0 = kvbuffer.dram_load %kt into %kbuf[%slot] : !tile, !kvbuffer.buffer<#kbuf>
      %ks = kvbuffer.lds_stage %k0 : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %acc {transpose_b} : !a, !b, !acc
      scf.yield %s : !acc
    }
    %r16 = kvbuffer.fragment_convert %r : !acc -> !kvbuffer.fragment<16x16xbf16, acc>
    kvbuffer.fragment_store %r16, %out : !kvbuffer.fragment<16x16xbf16, acc>, !tile
    gpu.return
  }
}

// -----

// A bias is read before the load and needed after the product: it stays with its
// iteration, after the wait, and the load runs ahead. A loop that ends by a condition
// keeps its loads.
#buf = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
!acc = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // CHECK-LABEL: gpu.func @bias
  // CHECK:         kvbuffer.dram_load
  // CHECK:         scf.for {{.*}} !kvbuffer.token
  // CHECK:           kvbuffer.lds_stage
  // CHECK:           kvbuffer.map
  // CHECK:             memref.load
  // CHECK:           kvbuffer.mma
  // CHECK:           kvbuffer.dram_load
  // CHECK-NOT:       memref.load
  // CHECK:           scf.yield
  gpu.func @bias(%tile: !tile, %a: !a, %zero: !acc, %bias: memref<?xf32>, %n: index, %out: !kvbuffer.tile<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %slots = kvbuffer.alloc : !kvbuffer.buffer<#buf>
    // REMARK: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} remark: [Passed] prefetch{{.*}}loads run {{.*}}1{{.*}} iteration(s) ahead
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %start = kvbuffer.map %zero at(%i, %c0) : !acc -> !acc {
      ^bb0(%x: f32, %row: index, %col: index):
        %y = memref.load %bias[%row] : memref<?xf32>
        kvbuffer.yield %y : f32
      }
      %slot = arith.remui %i, %c2 : index
      %t = kvbuffer.dram_load %tile into %slots[%slot] : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %p = kvbuffer.mma %a, %f, %start {transpose_b} : !a, !b, !acc
      %next = kvbuffer.map %acc, %p : !acc, !acc -> !acc {
      ^bb0(%x: f32, %y: f32, %row: index, %col: index):
        %z = arith.addf %x, %y : f32
        kvbuffer.yield %z : f32
      }
      scf.yield %next : !acc
    }
    kvbuffer.fragment_store %sum, %out : !acc, !kvbuffer.tile<16x16xf32>
    gpu.return
  }

  gpu.func @until(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %slots = kvbuffer.alloc : !kvbuffer.buffer<#buf>
    %end = scf.while (%i = %c0) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      %slot = arith.remui %i, %c2 : index
      // REMARK: run-ahead-loads.mlir:[[#@LINE+2]]:{{.*}} remark: [Missed] prefetch{{.*}}not prefetched: only loads of scf.for are
      // WARNING: run-ahead-loads.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: only loads of scf.for are
      %t = kvbuffer.dram_load %tile into %slots[%slot] : !tile, !kvbuffer.buffer<#buf>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      %next = arith.addi %i, %c1 : index
      scf.yield %next : index
    }
    gpu.return
  }
}

// -----

#one = #kvbuffer.kv_buffer<q, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 1>
#two = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], BN = 16, WN = 16, BK = 16, num_threads = 32, depth = 16, stages = 2>
!tile = !kvbuffer.tile<16x16xbf16>
gpu.module @m {
  // A loop whose own load has one slot asks for no prefetch, though the first loads of
  // the loop in it come to stand in its body (no warning).
  // CHECK-LABEL: gpu.func @queries_around
  // CHECK: scf.for
  // CHECK:   kvbuffer.dram_load %{{.*}} into %qbuf :
  // CHECK:   kvbuffer.dram_load %{{.*}} into %kbuf if
  // CHECK:   scf.for
  // REMARK: [Passed] prefetch{{.*}}loads run
  // REMARK: [Missed] prefetch{{.*}}a buffer of one slot cannot be loaded while it is read
  gpu.func @queries_around(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %q = kvbuffer.alloc : !kvbuffer.buffer<#one>
    %k = kvbuffer.alloc : !kvbuffer.buffer<#two>
    scf.for %i = %c0 to %n step %c1 {
      kvbuffer.meet
      %t = kvbuffer.dram_load %tile into %q : !tile, !kvbuffer.buffer<#one>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#one>
      scf.for %j = %c0 to %n step %c1 {
        %u = kvbuffer.dram_load %tile into %k : !tile, !kvbuffer.buffer<#two>
        %v = kvbuffer.lds_stage %u : !kvbuffer.token<#two>
      }
    }
    gpu.return
  }
}
