// RUN: kvbuf-opt %s -allow-unregistered-dialect -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-defer-reads)))' | FileCheck %s
// Where waits count loads, queries would wait for all tiles that were asked for before them.
// RUN: sed 's,sm_90a,gfx950,' %s | kvbuf-opt -allow-unregistered-dialect -pass-pipeline='builtin.module(gpu.module(gpu.func(kvbuf-defer-reads)))' | FileCheck %s --check-prefix=COUNTS

#kbuf = #kvbuffer.kv_buffer<16x64xbf16, BK = 64, stages = 3, swizzle = [3, 0, 3]>
!tile = !kvbuffer.tile<16x64xbf16>
!rows = !kvbuffer.tile<16x64xbf16, page_size = 16>
!q = !kvbuffer.fragment<16x64xbf16, a>
!half = !kvbuffer.fragment<16x64xf16, a>
!row = !kvbuffer.fragment<16x1xf32, row>
!tensor = memref<?x?x8x64xbf16, strided<[?, ?, ?, 1]>>
!cache = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 64, page_size = 16>
module attributes {gpu.container_module, kvbuffer.target = "sm_90a"} {
  gpu.module @m {
    // Behind the last load in front of the loop, and with it what is computed of it.
    // CHECK-LABEL:  gpu.func @behind
    // CHECK:          kvbuffer.dram_load
    // CHECK-NEXT:     %[[NEXT:.*]] = kvbuffer.cache_tile
    // CHECK-NEXT:     kvbuffer.dram_load %[[NEXT]]
    // CHECK-NEXT:     %[[F:.*]] = kvbuffer.tile_fragment
    // CHECK-NEXT:     %[[H:.*]] = kvbuffer.fragment_convert %[[F]]
    // CHECK-NEXT:     scf.for
    // COUNTS-LABEL: gpu.func @behind
    // COUNTS:         kvbuffer.tile_fragment
    // COUNTS:         kvbuffer.dram_load
    gpu.func @behind(%k: !cache, %qt: !rows, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %q = kvbuffer.tile_fragment %qt : !rows -> !q
      %t0 = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !cache -> !tile
      %h = kvbuffer.fragment_convert %q : !q -> !half
      %a0 = kvbuffer.dram_load %t0 into %buf : !tile, <#kbuf>
      %t1 = kvbuffer.cache_tile %k[%c0, %c0, %c16] from %c0 upto %n : !cache -> !tile
      %a1 = kvbuffer.dram_load %t1 into %buf : !tile, <#kbuf>
      scf.for %i = %c0 to %n step %c1 {
        "test.use"(%h) : (!half) -> ()
      }
      gpu.return
    }

    // So does what is computed behind the load,
    // CHECK-LABEL:  gpu.func @computed_behind
    // CHECK:          kvbuffer.dram_load
    // CHECK-NEXT:     %[[Q:.*]] = kvbuffer.tile_fragment
    // CHECK-NEXT:     %[[S:.*]] = kvbuffer.fragment_convert %[[Q]]
    // CHECK-NEXT:     scf.for
    gpu.func @computed_behind(%k: !cache, %qt: !rows, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %q = kvbuffer.tile_fragment %qt : !rows -> !q
      %t0 = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !cache -> !tile
      %a0 = kvbuffer.dram_load %t0 into %buf : !tile, <#kbuf>
      %h = kvbuffer.fragment_convert %q : !q -> !half
      scf.for %i = %c0 to %n step %c1 {
        "test.use"(%h) : (!half) -> ()
      }
      gpu.return
    }

    // but nothing where a branch there needs it.
    // CHECK-LABEL:  gpu.func @branch_behind
    // CHECK:          kvbuffer.tile_fragment
    // CHECK:          kvbuffer.dram_load
    // CHECK:          scf.if
    gpu.func @branch_behind(%k: !cache, %qt: !rows, %yes: i1, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %z = kvbuffer.fragment_fill 0.0 : !q
      %q = kvbuffer.tile_fragment %qt : !rows -> !q
      %t0 = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !cache -> !tile
      %a0 = kvbuffer.dram_load %t0 into %buf : !tile, <#kbuf>
      %b = scf.if %yes -> !q {
        scf.yield %q : !q
      } else {
        scf.yield %z : !q
      }
      scf.for %i = %c0 to %n step %c1 {
        "test.use"(%b) : (!q) -> ()
      }
      gpu.return
    }

    // Two fragments keep their order, and one that nothing is computed of comes along.
    // CHECK-LABEL:  gpu.func @both
    // CHECK:          kvbuffer.dram_load
    // CHECK-NEXT:     %[[Q:.*]] = kvbuffer.tile_fragment
    // CHECK-NEXT:     %[[R:.*]] = kvbuffer.tile_fragment
    // CHECK-NEXT:     %[[S:.*]] = kvbuffer.fragment_convert %[[Q]]
    // CHECK-NEXT:     scf.for
    gpu.func @both(%k: !cache, %qt: !rows, %rt: !rows, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %q = kvbuffer.tile_fragment %qt : !rows -> !q
      %r = kvbuffer.tile_fragment %rt : !rows -> !q
      %s = kvbuffer.fragment_convert %q : !q -> !half
      %t0 = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !cache -> !tile
      %a0 = kvbuffer.dram_load %t0 into %buf : !tile, <#kbuf>
      scf.for %i = %c0 to %n step %c1 {
        "test.use"(%s, %r) : (!half, !q) -> ()
      }
      gpu.return
    }

    // What is written in front of the load may be what the fragment reads.
    // CHECK-LABEL:  gpu.func @written
    // CHECK:          kvbuffer.tile_fragment
    // CHECK:          memref.store
    // CHECK:          kvbuffer.dram_load
    gpu.func @written(%k: !cache, %qt: !rows, %x: memref<8xi32>, %one: i32, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %q = kvbuffer.tile_fragment %qt : !rows -> !q
      memref.store %one, %x[%c0] : memref<8xi32>
      %t0 = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !cache -> !tile
      %a0 = kvbuffer.dram_load %t0 into %buf : !tile, <#kbuf>
      scf.for %i = %c0 to %n step %c1 {
        "test.use"(%q) : (!q) -> ()
      }
      gpu.return
    }

    // Nor past a wait behind the load,
    // CHECK-LABEL:  gpu.func @awaited
    // CHECK:          kvbuffer.tile_fragment
    // CHECK:          kvbuffer.dram_load
    // CHECK:          kvbuffer.lds_stage
    gpu.func @awaited(%k: !cache, %qt: !rows, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %q = kvbuffer.tile_fragment %qt : !rows -> !q
      %t0 = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !cache -> !tile
      %a0 = kvbuffer.dram_load %t0 into %buf : !tile, <#kbuf>
      %st = kvbuffer.lds_stage %a0 : !kvbuffer.token<#kbuf>
      scf.for %i = %c0 to %n step %c1 {
        "test.use"(%q, %st) : (!q, !kvbuffer.staged<#kbuf>) -> ()
      }
      gpu.return
    }

    // nor behind what has a region that needs it.
    // CHECK-LABEL:  gpu.func @branch
    // CHECK:          kvbuffer.tile_fragment
    // CHECK:          scf.if
    // CHECK:          kvbuffer.dram_load
    gpu.func @branch(%k: !cache, %qt: !rows, %yes: i1, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %buf = kvbuffer.alloc : !kvbuffer.buffer<#kbuf>
      %z = kvbuffer.fragment_fill 0.0 : !q
      %q = kvbuffer.tile_fragment %qt : !rows -> !q
      %b = scf.if %yes -> !q {
        scf.yield %q : !q
      } else {
        scf.yield %z : !q
      }
      %t0 = kvbuffer.cache_tile %k[%c0, %c0, %c0] from %c0 upto %n : !cache -> !tile
      %a0 = kvbuffer.dram_load %t0 into %buf : !tile, <#kbuf>
      scf.for %i = %c0 to %n step %c1 {
        "test.use"(%b) : (!q) -> ()
      }
      gpu.return
    }
  }
}
