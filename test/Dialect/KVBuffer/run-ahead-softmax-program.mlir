// A program of its own: what serves both products, a mask whose operands the branch
// computes, a number of tiles that is known.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=softmax})))" | FileCheck %s

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16], overlap_products = true>
#kbuf = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
!k = !kvbuffer.buffer<#kbuf>
!tile = !kvbuffer.tile<16x16xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
!row = !kvbuffer.fragment<16x1xf32, row>
!a = !kvbuffer.fragment<16x16xbf16, a>
!b = !kvbuffer.fragment<16x16xbf16, b>
gpu.module @m {
  // CHECK-LABEL: gpu.func @attend
  // CHECK:         %[[EDGE:.*]] = arith.divui
  // CHECK:         scf.if
  // The first mask comes out of its branch with what it reads. The accumulator
  // is no fill of zeros: it is rescaled.
  // CHECK:           %[[S0:.*]] = kvbuffer.mma %{{.*}} {transpose_b}
  // CHECK-NOT:       scf.if
  // CHECK:           %[[FIRST:.*]] = arith.constant 1 : index
  // CHECK:           %[[H0:.*]] = kvbuffer.mask %[[S0]] rows({{.*}}) keys(%[[FIRST]],
  // CHECK:           %[[P0:.*]], %[[M0:.*]], %[[L0:.*]], %[[R0:.*]] = kvbuffer.online_softmax %[[H0]]
  // CHECK:           %[[A0:.*]] = kvbuffer.rescale %arg2, %[[R0]]
  // CHECK:           %[[LOOP:.*]]:4 = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} iter_args(%[[ACC:.*]] = %[[A0]], %{{.*}} = %[[M0]], %{{.*}} = %[[L0]], %[[P:.*]] = %[[P0]])
  // The tile of both is looked up for each, the second time for the tile before.
  // CHECK:             %[[KEY:.*]] = arith.muli %[[I]], %c16
  // CHECK:             %[[TILE:.*]] = kvbuffer.dram_tile %arg1[%[[KEY]], %c0]
  // CHECK:             kvbuffer.dram_load %[[TILE]] into %[[KBUF:.*]][%{{.*}}] {whole}
  // CHECK:             %[[S:.*]] = kvbuffer.mma %{{.*}} {transpose_b}
  // CHECK:             %[[BEFORE:.*]] = arith.subi %[[I]], %c1
  // CHECK:             %[[KEYBEFORE:.*]] = arith.muli %[[BEFORE]], %c16
  // CHECK:             %[[TILEBEFORE:.*]] = kvbuffer.dram_tile %arg1[%[[KEYBEFORE]], %c0]
  // CHECK:             %[[SLOT:.*]] = arith.remui %[[BEFORE]], %c2
  // CHECK:             kvbuffer.dram_load %[[TILEBEFORE]] into %[[VBUF:.*]][%[[SLOT]]] :
  // CHECK:             %[[O:.*]] = kvbuffer.mma %[[P]], %{{.*}}, %[[ACC]] :
  // CHECK:             %[[FAR:.*]] = arith.cmpi sge, %[[I]], %[[EDGE]]
  // CHECK:             scf.if %[[FAR]]
  // CHECK:               %[[LATER:.*]] = arith.addi %[[KEY]], %c1
  // CHECK:               kvbuffer.mask %[[S]] rows({{.*}}) keys(%[[LATER]],
  // CHECK:             kvbuffer.online_softmax
  // CHECK:             kvbuffer.rescale %[[O]]
  // The third of three tiles is in slot 0.
  // CHECK:           %[[KEYLAST:.*]] = arith.constant 32 : index
  // CHECK:           %[[TILELAST:.*]] = kvbuffer.dram_tile %arg1[%[[KEYLAST]], %c0]
  // CHECK:           %[[SLOTLAST:.*]] = arith.constant 0 : index
  // CHECK:           kvbuffer.dram_load %[[TILELAST]] into %[[VBUF]][%[[SLOTLAST]]]
  // CHECK:           kvbuffer.mma %[[LOOP]]#3, %{{.*}}, %[[LOOP]]#0 :
  gpu.func @attend(%q: !a, %keys: memref<?x16xbf16>, %zero: !acc, %r0: !row, %n: index, %rows: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %c0 of %rows keys %n {BM = 16 : i64, mask = #kvbuffer.mask<causal = true>}
    %edge = arith.divui %full_hi, %c16 : index
    %kbuf = kvbuffer.alloc : !k
    %vbuf = kvbuffer.alloc : !k
    %r:3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %zero, %m = %r0, %l = %r0) -> (!acc, !row, !row) {
      %key = arith.muli %i, %c16 : index
      %slot = arith.remui %i, %c2 : index
      %tile = kvbuffer.dram_tile %keys[%key, %c0] valid(%n, %c16) : memref<?x16xbf16> -> !tile
      %kt = kvbuffer.dram_load %tile into %kbuf[%slot] : !tile, !k
      %vt = kvbuffer.dram_load %tile into %vbuf[%slot] : !tile, !k
      %ks = kvbuffer.lds_stage %kt : !kvbuffer.token<#kbuf>
      %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
      %vs = kvbuffer.lds_stage %vt : !kvbuffer.token<#kbuf>
      %vf = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %q, %kf, %zero {transpose_b} : !a, !b, !acc
      %far = arith.cmpi sge, %i, %edge : index
      %h = scf.if %far -> (!acc) {
        %first = arith.addi %key, %c1 : index
        %masked = kvbuffer.mask %s rows(%c0, %rows) keys(%first, %n) {mask = #kvbuffer.mask<causal = true>} : !acc
        scf.yield %masked : !acc
      } else {
        scf.yield %s : !acc
      }
      %p, %m1, %l1, %rs = kvbuffer.online_softmax %h, %m, %l {scale = 1.0 : f32} : !acc, !row -> !a
      %scaled = kvbuffer.rescale %acc, %rs : !acc, !row
      %o = kvbuffer.mma %p, %vf, %scaled : !a, !b, !acc
      scf.yield %o, %m1, %l1 : !acc, !row, !row
    } {kvbuffer.whole_after_first}
    gpu.return
  }
}
