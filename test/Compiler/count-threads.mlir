// What comes behind large loops makes threads' numbers anew, from a count of the lanes below
// and the wave that all lanes have in common: the loops need all vector registers, and of what
// is computed of the number and constants nothing is held through them, nor the number itself.
// RUN: %python %S/Inputs/large-loops.py %s 251 > %t.mlir
// RUN: kvbuf-compile %t.mlir --emit=asm -o - | FileCheck %s

// In blocks of two dimensions, or of parts of waves, the number is not that.
// RUN: sed -e 's/array<i32: 512, 1, 1>/array<i32: 256, 2, 1>/' -e 's/block = \[512, 1, 1\]/block = [256, 2, 1]/' %t.mlir > %t.two.mlir
// RUN: kvbuf-compile %t.two.mlir --emit=asm -o - | FileCheck %s --check-prefix=HELD
// RUN: sed -e 's/array<i32: 512, 1, 1>/array<i32: 480, 1, 1>/' -e 's/block = \[512, 1, 1\]/block = [480, 1, 1]/' %t.mlir > %t.part.mlir
// RUN: kvbuf-compile %t.part.mlir --emit=asm -o - | FileCheck %s --check-prefix=HELD

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @kernels {
    // CHECK-LABEL: behind:
    // CHECK-NOT:     scratch_
    // CHECK-COUNT-2: v_mbcnt_hi_u32_b32
    // CHECK-NOT:     scratch_
    // CHECK:         s_endpgm
    // CHECK:         .vgpr_spill_count: 0

    // HELD-LABEL:    behind:
    // HELD-NOT:      v_mbcnt
    // HELD:          s_endpgm
    // HELD-NOT:      .vgpr_spill_count: 0
    llvm.func @behind(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %n: i32, %m: i32) attributes {
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
      %row = llvm.mul %thread, %c19 : i32
      %other = llvm.lshr %thread, %three : i32
      %place = llvm.xor %row, %other : i32
      VECTORS
      llvm.br ^loop(%zero : i32)
    ^loop(%j: i32):
      %turn = llvm.add %n, %j : i32
      LARGE
      %k = llvm.add %j, %one : i32
      %more = llvm.icmp "slt" %k, %n : i32
      llvm.cond_br %more, ^loop(%k : i32), ^between
    ^between:
      %any = llvm.icmp "slt" %m, %n : i32
      llvm.cond_br %any, ^enter, ^after
    ^enter:
      llvm.br ^loop2(%zero : i32)
    ^loop2(%j2: i32):
      %turn2 = llvm.add %n, %j2 : i32
      LARGE2
      LANES2
      %k2 = llvm.add %j2, %one : i32
      %more2 = llvm.icmp "slt" %k2, %n : i32
      llvm.cond_br %more2, ^loop2(%k2 : i32), ^after
    ^after:
      LANES3
      %there = llvm.getelementptr %p[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store volatile %other, %there : i32, !llvm.ptr<1>
      llvm.return
    }
  }
}
