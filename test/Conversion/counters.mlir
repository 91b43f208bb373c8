// Counters in LDS: an atomic operation at the scope of a block, with a release in
// front of it, or an acquire behind it.

// DEFINE: %{chip} = gfx942
// DEFINE: %{to} = convert-kvbuffer-to-rocdl
// DEFINE: %{lower} = kvbuf-opt %s --pass-pipeline="builtin.module(kvbuf-choose-target{chip=%{chip}},gpu.module(%{to},canonicalize))"
// RUN: %{lower} | FileCheck %s -DSCOPE=workgroup
// REDEFINE: %{chip} = sm_80
// REDEFINE: %{to} = convert-kvbuffer-to-nvvm
// RUN: %{lower} | FileCheck %s -DSCOPE=block

!words = memref<4xi32, #gpu.address_space<workgroup>>
gpu.module @m {
  // CHECK-LABEL: llvm.func @count
  // CHECK:         llvm.fence syncscope("[[SCOPE]]") release
  // CHECK:         %[[BEFORE:.*]] = llvm.atomicrmw uinc_wrap %{{.*}}, %{{.*}} syncscope("[[SCOPE]]") monotonic : !llvm.ptr<3>, i32
  // CHECK:         %[[NOW:.*]] = llvm.load %{{.*}} atomic syncscope("[[SCOPE]]") monotonic {alignment = 4 : i64} : !llvm.ptr<3> -> i32
  // CHECK:         llvm.fence syncscope("[[SCOPE]]") acquire
  // CHECK:         llvm.add %[[BEFORE]], %[[NOW]]
  gpu.func @count(%words: !words, %i: index, %last: i32, %out: memref<4xi32>) kernel {
    %before = kvbuffer.counter_add %words[%i] upto %last : !words
    %now = kvbuffer.counter_read %words[%i] : !words
    %sum = arith.addi %before, %now : i32
    memref.store %sum, %out[%i] : memref<4xi32>
    gpu.return
  }
}
