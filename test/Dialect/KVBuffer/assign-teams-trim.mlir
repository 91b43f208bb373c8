// A group of consumers begins at the first tile of keys that it sees, and gives back
// those before it, each after it was filled.

// DEFINE: %{pass} = kvbuf-opt --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-teams,canonicalize,cse)))"
// RUN: %{pass} %s | FileCheck %s

// Tiles of queries that are whole tiles of keys: all groups see the last of them. But
// those of a cluster's first block do not see the second one's.
// RUN: sed 's/192/128/g; s/384/256/g; s/warps = 12/warps = 8/' %s | %{pass} | FileCheck %s --check-prefix=WHOLE
// WHOLE-LABEL: gpu.func @causal
// WHOLE-NOT:     per_group
// WHOLE-LABEL: gpu.func @tensors
// WHOLE:         kvbuffer.key_range {{.*}}BM = 128 : i64, {{.*}}per_group}
// WHOLE-LABEL: gpu.func @more
// A tile that the loop over keys loads, wherever it is, would be filled for all of the
// block's tiles and emptied for the group's.
// RUN: sed 's/%v.%c0, %c0, %key./%v[%c0, %c0, %c0]/' %s | %{pass} | FileCheck %s --check-prefix=FIXED
// FIXED-LABEL: gpu.func @causal
// FIXED-NOT:     per_group
// FIXED-LABEL: gpu.func @tensors

#schedule = #kvbuffer.schedule<BM = 192, BN = 128, BK = 64, stages = 2, warps = 12, mma_shape = [64, 8, 16], producers = 4>
#qbuf = #kvbuffer.kv_buffer<192x64xbf16, swizzle = [3, 0, 3]>
#kbuf = #kvbuffer.kv_buffer<128x64xbf16, stages = 2, swizzle = [3, 0, 3]>
!qo = memref<?x1x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
!q_tile = !kvbuffer.tile<192x64xbf16>
!tile = !kvbuffer.tile<128x64xbf16>
!a = !kvbuffer.fragment<192x64xbf16, a>
!p = !kvbuffer.fragment<192x128xbf16, a>
!b = !kvbuffer.fragment<128x64xbf16, b>
!s = !kvbuffer.fragment<192x128xf32, acc>
!acc = !kvbuffer.fragment<192x64xf32, acc>
!row = !kvbuffer.fragment<192x1xf32, row>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // The producers load what the block needs. A group of the consumers, 64 rows, sees
    // fewer keys; a tile stays where the block has any.
    // CHECK-LABEL: gpu.func @causal
    // CHECK:         %[[Q:.*]] = kvbuffer.ring
    // CHECK:         %[[K:.*]] = kvbuffer.ring
    // CHECK:         %[[V:.*]] = kvbuffer.ring
    // CHECK:         kvbuffer.team @consumers
    // CHECK:           %[[LO:.*]], %[[HI:.*]], %{{.*}}, %{{.*}} = kvbuffer.key_range %[[ROW:.*]] of %[[N:.*]] keys %[[KEYS:.*]] {BM = 192 : i64, mask = #kvbuffer.mask<causal = true>}
    // CHECK-NEXT:      %{{.*}}, %[[OWN:.*]], %{{.*}}, %{{.*}} = kvbuffer.key_range %[[ROW]] of %[[N]] keys %[[KEYS]] {BM = 192 : i64, {{.*}}per_group}
    // CHECK-NEXT:      %[[FIRST:.*]] = arith.maxsi %[[LO]], %c0
    // CHECK-NEXT:      %[[ONE:.*]] = arith.addi %[[FIRST]], %c1
    // CHECK-NEXT:      %[[LEAST:.*]] = arith.maxsi %[[OWN]], %[[ONE]]
    // CHECK-NEXT:      %[[END:.*]] = arith.minsi %[[HI]], %[[LEAST]]
    // CHECK-NEXT:      %[[SOME:.*]] = arith.maxsi %[[HI]], %c0
    // CHECK-NEXT:      %[[ALL:.*]] = arith.ceildivui %[[SOME]], %c128
    // CHECK-NEXT:      %[[SOME:.*]] = arith.maxsi %[[END]], %c0
    // CHECK-NEXT:      %[[SEEN:.*]] = arith.ceildivui %[[SOME]], %c128
    // CHECK-NEXT:      %[[SKIPPED:.*]] = arith.subi %[[ALL]], %[[SEEN]]
    // CHECK-NEXT:      scf.for %[[I:.*]] = %c0 to %[[SKIPPED]] step %c1 {
    // CHECK-NEXT:        kvbuffer.ring_wait %[[K]][%[[I]]]
    // CHECK-NEXT:        kvbuffer.ring_release %[[K]][%[[I]]]
    // CHECK-NEXT:        kvbuffer.ring_wait %[[V]][%[[I]]]
    // CHECK-NEXT:        kvbuffer.ring_release %[[V]][%[[I]]]
    // CHECK-NEXT:      }
    // The group's own tiles follow; fillings are the block's.
    // CHECK:           scf.for %[[I:.*]] = %c0 to %[[SEEN]] step %c1
    // CHECK-NEXT:        %[[N:.*]] = arith.addi %[[SKIPPED]], %[[I]]
    // CHECK:             kvbuffer.ring_wait %[[K]][%[[N]]]
    // CHECK:             kvbuffer.ring_wait %[[V]][%[[N]]]
    // CHECK:         kvbuffer.team @producers
    // CHECK:           kvbuffer.key_range %{{.*}} {BM = 192 : i64, descending,
    // CHECK-NOT:       per_group
    gpu.func @causal(%q: !qo, %k: !kv, %v: !kv, %n: index, %keys: index, %out: !kvbuffer.tile<192x64xf32>) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c128 = arith.constant 128 : index
      %bm = arith.constant 192 : index
      %q_slots = kvbuffer.alloc : !kvbuffer.buffer<#qbuf>
      %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %v_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %zero = kvbuffer.fragment_fill 0.0 : !s
      %none = kvbuffer.fragment_fill 0.0 : !acc
      %least = kvbuffer.fragment_fill 0xFF800000 : !row
      %l0 = kvbuffer.fragment_fill 0.0 : !row
      %number = gpu.block_id x
      %row = arith.muli %number, %bm : index
      %qt = kvbuffer.dram_tile %q[%row, %c0] valid(%n) : !qo -> !q_tile
      %ql = kvbuffer.dram_load %qt into %q_slots[%c0] : !q_tile, !kvbuffer.buffer<#qbuf>
      %qs = kvbuffer.lds_stage %ql : !kvbuffer.token<#qbuf>
      %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %row of %n keys %keys {BM = 192 : i64, descending, mask = #kvbuffer.mask<causal = true>}
      %seen = arith.maxsi %hi, %c0 : index
      %tiles = arith.ceildivui %seen, %c128 : index
      %last = arith.subi %tiles, %c1 : index
      %r:3 = scf.for %i = %c0 to %tiles step %c1 iter_args(%acc = %none, %m = %least, %l = %l0) -> (!acc, !row, !row) {
        %back = arith.subi %last, %i : index
        %key = arith.muli %back, %c128 : index
        %kt = kvbuffer.cache_tile %k[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
        %kl = kvbuffer.dram_load %kt into %k_slots[%c0] : !tile, !kvbuffer.buffer<#kbuf>
        %ks = kvbuffer.lds_stage %kl : !kvbuffer.token<#kbuf>
        %qf = kvbuffer.fragment_load %qs[0, 0] contracted(cols) : !kvbuffer.staged<#qbuf> -> !a
        %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
        %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !a, !b, !s
        %h = kvbuffer.mask %s rows(%row, %n) keys(%key, %keys) {mask = #kvbuffer.mask<causal = true>} : !s
        %p, %m1, %l1, %f = kvbuffer.online_softmax %h, %m, %l {scale = 1.0 : f32, masked} : !s, !row -> !p
        %scaled = kvbuffer.rescale %acc, %f : !acc, !row
        %vt = kvbuffer.cache_tile %v[%c0, %c0, %key] from %c0 upto %keys : !kv -> !tile
        %vl = kvbuffer.dram_load %vt into %v_slots[%c0] : !tile, !kvbuffer.buffer<#kbuf>
        %vs = kvbuffer.lds_stage %vl : !kvbuffer.token<#kbuf>
        %vf = kvbuffer.fragment_load %vs[0, 0] contracted(rows) : !kvbuffer.staged<#kbuf> -> !b
        %o = kvbuffer.mma %p, %vf, %scaled : !p, !b, !acc
        scf.yield %o, %m1, %l1 : !acc, !row, !row
      }
      kvbuffer.fragment_store %r#0, %out : !acc, !kvbuffer.tile<192x64xf32>
      gpu.return
    }
  }
}

// -----

// Keys are rows of a tensor here, as a program of one's own may have them.
#schedule = #kvbuffer.schedule<BM = 192, BN = 128, BK = 64, stages = 2, warps = 12, mma_shape = [64, 8, 16], producers = 4>
#kbuf = #kvbuffer.kv_buffer<128x64xbf16, stages = 2, swizzle = [3, 0, 3]>
!x = memref<?x?xbf16>
!tile = !kvbuffer.tile<128x64xbf16>
!a = !kvbuffer.fragment<192x64xbf16, a>
!b = !kvbuffer.fragment<128x64xbf16, b>
!s = !kvbuffer.fragment<192x128xf32, acc>
!row = !kvbuffer.fragment<192x1xf32, row>
!out = memref<?xf32>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // The rows of the cluster's blocks are not the same: those of a block's group
    // count. What is loaded is the cluster's matter. The loop carries the number of
    // fillings, which goes on from the block's, whatever a group left out.
    // CHECK-LABEL: gpu.func @tensors
    // CHECK:         kvbuffer.team @consumers
    // CHECK:           scf.for %{{.*}} iter_args(%[[N:.*]] = %c0) -> (index) {
    // CHECK:             %[[PART:.*]] = arith.muli %{{.*}}, %c192
    // CHECK:             %[[OWN:.*]] = arith.addi %[[ROW:.*]], %[[PART]]
    // CHECK:             kvbuffer.key_range %[[ROW]] of %[[ROWS:.*]] keys %[[KEYS:[^ ]*]] {BM = 384 : i64, mask = #kvbuffer.mask<causal = true>}
    // CHECK-NEXT:        kvbuffer.key_range %[[OWN]] of %[[ROWS]] keys %[[KEYS]] {BM = 192 : i64, {{.*}}per_group}
    // CHECK:             scf.for %[[I:.*]] = %c0 to %[[SKIPPED:.*]] step %c1 {
    // CHECK-NEXT:          %[[FILL:.*]] = arith.addi %[[N]], %[[I]]
    // CHECK-NEXT:          kvbuffer.ring_wait %[[K:.*]][%[[FILL]]]
    // CHECK-NEXT:          kvbuffer.ring_release %[[K]][%[[FILL]]]
    // CHECK-NEXT:        }
    // CHECK-NEXT:        %[[NEXT:.*]] = arith.addi %[[N]], %[[SKIPPED]]
    // CHECK:             scf.for %[[I:.*]] = %c0
    // CHECK:               %[[FILL:.*]] = arith.addi %[[NEXT]], %[[I]]
    // CHECK:               kvbuffer.ring_wait %[[K]][%[[FILL]]]
    // CHECK:         kvbuffer.team @producers
    // CHECK:           kvbuffer.key_range %{{[^ ]*}} of %{{[^ ]*}} keys %{{[^ ]*}} {BM = 384
    gpu.func @tensors(%k: !x, %n: index, %keys: index, %tiles: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c128 = arith.constant 128 : index
      %bm = arith.constant 192 : index
      %wide = arith.constant 384 : index
      %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %qf = kvbuffer.fragment_fill 1.0 : !a
      %zero = kvbuffer.fragment_fill 0.0 : !s
      %r0 = kvbuffer.fragment_fill 0.0 : !row
      %rank = gpu.cluster_block_id x
      scf.for %tile = %c0 to %tiles step %c1 {
        %row = arith.muli %tile, %wide : index
        %part = arith.muli %rank, %bm : index
        %own = arith.addi %row, %part : index
        %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %row of %n keys %keys {BM = 384 : i64, descending, mask = #kvbuffer.mask<causal = true>}
        %seen = arith.maxsi %hi, %c0 : index
        %all = arith.ceildivui %seen, %c128 : index
        %last = arith.subi %all, %c1 : index
        %r:2 = scf.for %i = %c0 to %all step %c1 iter_args(%m = %r0, %l = %r0) -> (!row, !row) {
          %back = arith.subi %last, %i : index
          %key = arith.muli %back, %c128 : index
          %kt = kvbuffer.dram_tile %k[%key, %c0] valid(%keys, %c128) : !x -> !tile
          %kl = kvbuffer.dram_load %kt into %k_slots[%c0] : !tile, !kvbuffer.buffer<#kbuf>
          %ks = kvbuffer.lds_stage %kl : !kvbuffer.token<#kbuf>
          %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
          %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !a, !b, !s
          %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !s, !row -> !kvbuffer.fragment<192x128xbf16, a>
          scf.yield %m1, %l1 : !row, !row
        }
        kvbuffer.row_store %r#1, %out[%own] valid(%n) : !row, !out
      }
      gpu.return
    }

    // A filling that is no tile of the range: the numbers of both would not agree.
    // CHECK-LABEL: gpu.func @more
    // CHECK-NOT:     per_group
    // CHECK:         gpu.return
    gpu.func @more(%k: !x, %row: index, %n: index, %keys: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c128 = arith.constant 128 : index
      %k_slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %qf = kvbuffer.fragment_fill 1.0 : !a
      %zero = kvbuffer.fragment_fill 0.0 : !s
      %r0 = kvbuffer.fragment_fill 0.0 : !row
      %lo, %hi, %full_lo, %full_hi = kvbuffer.key_range %row of %n keys %keys {BM = 192 : i64, descending, mask = #kvbuffer.mask<causal = true>}
      %seen = arith.maxsi %hi, %c0 : index
      %all = arith.ceildivui %seen, %c128 : index
      %r:2 = scf.for %i = %c0 to %all step %c1 iter_args(%m = %r0, %l = %r0) -> (!row, !row) {
        %key = arith.subi %hi, %i : index
        %kt = kvbuffer.dram_tile %k[%key, %c0] valid(%keys, %c128) : !x -> !tile
        %kl = kvbuffer.dram_load %kt into %k_slots[%c0] : !tile, !kvbuffer.buffer<#kbuf>
        %ks = kvbuffer.lds_stage %kl : !kvbuffer.token<#kbuf>
        %kf = kvbuffer.fragment_load %ks[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
        %s = kvbuffer.mma %qf, %kf, %zero {transpose_b} : !a, !b, !s
        %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %m, %l {scale = 1.0 : f32} : !s, !row -> !kvbuffer.fragment<192x128xbf16, a>
        scf.yield %m1, %l1 : !row, !row
      }
      %st = kvbuffer.dram_tile %k[%c0, %c0] valid(%keys, %c128) : !x -> !tile
      %sl = kvbuffer.dram_load %st into %k_slots[%c0] : !tile, !kvbuffer.buffer<#kbuf>
      %ss = kvbuffer.lds_stage %sl : !kvbuffer.token<#kbuf>
      %sf = kvbuffer.fragment_load %ss[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
      %s = kvbuffer.mma %qf, %sf, %zero {transpose_b} : !a, !b, !s
      %p, %m1, %l1, %f = kvbuffer.online_softmax %s, %r#0, %r#1 {scale = 1.0 : f32} : !s, !row -> !kvbuffer.fragment<192x128xbf16, a>
      kvbuffer.row_store %l1, %out[%row] valid(%n) : !row, !out
      gpu.return
    }
  }
}
