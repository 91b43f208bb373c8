// A tile program divided between producers and consumers: the loads in their order,
// everything else with waits and releases, both with the same numbers of fillings.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-teams,canonicalize,cse)))" | FileCheck %s
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-teams)))" --remark-format=emitRemark --remarks-filter=kvbuf-assign-teams 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// A schedule without producers leaves the program as it is.
// RUN: sed 's/, producers = 4, producer_registers = 40, consumer_registers = 232//' %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-assign-teams)))" | FileCheck %s --check-prefix=ALIKE --implicit-check-not=kvbuffer.team --implicit-check-not=kvbuffer.ring
// ALIKE: kvbuffer.dram_load

#schedule = #kvbuffer.schedule<BM = 128, BN = 64, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], producers = 4, producer_registers = 40, consumer_registers = 232>
#left = #kvbuffer.kv_buffer<128x64xbf16, stages = 2, swizzle = [3, 0, 3]>
#right = #kvbuffer.kv_buffer<64x64xbf16, stages = 2, swizzle = [3, 0, 3]>
!x = memref<?x?xbf16>
!a_tile = !kvbuffer.tile<128x64xbf16>
!b_tile = !kvbuffer.tile<64x64xbf16>
!a = !kvbuffer.fragment<128x64xbf16, a>
!b = !kvbuffer.fragment<64x64xbf16, b>
!sum = !kvbuffer.fragment<128x64xf32, acc>
!out = !kvbuffer.tile<128x64xf32>
module attributes {kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // Loads of A and B for the producers, the product for the consumers. What a load
    // needs stays with it; what both need is computed by both. Fillings are numbered
    // from 0, wherever the loop begins.
    // REMARK: assign-teams.mlir:[[#@LINE+39]]:{{.*}} remark: [Passed] teams{{.*}}4{{.*}} warps move tiles, {{.*}}8{{.*}} multiply in {{.*}}2{{.*}} group(s)
    // CHECK-LABEL: gpu.func @gemm
    // CHECK-SAME:    known_block_size = array<i32: 384, 1, 1>
    // CHECK-DAG:     %[[A:.*]] = kvbuffer.alloc : <#[[LEFT:.*]]>
    // CHECK-DAG:     %[[B:.*]] = kvbuffer.alloc : <#[[RIGHT:.*]]>
    // CHECK-DAG:     %[[RA:.*]] = kvbuffer.ring %[[A]] from @producers to [@consumers] : <#[[LEFT]]>
    // CHECK-DAG:     %[[RB:.*]] = kvbuffer.ring %[[B]] from @producers to [@consumers] : <#[[RIGHT]]>
    // CHECK:         kvbuffer.team @consumers warps(8) registers(232) {
    // CHECK-NOT:       kvbuffer.dram_tile
    // CHECK-NOT:       kvbuffer.ring_load
    // CHECK-NOT:       arith.muli
    // CHECK:           %[[STEPS:.*]] = arith.ceildivui
    // CHECK-NEXT:      %[[SUM:.*]] = scf.for unsigned %[[I:.*]] = %c1 to %[[STEPS]] step %c1 iter_args(
    // CHECK-NEXT:        %[[N:.*]] = arith.addi %[[I]], %c-1
    // CHECK-NEXT:        %[[AS:.*]] = kvbuffer.ring_wait %[[RA]][%[[N]]]
    // CHECK-NEXT:        %[[BS:.*]] = kvbuffer.ring_wait %[[RB]][%[[N]]]
    // CHECK-NEXT:        %[[AF:.*]] = kvbuffer.fragment_load %[[AS]]
    // CHECK-NEXT:        kvbuffer.ring_release %[[RA]][%[[N]]]
    // CHECK-NEXT:        %[[BF:.*]] = kvbuffer.fragment_load %[[BS]]
    // CHECK-NEXT:        kvbuffer.ring_release %[[RB]][%[[N]]]
    // CHECK-NEXT:        kvbuffer.mma %[[AF]], %[[BF]]
    // CHECK:             scf.yield
    // CHECK-NEXT:      }
    // CHECK-NEXT:      kvbuffer.fragment_store %[[SUM]]
    // CHECK-NEXT:    }
    // CHECK-NEXT:    kvbuffer.team @producers warps(4) registers(40) {
    // CHECK-NEXT:      %[[STEPS:.*]] = arith.ceildivui
    // CHECK-NEXT:      scf.for unsigned %[[I:.*]] = %c1 to %[[STEPS]] step %c1 {
    // CHECK-NEXT:        %[[N:.*]] = arith.addi %[[I]], %c-1
    // CHECK-NEXT:        arith.muli
    // CHECK-NEXT:        arith.subi
    // CHECK-NEXT:        %[[AT:.*]] = kvbuffer.dram_tile
    // CHECK-NEXT:        kvbuffer.ring_load %[[AT]] into %[[RA]][%[[N]]] {whole} :
    // CHECK-NEXT:        %[[BT:.*]] = kvbuffer.dram_tile
    // CHECK-NEXT:        kvbuffer.ring_load %[[BT]] into %[[RB]][%[[N]]] :
    // CHECK-NEXT:      }
    // CHECK-NEXT:    }
    // CHECK-NEXT:  }
    // CHECK-NEXT:  gpu.return
    gpu.func @gemm(%a: !x, %b: !x, %m: index, %n: index, %k: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c64 = arith.constant 64 : index
      %zero = kvbuffer.fragment_fill 0.0 : !sum
      %steps = arith.ceildivui %k, %c64 : index
      %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
      %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
      %sum = scf.for unsigned %i = %c1 to %steps step %c1 iter_args(%acc = %zero) -> !sum {
        %slot = arith.remui %i, %c2 : index
        %at = arith.muli %i, %c64 : index
        %left = arith.subi %k, %at : index
        %a_tile = kvbuffer.dram_tile %a[%c0, %at] valid(%m, %left) : !x -> !a_tile
        %a_token = kvbuffer.dram_load %a_tile into %a_slots[%slot] {whole} : !a_tile, !kvbuffer.buffer<#left>
        %b_tile = kvbuffer.dram_tile %b[%c0, %at] valid(%n, %left) : !x -> !b_tile
        %b_token = kvbuffer.dram_load %b_tile into %b_slots[%slot] : !b_tile, !kvbuffer.buffer<#right>
        %as, %bs = kvbuffer.lds_stage %a_token, %b_token : !kvbuffer.token<#left>, !kvbuffer.token<#right>
        %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
        %bf = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !b
        %next = kvbuffer.mma %af, %bf, %acc {transpose_b} : !a, !b, !sum
        scf.yield %next : !sum
      }
      kvbuffer.fragment_store %sum, %out : !sum, !out
      gpu.return
    }

    // Two tiles of weights go through one buffer in each iteration: twice its number,
    // and one more. x is read in every iteration: its slot is given back after the
    // loop. After it both numbers go on.
    // CHECK-LABEL: gpu.func @layers
    // CHECK:         %[[X:.*]] = kvbuffer.ring
    // CHECK:         %[[W:.*]] = kvbuffer.ring
    // CHECK:         kvbuffer.team @consumers
    // CHECK:           %[[XS:.*]] = kvbuffer.ring_wait %[[X]][%c0]
    // CHECK-NEXT:      scf.for %[[I:.*]] = %c0 to
    // CHECK-DAG:         %[[N0:.*]] = arith.muli %[[I]], %c2
    // CHECK-DAG:         %[[N1:.*]] = arith.addi %[[N0]], %c1
    // CHECK:             kvbuffer.ring_wait %[[W]][%[[N0]]]
    // CHECK-NEXT:        kvbuffer.fragment_load %[[XS]]
    // CHECK-NEXT:        kvbuffer.fragment_load
    // CHECK-NEXT:        kvbuffer.ring_release %[[W]][%[[N0]]]
    // CHECK:             kvbuffer.ring_wait %[[W]][%[[N1]]]
    // CHECK-NEXT:        kvbuffer.fragment_load
    // CHECK-NEXT:        kvbuffer.ring_release %[[W]][%[[N1]]]
    // CHECK-NOT:         kvbuffer.ring_release
    // CHECK:             scf.yield
    // CHECK-NEXT:      }
    // CHECK-NEXT:      kvbuffer.ring_release %[[X]][%c0]
    // CHECK:           %[[TRIPS:.*]] = arith.maxsi
    // CHECK-NEXT:      %[[REST:.*]] = arith.muli %[[TRIPS]], %c2
    // CHECK-NEXT:      kvbuffer.ring_wait %[[X]][%c1]
    // CHECK:           kvbuffer.ring_wait %[[W]][%[[REST]]]
    // CHECK:         kvbuffer.team @producers
    // CHECK-NEXT:      kvbuffer.ring_load %{{.*}} into %[[X]][%c0]
    // CHECK-NEXT:      scf.for %[[I:.*]] = %c0 to %[[END:.*]] step %c1 {
    // CHECK-NEXT:        %[[N0:.*]] = arith.muli %[[I]], %c2
    // CHECK:             kvbuffer.ring_load %{{.*}} into %[[W]][%[[N0]]]
    // CHECK-NEXT:        %[[N1:.*]] = arith.addi %[[N0]], %c1
    // CHECK:             kvbuffer.ring_load %{{.*}} into %[[W]][%[[N1]]]
    // CHECK-NEXT:      }
    // CHECK-NEXT:      %[[TRIPS:.*]] = arith.maxsi %[[END]], %c0
    // CHECK-NEXT:      %[[REST:.*]] = arith.muli %[[TRIPS]], %c2
    // CHECK-NEXT:      kvbuffer.ring_load %{{.*}} into %[[X]][%c1]
    // CHECK:           kvbuffer.ring_load %{{.*}} into %[[W]][%[[REST]]]
    gpu.func @layers(%xt: !a_tile, %w: !x, %n: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %zero = kvbuffer.fragment_fill 0.0 : !sum
      %x_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
      %w_slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
      %x_token = kvbuffer.dram_load %xt into %x_slots[%c0] : !a_tile, !kvbuffer.buffer<#left>
      %xs = kvbuffer.lds_stage %x_token : !kvbuffer.token<#left>
      %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !sum {
        %at = arith.muli %i, %c64 : index
        %t0 = kvbuffer.dram_tile %w[%c0, %at] valid(%c64, %c64) : !x -> !b_tile
        %l0 = kvbuffer.dram_load %t0 into %w_slots[%c0] : !b_tile, !kvbuffer.buffer<#right>
        %s0 = kvbuffer.lds_stage %l0 : !kvbuffer.token<#right>
        %xf = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
        %f0 = kvbuffer.fragment_load %s0[0, 0] contracted(rows) : !kvbuffer.staged<#right> -> !b
        %h = kvbuffer.mma %xf, %f0, %zero : !a, !b, !sum
        %hidden = kvbuffer.fragment_convert %h : !sum -> !a
        %t1 = kvbuffer.dram_tile %w[%c64, %at] valid(%c64, %c64) : !x -> !b_tile
        %l1 = kvbuffer.dram_load %t1 into %w_slots[%c1] : !b_tile, !kvbuffer.buffer<#right>
        %s1 = kvbuffer.lds_stage %l1 : !kvbuffer.token<#right>
        %f1 = kvbuffer.fragment_load %s1[0, 0] contracted(rows) : !kvbuffer.staged<#right> -> !b
        %next = kvbuffer.mma %hidden, %f1, %acc : !a, !b, !sum
        scf.yield %next : !sum
      }
      %l2 = kvbuffer.dram_load %xt into %x_slots[%c1] : !a_tile, !kvbuffer.buffer<#left>
      %s2 = kvbuffer.lds_stage %l2 : !kvbuffer.token<#left>
      %f2 = kvbuffer.fragment_load %s2[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
      %t3 = kvbuffer.dram_tile %w[%c0, %c0] valid(%c64, %c64) : !x -> !b_tile
      %l3 = kvbuffer.dram_load %t3 into %w_slots[%c0] : !b_tile, !kvbuffer.buffer<#right>
      %s3 = kvbuffer.lds_stage %l3 : !kvbuffer.token<#right>
      %f3 = kvbuffer.fragment_load %s3[0, 0] contracted(rows) : !kvbuffer.staged<#right> -> !b
      %last = kvbuffer.mma %f2, %f3, %sum : !a, !b, !sum
      kvbuffer.fragment_store %last, %out : !sum, !out
      gpu.return
    }

    // A branch loads in some iterations only: its number is what the loop carries, in
    // both teams. A slot that one side of the branch reads last is given back on
    // both.
    // CHECK-LABEL: gpu.func @branch
    // CHECK:         %[[RA:.*]] = kvbuffer.ring
    // CHECK:         %[[RB:.*]] = kvbuffer.ring
    // CHECK:         kvbuffer.team @consumers
    // CHECK:           scf.for {{.*}} iter_args(%[[NA:.*]] = %c0, %[[NB:.*]] = %c0) -> (index, index) {
    // CHECK:             %[[NEXTA:.*]] = arith.addi %[[NA]], %c1
    // CHECK:             %[[AS:.*]] = kvbuffer.ring_wait %[[RA]][%[[NA]]]
    // CHECK:             %[[BOTH:.*]]:2 = scf.if
    // CHECK-NEXT:          %[[MORE:.*]] = arith.addi %[[NB]], %c1
    // CHECK-NEXT:          kvbuffer.ring_wait %[[RB]][%[[NB]]]
    // CHECK-NEXT:          kvbuffer.fragment_load %[[AS]]
    // CHECK-NEXT:          kvbuffer.ring_release %[[RA]][%[[NA]]]
    // CHECK:               kvbuffer.ring_release %[[RB]][%[[NB]]]
    // CHECK:               scf.yield %{{.*}}, %[[MORE]]
    // CHECK-NEXT:        } else {
    // CHECK-NEXT:          kvbuffer.ring_release %[[RA]][%[[NA]]]
    // CHECK-NEXT:          scf.yield %{{.*}}, %[[NB]]
    // CHECK:             scf.yield %[[NEXTA]], %[[BOTH]]#1
    // CHECK:         kvbuffer.team @producers
    // CHECK-NEXT:      scf.for {{.*}} iter_args(%[[NA:.*]] = %c0, %[[NB:.*]] = %c0) -> (index, index) {
    // CHECK:             kvbuffer.ring_load %{{.*}} into %[[RA]][%[[NA]]]
    // CHECK-NEXT:        %[[NEXTA:.*]] = arith.addi %[[NA]], %c1
    // CHECK:             %[[NEXTB:.*]] = scf.if %{{.*}} -> (index) {
    // CHECK-NEXT:          kvbuffer.ring_load %{{.*}} into %[[RB]][%[[NB]]]
    // CHECK-NEXT:          %[[MORE:.*]] = arith.addi %[[NB]], %c1
    // CHECK-NEXT:          scf.yield %[[MORE]]
    // CHECK-NEXT:        } else {
    // CHECK-NEXT:          scf.yield %[[NB]]
    // CHECK:             scf.yield %[[NEXTA]], %[[NEXTB]]
    gpu.func @branch(%a: !x, %b_tile: !b_tile, %m: index, %n: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = kvbuffer.fragment_fill 0.0 : !sum
      %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
      %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
      scf.for %i = %c0 to %n step %c1 {
        %a_tile = kvbuffer.dram_tile %a[%i, %c0] valid(%m, %n) : !x -> !a_tile
        %a_token = kvbuffer.dram_load %a_tile into %a_slots[%c0] : !a_tile, !kvbuffer.buffer<#left>
        %as = kvbuffer.lds_stage %a_token : !kvbuffer.token<#left>
        %some = arith.cmpi slt, %i, %m : index
        %sum = scf.if %some -> !sum {
          %b_token = kvbuffer.dram_load %b_tile into %b_slots[%c0] : !b_tile, !kvbuffer.buffer<#right>
          %bs = kvbuffer.lds_stage %b_token : !kvbuffer.token<#right>
          %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
          %bf = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !b
          %next = kvbuffer.mma %af, %bf, %zero {transpose_b} : !a, !b, !sum
          scf.yield %next : !sum
        } else {
          scf.yield %zero : !sum
        }
        kvbuffer.fragment_store %sum, %out : !sum, !out
      }
      gpu.return
    }

    // Loops whose step is not 1, and loops of loops, carry the number: one of both
    // buffers, which are filled alike. The counter of tiles is the producers'; they
    // ask early, and the consumers read the mailbox when they need the number.
    // CHECK-LABEL: gpu.func @tiles
    // CHECK:         %[[RA:.*]] = kvbuffer.ring
    // CHECK:         %[[RB:.*]] = kvbuffer.ring
    // CHECK:         %[[BOX:.*]] = kvbuffer.mailbox from @producers to [@consumers] {slots = 2 : i64}
    // CHECK:         kvbuffer.team @consumers
    // CHECK-NOT:       kvbuffer.next_tile
    // CHECK:           %[[T0:.*]] = kvbuffer.mailbox_take %[[BOX]][%c0]
    // CHECK-NEXT:      scf.while (%{{.*}} = %[[T0]], %{{.*}} = %c0, %{{.*}} = %c1) : (index, index, index)
    // CHECK:           ^bb0(%[[N:.*]]: index, %[[BN:.*]]: index):
    // CHECK-NEXT:        %[[NN:.*]]:2 = scf.for {{.*}} step %c2 iter_args(%{{.*}} = %{{.*}}, %[[M:.*]] = %[[N]])
    // CHECK:               kvbuffer.ring_wait %[[RA]][%[[M]]]
    // CHECK:               kvbuffer.ring_wait %[[RB]][%[[M]]]
    // CHECK:               scf.yield
    // CHECK-NEXT:        }
    // CHECK-NEXT:        kvbuffer.fragment_store
    // CHECK-NEXT:        %[[T:.*]] = kvbuffer.mailbox_take %[[BOX]][%[[BN]]]
    // CHECK-NEXT:        %[[BN1:.*]] = arith.addi %[[BN]], %c1
    // CHECK-NEXT:        scf.yield %[[T]], %[[NN]]#1, %[[BN1]]
    // CHECK:         kvbuffer.team @producers
    // CHECK-NEXT:      %[[T0:.*]] = kvbuffer.next_tile of %[[TILES:.*]]
    // CHECK-NEXT:      kvbuffer.mailbox_post %[[T0]] to %[[BOX]][%c0]
    // CHECK-NEXT:      scf.while (%{{.*}} = %[[T0]], %{{.*}} = %c0, %{{.*}} = %c1) : (index, index, index)
    // CHECK:           ^bb0(%{{.*}}: index, %[[N:.*]]: index, %[[BN:.*]]: index):
    // CHECK-NEXT:        %[[T:.*]] = kvbuffer.next_tile of %[[TILES]]
    // CHECK-NEXT:        kvbuffer.mailbox_post %[[T]] to %[[BOX]][%[[BN]]]
    // CHECK-NEXT:        %[[BN1:.*]] = arith.addi %[[BN]], %c1
    // CHECK-NEXT:        %[[NN:.*]] = scf.for {{.*}} step %c2 iter_args(%[[M:.*]] = %[[N]]) -> (index) {
    // CHECK:               kvbuffer.ring_load %{{.*}} into %[[RA]][%[[M]]]
    // CHECK:               %[[M1:.*]] = arith.addi %[[M]], %c1
    // CHECK:               kvbuffer.ring_load %{{.*}} into %[[RB]][%[[M]]]
    // CHECK:               scf.yield %[[M1]]
    // CHECK:             scf.yield %[[T]], %[[NN]], %[[BN1]]
    gpu.func @tiles(%a: !x, %b: !x, %m: index, %n: index, %k: index, %tiles: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %zero = kvbuffer.fragment_fill 0.0 : !sum
      %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
      %b_slots = kvbuffer.alloc : !kvbuffer.buffer<#right>
      %first = kvbuffer.next_tile of %tiles
      %end = scf.while (%tile = %first) : (index) -> index {
        %more = arith.cmpi slt, %tile, %tiles : index
        scf.condition(%more) %tile : index
      } do {
      ^bb0(%tile: index):
        %next_tile = kvbuffer.next_tile of %tiles
        %sum = scf.for %i = %c0 to %k step %c2 iter_args(%acc = %zero) -> !sum {
          %a_tile = kvbuffer.dram_tile %a[%tile, %i] valid(%m, %n) : !x -> !a_tile
          %a_token = kvbuffer.dram_load %a_tile into %a_slots[%c0] : !a_tile, !kvbuffer.buffer<#left>
          %b_tile = kvbuffer.dram_tile %b[%tile, %i] valid(%n, %m) : !x -> !b_tile
          %b_token = kvbuffer.dram_load %b_tile into %b_slots[%c0] : !b_tile, !kvbuffer.buffer<#right>
          %as, %bs = kvbuffer.lds_stage %a_token, %b_token : !kvbuffer.token<#left>, !kvbuffer.token<#right>
          %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
          %bf = kvbuffer.fragment_load %bs[0, 0] contracted(cols) : !kvbuffer.staged<#right> -> !b
          %next = kvbuffer.mma %af, %bf, %acc {transpose_b} : !a, !b, !sum
          scf.yield %next : !sum
        }
        kvbuffer.fragment_store %sum, %out : !sum, !out
        scf.yield %next_tile : index
      }
      gpu.return
    }

    // What a region does to fragments is the consumers' matter, and so is what it reads.
    // CHECK-LABEL: gpu.func @bias
    // CHECK:         kvbuffer.team @consumers
    // CHECK:           %[[SUM:.*]] = kvbuffer.mma
    // CHECK-NEXT:      kvbuffer.map %[[SUM]] at(%[[ROW:.*]], %c0)
    // CHECK:             memref.load
    // CHECK:         kvbuffer.team @producers
    // CHECK-NOT:       kvbuffer.map
    gpu.func @bias(%a: !x, %bias: memref<?xf32>, %row: index, %m: index, %k: index, %out: !out) kernel attributes {kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %zero = kvbuffer.fragment_fill 0.0 : !sum
      %b = kvbuffer.fragment_fill 1.0 : !b
      %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
      %a_tile = kvbuffer.dram_tile %a[%row, %c0] valid(%m, %k) : !x -> !a_tile
      %a_token = kvbuffer.dram_load %a_tile into %a_slots[%c0] : !a_tile, !kvbuffer.buffer<#left>
      %as = kvbuffer.lds_stage %a_token : !kvbuffer.token<#left>
      %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
      %sum = kvbuffer.mma %af, %b, %zero {transpose_b} : !a, !b, !sum
      %more = kvbuffer.map %sum at(%row, %c0) : !sum -> !sum {
      ^bb0(%x: f32, %i: index, %j: index):
        %y = memref.load %bias[%j] : memref<?xf32>
        %z = arith.addf %x, %y : f32
        kvbuffer.yield %z : f32
      }
      kvbuffer.fragment_store %more, %out : !sum, !out
      gpu.return
    }

    // In a cluster one block asks for all: its own producers read the mailbox, too.
    // However often the program asks, there is one mailbox. What the whole block does
    // together, and what that needs, stands before the teams.
    // CHECK-LABEL: gpu.func @cluster
    // CHECK:         %[[BLOCK:.*]] = gpu.block_id x
    // CHECK:         %[[ALL:.*]] = kvbuffer.number_tiles {{.*}}[%[[BLOCK]]]
    // CHECK:         kvbuffer.team @consumers
    // CHECK-NOT:       kvbuffer.number_tiles
    // CHECK:           %[[T0:.*]] = kvbuffer.mailbox_take %[[BOX]][%c0]
    // CHECK-NOT:     kvbuffer.mailbox from @producers to [@consumers] {
    // CHECK:         kvbuffer.team @producers
    // CHECK-NOT:       kvbuffer.number_tiles
    // CHECK:           kvbuffer.next_tile of %[[ALL]]
    // CHECK-NEXT:      kvbuffer.mailbox_post %{{.*}} to %[[BOX:.*]][%c0]
    // CHECK-NEXT:      %[[T0:.*]] = kvbuffer.mailbox_take %[[BOX]][%c0]
    // CHECK:           scf.while (%{{.*}} = %[[T0]],
    // CHECK:             %[[ASKED:.*]] = kvbuffer.next_tile
    // CHECK-NEXT:        kvbuffer.mailbox_post %[[ASKED]] to %[[BOX]][%[[N:.*]]]
    // CHECK:             kvbuffer.ring_load
    // CHECK:             %[[T:.*]] = kvbuffer.mailbox_take %[[BOX]][%[[N]]]
    // CHECK-NEXT:        scf.yield %[[T]],
    gpu.func @cluster(%a: !x, %offsets: memref<?xi32>, %numbers: memref<?x?xi32>, %sequences: index, %rows: index, %out: !out) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, kvbuffer.schedule = #schedule} {
      %c0 = arith.constant 0 : index
      %zero = kvbuffer.fragment_fill 0.0 : !sum
      %b = kvbuffer.fragment_fill 1.0 : !b
      %a_slots = kvbuffer.alloc : !kvbuffer.buffer<#left>
      %block = gpu.block_id x
      %tiles = kvbuffer.number_tiles %offsets of %sequences upto %rows by 128 into %numbers[%block] : memref<?xi32>, memref<?x?xi32>
      %first = kvbuffer.next_tile of %tiles
      %end = scf.while (%tile = %first) : (index) -> index {
        %more = arith.cmpi slt, %tile, %tiles : index
        scf.condition(%more) %tile : index
      } do {
      ^bb0(%tile: index):
        %next_tile = kvbuffer.next_tile of %tiles
        %a_tile = kvbuffer.dram_tile %a[%tile, %c0] valid(%rows, %rows) : !x -> !a_tile
        %a_token = kvbuffer.dram_load %a_tile into %a_slots[%c0] : !a_tile, !kvbuffer.buffer<#left>
        %as = kvbuffer.lds_stage %a_token : !kvbuffer.token<#left>
        %af = kvbuffer.fragment_load %as[0, 0] contracted(cols) : !kvbuffer.staged<#left> -> !a
        %sum = kvbuffer.mma %af, %b, %zero {transpose_b} : !a, !b, !sum
        kvbuffer.fragment_store %sum, %out : !sum, !out
        scf.yield %next_tile : index
      }
      gpu.return
    }
  }
}
