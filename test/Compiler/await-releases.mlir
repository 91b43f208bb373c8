// A release at a scope wider than a block waits for the write-back of L2 on AMD's
// chips, where LLVM's backend drops the wait: a fence, a wait, and an operation that
// does not release. What is a block's own, or only acquires, stays as it is.
// RUN: kvbuf-compile %s --emit=llvm -o - | FileCheck %s
// RUN: kvbuf-compile %s --emit=asm -o - | FileCheck %s --check-prefix=ASM
// RUN: sed 's/gfx942/gfx950/' %s | kvbuf-compile - --emit=asm -o - | FileCheck %s --check-prefix=ASM
// The code object is checked once more.
// RUN: %if ld.lld %{ kvbuf-compile %s -o %t.kvbuf %}
// RUN: %if ld.lld %{ sed 's/gfx942/gfx950/' %s | kvbuf-compile - -o %t.kvbuf %}

module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @kernels {
    llvm.mlir.global internal @lds() {addr_space = 3 : i32} : i32

    // A function that a kernel calls, too.
    // CHECK-LABEL: define void @called(
    // CHECK:         fence syncscope("agent") release
    // CHECK-NEXT:    call void @llvm.amdgcn.s.waitcnt(i32 3952)
    // CHECK-NEXT:    store atomic i32 1, ptr addrspace(1) %{{.*}} syncscope("agent") monotonic
    // ASM-LABEL:   called:
    // ASM:           buffer_wbl2 sc1
    // ASM-NEXT:      s_waitcnt vmcnt(0)
    // ASM:           global_store_dword {{.*}} sc1
    llvm.func @called(%o: !llvm.ptr<1>) attributes {passthrough = ["noinline"]} {
      %one = llvm.mlir.constant(1 : i32) : i32
      llvm.store %one, %o atomic syncscope("agent") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
      llvm.return
    }

    // CHECK-LABEL: define amdgpu_kernel void @count(
    // ASM-LABEL:   count:
    llvm.func @count(%q: !llvm.ptr<1>, %o: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [64, 1, 1],
          grid = [ceildiv(batch, 64), 1, 1],
          dynamic_shared_bytes = 0,
          args = [<pointer "q">, <pointer "o">, <size batch>]>,
        kvbuffer.tensors = [
          #kvbuffer.tensor<"q" : i32[batch], read>,
          #kvbuffer.tensor<"o" : i32[batch], write>]} {
      %one = llvm.mlir.constant(1 : i32) : i32
      %two = llvm.mlir.constant(2 : i32) : i32
      %lds = llvm.mlir.addressof @lds : !llvm.ptr<3>

      // An addition of release, one of both orders, and one of the whole system.
      // CHECK:      fence syncscope("agent") release
      // CHECK-NEXT: call void @llvm.amdgcn.s.waitcnt(i32 3952)
      // CHECK-NEXT: atomicrmw add {{.*}} syncscope("agent") monotonic
      // ASM:        buffer_wbl2 sc1
      // ASM-NOT:    {{_(atomic|store)_}}
      // ASM:        s_waitcnt vmcnt(0)
      // ASM:        global_atomic_add
      %a = llvm.atomicrmw add %o, %one syncscope("agent") release : !llvm.ptr<1>, i32
      // CHECK-NEXT: fence syncscope("agent") release
      // CHECK-NEXT: call void @llvm.amdgcn.s.waitcnt(i32 3952)
      // CHECK-NEXT: atomicrmw sub {{.*}} syncscope("agent") acquire
      // ASM:        buffer_wbl2 sc1
      // ASM-NOT:    {{_(atomic|store)_}}
      // ASM:        s_waitcnt vmcnt(0)
      // ASM:        global_atomic_sub
      // ASM:        s_waitcnt vmcnt(0)
      // ASM-NEXT:   buffer_inv sc1
      %b = llvm.atomicrmw sub %o, %a syncscope("agent") acq_rel : !llvm.ptr<1>, i32
      // CHECK-NEXT: fence release
      // CHECK-NEXT: call void @llvm.amdgcn.s.waitcnt(i32 3952)
      // CHECK-NEXT: atomicrmw xchg {{.*}} acquire
      // ASM:        buffer_wbl2 sc0 sc1
      // ASM-NOT:    {{_(atomic|store)_}}
      // ASM:        s_waitcnt vmcnt(0)
      // ASM:        global_atomic_swap
      %c = llvm.atomicrmw xchg %o, %b seq_cst : !llvm.ptr<1>, i32

      // An exchange that releases where it happens, or in its total order.
      // CHECK-NEXT: fence syncscope("agent") release
      // CHECK-NEXT: call void @llvm.amdgcn.s.waitcnt(i32 3952)
      // CHECK-NEXT: cmpxchg {{.*}} syncscope("agent") monotonic monotonic
      // ASM:        buffer_wbl2 sc1
      // ASM-NOT:    {{_(atomic|store)_}}
      // ASM:        s_waitcnt vmcnt(0)
      // ASM:        global_atomic_cmpswap
      %d = llvm.cmpxchg %o, %c, %one syncscope("agent") release monotonic : !llvm.ptr<1>, i32
      // CHECK-NEXT: fence syncscope("agent") release
      // CHECK-NEXT: call void @llvm.amdgcn.s.waitcnt(i32 3952)
      // CHECK-NEXT: cmpxchg {{.*}} syncscope("agent") monotonic acquire
      %e = llvm.cmpxchg %o, %one, %two syncscope("agent") monotonic seq_cst : !llvm.ptr<1>, i32

      // Fences: the release of one of both orders is awaited before it acquires.
      // CHECK-NEXT: fence syncscope("agent") release
      // CHECK-NEXT: call void @llvm.amdgcn.s.waitcnt(i32 3952)
      // CHECK-NEXT: fence syncscope("agent") acquire
      llvm.fence syncscope("agent") acq_rel
      // CHECK-NEXT: fence syncscope("agent-one-as") release
      // CHECK-NEXT: call void @llvm.amdgcn.s.waitcnt(i32 3952)
      // CHECK-NEXT: atomicrmw add
      llvm.fence syncscope("agent-one-as") release
      %f = llvm.atomicrmw add %o, %one syncscope("agent") monotonic : !llvm.ptr<1>, i32
      // Already awaited.
      // CHECK-NEXT: fence syncscope("agent") release
      // CHECK-NEXT: call void @llvm.amdgcn.s.waitcnt(i32 3952)
      // CHECK-NEXT: atomicrmw add
      llvm.fence syncscope("agent") release
      rocdl.s.waitcnt 3952
      %g = llvm.atomicrmw add %o, %f syncscope("agent") monotonic : !llvm.ptr<1>, i32

      // Nothing to write back: of a block, of LDS, of an acquire, without an order.
      // CHECK-NEXT: atomicrmw add {{.*}} syncscope("workgroup") acq_rel
      // CHECK-NEXT: fence syncscope("workgroup") seq_cst
      // CHECK-NEXT: fence syncscope("wavefront-one-as") release
      // CHECK-NEXT: atomicrmw add ptr addrspace(3) {{.*}} syncscope("agent") acq_rel
      // CHECK-NEXT: fence syncscope("agent") release, !mmra
      // CHECK-NEXT: atomicrmw add {{.*}} syncscope("agent") acquire
      // CHECK-NEXT: fence syncscope("agent") acquire
      // CHECK-NEXT: atomicrmw add {{.*}} syncscope("agent") monotonic
      %h = llvm.atomicrmw add %o, %g syncscope("workgroup") acq_rel : !llvm.ptr<1>, i32
      llvm.fence syncscope("workgroup") seq_cst
      llvm.fence syncscope("wavefront-one-as") release
      %i = llvm.atomicrmw add %lds, %h syncscope("agent") acq_rel : !llvm.ptr<3>, i32
      llvm.fence syncscope("agent") release {llvm.mmra = #llvm.mmra_tag<"amdgpu-synchronize-as":"local">}
      %j = llvm.atomicrmw add %o, %i syncscope("agent") acquire : !llvm.ptr<1>, i32
      llvm.fence syncscope("agent") acquire
      %k = llvm.atomicrmw add %o, %j syncscope("agent") monotonic : !llvm.ptr<1>, i32
      llvm.call @called(%o) : (!llvm.ptr<1>) -> ()
      llvm.return
    }
  }
}
