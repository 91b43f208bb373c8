// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-gpu))" | FileCheck %s

// A size that shapes tell by an expression alone is a parameter of its value.

// CHECK: args = [<pointer "x">, <size sum(n, 1)>]
module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @m {
    gpu.func @k(%x: memref<?xf32> {kvbuffer.name = "x", kvbuffer.shape = [#kvbuffer.size<sum(n, 1)>]}) kernel attributes {kvbuffer.phase = #kvbuffer.phase<scheduled>, kvbuffer.schedule = #kvbuffer.schedule<BM = 16, BN = 16, BK = 16, warps = 1, mma_shape = [16, 8, 16]>} {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?xf32>
      gpu.return
    }
  }
}
