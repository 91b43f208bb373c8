// Loads that name no slot: they run ahead, and kvbuf-assign-slots finds the slots in
// the order in which they then stand. See run-ahead-loads.mlir for loads that do.

// DEFINE: %{passes} = kvbuf-run-ahead{orders=loads},kvbuf-assign-slots,canonicalize,cse
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(%{passes})))" | FileCheck %s
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(%{passes})))" 2>&1 >/dev/null | FileCheck %s --check-prefix=WARNING --implicit-check-not=warning:

#two = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
#three = #kvbuffer.kv_buffer<16x16xbf16, stages = 3>
!x = memref<?x16xbf16>
!tile = !kvbuffer.tile<16x16xbf16>
!two = !kvbuffer.buffer<#two>
!three = !kvbuffer.buffer<#three>
!b = !kvbuffer.fragment<16x16xbf16, b>
!a = !kvbuffer.fragment<16x16xbf16, a>
!acc = !kvbuffer.fragment<16x16xf32, acc>
gpu.module @m {
  // Two iterations ahead: 0 and 1 before the loop, i + 2 in it.
  // CHECK-LABEL: gpu.func @three_slots
  // CHECK:         %[[T0:.*]] = kvbuffer.dram_load %{{.*}} into %[[B:.*]][%c0] if
  // CHECK:         %[[T1:.*]] = kvbuffer.dram_load %{{.*}} into %[[B]][%c1] if
  // CHECK:         scf.for %[[I:.*]] = %c0 to {{.*}} iter_args(%[[X:.*]] = %[[T0]], %[[Y:.*]] = %[[T1]])
  // CHECK:           kvbuffer.lds_stage %[[X]]
  // CHECK:           %[[FAR:.*]] = arith.addi %[[I]], %c2
  // CHECK:           %[[SLOT:.*]] = arith.remui %[[FAR]], %c3
  // CHECK:           kvbuffer.dram_load %{{.*}} into %[[B]][%[[SLOT]]] if
  gpu.func @three_slots(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !three
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !three
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#three>
    }
    gpu.return
  }

  // X is a tile ahead, as the order `scores` leaves it: its first tile is loaded
  // before the loop, and Y's last one, after it, in the loop.
  // CHECK-LABEL: gpu.func @rotated
  // CHECK-DAG:     %[[XB:.*]] = kvbuffer.alloc : <#[[TWO:.*]]>
  // CHECK:         %[[X0:.*]] = kvbuffer.dram_load %{{.*}} into %[[XS:.*]][%c0] :
  // CHECK-DAG:     kvbuffer.dram_load %{{.*}} into %[[XS]][%c1] if
  // CHECK-DAG:     kvbuffer.dram_load %{{.*}} into %[[YS:.*]][%c0] if
  // CHECK:         kvbuffer.lds_stage %[[X0]]
  // CHECK:         %[[LOOP:.*]]:3 = scf.for %[[I:.*]] = %c0 to
  // CHECK-DAG:       %[[SECOND:.*]] = arith.addi %[[I]], %c2
  // CHECK-DAG:       %[[XSLOT:.*]] = arith.remui %[[SECOND]], %c2
  // CHECK-DAG:       %[[NEXT:.*]] = arith.addi %[[I]], %c1
  // CHECK-DAG:       %[[YSLOT:.*]] = arith.remui %[[NEXT]], %c2
  // CHECK-DAG:       kvbuffer.dram_load %{{.*}} into %[[XS]][%[[XSLOT]]] if
  // CHECK-DAG:       kvbuffer.dram_load %{{.*}} into %[[YS]][%[[YSLOT]]] if
  // CHECK:           scf.yield
  // CHECK-NOT:     kvbuffer.dram_load
  // CHECK:         kvbuffer.lds_stage %[[LOOP]]#2
  gpu.func @rotated(%q: !a, %x: !x, %y: !x, %n: index, %rows: index, %out: !kvbuffer.tile<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %xb = kvbuffer.alloc : !two
    %yb = kvbuffer.alloc : !two
    %zero = kvbuffer.fragment_fill 0.0 : !acc
    %xt0 = kvbuffer.dram_tile %x[%c0, %c0] valid(%rows, %c16) : !x -> !tile
    %xl0 = kvbuffer.dram_load %xt0 into %xb : !tile, !two
    %xs0 = kvbuffer.lds_stage %xl0 : !kvbuffer.token<#two>
    %xf0 = kvbuffer.fragment_load %xs0[0, 0] contracted(cols) : !kvbuffer.staged<#two> -> !b
    %s0 = kvbuffer.mma %q, %xf0, %zero {transpose_b} : !a, !b, !acc
    %r, %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %now = %s0) -> (!acc, !acc) {
      %next = arith.addi %i, %c1 : index
      %xat = arith.muli %next, %c16 : index
      %xt = kvbuffer.dram_tile %x[%xat, %c0] valid(%rows, %c16) : !x -> !tile
      %xl = kvbuffer.dram_load %xt into %xb : !tile, !two
      %xs = kvbuffer.lds_stage %xl : !kvbuffer.token<#two>
      %xf = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#two> -> !b
      %s = kvbuffer.mma %q, %xf, %zero {transpose_b} : !a, !b, !acc
      %yat = arith.muli %i, %c16 : index
      %yt = kvbuffer.dram_tile %y[%yat, %c0] valid(%rows, %c16) : !x -> !tile
      %yl = kvbuffer.dram_load %yt into %yb : !tile, !two
      %ys = kvbuffer.lds_stage %yl : !kvbuffer.token<#two>
      %yf = kvbuffer.fragment_load %ys[0, 0] contracted(rows) : !kvbuffer.staged<#two> -> !b
      %o = kvbuffer.mma %q, %yf, %now : !a, !b, !acc
      scf.yield %o, %s : !acc, !acc
    }
    %yat = arith.muli %n, %c16 : index
    %yt = kvbuffer.dram_tile %y[%yat, %c0] valid(%rows, %c16) : !x -> !tile
    %yl = kvbuffer.dram_load %yt into %yb : !tile, !two
    %ys = kvbuffer.lds_stage %yl : !kvbuffer.token<#two>
    %yf = kvbuffer.fragment_load %ys[0, 0] contracted(rows) : !kvbuffer.staged<#two> -> !b
    %o = kvbuffer.mma %q, %yf, %last : !a, !b, !acc
    kvbuffer.fragment_store %o, %out : !acc, !kvbuffer.tile<16x16xf32>
    gpu.return
  }

  // With one load before the loop, its first two loads, before it, fill the two
  // other slots; with two, the second fills the first one's, which may still be read.
  // CHECK-LABEL: gpu.func @one_before
  // CHECK:         kvbuffer.dram_load %{{.*}} into %{{.*}}[%c0] :
  // CHECK:         kvbuffer.dram_load %{{.*}} into %{{.*}}[%c1] if
  // CHECK:         kvbuffer.dram_load %{{.*}} into %{{.*}}[%c2] if
  // CHECK:         scf.for
  gpu.func @one_before(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !three
    %t0 = kvbuffer.dram_load %tile into %b : !tile, !three
    %s0 = kvbuffer.lds_stage %t0 : !kvbuffer.token<#three>
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !three
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#three>
    }
    gpu.return
  }

  gpu.func @two_before(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !three
    %t0 = kvbuffer.dram_load %tile into %b : !tile, !three
    %t1 = kvbuffer.dram_load %tile into %b : !tile, !three
    %s0, %s1 = kvbuffer.lds_stage %t0, %t1 : !kvbuffer.token<#three>, !kvbuffer.token<#three>
    // WARNING: run-ahead-loads-in-turn.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: a slot may still be read when the loop begins
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !three
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#three>
    }
    gpu.return
  }

  // How many loads a branch has made, nobody knows.
  gpu.func @some_before(%tile: !tile, %n: index, %some: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !three
    %t0 = kvbuffer.dram_load %tile into %b : !tile, !three
    %s0 = kvbuffer.lds_stage %t0 : !kvbuffer.token<#three>
    scf.if %some {
      %t1 = kvbuffer.dram_load %tile into %b : !tile, !three
      %s1 = kvbuffer.lds_stage %t1 : !kvbuffer.token<#three>
    }
    // WARNING: run-ahead-loads-in-turn.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: a slot may still be read when the loop begins
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !three
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#three>
    }
    gpu.return
  }

  // A load in a branch takes a slot, too.
  gpu.func @branch(%tile: !tile, %n: index, %some: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !three
    // WARNING-DAG: run-ahead-loads-in-turn.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: two loads fill the slots of one buffer
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !three
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#three>
      scf.if %some {
        // WARNING-DAG: run-ahead-loads-in-turn.mlir:[[#@LINE+1]]:{{.*}} warning: not prefetched: a load stands inside of a branch
        %t1 = kvbuffer.dram_load %tile into %b : !tile, !three
        %s1 = kvbuffer.lds_stage %t1 : !kvbuffer.token<#three>
      }
    }
    gpu.return
  }

  // The load after the loop is not the loop's next filling: another one stands
  // between them. It stays.
  // CHECK-LABEL: gpu.func @not_next
  // CHECK:         scf.for
  // CHECK:         scf.if
  // CHECK:           kvbuffer.dram_load
  // CHECK:         kvbuffer.dram_load
  gpu.func @not_next(%x: !x, %tile: !tile, %n: index, %some: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %b = kvbuffer.alloc : !three
    scf.for %i = %c0 to %n step %c1 {
      %xt = kvbuffer.dram_tile %x[%i, %c0] valid(%n, %c16) : !x -> !tile
      %t = kvbuffer.dram_load %xt into %b : !tile, !three
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#three>
    }
    scf.if %some {
      %t0 = kvbuffer.dram_load %tile into %b : !tile, !three
      %s0 = kvbuffer.lds_stage %t0 : !kvbuffer.token<#three>
    }
    %xt = kvbuffer.dram_tile %x[%n, %c0] valid(%n, %c16) : !x -> !tile
    %t1 = kvbuffer.dram_load %xt into %b : !tile, !three
    %s1 = kvbuffer.lds_stage %t1 : !kvbuffer.token<#three>
    gpu.return
  }

  // Loads beyond the last iteration load nothing, but take their numbers, so that the
  // next filling's slot is the one that was read last: all warps meet before it, where
  // a loop around this one runs again, and where another one follows.
  // CHECK-LABEL: gpu.func @repeated
  // CHECK:         scf.for
  // CHECK:           kvbuffer.dram_load %{{.*}} if
  // CHECK:           scf.for
  // CHECK:             kvbuffer.dram_load %{{.*}} if
  // CHECK:           }
  // CHECK-NEXT:      kvbuffer.meet
  gpu.func @repeated(%tile: !tile, %m: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %j = %c0 to %m step %c1 {
      // One that a loop allocates is the same each time.
      %b = kvbuffer.alloc : !two
      scf.for %i = %c0 to %n step %c1 {
        %t = kvbuffer.dram_load %tile into %b : !tile, !two
        %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
      }
    }
    gpu.return
  }

  // CHECK-LABEL: gpu.func @followed
  // CHECK:         scf.for
  // CHECK:         }
  // CHECK-NEXT:    kvbuffer.meet
  // CHECK:         scf.for
  // CHECK:         }
  // CHECK-NEXT:    gpu.return
  gpu.func @followed(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !two
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !two
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
    }
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !two
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
    }
    gpu.return
  }

  // The wait for another buffer is a meeting. It stays before the second loop's first
  // loads, which fill the slot that the first loop has read last.
  // CHECK-LABEL: gpu.func @awaited_between
  // CHECK:         scf.for
  // CHECK-NOT:     kvbuffer.meet
  // CHECK:         %[[OTHER:.*]] = kvbuffer.dram_load %{{[a-z0-9_]+}} into %{{[a-z0-9_]+}}[%c0] : 
  // CHECK-NEXT:    %[[S:.*]] = kvbuffer.lds_stage %[[OTHER]]
  // CHECK:         kvbuffer.dram_load %{{.*}} if
  // CHECK:         scf.for
  // CHECK:         }
  // CHECK-NEXT:    kvbuffer.fragment_load %[[S]]
  gpu.func @awaited_between(%tile: !tile, %n: index, %zero: !acc, %q: !a, %out: !kvbuffer.tile<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !two
    %o = kvbuffer.alloc : !three
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !two
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
    }
    %to = kvbuffer.dram_load %tile into %o : !tile, !three
    %so = kvbuffer.lds_stage %to : !kvbuffer.token<#three>
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !two
      %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
    }
    %f = kvbuffer.fragment_load %so[0, 0] contracted(cols) : !kvbuffer.staged<#three> -> !b
    %p = kvbuffer.mma %q, %f, %zero {transpose_b} : !a, !b, !acc
    kvbuffer.fragment_store %p, %out : !acc, !kvbuffer.tile<16x16xf32>
    gpu.return
  }

  // Nothing before this loop fills its slots, so its first loads do not wait for the
  // other buffer's; then no meeting stands between two runs of it but the one behind it.
  // CHECK-LABEL: gpu.func @awaited_before
  // CHECK:         scf.for
  // CHECK:           kvbuffer.dram_load %{{.*}} if
  // CHECK:           kvbuffer.lds_stage
  // CHECK:           scf.for
  // CHECK:           }
  // CHECK-NEXT:      kvbuffer.meet
  gpu.func @awaited_before(%tile: !tile, %n: index, %zero: !acc, %q: !a, %out: !kvbuffer.tile<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !two
    %o = kvbuffer.alloc : !three
    scf.for %j = %c0 to %n step %c1 {
      %to = kvbuffer.dram_load %tile into %o : !tile, !three
      %so = kvbuffer.lds_stage %to : !kvbuffer.token<#three>
      scf.for %i = %c0 to %n step %c1 {
        %t = kvbuffer.dram_load %tile into %b : !tile, !two
        %s = kvbuffer.lds_stage %t : !kvbuffer.token<#two>
      }
      %f = kvbuffer.fragment_load %so[0, 0] contracted(cols) : !kvbuffer.staged<#three> -> !b
      %p = kvbuffer.mma %q, %f, %zero {transpose_b} : !a, !b, !acc
      kvbuffer.fragment_store %p, %out : !acc, !kvbuffer.tile<16x16xf32>
    }
    gpu.return
  }
}
