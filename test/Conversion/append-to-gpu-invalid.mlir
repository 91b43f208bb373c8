// RUN: kvbuf-opt %s --convert-kvbuffer-to-gpu --verify-diagnostics

#schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 64, warps = 1, mma_shape = [16, 8, 16]>
!paged = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 128, page_size = 16>
!new = memref<?x1x2x128xbf16>

module attributes {gpu.container_module, kvbuffer.target = "sm_80"} {
gpu.module @tokens {
  gpu.func @made(%k: !new {kvbuffer.name = "k_new"}, %data: memref<?x16x2x128xbf16> {kvbuffer.name = "data"},
                 %table: memref<?x?xi32> {kvbuffer.name = "table"}, %lengths: memref<?xi32> {kvbuffer.name = "lengths"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #schedule, kvbuffer.grid = [2, 1, 1]} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %kc = kvbuffer.make_cache %data indices(%table, %lengths : memref<?x?xi32>, memref<?xi32>) : memref<?x16x2x128xbf16> -> !paged
    // expected-error @below {{stores into a cache that the program makes; expected one of the kernel's arguments}}
    kvbuffer.append_tokens[%c0, %c0] from %c0 upto %c16 k(%k : !new) to(%kc : !paged)
    gpu.return
  }
}
}
