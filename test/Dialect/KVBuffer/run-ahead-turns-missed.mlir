// Loops in which halves of a block take no turns, with a warning that says why.

// DEFINE: %{pass} = kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-run-ahead{orders=turns})))"
// RUN: %{pass} %s --verify-diagnostics
// RUN: %{pass} %s --remark-format=emitRemark --remarks-filter=kvbuf-run-ahead 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Missed] turns{{.*}}no turns in this loop: {{.*}}its iterations do not have two products

// The program of run-ahead-turns.mlir with one line changed. Scores of this iteration have
// nothing to run beside;
// DEFINE: %{changed} =
// DEFINE: %{run} = sed '%{changed}' %S/run-ahead-turns.mlir | %{pass} 2>&1 >/dev/null | FileCheck %s
// REDEFINE: %{changed} = s/softmax_tail %e, %l1 excess(%excess)/softmax_tail %e1, %l1 excess(%excess1)/
// RUN: %{run} --check-prefix=NOW
// NOW: warning: no turns in this loop: its scores are not of the next iteration
// a load would overwrite what is read;
// REDEFINE: %{changed} = s/64x32xbf16, BK = 32, stages = 2/64x32xbf16, BK = 32, stages = 1/
// RUN: %{run} --check-prefix=SLOTS
// SLOTS: warning: no turns in this loop: a buffer has fewer than two slots
// REDEFINE: %{changed} = s/into %y_slots.%y_slot./into %y_slots[%c0]/
// RUN: %{run} --check-prefix=SLOT
// SLOT: warning: no turns in this loop: a slot is not the iteration modulo the number of slots
// a meeting of the program's own would be one more for both halves;
// REDEFINE: %{changed} = s/^ *scf.yield/kvbuffer.meet\n&/
// RUN: %{run} --check-prefix=MORE
// MORE: warning: no turns in this loop: it moves more than what its two products read
// what says where a tile lies would be taken for a tile that there is not; and
// REDEFINE: %{changed} = s/%x_at = arith.muli %next, %c64 : index/%list = memref.alloca() : memref<8xi32> %one = arith.constant 1 : i32 %got = memref.atomic_rmw addi %one, %list[%next] : (i32, memref<8xi32>) -> i32 %x_at = arith.index_cast %got : i32 to index/
// RUN: %{run} --check-prefix=LIST
// LIST: warning: no turns in this loop: what tells a tile's place is more than numbers of memory
// what the loop loads last has to be what is read after it.
// REDEFINE: %{changed} = s/arith.muli %last, %c64/arith.muli %keys, %c64/
// RUN: %{run} --check-prefix=AFTER
// AFTER: warning: no turns in this loop: the tile after its last one is not loaded after it

#schedule = #kvbuffer.schedule<BM = 64, BN = 64, BK = 32, stages = 2, warps = 2, mma_shape = [32, 32, 16], swap_a_b = true, overlap = true, ping_pong = true, lazy_rescale = true>
#buf = #kvbuffer.kv_buffer<64x64xbf16, stages = 2>
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [32, 32, 16], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 64, reg_chunk_depth = 32, stages = 2, warp_size = 64>
!slots = !kvbuffer.buffer<#buf>
!tile = !kvbuffer.tile<64x64xbf16>
!a = !kvbuffer.fragment<64x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!acc = !kvbuffer.fragment<64x64xf32, acc>
gpu.module @m {
  // expected-warning @below {{no turns: the kernel has no loop that loads tiles}}
  gpu.func @none() kernel attributes {kvbuffer.schedule = #schedule} {
    gpu.return
  }

  gpu.func @gemm(%tile: !tile, %a: !a, %zero: !acc, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %slots = kvbuffer.alloc : !slots
    // expected-warning @below {{no turns in this loop: its iterations do not have two products}}
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %t = kvbuffer.dram_load %tile into %slots[%c0] : !tile, !slots
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %next = kvbuffer.mma %a, %f, %acc {transpose_b} : !a, !b, !acc
      scf.yield %next : !acc
    }
    gpu.return
  }

  gpu.func @registers(%tile: !tile, %a: !a, %b: !b, %zero: !acc, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %slots = kvbuffer.alloc : !slots
    // expected-warning @below {{no turns in this loop: an operand does not come through LDS in its own iteration}}
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %t = kvbuffer.dram_load %tile into %slots[%c0] : !tile, !slots
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %one = kvbuffer.mma %a, %f, %acc {transpose_b} : !a, !b, !acc
      %two = kvbuffer.mma %a, %b, %one : !a, !b, !acc
      scf.yield %two : !acc
    }
    gpu.return
  }

  // Two layers of a network: nothing of a softmax is between the products.
  gpu.func @layers(%tile: !tile, %a: !a, %zero: !acc, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %slots = kvbuffer.alloc : !slots
    // expected-warning @below {{no turns in this loop: its softmax is not rescaled lazily}}
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %t = kvbuffer.dram_load %tile into %slots[%c0] : !tile, !slots
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#buf>
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %h = kvbuffer.mma %a, %f, %zero {transpose_b} : !a, !b, !acc
      %hidden = kvbuffer.fragment_convert %h : !acc -> !a
      %t1 = kvbuffer.dram_load %tile into %slots[%c1] : !tile, !slots
      %s1 = kvbuffer.lds_stage %t1 : !kvbuffer.token<#buf>
      %f1 = kvbuffer.fragment_load %s1[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !b
      %o = kvbuffer.mma %hidden, %f1, %acc {transpose_b} : !a, !b, !acc
      scf.yield %o : !acc
    }
    gpu.return
  }

  // A part of the fragments would be read while the other half of the block fills the
  // slot.
  gpu.func @parts(%tile: !tile, %a: !a, %zero: !acc, %n: index) kernel attributes {kvbuffer.schedule = #schedule} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %slots = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
    // expected-warning @below {{no turns in this loop: fragments for the scores are in registers by parts}}
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !acc {
      %t = kvbuffer.dram_load %tile into %slots[%c0] : !tile, !kvbuffer.buffer<#kbuf>
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#kbuf>
      %f = kvbuffer.fragment_load %s[0, 0] contracted(cols) : !kvbuffer.staged<#kbuf> -> !b
      %one = kvbuffer.mma %a, %f, %acc {transpose_b} : !a, !b, !acc
      %two = kvbuffer.mma %a, %f, %one {transpose_b} : !a, !b, !acc
      scf.yield %two : !acc
    }
    gpu.return
  }
}
