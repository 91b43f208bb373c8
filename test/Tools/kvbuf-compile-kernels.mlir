// Kernels of a module go into one artifact, and a launch runs them one after the
// other. Tensors of one name are one tensor: what the first kernel writes and the
// second one reads is read and written.
// RUN: kvbuf-compile %s --ptxas=none -o %t.kvbuf
// RUN: kvbuf-inspect %t.kvbuf | FileCheck %s
// CHECK: {{^}}tensors
// CHECK-NEXT: x f32 [n], read{{$}}
// CHECK-NEXT: t f32 [n], read and written
// CHECK-NEXT: y f32 [n], written
// RUN: %python %S/Inputs/two-kernels.py %t.kvbuf t

// The same on waves of 64 lanes; `gpu.global_id` is block times threads plus thread.
// RUN: %if ld.lld %{ sed 's/"sm_80"/"gfx950"/; s/32: 32/32: 64/; s/(n, 32)/(n, 64)/' %s | kvbuf-compile - -o %t.amd.kvbuf %}
// RUN: %if ld.lld %{ %python %S/Inputs/two-kernels.py %t.amd.kvbuf t %}

// Or memory that the launch provides.
// RUN: sed 's/kvbuffer.name = "t"/kvbuffer.access = "workspace", &/' %s | kvbuf-compile - --ptxas=none -o %t.kvbuf
// RUN: kvbuf-inspect %t.kvbuf | FileCheck %s --check-prefix=WORKSPACE
// WORKSPACE: t f32 [n], workspace of the launch
// RUN: %python %S/Inputs/two-kernels.py %t.kvbuf

// Tensors of one name that are two, by their shapes, or by who provides them.
// RUN: sed '/@second/s/shape = \["n"\]}, %%y/shape = ["m"]}, %%y/' %s | not kvbuf-compile - --ptxas=none -o %t.none 2>&1 | FileCheck %s --check-prefix=SHAPE
// SHAPE: error: 'llvm.func' op describes tensor "t" as #kvbuffer.tensor<"t" : f32[m], read>, another kernel of the module as #kvbuffer.tensor<"t" : f32[n], write>; expected one element type and shape, and either memory that all their launches get or a tensor of the caller's, or a gpu.module for each kernel that is launched by itself
// RUN: sed '/@second/s/kvbuffer.name = "t"/kvbuffer.access = "workspace", &/' %s | not kvbuf-compile - --ptxas=none -o %t.none 2>&1 | FileCheck %s --check-prefix=WHOSE
// WHOSE: error: 'llvm.func' op describes tensor "t" as #kvbuffer.tensor<"t" : f32[n], workspace>, another

module attributes {kvbuffer.target = "sm_80"} {
  gpu.module @kernels {
    gpu.func @first(%x: memref<?xf32> {kvbuffer.name = "x", kvbuffer.shape = ["n"]}, %t: memref<?xf32> {kvbuffer.name = "t", kvbuffer.shape = ["n"]}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.grid = [#kvbuffer.size<ceildiv(n, 32)>, 1, 1], kvbuffer.phase = #kvbuffer.phase<thread>} {
      %i = gpu.global_id x
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?xf32>
      %in = arith.cmpi ult, %i, %n : index
      scf.if %in {
        %value = memref.load %x[%i] : memref<?xf32>
        %twice = arith.addf %value, %value : f32
        memref.store %twice, %t[%i] : memref<?xf32>
      }
      gpu.return
    }
    gpu.func @second(%t: memref<?xf32> {kvbuffer.name = "t", kvbuffer.shape = ["n"]}, %y: memref<?xf32> {kvbuffer.name = "y", kvbuffer.shape = ["n"]}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, kvbuffer.grid = [#kvbuffer.size<ceildiv(n, 32)>, 1, 1], kvbuffer.phase = #kvbuffer.phase<thread>} {
      %i = gpu.global_id x
      %c0 = arith.constant 0 : index
      %n = memref.dim %y, %c0 : memref<?xf32>
      %in = arith.cmpi ult, %i, %n : index
      scf.if %in {
        %value = memref.load %t[%i] : memref<?xf32>
        %twice = arith.addf %value, %value : f32
        memref.store %twice, %y[%i] : memref<?xf32>
      }
      gpu.return
    }
  }
}
