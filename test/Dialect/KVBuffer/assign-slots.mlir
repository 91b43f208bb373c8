// Loads that name no slot get that of their filling: the number of loads into the
// buffer before them, modulo its slots.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-slots,canonicalize)))" | FileCheck %s

#one = #kvbuffer.kv_buffer<16x16xbf16, stages = 1>
#two = #kvbuffer.kv_buffer<16x16xbf16, stages = 2>
#three = #kvbuffer.kv_buffer<16x16xbf16, stages = 3>
#regs = #kvbuffer.kv_buffer<16x16xbf16, stages = 1, policy = register_staged>
!tile = !kvbuffer.tile<16x16xbf16>
!one = !kvbuffer.buffer<#one>
!two = !kvbuffer.buffer<#two>
!three = !kvbuffer.buffer<#three>
!token = !kvbuffer.token<#two>
gpu.module @m {
  // One after the other; one that is switched off takes its number, too.
  // CHECK-LABEL: gpu.func @straight
  // CHECK:         kvbuffer.dram_load %{{.*}} into %[[B:.*]][%c0] :
  // CHECK:         kvbuffer.dram_load %{{.*}} into %[[B]][%c1] if
  // CHECK:         kvbuffer.dram_load %{{.*}} into %[[B]][%c0] :
  gpu.func @straight(%tile: !tile, %on: i1) kernel {
    %b = kvbuffer.alloc : !two
    %t0 = kvbuffer.dram_load %tile into %b : !tile, !two
    %s0 = kvbuffer.lds_stage %t0 : !token
    %t1 = kvbuffer.dram_load %tile into %b if %on : !tile, !two
    %s1 = kvbuffer.lds_stage %t1 : !token
    %t2 = kvbuffer.dram_load %tile into %b : !tile, !two
    %s2 = kvbuffer.lds_stage %t2 : !token
    gpu.return
  }

  // A buffer of one slot needs no number, and slots that the program names stay.
  // CHECK-LABEL: gpu.func @named
  // CHECK-SAME:    %[[I:[a-z0-9]+]]: index
  // CHECK:         kvbuffer.dram_load %{{.*}} into %{{[a-z0-9]+}} :
  // CHECK:         kvbuffer.dram_load %{{.*}} into %{{[a-z0-9_]+}}[%[[I]]] :
  gpu.func @named(%tile: !tile, %i: index) kernel {
    %a = kvbuffer.alloc : !one
    %b = kvbuffer.alloc : !two
    %t0 = kvbuffer.dram_load %tile into %a : !tile, !one
    %t1 = kvbuffer.dram_load %tile into %b[%i] : !tile, !two
    gpu.return
  }

  // Tiles in registers take their slot only when they are awaited: two may be on
  // their way to one.
  // CHECK-LABEL: gpu.func @registers
  // CHECK-COUNT-2: kvbuffer.dram_load %{{.*}} into %{{[a-z0-9_]+}} :
  gpu.func @registers(%tile: !tile) kernel {
    %a = kvbuffer.alloc : !kvbuffer.buffer<#regs>
    %t0 = kvbuffer.dram_load %tile into %a : !tile, !kvbuffer.buffer<#regs>
    %t1 = kvbuffer.dram_load %tile into %a : !tile, !kvbuffer.buffer<#regs>
    %s0 = kvbuffer.lds_stage %t0 : !kvbuffer.token<#regs>
    kvbuffer.meet
    %s1 = kvbuffer.lds_stage %t1 : !kvbuffer.token<#regs>
    gpu.return
  }

  // A load ahead of the loop and one in each iteration: i + 1. After it, one more
  // than it had iterations.
  // CHECK-LABEL: gpu.func @loop
  // CHECK-SAME:    %[[N:[a-z0-9]+]]: index
  // CHECK:         kvbuffer.dram_load %{{.*}} into %[[B:.*]][%c0] :
  // CHECK:         scf.for %[[I:.*]] = %c0 to %[[N]]
  // CHECK:           %[[NEXT:.*]] = arith.addi %[[I]], %c1
  // CHECK:           %[[SLOT:.*]] = arith.remui %[[NEXT]], %c3
  // CHECK:           kvbuffer.dram_load %{{.*}} into %[[B]][%[[SLOT]]] :
  // CHECK:         %[[TRIPS:.*]] = arith.maxsi %[[N]], %c0
  // CHECK:         %[[ALL:.*]] = arith.addi %[[TRIPS]], %c1
  // CHECK:         %[[LAST:.*]] = arith.remui %[[ALL]], %c3
  // CHECK:         kvbuffer.dram_load %{{.*}} into %[[B]][%[[LAST]]] :
  gpu.func @loop(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !three
    %t0 = kvbuffer.dram_load %tile into %b : !tile, !three
    scf.for %i = %c0 to %n step %c1 {
      %t = kvbuffer.dram_load %tile into %b : !tile, !three
    }
    %t1 = kvbuffer.dram_load %tile into %b : !tile, !three
    gpu.return
  }

  // Of a loop that begins anywhere, by its iterations; of two loads an iteration,
  // 2 i and 2 i + 1.
  // CHECK-LABEL: gpu.func @from
  // CHECK-SAME:    %[[A:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index
  // CHECK:         %[[TWICE:.*]] = arith.muli %[[A]], %c2
  // CHECK:         %[[START:.*]] = arith.subi %c0, %[[TWICE]]
  // CHECK:         scf.for %[[I:.*]] = %[[A]] to %[[N]]
  // CHECK:           %[[DOUBLE:.*]] = arith.muli %[[I]], %c2
  // CHECK:           %[[NUMBER:.*]] = arith.addi %[[DOUBLE]], %[[START]]
  // CHECK:           %[[FIRST:.*]] = arith.remui %[[NUMBER]], %c3
  // CHECK:           kvbuffer.dram_load %{{.*}} into %{{.*}}[%[[FIRST]]] :
  // CHECK:           %[[MORE:.*]] = arith.addi %[[NUMBER]], %c1
  // CHECK:           %[[SECOND:.*]] = arith.remui %[[MORE]], %c3
  // CHECK:           kvbuffer.dram_load %{{.*}} into %{{.*}}[%[[SECOND]]] :
  gpu.func @from(%tile: !tile, %a: index, %n: index) kernel {
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !three
    scf.for %i = %a to %n step %c1 {
      %t0 = kvbuffer.dram_load %tile into %b : !tile, !three
      %t1 = kvbuffer.dram_load %tile into %b : !tile, !three
    }
    gpu.return
  }

  // Iterations that fill every slot as often begin at the same one, whatever the
  // step.
  // CHECK-LABEL: gpu.func @even
  // CHECK:         kvbuffer.dram_load %{{.*}} into %{{.*}}[%c0] :
  // CHECK:         scf.for
  // CHECK-NOT:       arith.remui
  // CHECK:           kvbuffer.dram_load %{{.*}} into %{{.*}}[%c1] :
  // CHECK:           kvbuffer.dram_load %{{.*}} into %{{.*}}[%c0] :
  // CHECK:         kvbuffer.dram_load %{{.*}} into %{{.*}}[%c1] :
  gpu.func @even(%tile: !tile, %n: index, %step: index) kernel {
    %c0 = arith.constant 0 : index
    %b = kvbuffer.alloc : !two
    %t = kvbuffer.dram_load %tile into %b : !tile, !two
    scf.for %i = %c0 to %n step %step {
      %t0 = kvbuffer.dram_load %tile into %b : !tile, !two
      %t1 = kvbuffer.dram_load %tile into %b : !tile, !two
    }
    %last = kvbuffer.dram_load %tile into %b : !tile, !two
    gpu.return
  }

  // Sides that fill alike hand nothing on; others the number.
  // CHECK-LABEL: gpu.func @branches
  // CHECK-SAME:    %[[C:[a-z0-9]+]]: i1, %[[D:[a-z0-9]+]]: i1
  // CHECK:         scf.if %[[C]] {
  // CHECK:           kvbuffer.dram_load %{{.*}} into %{{.*}}[%c0] :
  // CHECK:         } else {
  // CHECK:           kvbuffer.dram_load %{{.*}} into %{{.*}}[%c0] :
  // CHECK:         %[[COUNT:.*]] = arith.select %[[D]], %c2, %c1
  // CHECK:         scf.if %[[D]] {
  // CHECK:           kvbuffer.dram_load %{{.*}} into %{{.*}}[%c1] :
  // CHECK:         %[[SLOT:.*]] = arith.remui %[[COUNT]], %c3
  // CHECK:         kvbuffer.dram_load %{{.*}} into %{{.*}}[%[[SLOT]]] :
  gpu.func @branches(%tile: !tile, %c: i1, %d: i1) kernel {
    %b = kvbuffer.alloc : !three
    scf.if %c {
      %t0 = kvbuffer.dram_load %tile into %b : !tile, !three
    } else {
      %t0 = kvbuffer.dram_load %tile into %b : !tile, !three
    }
    scf.if %d {
      %t1 = kvbuffer.dram_load %tile into %b : !tile, !three
    }
    %t2 = kvbuffer.dram_load %tile into %b : !tile, !three
    gpu.return
  }

  // How often the inner loop ran, the outer one carries, with what it carries
  // already.
  // CHECK-LABEL: gpu.func @nested
  // CHECK-SAME:    %[[N:[a-z0-9]+]]: index, %[[X:[a-z0-9]+]]: index
  // CHECK:         %[[R:.*]]:2 = scf.for %{{.*}} iter_args(%[[Y:.*]] = %[[X]], %[[COUNT:.*]] = %c0) -> (index, index)
  // CHECK:           scf.for %[[J:.*]] = %c0 to %[[N]]
  // CHECK:             %[[NUMBER:.*]] = arith.addi %[[J]], %[[COUNT]]
  // CHECK:             %[[SLOT:.*]] = arith.remui %[[NUMBER]], %c2
  // CHECK:             kvbuffer.dram_load %{{.*}} into %{{.*}}[%[[SLOT]]] :
  // CHECK:           %[[TRIPS:.*]] = arith.maxsi %[[N]], %c0
  // CHECK:           %[[AFTER:.*]] = arith.addi %[[COUNT]], %[[TRIPS]]
  // CHECK:           scf.yield %[[N]], %[[AFTER]]
  // CHECK:         } {kvbuffer.whole_after_first}
  // CHECK:         %[[LAST:.*]] = arith.remui %[[R]]#1, %c2
  // CHECK:         kvbuffer.dram_load %{{.*}} into %{{.*}}[%[[LAST]]] :
  // CHECK:         memref.store %{{.*}}[%[[R]]#0]
  gpu.func @nested(%tile: !tile, %n: index, %x: index, %out: memref<?xi1>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !two
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> index {
      scf.for %j = %c0 to %n step %c1 {
        %t = kvbuffer.dram_load %tile into %b : !tile, !two
      }
      scf.yield %n : index
    } {kvbuffer.whole_after_first}
    %t1 = kvbuffer.dram_load %tile into %b : !tile, !two
    %flag = arith.cmpi slt, %n, %x : index
    memref.store %flag, %out[%r] : memref<?xi1>
    gpu.return
  }

  // Where all warps meet and nothing of the buffer is in use, every slot is free:
  // counting begins at 0.
  // CHECK-LABEL: gpu.func @meeting
  // CHECK:         scf.for {{.*}} {
  // CHECK-NEXT:      kvbuffer.meet
  // CHECK-NEXT:      scf.for %[[J:.*]] = %c0 to
  // CHECK-NEXT:        %[[SLOT:.*]] = arith.remui %[[J]], %c2
  // CHECK-NEXT:        kvbuffer.dram_load %{{.*}} into %{{.*}}[%[[SLOT]]] :
  gpu.func @meeting(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !two
    scf.for %i = %c0 to %n step %c1 {
      kvbuffer.meet
      scf.for %j = %c0 to %n step %c1 {
        %t = kvbuffer.dram_load %tile into %b : !tile, !two
        %s = kvbuffer.lds_stage %t : !token
      }
    }
    gpu.return
  }

  // Not where the numbers of later iterations go on from it: this one is 2 i + 1.
  // CHECK-LABEL: gpu.func @goes_on
  // CHECK:         scf.for %[[I:.*]] = %c0 to
  // CHECK:           %[[TWICE:.*]] = arith.muli %[[I]], %c2
  // CHECK:           scf.if
  // CHECK:           kvbuffer.meet
  // CHECK:           %[[NUMBER:.*]] = arith.addi %[[TWICE]], %c1
  // CHECK:           %[[SLOT:.*]] = arith.remui %[[NUMBER]], %c3
  // CHECK:           kvbuffer.dram_load %{{.*}} into %{{.*}}[%[[SLOT]]] :
  gpu.func @goes_on(%tile: !tile, %n: index, %c: i1, %on: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !three
    scf.for %i = %c0 to %n step %c1 {
      scf.if %c {
        %t0 = kvbuffer.dram_load %tile into %b if %on : !tile, !three
        %s0 = kvbuffer.lds_stage %t0 : !kvbuffer.token<#three>
      } else {
        %t0 = kvbuffer.dram_load %tile into %b : !tile, !three
        %s0 = kvbuffer.lds_stage %t0 : !kvbuffer.token<#three>
      }
      kvbuffer.meet
      %t1 = kvbuffer.dram_load %tile into %b : !tile, !three
      %s1 = kvbuffer.lds_stage %t1 : !kvbuffer.token<#three>
    }
    gpu.return
  }

  // Nor where a load is awaited after the meeting.
  // CHECK-LABEL: gpu.func @held
  // CHECK:         scf.for {{.*}} iter_args(%[[TOKEN:.*]] = %{{.*}}, %[[COUNT:.*]] = %c1)
  // CHECK-NEXT:      kvbuffer.meet
  // CHECK:           arith.addi %{{.*}}, %[[COUNT]]
  // CHECK:           kvbuffer.dram_load
  gpu.func @held(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !two
    %t0 = kvbuffer.dram_load %tile into %b : !tile, !two
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%t = %t0) -> !token {
      kvbuffer.meet
      %s = kvbuffer.lds_stage %t : !token
      %inner = scf.for %j = %c0 to %n step %c1 iter_args(%u = %t) -> !token {
        %next = kvbuffer.dram_load %tile into %b : !tile, !two
        scf.yield %next : !token
      }
      scf.yield %inner : !token
    }
    gpu.return
  }

  // A loop that carries the tiles of its next loads carries their slot, too, one for
  // both; one that the program names stays.
  // CHECK-LABEL: gpu.func @tiles_ahead
  // CHECK-SAME:    %{{[a-z0-9]+}}: memref<?x16xbf16>, %[[T:[a-z0-9]+]]: !kvbuffer.tile<16x16xbf16>
  // CHECK:         scf.for %[[I:.*]] = %c0 to {{.*}} iter_args(%[[NOW:.*]] = %[[T]], %[[SLOT:.*]] = %c0)
  // CHECK:           kvbuffer.dram_load %[[NOW]] into %{{[a-z0-9_]+}}[%[[SLOT]]] :
  // CHECK:           kvbuffer.dram_load %[[NOW]] into %{{[a-z0-9_]+}}[%[[SLOT]]] :
  // CHECK:           %[[OWN:.*]] = arith.remui %[[I]], %c2
  // CHECK:           kvbuffer.dram_load %[[NOW]] into %{{[a-z0-9_]+}}[%[[OWN]]] :
  // CHECK:           arith.addi %[[I]], %c1
  // CHECK-NEXT:      %[[AFTER:.*]] = arith.addi %[[I]], %c1
  // CHECK:           %[[NEXT:.*]] = arith.remui %[[AFTER]], %c2
  // CHECK:           %[[AHEAD:.*]] = kvbuffer.dram_tile
  // CHECK:           scf.yield %[[AHEAD]], %[[NEXT]]
  gpu.func @tiles_ahead(%x: memref<?x16xbf16>, %tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %a = kvbuffer.alloc : !two
    %b = kvbuffer.alloc : !two
    %c = kvbuffer.alloc : !two
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%now = %tile) -> !tile {
      %ta = kvbuffer.dram_load %now into %a : !tile, !two
      %tb = kvbuffer.dram_load %now into %b : !tile, !two
      %slot = arith.remui %i, %c2 : index
      %tc = kvbuffer.dram_load %now into %c[%slot] : !tile, !two
      %sa, %sb, %sc = kvbuffer.lds_stage %ta, %tb, %tc : !token, !token, !token
      %next = arith.addi %i, %c1 : index
      %ahead = kvbuffer.dram_tile %x[%next, %c0] valid(%n, %c16) : memref<?x16xbf16> -> !tile
      scf.yield %ahead : !tile
    }
    gpu.return
  }

  // A loop whose iterations nobody counts.
  // CHECK-LABEL: gpu.func @until
  // CHECK:         %{{.*}}:2 = scf.while (%[[I:.*]] = %c0, %[[COUNT:.*]] = %c0) : (index, index) -> (index, index)
  // CHECK:           scf.condition(%{{.*}}) %[[I]], %[[COUNT]]
  // CHECK:         ^bb0(%{{.*}}: index, %[[NOW:.*]]: index):
  // CHECK:           %[[SLOT:.*]] = arith.remui %[[NOW]], %c2
  // CHECK:           kvbuffer.dram_load %{{.*}} into %{{.*}}[%[[SLOT]]] :
  // CHECK:           %[[MORE:.*]] = arith.addi %[[NOW]], %c1
  // CHECK:           scf.yield %{{.*}}, %[[MORE]]
  gpu.func @until(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = kvbuffer.alloc : !two
    %end = scf.while (%i = %c0) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      %t = kvbuffer.dram_load %tile into %b : !tile, !two
      %next = arith.addi %i, %c1 : index
      scf.yield %next : index
    }
    gpu.return
  }

  // A team fills buffers of its own, and a buffer is new each time that it is
  // allocated.
  // CHECK-LABEL: gpu.func @team
  // CHECK:         kvbuffer.team @t warps(1)
  // CHECK:           kvbuffer.alloc
  // CHECK:           kvbuffer.dram_load %{{.*}} into %{{.*}}[%c0] :
  gpu.func @team(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      kvbuffer.teams {
        kvbuffer.team @t warps(1) {
          %b = kvbuffer.alloc : !two
          %t = kvbuffer.dram_load %tile into %b : !tile, !two
          %s = kvbuffer.lds_stage %t : !token
        }
      }
    }
    gpu.return
  }

  // A buffer that a loop allocates is the same in every iteration: its fillings go on.
  // CHECK-LABEL: gpu.func @allocated_in_loops
  // CHECK:         %[[B:.*]] = kvbuffer.alloc
  // CHECK-NEXT:    scf.for {{.*}} iter_args
  // CHECK-NEXT:      scf.for
  // CHECK:         kvbuffer.dram_load %{{.*}} into %[[B]][%{{.*}}] :
  gpu.func @allocated_in_loops(%tile: !tile, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %j = %c0 to %n step %c1 {
      scf.for %i = %c0 to %j step %c1 {
        %b = kvbuffer.alloc : !three
        %t = kvbuffer.dram_load %tile into %b : !tile, !three
        %s = kvbuffer.lds_stage %t : !kvbuffer.token<#three>
      }
    }
    gpu.return
  }
}
