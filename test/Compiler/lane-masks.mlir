// The bit of a lane's number, of a word that all lanes of a wave have in common, is what a
// mask of the lanes says: no lane shifts and compares. Other bits are left alone.
// RUN: kvbuf-compile %s --emit=llvm -o - | FileCheck %s
// RUN: kvbuf-compile %s --emit=asm -o - | FileCheck %s --check-prefix=ASM

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @kernels {
    // CHECK-LABEL: define amdgpu_kernel void @choose(
    // ASM-LABEL:   choose:
    llvm.func @choose(%p: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 128, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [128, 1, 1],
          grid = [batch, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "p">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"p" : i32[batch], write>]} {
      %all = llvm.mlir.constant(-1 : i64) : i64
      %most = llvm.mlir.constant(63 : i32) : i32
      %half = llvm.mlir.constant(31 : i32) : i32
      %two = llvm.mlir.constant(2 : i32) : i32
      %seven = llvm.mlir.constant(7 : i32) : i32
      %thread = rocdl.workitem.id.x : i32
      %lane = llvm.and %thread, %most : i32
      %wide = llvm.zext %n : i32 to i64
      %at = llvm.zext %lane : i32 to i64
      %word = llvm.shl %all, %wide : i64
      // CHECK: %[[WORD:.*]] = shl i64 -1,
      // CHECK: call i1 @llvm.amdgcn.inverse.ballot.i64(i64 %[[WORD]])
      // ASM:     s_lshl_b64 [[WORD:s\[[0-9:]+\]]], -1, s
      // ASM-NOT: v_lshrrev_b64
      // ASM:     v_cndmask_b32_e64 v{{[0-9]+}}, 2, 7, [[WORD]]
      %shifted = llvm.lshr %word, %at : i64
      %bit = llvm.trunc %shifted : i64 to i1
      %chosen = llvm.select %bit, %seven, %two : i1, i32
      llvm.store volatile %chosen, %p : i32, !llvm.ptr<1>

      // Of half of the lane's number or some bits of it, and of words that lanes have of
      // their own.
      // CHECK-NOT: inverse.ballot
      // CHECK:     ret void
      // ASM:     v_lshrrev_b
      // ASM:     v_lshrrev_b
      %low = llvm.and %thread, %half : i32
      %lower = llvm.zext %low : i32 to i64
      %other = llvm.lshr %word, %lower : i64
      %otherBit = llvm.trunc %other : i64 to i1
      %second = llvm.select %otherBit, %seven, %two : i1, i32
      llvm.store volatile %second, %p : i32, !llvm.ptr<1>
      %bits = llvm.trunc %lane : i32 to i4
      %fewer = llvm.zext %bits : i4 to i64
      %ofFewer = llvm.lshr %word, %fewer : i64
      %fewerBit = llvm.trunc %ofFewer : i64 to i1
      %third = llvm.select %fewerBit, %seven, %two : i1, i32
      llvm.store volatile %third, %p : i32, !llvm.ptr<1>
      %own = llvm.mul %at, %wide : i64
      %ofOwn = llvm.lshr %own, %at : i64
      %ownBit = llvm.trunc %ofOwn : i64 to i1
      %last = llvm.select %ownBit, %seven, %two : i1, i32
      llvm.store volatile %last, %p : i32, !llvm.ptr<1>
      llvm.return
    }

    // A block of planes has other lanes.
    // CHECK-LABEL: define amdgpu_kernel void @planes(
    // CHECK-NOT:   inverse.ballot
    // CHECK:       ret void
    llvm.func @planes(%p: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 32, 4, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [32, 4, 1],
          grid = [batch, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "p">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"p" : i32[batch], write>]} {
      %all = llvm.mlir.constant(-1 : i64) : i64
      %most = llvm.mlir.constant(63 : i32) : i32
      %two = llvm.mlir.constant(2 : i32) : i32
      %seven = llvm.mlir.constant(7 : i32) : i32
      %thread = rocdl.workitem.id.x : i32
      %lane = llvm.and %thread, %most : i32
      %wide = llvm.zext %n : i32 to i64
      %at = llvm.zext %lane : i32 to i64
      %word = llvm.shl %all, %wide : i64
      %shifted = llvm.lshr %word, %at : i64
      %bit = llvm.trunc %shifted : i64 to i1
      %chosen = llvm.select %bit, %seven, %two : i1, i32
      llvm.store volatile %chosen, %p : i32, !llvm.ptr<1>
      llvm.return
    }

    // Lanes that leave a loop at different times have other words behind it. A bit that
    // is shifted down in the loop is taken there.
    // CHECK-LABEL: define amdgpu_kernel void @left(
    // CHECK:       %[[IN:.*]] = shl i64 -1,
    // CHECK:       call i1 @llvm.amdgcn.inverse.ballot.i64(i64 %[[IN]])
    // CHECK:       icmp ult
    // CHECK-NOT:   inverse.ballot
    // CHECK:       ret void
    llvm.func @left(%p: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 128, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [128, 1, 1],
          grid = [batch, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "p">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"p" : i32[batch], write>]} {
      %all = llvm.mlir.constant(-1 : i64) : i64
      %most = llvm.mlir.constant(63 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %two = llvm.mlir.constant(2 : i32) : i32
      %seven = llvm.mlir.constant(7 : i32) : i32
      %thread = rocdl.workitem.id.x : i32
      %lane = llvm.and %thread, %most : i32
      %at = llvm.zext %lane : i32 to i64
      llvm.br ^loop(%n : i32)
    ^loop(%i: i32):
      %wide = llvm.zext %i : i32 to i64
      %word = llvm.shl %all, %wide : i64
      %in = llvm.lshr %word, %at : i64
      %next = llvm.add %i, %one : i32
      %more = llvm.icmp "ult" %next, %lane : i32
      llvm.cond_br %more, ^loop(%next : i32), ^behind
    ^behind:
      %inBit = llvm.trunc %in : i64 to i1
      %first = llvm.select %inBit, %seven, %two : i1, i32
      llvm.store volatile %first, %p : i32, !llvm.ptr<1>
      %shifted = llvm.lshr %word, %at : i64
      %bit = llvm.trunc %shifted : i64 to i1
      %chosen = llvm.select %bit, %seven, %two : i1, i32
      llvm.store volatile %chosen, %p : i32, !llvm.ptr<1>
      llvm.return
    }
  }
}
