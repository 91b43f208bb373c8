// Kernels for tensors of any alignment, and for multiples of 4 bytes: before each
// tile, the code looks at the tensor at hand.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu{alignment=2},canonicalize,cse))" | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu{alignment=4},canonicalize,cse))" | FileCheck %s --check-prefixes=CHECK,FOUR "--implicit-check-not=memref.load"

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 32, stages = 1, warps = 1, mma_shape = [16, 8, 16]>
#buf = #kvbuffer.kv_buffer<16x32xbf16>
!x = memref<?x?x2x32xbf16, strided<[?, ?, ?, 1]>>
!tile = !kvbuffer.tile<16x32xbf16>
!acc = !kvbuffer.fragment<16x32xf32, acc>
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    // TWO:  kvbuffer.kernel = #kvbuffer.launch<alignment = 2
    // FOUR: kvbuffer.kernel = #kvbuffer.launch<alignment = 4
    
    // Multiples of 16 bytes are copied as ever, 8 elements at a time. The tile's offset,
    // its row stride and the tensor's address each have to be such.
    // CHECK:      %[[BASE_STRIDE:.*]] = arith.ori %{{.*}}, %arg2 : index
    // CHECK-NEXT: %[[BYTES:.*]] = arith.muli %[[BASE_STRIDE]], %c2 : index
    // CHECK-NEXT: %[[ADDRESS:.*]] = memref.extract_aligned_pointer_as_index %arg0
    // CHECK-NEXT: %[[ALL:.*]] = arith.ori %[[BYTES]], %[[ADDRESS]] : index
    // CHECK-NEXT: %[[LOW:.*]] = arith.andi %[[ALL]], %c15 : index
    // CHECK-NEXT: %[[FITS:.*]] = arith.cmpi eq, %[[LOW]], %c0 : index
    // CHECK-NEXT: scf.if %[[FITS]] {
    // CHECK-NOT:    scf.for
    // CHECK:        nvgpu.device_async_copy {{.*}}, 8, %{{.*}} {bypassL1}
    // CHECK:      } else {
    
    // Multiples of 8: half as many, and half as wide. Tiles that are whole are copied
    // without a look at rows.
    // CHECK:        %[[LOW8:.*]] = arith.andi %[[ALL]], %c7 : index
    // CHECK-NEXT:   %[[FITS8:.*]] = arith.cmpi eq, %[[LOW8]], %c0 : index
    // CHECK-NEXT:   scf.if %[[FITS8]] {
    // CHECK:          scf.if
    // CHECK-NOT:        scf.for
    // CHECK-COUNT-4:    nvgpu.device_async_copy {{.*}}, 4 :
    // CHECK-NOT:        nvgpu.device_async_copy
    // CHECK:          } else {
    // CHECK-COUNT-4:    nvgpu.device_async_copy {{.*}}, 4, %{{[0-9]+}} :
    // CHECK-NOT:        nvgpu.device_async_copy
    // CHECK:          }
    // CHECK:        } else {
    
    // Multiples of 4: one word of a row a lane, so that 16 lanes take a row; a step is
    // two rows of this warp, and four steps stand in the loop.
    // TWO:          %[[LOW4:.*]] = arith.andi %[[ALL]], %c3 : index
    // TWO-NEXT:     %[[FITS4:.*]] = arith.cmpi eq, %[[LOW4]], %c0 : index
    // TWO-NEXT:     scf.if %[[FITS4]] {
    // CHECK:          scf.if
    // CHECK-COUNT-8:    nvgpu.device_async_copy {{.*}}, 2 :
    // CHECK:          } else {
    // CHECK:            scf.for %{{.*}} = %c0_i32 to %c2_i32 step %c1_i32
    // CHECK-COUNT-4:      nvgpu.device_async_copy {{.*}}, 2, %{{[0-9]+}} :
    // CHECK-NOT:          nvgpu.device_async_copy
    // CHECK:            }
    
    // Others: loads of elements, of eight rows before any is stored.
    // TWO:          } else {
    // TWO:            scf.for %{{.*}} = %c0_i32 to %c2_i32 step %c1_i32
    // TWO-COUNT-4:      vector.from_elements
    // TWO-NOT:          vector.from_elements
    // TWO-COUNT-4:      vector.store {{.*}}alignment = 4 : i64
    // TWO-NOT:          vector.store
    // TWO:            }
    // CHECK:      nvgpu.device_async_create_group
    
    // Results: 16 bytes a lane, or as many as any row allows.
    // CHECK:      gpu.shuffle
    // CHECK:      vector.store {{.*}}alignment = 16 : i64{{.*}}vector<8xbf16>
    // CHECK:      } else {
    // CHECK-NOT:  gpu.shuffle
    // TWO:        vector.store {{.*}}alignment = 2 : i64{{.*}}vector<1xbf16>
    // FOUR:       vector.store {{.*}}alignment = 4 : i64{{.*}}vector<2xbf16>
    // CHECK:      gpu.return
    gpu.func @product(%x: !x {kvbuffer.name = "x", kvbuffer.shape = ["batch", "n", 2, 32]}, %y: !x {kvbuffer.name = "y", kvbuffer.shape = ["batch", "n", 2, 32]})
        kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [#kvbuffer.size<ceildiv(n, 16)>, 2, "batch"]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %number = gpu.block_id x
      %head = gpu.block_id y
      %batch = gpu.block_id z
      %n = memref.dim %x, %c1 : !x
      %row = arith.muli %number, %c16 : index
      %rows = arith.subi %n, %row : index
      %slot = kvbuffer.alloc : !kvbuffer.buffer<#buf>
      %zero = kvbuffer.fragment_fill 0.0 : !acc
      %xt = kvbuffer.dram_tile %x[%batch, %row, %head] valid(%rows) : !x -> !tile
      %xl = kvbuffer.dram_load %xt into %slot[%c0] : !tile, !kvbuffer.buffer<#buf>
      %xs = kvbuffer.lds_stage %xl {younger = 0 : i64} : !kvbuffer.token<#buf>
      %weights = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<16x16xbf16, a>
      %xf = kvbuffer.fragment_load %xs[0, 0] contracted(rows) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<16x32xbf16, b>
      %sum = kvbuffer.mma %weights, %xf, %zero : !kvbuffer.fragment<16x16xbf16, a>, !kvbuffer.fragment<16x32xbf16, b>, !acc
      %rounded = kvbuffer.fragment_convert %sum : !acc -> !kvbuffer.fragment<16x32xbf16, acc>
      %yt = kvbuffer.dram_tile %y[%batch, %row, %head] valid(%rows) : !x -> !tile
      kvbuffer.fragment_store %rounded, %yt : !kvbuffer.fragment<16x32xbf16, acc>, !tile
      gpu.return
    }
  }
}
