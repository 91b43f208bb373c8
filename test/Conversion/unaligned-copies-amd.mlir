// A kernel for tensors at any address: lanes load the pieces of tiles from addresses of 64
// bits, with the alignment that is asked for, and no range of memory nor a limit of a
// stride is left; a tile that is turned on its way goes through registers. With 16 there
// are ranges, and rows within 2^31 bytes.

// DEFINE: %{bytes} = 2
// DEFINE: %{to} = kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu{alignment=%{bytes}},canonicalize,cse))"
// RUN: %{to} | FileCheck %s --implicit-check-not=kvbuffer.range --implicit-check-not=dram_range --implicit-check-not=limit
// REDEFINE: %{bytes} = 16
// RUN: %{to} | FileCheck %s --check-prefix=FAST

// CHECK: kvbuffer.kernel = #kvbuffer.launch<alignment = 2
// FAST: kvbuffer.kernel = #kvbuffer.launch<alignment = 16
// FAST-SAME: limit = 67108863

// Each lane has a piece of 8 elements, under its row's condition, and stores it into LDS.
// CHECK: scf.for
// CHECK: scf.if
// CHECK: vector.load {{.*}}alignment = 2 : i64{{.*}}vector<8xbf16>
// CHECK: vector.store {{.*}}alignment = 16 : i64{{.*}}vector<8xbf16>
// CHECK: amdgpu.memory_counter_wait load(0)
// FAST: kvbuffer.dram_range
// FAST: kvbuffer.range_copy

// O is stored element by element where its rows need it.
// CHECK: vector.store {{.*}}alignment = 2 : i64{{.*}}vector<1xbf16>
// CHECK: gpu.return

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 32, stages = 1, warps = 1, mma_shape = [16, 16, 32], swap_a_b = true>
#buf = #kvbuffer.kv_buffer<16x32xbf16>
!x = memref<?x?x2x32xbf16, strided<[?, ?, ?, 1]>>
!tile = !kvbuffer.tile<16x32xbf16>
!acc = !kvbuffer.fragment<16x16xf32, acc>
module attributes {kvbuffer.target = "gfx950"} {
  gpu.module @m {
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
      %q = kvbuffer.tile_fragment %xt : !tile -> !kvbuffer.fragment<16x32xbf16, a>
      %xf = kvbuffer.fragment_load %xs[0, 0] contracted(cols) : !kvbuffer.staged<#buf> -> !kvbuffer.fragment<16x32xbf16, b>
      %sum = kvbuffer.mma %q, %xf, %zero {transpose_b} : !kvbuffer.fragment<16x32xbf16, a>, !kvbuffer.fragment<16x32xbf16, b>, !acc
      %rounded = kvbuffer.fragment_convert %sum : !acc -> !kvbuffer.fragment<16x16xbf16, acc>
      %yt = kvbuffer.dram_tile %y[%batch, %row, %head] valid(%rows) : !x -> !kvbuffer.tile<16x16xbf16>
      kvbuffer.fragment_store %rounded, %yt : !kvbuffer.fragment<16x16xbf16, acc>, !kvbuffer.tile<16x16xbf16>
      gpu.return
    }
  }
}
