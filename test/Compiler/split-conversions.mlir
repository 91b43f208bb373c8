// Conversions of five to seven numbers of f16, which LLVM's AMD backend cannot select,
// are two of four; others stay whole.
// RUN: kvbuf-compile %s --emit=llvm -o - | FileCheck %s
// RUN: kvbuf-compile %s --emit=asm -o - | FileCheck %s --check-prefix=ASM
// RUN: sed -e 's/5x/6x/g' -e 's/ 5]/ 6]/' -e 's/gfx942/gfx950/' %s | kvbuf-compile - --emit=asm -o - | FileCheck %s --check-prefix=ASM
// RUN: sed -e 's/5x/7x/g' -e 's/ 5]/ 7]/' %s | kvbuf-compile - --emit=asm -o - | FileCheck %s --check-prefix=ASM

!x = memref<?x5xf16>
!y = memref<?x5xf32>
module attributes {kvbuffer.target = "gfx942"} {
  gpu.module @kernels {
    // CHECK-LABEL: define amdgpu_kernel void @both(
    // CHECK:         shufflevector <5 x half> %{{.*}}, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
    // CHECK:         fpext <4 x half> %{{.*}} to <4 x float>
    // CHECK:         shufflevector <5 x half> %{{.*}}, <4 x i32> <i32 4, i32 poison, i32 poison, i32 poison>
    // CHECK:         fpext <4 x half> %{{.*}} to <4 x float>
    // CHECK:         shufflevector <4 x float> %{{.*}}, <5 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4>
    // CHECK:         fptrunc <4 x float> %{{.*}} to <4 x half>
    // CHECK:         fptrunc <4 x float> %{{.*}} to <4 x half>
    // CHECK:         fpext <8 x half> %{{.*}} to <8 x float>
    // ASM-LABEL:   both:
    // ASM:           v_cvt_f32_f16
    gpu.func @both(%x: !x {kvbuffer.name = "x", kvbuffer.shape = ["n", 5]},
                   %y: !y {kvbuffer.name = "y", kvbuffer.shape = ["n", 5]},
                   %h: !x {kvbuffer.name = "h", kvbuffer.shape = ["n", 5]},
                   %w: memref<?xf32> {kvbuffer.name = "w", kvbuffer.shape = ["m"]},
                   %e: memref<?xf16> {kvbuffer.name = "e", kvbuffer.shape = ["m"]})
        kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>,
                           known_block_size = array<i32: 64, 1, 1>, kvbuffer.grid = [1, 1, 1]} {
      %zero = arith.constant 0 : index
      %i = gpu.thread_id x
      %v = vector.load %x[%i, %zero] : !x, vector<5xf16>
      %f = arith.extf %v : vector<5xf16> to vector<5xf32>
      vector.store %f, %y[%i, %zero] : !y, vector<5xf32>
      %d = arith.addf %f, %f : vector<5xf32>
      %t = arith.truncf %d : vector<5xf32> to vector<5xf16>
      vector.store %t, %h[%i, %zero] : !x, vector<5xf16>
      %a = vector.load %e[%i] : memref<?xf16>, vector<8xf16>
      %b = arith.extf %a : vector<8xf16> to vector<8xf32>
      vector.store %b, %w[%i] : memref<?xf32>, vector<8xf32>
      gpu.return
    }
  }
}
