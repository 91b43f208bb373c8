// Two large loops, and what comes behind them, compute addresses of the same numbers of
// lanes. Where vector registers are too few, the backend does not hold what they have in
// common through the first loop: each part computes it for itself, and nothing is spilled.
// RUN: %python %S/Inputs/large-loops.py %s 249 > %t.mlir
// RUN: kvbuf-compile %t.mlir --emit=asm -o - | FileCheck %s

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @kernels {
    // CHECK-LABEL: parts:
    // CHECK-NOT:     scratch_
    // CHECK:         s_endpgm
    // CHECK:         .vgpr_spill_count: 0
    llvm.func @parts(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %n: i32, %m: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 512, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [512, 1, 1],
          grid = [batch, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "p">, <pointer "q">, <size batch>, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"p" : i32[batch], write>,
          #kvbuffer.tensor<"q" : i32[batch], read>]} {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %thread = rocdl.workitem.id.x : i32
      %sixty = llvm.mlir.constant(63 : i32) : i32
      %three = llvm.mlir.constant(3 : i32) : i32
      %lane = llvm.and %thread, %sixty : i32
      %c4 = llvm.mlir.constant(4 : i32) : i32
      %c8 = llvm.mlir.constant(8 : i32) : i32
      %c19 = llvm.mlir.constant(19 : i32) : i32
      VECTORS
      llvm.br ^loop(%zero : i32)
    ^loop(%j: i32):
      %turn = llvm.add %lane, %j : i32
      LARGE
      %some = llvm.icmp "slt" %j, %m : i32
      llvm.cond_br %some, ^own, ^go
    ^own:
      LANES
      llvm.br ^go
    ^go:
      %k = llvm.add %j, %one : i32
      %more = llvm.icmp "slt" %k, %n : i32
      llvm.cond_br %more, ^loop(%k : i32), ^between
    ^between:
      %any = llvm.icmp "slt" %m, %n : i32
      llvm.cond_br %any, ^loop2(%zero : i32), ^after
    ^loop2(%j2: i32):
      %turn2 = llvm.add %lane, %j2 : i32
      LARGE2
      %some2 = llvm.icmp "slt" %j2, %m : i32
      llvm.cond_br %some2, ^own2, ^go2
    ^own2:
      LANES2
      llvm.br ^go2
    ^go2:
      %k2 = llvm.add %j2, %one : i32
      %more2 = llvm.icmp "slt" %k2, %n : i32
      llvm.cond_br %more2, ^loop2(%k2 : i32), ^after
    ^after:
      LANES3
      llvm.return
    }
  }
}
