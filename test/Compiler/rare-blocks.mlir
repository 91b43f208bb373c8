// What a block that is seldom executed computes of the lane's number, it computes itself:
// LLVM does not see through the mask by which it counts the lanes below, and so moves
// nothing out of the loop. Blocks that weigh more are left alone.
// RUN: kvbuf-compile %s --emit=llvm -o - | FileCheck %s
// RUN: kvbuf-compile %s --emit=asm -o - | FileCheck %s --check-prefix=ASM

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @kernels {
    // CHECK-LABEL: define amdgpu_kernel void @exchange(
    // ASM-LABEL:   exchange:
    llvm.func @exchange(%p: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [64, 1, 1],
          grid = [batch, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "p">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"p" : i32[batch], write>]} {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %two = llvm.mlir.constant(2 : i32) : i32
      %half = llvm.mlir.constant(32 : i32) : i32
      %all = llvm.mlir.constant(-1 : i32) : i32
      llvm.br ^loop(%zero : i32)
    ^loop(%i: i32):
      %x = llvm.load volatile %p : !llvm.ptr<1> -> i32
      %is_rare = llvm.icmp "eq" %x, %i : i32
      llvm.cond_br %is_rare weights([1, 1000]), ^rare, ^usual
    // CHECK:      %[[MASK:.*]] = call i32 asm sideeffect "", "=s,0"(i32 -1)
    // CHECK-NEXT: %[[LOW:.*]] = call {{.*}}@llvm.amdgcn.mbcnt.lo(i32 %[[MASK]], i32 0)
    // CHECK-NEXT: call {{.*}}@llvm.amdgcn.mbcnt.hi(i32 -1, i32 %[[LOW]])
    ^rare:
      %low = rocdl.mbcnt.lo %all, %zero : (i32, i32) -> i32
      %lane = rocdl.mbcnt.hi %all, %low : (i32, i32) -> i32
      %other = llvm.xor %lane, %half : i32
      %at = llvm.shl %other, %two : i32
      %there = rocdl.ds_bpermute %at, %x : (i32, i32) -> i32
      llvm.store volatile %there, %p : i32, !llvm.ptr<1>
      llvm.br ^usual
    ^usual:
      %is_odd = llvm.icmp "sgt" %x, %i : i32
      llvm.cond_br %is_odd weights([1, 10]), ^often, ^next
    // CHECK-NOT:  asm
    // CHECK:      call {{.*}}@llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
    ^often:
      %low1 = rocdl.mbcnt.lo %all, %zero : (i32, i32) -> i32
      %lane1 = rocdl.mbcnt.hi %all, %low1 : (i32, i32) -> i32
      llvm.store volatile %lane1, %p : i32, !llvm.ptr<1>
      llvm.br ^next
    // The rare block counts in the loop.
    // ASM-NOT:     v_mbcnt
    // ASM:         global_load_dword
    // ASM:         v_mbcnt_lo
    // ASM:         v_mbcnt_hi
    // ASM:         ds_bpermute_b32
    // ASM:         s_endpgm
    ^next:
      %j = llvm.add %i, %one : i32
      %more = llvm.icmp "slt" %j, %n : i32
      llvm.cond_br %more, ^loop(%j : i32), ^done
    ^done:
      llvm.return
    }
  }
}
