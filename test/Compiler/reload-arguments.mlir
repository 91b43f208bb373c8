// What comes after a large loop loads its arguments there, on AMD's chips: they are in
// no registers in the loop. Arithmetic on them alone is repeated there.
// RUN: %python -c "import sys; print(open(sys.argv[1]).read().replace('LAR' + 'GE', 'llvm.store volatile %%x, %%p : i32, !llvm.ptr<1>\n' * int(sys.argv[2])))" %s 100 > %t.mlir
// RUN: kvbuf-compile %t.mlir --emit=llvm -o - | FileCheck %s
// RUN: kvbuf-compile %t.mlir --emit=asm -o - | FileCheck %s --check-prefix=ASM

// A small loop leaves them their registers.
// RUN: %python -c "import sys; print(open(sys.argv[1]).read().replace('LAR' + 'GE', 'llvm.store volatile %%x, %%p : i32, !llvm.ptr<1>\n' * int(sys.argv[2])))" %s 10 > %t.mlir
// RUN: kvbuf-compile %t.mlir --emit=llvm -o - | FileCheck %s --check-prefix=SMALL

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @kernels {
    // CHECK:      define amdgpu_kernel void @sums(
    // The bound is needed in the first block, and there as it is.
    // CHECK-NOT:  kernarg.segment.ptr
    // CHECK:      icmp slt i32 0, %2
    // SMALL-NOT:  kernarg.segment.ptr
    llvm.func @sums(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %n: i32, %stride: i64, %factor: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [64, 1, 1],
          grid = [batch, 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "p">, <pointer "q">, <size batch>, <stride "q", dim = 0>, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"p" : i32[batch], write>,
          #kvbuffer.tensor<"q" : i32[batch], write>]} {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %two = llvm.mlir.constant(2 : i64) : i64
      %twice = llvm.mul %stride, %two : i64
      %any = llvm.icmp "slt" %zero, %n : i32
      llvm.cond_br %any, ^loop(%zero : i32), ^done
    // The loop has those of the start.
    // CHECK:      store volatile i32 %{{.*}}, ptr addrspace(1) %0
    ^loop(%x: i32):
      LARGE
      %y = llvm.add %x, %one : i32
      %more = llvm.icmp "slt" %y, %n : i32
      llvm.cond_br %more, ^loop(%y : i32), ^done
    // 0: p, 8: q, 16: n, 24: stride, 32: factor.
    // CHECK:      %[[SEGMENT:.*]] = call {{.*}}@llvm.amdgcn.kernarg.segment.ptr()
    // CHECK-NEXT: %[[AFTER:.*]] = call ptr addrspace(4) asm sideeffect "", "=s,0"(ptr addrspace(4) %[[SEGMENT]])
    // CHECK-DAG:  %[[Q:.*]] = getelementptr inbounds i8, ptr addrspace(4) %[[AFTER]], i64 8
    // CHECK-DAG:  %[[STRIDE:.*]] = getelementptr inbounds i8, ptr addrspace(4) %[[AFTER]], i64 24
    // CHECK-DAG:  %[[FACTOR:.*]] = getelementptr inbounds i8, ptr addrspace(4) %[[AFTER]], i64 32
    // CHECK-DAG:  load ptr addrspace(1), ptr addrspace(4) %[[Q]], align 8, !invariant.load
    // CHECK-DAG:  %[[S:.*]] = load i64, ptr addrspace(4) %[[STRIDE]], align 8, !invariant.load
    // CHECK-DAG:  load i32, ptr addrspace(4) %[[FACTOR]], align 16, !invariant.load
    // CHECK-DAG:  mul i64 %[[S]], 2
    // CHECK:      ret void
    // ASM:        s_cbranch_scc1 .LBB0_2
    // ASM-NEXT:   .LBB0_3
    // ASM-NOT:    s_endpgm
    // ASM-DAG:    s_load_dwordx2 {{.*}}, 0x18
    // ASM-DAG:    s_load_dwordx2 {{.*}}, 0x8
    // ASM-DAG:    s_load_dword {{.*}}, 0x20
    // ASM:        s_endpgm
    ^done:
      %at = llvm.getelementptr %q[%twice] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
      llvm.store %factor, %at : i32, !llvm.ptr<1>
      llvm.return
    }
  }
}
