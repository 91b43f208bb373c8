// In a loop around a large one, what is computed from the numbers of threads and blocks,
// and from others that lanes agree on, is computed where it is used, not held in scalar
// registers through the large loop: each region has such numbers by a statement that the
// backend cannot see through, or it would move all of this to the front of the outer loop.
// RUN: %python -c "import sys; print(open(sys.argv[1]).read().replace('LAR' + 'GE', 'llvm.store volatile %%x, %%p : i32, !llvm.ptr<1>\n' * int(sys.argv[2])))" %s 100 > %t.mlir
// RUN: kvbuf-compile %t.mlir --emit=llvm -o - | FileCheck %s
// RUN: kvbuf-compile %t.mlir --emit=asm -o - | FileCheck %s --check-prefix=ASM

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @kernels {
    // CHECK-LABEL: define amdgpu_kernel void @pieces(
    // CHECK:       %[[THREAD:.*]] = call {{.*}}@llvm.amdgcn.workitem.id.x()
    // CHECK:       %[[ROW:.*]] = and i32 %[[THREAD]], 15
    // CHECK:       %[[BLOCK:.*]] = call {{.*}}@llvm.amdgcn.workgroup.id.x()
    // CHECK:       %[[SAME:.*]] = call i32 @llvm.amdgcn.readfirstlane.i32(
    // CHECK:       %[[PART:.*]] = udiv i32 %[[SAME]], 3
    // CHECK:       %[[LOADED:.*]] = load i32, ptr addrspace(1) %1
    // CHECK:       %[[BOUND:.*]] = add i32 %[[LOADED]], 1
    llvm.func @pieces(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [64, 1, 1],
          grid = [batch, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "p">, <pointer "q">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"p" : i32[batch], write>,
          #kvbuffer.tensor<"q" : i64[batch], write>]} {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %three = llvm.mlir.constant(3 : i32) : i32
      %none = llvm.mlir.constant(0 : i64) : i64
      %four = llvm.mlir.constant(4 : i32) : i32
      %fifteen = llvm.mlir.constant(15 : i32) : i32
      %thread = rocdl.workitem.id.x : i32
      %is_first = llvm.icmp "eq" %thread, %zero : i32
      %row = llvm.and %thread, %fifteen : i32
      %block = rocdl.workgroup.id.x : i32
      %offset = llvm.mul %block, %four : i32
      %same = rocdl.readfirstlane %n : i32
      %most = llvm.intr.smax(%same, %one) : (i32, i32) -> i32
      // A division is not repeated, but it is half of what it is extended to.
      %part = llvm.udiv %same, %three : i32
      %wide = llvm.zext %part : i32 to i64
      %loaded = llvm.load %q : !llvm.ptr<1> -> i32
      %bound = llvm.add %loaded, %one : i32
      llvm.br ^outer(%zero : i32)
    ^outer(%i: i32):
      llvm.br ^loop(%zero : i32)
    ^loop(%x: i32):
      LARGE
      llvm.store volatile %row, %q : i32, !llvm.ptr<1>
      llvm.store volatile %bound, %q : i32, !llvm.ptr<1>
      %y = llvm.add %x, %one : i32
      %more = llvm.icmp "slt" %y, %n : i32
      llvm.cond_br %more, ^loop(%y : i32), ^after
    // CHECK:       store volatile
    // CHECK:       br i1
    // The thread's number is known to be small.
    // CHECK-DAG:   %[[ANY:.*]] = call i32 asm sideeffect "", "=v,0"(i32 %[[THREAD]])
    // CHECK-DAG:   %[[T:.*]] = and i32 %[[ANY]], 1023
    // CHECK-DAG:   %[[FIRST:.*]] = icmp eq i32 %[[T]], 0
    // What the large loop uses, too, is in a register; it is compared anew.
    // CHECK-DAG:   %[[R:.*]] = call i32 asm sideeffect "", "=v,0"(i32 %[[ROW]])
    // CHECK-DAG:   %[[FEW:.*]] = icmp slt i32 %[[R]], 4
    // What lanes have in common is compared for all of them together.
    // CHECK-DAG:   %[[ANYBOUND:.*]] = call i32 asm sideeffect "", "=v,0"(i32 %[[BOUND]])
    // CHECK-DAG:   %[[UPTO:.*]] = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %[[ANYBOUND]])
    // CHECK-DAG:   %[[B:.*]] = call i32 asm sideeffect "", "=s,0"(i32 %[[BLOCK]])
    // CHECK-DAG:   %[[OFFSET:.*]] = mul i32 %[[B]], 4
    // CHECK-DAG:   %[[S:.*]] = call i32 asm sideeffect "", "=s,0"(i32 %[[SAME]])
    // CHECK-DAG:   %[[MOST:.*]] = call i32 @llvm.smax.i32(i32 %[[S]], i32 1)
    // CHECK-DAG:   %[[P:.*]] = call i32 asm sideeffect "", "=s,0"(i32 %[[PART]])
    // CHECK-DAG:   %[[WIDE:.*]] = zext i32 %[[P]] to i64
    // CHECK:       %[[SUM:.*]] = add i32 %[[OFFSET]], %[[MOST]]
    // CHECK:       %[[ALL:.*]] = zext i32 %[[SUM]] to i64
    // CHECK:       add i64 %[[ALL]], %[[WIDE]]
    // CHECK:       %[[BOTH:.*]] = and i1 %[[FIRST]], %[[FEW]]
    // CHECK:       select i1 %[[BOTH]]
    // CHECK:       %[[FAR:.*]] = icmp slt i32 %[[UPTO]], 4
    // CHECK:       select i1 %[[FAR]]
    // The comparison's mask is made after the large loop, too.
    // ASM-LABEL:   pieces:
    // ASM-NOT:     v_cmp_
    // ASM-COUNT-102: global_store_dword
    // ASM:         v_cmp_eq_u32
    // ASM:         s_endpgm
    ^after:
      %is_few = llvm.icmp "slt" %row, %four : i32
      %sum = llvm.add %offset, %most : i32
      %all = llvm.zext %sum : i32 to i64
      %what = llvm.add %all, %wide : i64
      %both = llvm.and %is_first, %is_few : i1
      %own = llvm.select %both, %what, %none : i1, i64
      llvm.store volatile %own, %q : i64, !llvm.ptr<1>
      %is_far = llvm.icmp "slt" %bound, %four : i32
      %other = llvm.select %is_far, %what, %none : i1, i64
      llvm.store volatile %other, %q : i64, !llvm.ptr<1>
      %j = llvm.add %i, %one : i32
      %again = llvm.icmp "slt" %j, %n : i32
      llvm.cond_br %again, ^outer(%j : i32), ^done
    ^done:
      llvm.return
    }
  }
}
