// What all lanes have in common and a large loop does not use stands in vector registers
// through it, where scalar registers are too few: in the outer loop it is read back from the
// first lane. A comparison of lanes is made there, too. No register is spilled then. Where
// they are enough, everything stays as it is.
// RUN: %python %S/Inputs/large-loops.py %s 93 > %t.mlir
// RUN: kvbuf-compile %t.mlir --emit=asm -o %t.s
// RUN: FileCheck %s --input-file=%t.s --implicit-check-not=v_writelane --implicit-check-not=v_readlane
// RUN: %python %S/Inputs/large-loops.py %s 40 > %t.mlir
// RUN: kvbuf-compile %t.mlir --emit=asm -o %t.s
// RUN: FileCheck %s --input-file=%t.s --check-prefix=ENOUGH

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @kernels {
    // CHECK-LABEL: pieces:
    // The outer loop, the large one, and what comes behind it.
    // CHECK:         v_readfirstlane_b32
    // CHECK:         global_store_dword
    // CHECK:         s_cbranch
    // CHECK:         v_readfirstlane_b32
    // CHECK:         v_cmp_{{[a-z]+}}_{{u|i}}32
    // CHECK:         s_endpgm
    // CHECK:         .sgpr_spill_count: 0
    // CHECK:         .vgpr_spill_count: 0
    // ENOUGH-LABEL: pieces:
    // ENOUGH-NOT:     v_readfirstlane_b32
    // ENOUGH:         .sgpr_spill_count: 0
    llvm.func @pieces(%p: !llvm.ptr<1>, %q: !llvm.ptr<4>, %n: i32, %m: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [64, 1, 1],
          grid = [batch, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "p">, <pointer "q">, <size batch>, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"p" : i32[batch], write>,
          #kvbuffer.tensor<"q" : i32[batch], read>]} {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %three = llvm.mlir.constant(3 : i32) : i32
      %fifteen = llvm.mlir.constant(15 : i32) : i32
      %thread = rocdl.workitem.id.x : i32
      %row = llvm.and %thread, %fifteen : i32
      %x = rocdl.workgroup.id.x : i32
      %y = rocdl.workgroup.id.y : i32
      %z = rocdl.workgroup.id.z : i32
      %part = llvm.udiv %m, %three : i32
      %wide = llvm.zext %part : i32 to i64
      llvm.br ^outer(%zero : i32)
    ^outer(%i: i32):
      %first = llvm.icmp "ult" %row, %three : i32
      %begin = llvm.select %first, %x, %y : i1, i32
      llvm.store volatile %begin, %p : i32, !llvm.ptr<1>
      SCALARS
      llvm.br ^loop(%zero : i32)
    ^loop(%j: i32):
      %turn = llvm.add %thread, %j : i32
      LARGE
      %k = llvm.add %j, %one : i32
      %more = llvm.icmp "slt" %k, %n : i32
      llvm.cond_br %more, ^loop(%k : i32), ^after
    ^after:
      %ends = llvm.icmp "ult" %row, %three : i32
      %end = llvm.select %ends, %z, %x : i1, i32
      llvm.store volatile %end, %p : i32, !llvm.ptr<1>
      llvm.store volatile %y, %p : i32, !llvm.ptr<1>
      llvm.store volatile %wide, %p : i64, !llvm.ptr<1>
      llvm.store volatile %i, %p : i32, !llvm.ptr<1>
      %next = llvm.add %i, %one : i32
      %again = llvm.icmp "slt" %next, %part : i32
      llvm.cond_br %again, ^outer(%next : i32), ^end
    ^end:
      llvm.return
    }
  }
}
