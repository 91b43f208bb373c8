// More programs in upstream dialects for AMD's GPUs, each with what it has to print,
// or with a fault that is to be found (amd.mlir has the first ones).
//
// REQUIRES: mlir-runner
// RUN: split-file %s %t
// RUN: %rocdl gfx942 %t/rmw.mlir | %mlir_runner | FileCheck %t/rmw.mlir
// RUN: %rocdl gfx1100 %t/rmw.mlir | %mlir_runner | FileCheck %t/rmw.mlir
// Bitcode does not name its chip, and formats of 8-bit floats differ.
// RUN: %rocdl gfx950 %t/fp8.mlir > %t.fp8.mlir
// RUN: env KVBUF_EMULATOR_OPTIONS='{"chip": "gfx950"}' %mlir_runner %t.fp8.mlir | FileCheck %t/fp8.mlir
// RUN: not %mlir_runner %t.fp8.mlir 2>&1 | FileCheck %t/fp8.mlir --check-prefix=UNNAMED
// RUN: %rocdl gfx942 %t/gather.mlir | %mlir_runner | FileCheck %t/gather.mlir
// RUN: %rocdl gfx950 %t/swap.mlir | %mlir_runner | FileCheck %t/swap.mlir
// RUN: %rocdl gfx942 %t/integers.mlir | %mlir_runner | FileCheck %t/integers.mlir
// RUN: %rocdl gfx942 %t/softmax.mlir | %mlir_runner | FileCheck %t/softmax.mlir
// RUN: %rocdl gfx950 %t/gemm.mlir | %mlir_runner | FileCheck %t/gemm.mlir
// RUN: %rocdl gfx942 %t/unwaited.mlir | not %mlir_runner 2>&1 | FileCheck %t/unwaited.mlir
// RUN: %rocdl gfx942 %t/reused.mlir | not %mlir_runner 2>&1 | FileCheck %t/reused.mlir

//--- rmw.mlir
// memref.generic_atomic_rmw: x -> 2 x + 1, 5 times in each of two blocks, and the
// largest of 64 numbers in LDS.
// CHECK: [1023,  63]
func.func @main() {
  %c1 = arith.constant 1 : index
  %b = arith.constant 2 : index
  %n = arith.constant 64 : index
  %c0 = arith.constant 0 : index
  %m = memref.alloc() : memref<2xi32>
  %z = arith.constant 0 : i32
  memref.store %z, %m[%c0] : memref<2xi32>
  memref.store %z, %m[%c1] : memref<2xi32>
  %u = memref.cast %m : memref<2xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %b, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<1xi32, #gpu.address_space<workgroup>>) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i5 = arith.constant 5 : index
    %one = arith.constant 1 : i32
    %low = arith.constant -1 : i32
    %few = arith.cmpi ult, %tx, %i5 : index
    scf.if %few {
      %r = memref.generic_atomic_rmw %m[%i0] : memref<2xi32> {
      ^bb0(%x: i32):
        %y = arith.addi %x, %x : i32
        %w = arith.addi %y, %one : i32
        memref.atomic_yield %w : i32
      }
    }
    %first = arith.cmpi eq, %tx, %i0 : index
    scf.if %first {
      memref.store %low, %s[%i0] : memref<1xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %v = arith.index_cast %tx : index to i32
    %r = memref.generic_atomic_rmw %s[%i0] : memref<1xi32, #gpu.address_space<workgroup>> {
    ^bb0(%x: i32):
      %y = arith.maxsi %x, %v : i32
      memref.atomic_yield %y : i32
    }
    gpu.barrier
    %block = arith.cmpi eq, %bx, %i1 : index
    %both = arith.andi %first, %block : i1
    scf.if %both {
      %y = memref.load %s[%i0] : memref<1xi32, #gpu.address_space<workgroup>>
      memref.store %y, %m[%i1] : memref<2xi32>
    }
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- fp8.mlir
// 1.3 and 300 rounded to f8E4M3FN (1.25, 288), 1000 is held at 448 by the host's
// own clamp; and back.
// CHECK: [1.25,  288,  -0.5,  448]
// UNNAMED: error: the emulator does not execute 'llvm.call_intrinsic': 8-bit floats on {{.*}}, whose format is not known
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<4xf32>
  %in = memref.alloc() : memref<4xf32>
  %v = arith.constant dense<[1.3, 300.0, -0.5, 1000.0]> : vector<4xf32>
  vector.store %v, %in[%c0] : memref<4xf32>, vector<4xf32>
  %u = memref.cast %m : memref<4xf32> to memref<*xf32>
  %ui = memref.cast %in : memref<4xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.host_register %ui : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %most = arith.constant 448.0 : f32
    %x0 = memref.load %in[%i0] : memref<4xf32>
    %x1 = memref.load %in[%i1] : memref<4xf32>
    %x2 = memref.load %in[%i2] : memref<4xf32>
    %x3 = memref.load %in[%i3] : memref<4xf32>
    %y3 = arith.minnumf %x3, %most : f32
    %p = amdgpu.packed_trunc_2xfp8 %x0, %x1 into undef[word 0] : f32 to vector<4xf8E4M3FN>
    %q = amdgpu.packed_trunc_2xfp8 %x2, %y3 into %p[word 1] : f32 to vector<4xf8E4M3FN> into vector<4xf8E4M3FN>
    %r0 = amdgpu.ext_packed_fp8 %q[0] : vector<4xf8E4M3FN> to f32
    %r1 = amdgpu.ext_packed_fp8 %q[1] : vector<4xf8E4M3FN> to f32
    %r2 = amdgpu.ext_packed_fp8 %q[2] : vector<4xf8E4M3FN> to f32
    %r3 = amdgpu.ext_packed_fp8 %q[3] : vector<4xf8E4M3FN> to f32
    memref.store %r0, %m[%i0] : memref<4xf32>
    memref.store %r1, %m[%i1] : memref<4xf32>
    memref.store %r2, %m[%i2] : memref<4xf32>
    memref.store %r3, %m[%i3] : memref<4xf32>
    gpu.terminator
  }
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- gather.mlir
// A copy into LDS that no register sees: lanes take words in reverse order, and LDS has
// them by lane.
// CHECK: [63,  62,  61,  60]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %a = memref.alloc() : memref<64xi32>
  %r = memref.alloc() : memref<4xi32>
  scf.for %i = %c0 to %n step %c1 {
    %x = arith.index_cast %i : index to i32
    memref.store %x, %a[%i] : memref<64xi32>
  }
  %ua = memref.cast %a : memref<64xi32> to memref<*xi32>
  %u = memref.cast %r : memref<4xi32> to memref<*xi32>
  gpu.host_register %ua : memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<64xi32, #gpu.address_space<workgroup>>) {
    %i0 = arith.constant 0 : index
    %i4 = arith.constant 4 : index
    %k63 = arith.constant 63 : index
    %from = arith.subi %k63, %tx : index
    amdgpu.gather_to_lds %a[%from], %s[%i0] : i32, memref<64xi32>, memref<64xi32, #gpu.address_space<workgroup>>
    amdgpu.memory_counter_wait load(0)
    gpu.barrier
    %few = arith.cmpi ult, %tx, %i4 : index
    scf.if %few {
      %x = memref.load %s[%tx] : memref<64xi32, #gpu.address_space<workgroup>>
      memref.store %x, %r[%tx] : memref<4xi32>
    }
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- unwaited.mlir
// The same with no wait for the copy.
// CHECK: error: 'llvm.load' by thread 0 {{.*}}read of bytes an asynchronous copy still owes
// CHECK: note: {{.*}}the copy
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %a = memref.alloc() : memref<64xi32>
  %z = arith.constant 0 : i32
  linalg.fill ins(%z : i32) outs(%a : memref<64xi32>)
  %ua = memref.cast %a : memref<64xi32> to memref<*xi32>
  gpu.host_register %ua : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<64xi32, #gpu.address_space<workgroup>>) {
    %i0 = arith.constant 0 : index
    amdgpu.gather_to_lds %a[%tx], %s[%i0] : i32, memref<64xi32>, memref<64xi32, #gpu.address_space<workgroup>>
    %x = memref.load %s[%tx] : memref<64xi32, #gpu.address_space<workgroup>>
    memref.store %x, %a[%tx] : memref<64xi32>
    gpu.terminator
  }
  return
}

//--- reused.mlir
// Two waves pass numbers through one buffer in LDS; of the two barriers of a turn the
// second is missing.
// CHECK: error: 'llvm.store' by thread {{.*}}shared-memory race: write of {{.*}} with no barrier after the read
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 128 : index
  %m = memref.alloc() : memref<128xf32>
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%m : memref<128xf32>)
  %u = memref.cast %m : memref<128xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<128xf32, #gpu.address_space<workgroup>>) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i3 = arith.constant 3 : index
    %k127 = arith.constant 127 : index
    %other = arith.subi %k127, %tx : index
    %x0 = memref.load %m[%tx] : memref<128xf32>
    %x = scf.for %i = %i0 to %i3 step %i1 iter_args(%v = %x0) -> f32 {
      memref.store %v, %s[%tx] : memref<128xf32, #gpu.address_space<workgroup>>
      amdgpu.lds_barrier
      %y = memref.load %s[%other] : memref<128xf32, #gpu.address_space<workgroup>>
      scf.yield %y : f32
    }
    memref.store %x, %m[%tx] : memref<128xf32>
    gpu.terminator
  }
  return
}

//--- swap.mlir
// Odd and even rows of 16 lanes change places, then halves of the wave.
// CHECK: [16,  0,  48,  32,  32,  48,  0,  16]
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %r = memref.alloc() : memref<8xi32>
  %u = memref.cast %r : memref<8xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %i4 = arith.constant 4 : index
    %k16 = arith.constant 16 : index
    %v = arith.index_cast %tx : index to i32
    %a = amdgpu.permlane_swap %v 16 : i32
    %b = amdgpu.permlane_swap %v 32 : i32
    %l = arith.remui %tx, %k16 : index
    %row = arith.divui %tx, %k16 : index
    %row4 = arith.addi %row, %i4 : index
    %first = arith.cmpi eq, %l, %i0 : index
    scf.if %first {
      memref.store %a, %r[%row] : memref<8xi32>
      memref.store %b, %r[%row4] : memref<8xi32>
    }
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- integers.mlir
// Integers of many widths. 200 + 100 in 8 bits is 44 and carries; -100 * 7 in 8 bits is
// -700: low 68, high -3; 5 in 16 bits has 13 leading zeros, 40 in 8 bits 3 trailing
// ones' places; the bits of 1 of 8 counted; ceil(-7 / 2); 3 ^ 4 by math.ipowi.
// CHECK: [44,  1,  68,  -3,  13,  3,  1,  -3,  81,  1]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<10xi32>
  %in = memref.alloc() : memref<8xi32>
  %v = arith.constant dense<[200, 100, -100, 7, 5, 40, -7, 3]> : vector<8xi32>
  vector.store %v, %in[%c0] : memref<8xi32>, vector<8xi32>
  %u = memref.cast %m : memref<10xi32> to memref<*xi32>
  %ui = memref.cast %in : memref<8xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.host_register %ui : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %i0 = arith.constant 0 : index
    %x = vector.load %in[%i0] : memref<8xi32>, vector<8xi32>
    %x0 = vector.extract %x[0] : i32 from vector<8xi32>
    %x1 = vector.extract %x[1] : i32 from vector<8xi32>
    %x2 = vector.extract %x[2] : i32 from vector<8xi32>
    %x3 = vector.extract %x[3] : i32 from vector<8xi32>
    %x4 = vector.extract %x[4] : i32 from vector<8xi32>
    %x5 = vector.extract %x[5] : i32 from vector<8xi32>
    %x6 = vector.extract %x[6] : i32 from vector<8xi32>
    %x7 = vector.extract %x[7] : i32 from vector<8xi32>
    %b0 = arith.trunci %x0 : i32 to i8
    %b1 = arith.trunci %x1 : i32 to i8
    %s, %carry = arith.addui_extended %b0, %b1 : i8, i1
    %r0 = arith.extui %s : i8 to i32
    %r1 = arith.extui %carry : i1 to i32
    %b2 = arith.trunci %x2 : i32 to i8
    %b3 = arith.trunci %x3 : i32 to i8
    %low, %high = arith.mulsi_extended %b2, %b3 : i8
    %r2 = arith.extui %low : i8 to i32
    %r3 = arith.extsi %high : i8 to i32
    %h4 = arith.trunci %x4 : i32 to i16
    %lz = math.ctlz %h4 : i16
    %r4 = arith.extui %lz : i16 to i32
    %b5 = arith.trunci %x5 : i32 to i8
    %tzero = math.cttz %b5 : i8
    %r5 = arith.extui %tzero : i8 to i32
    %one = arith.constant 1 : i8
    %pop = math.ctpop %one : i8
    %r6 = arith.extui %pop : i8 to i32
    %two = arith.constant 2 : i32
    %r7 = arith.ceildivsi %x6, %two : i32
    %w = arith.extsi %x7 : i32 to i64
    %w2 = arith.muli %w, %w : i64
    %w4 = arith.muli %w2, %w2 : i64
    %r8 = arith.trunci %w4 : i64 to i32
    %neg = arith.cmpi slt, %b2, %b3 : i8
    %r9 = arith.extui %neg : i1 to i32
    %y = vector.from_elements %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9 : vector<10xi32>
    vector.store %y, %m[%i0] : memref<10xi32>, vector<10xi32>
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- softmax.mlir
// A softmax of 64 numbers, one a lane: 1, -inf, 1, -inf, ...: each second lane has 1/32.
// CHECK: [0.03125,  0,  0.03125,  0]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %m = memref.alloc() : memref<64xf32>
  %two = arith.constant 2 : index
  %one = arith.constant 1.0 : f32
  %none = arith.constant 0xFF800000 : f32
  scf.for %i = %c0 to %n step %c1 {
    %r = arith.remui %i, %two : index
    %even = arith.cmpi eq, %r, %c0 : index
    %x = arith.select %even, %one, %none : f32
    memref.store %x, %m[%i] : memref<64xf32>
  }
  %u = memref.cast %m : memref<64xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %x = memref.load %m[%tx] : memref<64xf32>
    %most = gpu.all_reduce maxnumf %x uniform {} : (f32) -> f32
    %d = arith.subf %x, %most : f32
    %e = math.exp %d : f32
    %sum = gpu.all_reduce add %e uniform {} : (f32) -> f32
    %p = arith.divf %e, %sum : f32
    memref.store %p, %m[%tx] : memref<64xf32>
    gpu.terminator
  }
  %four = memref.alloc() : memref<4xf32>
  %p4 = vector.load %m[%c0] : memref<64xf32>, vector<4xf32>
  vector.store %p4, %four[%c0] : memref<4xf32>, vector<4xf32>
  %u4 = memref.cast %four : memref<4xf32> to memref<*xf32>
  call @printMemrefF32(%u4) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- gemm.mlir
// C = A B with 16 x 16 x 32 products of bf16: A[i][k] = i - k, B[k][j] = k + 2 j, whose
// numbers bf16 holds exactly; the host counts elements that differ.
// CHECK: [0]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %n = arith.constant 64 : index
  %a = memref.alloc() : memref<16x32xbf16>
  %b = memref.alloc() : memref<32x16xbf16>
  %c = memref.alloc() : memref<16x16xf32>
  %nan = arith.constant 0x7FC00000 : f32
  linalg.fill ins(%nan : f32) outs(%c : memref<16x16xf32>)
  // bf16 by its bits: the host has no arithmetic of it.
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %k = %c0 to %c32 step %c1 {
      %x = arith.subi %i, %k : index
      %x32 = arith.index_cast %x : index to i32
      %xf = arith.sitofp %x32 : i32 to f32
      %xb = arith.bitcast %xf : f32 to i32
      %y0 = arith.muli %i, %c2 : index
      %y = arith.addi %y0, %k : index
      %y32 = arith.index_cast %y : index to i32
      %yf = arith.sitofp %y32 : i32 to f32
      %yb = arith.bitcast %yf : f32 to i32
      %s = arith.constant 16 : i32
      %xs = arith.shrui %xb, %s : i32
      %ys = arith.shrui %yb, %s : i32
      %xh = arith.trunci %xs : i32 to i16
      %yh = arith.trunci %ys : i32 to i16
      %x16 = arith.bitcast %xh : i16 to bf16
      %y16 = arith.bitcast %yh : i16 to bf16
      memref.store %x16, %a[%i, %k] : memref<16x32xbf16>
      memref.store %y16, %b[%k, %i] : memref<32x16xbf16>
    }
  }
  %ua = memref.cast %a : memref<16x32xbf16> to memref<*xbf16>
  %ub = memref.cast %b : memref<32x16xbf16> to memref<*xbf16>
  %uc = memref.cast %c : memref<16x16xf32> to memref<*xf32>
  gpu.host_register %ua : memref<*xbf16>
  gpu.host_register %ub : memref<*xbf16>
  gpu.host_register %uc : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%t : memref<16x32xbf16, #gpu.address_space<workgroup>>) {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %k4 = arith.constant 4 : index
    %k8 = arith.constant 8 : index
    %k16 = arith.constant 16 : index
    // B, transposed, through LDS: lane l moves 8 elements of column l mod 16.
    %col = arith.remui %tx, %k16 : index
    %part = arith.divui %tx, %k16 : index
    %k0 = arith.muli %part, %k8 : index
    scf.for %i = %i0 to %k8 step %i1 {
      %k = arith.addi %k0, %i : index
      %x = memref.load %b[%k, %col] : memref<32x16xbf16>
      memref.store %x, %t[%col, %k] : memref<16x32xbf16, #gpu.address_space<workgroup>>
    }
    amdgpu.lds_barrier
    %av = vector.load %a[%col, %k0] : memref<16x32xbf16>, vector<8xbf16>
    %bv = vector.load %t[%col, %k0] : memref<16x32xbf16, #gpu.address_space<workgroup>>, vector<8xbf16>
    %z = arith.constant dense<0.0> : vector<4xf32>
    %d = amdgpu.mfma 16x16x32 %av * %bv + %z blgp = none : vector<8xbf16>, vector<8xbf16>, vector<4xf32>
    %row0 = arith.muli %part, %k4 : index
    scf.for %r = %i0 to %k4 step %i1 {
      %row = arith.addi %row0, %r : index
      %x = vector.extract %d[%r] : f32 from vector<4xf32>
      memref.store %x, %c[%row, %col] : memref<16x16xf32>
    }
    gpu.terminator
  }
  %bad = memref.alloc() : memref<1xi32>
  %zero = arith.constant 0 : i32
  memref.store %zero, %bad[%c0] : memref<1xi32>
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c16 step %c1 {
      %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %c0) -> index {
        %x = arith.subi %i, %k : index
        %y0 = arith.muli %j, %c2 : index
        %y = arith.addi %y0, %k : index
        %p = arith.muli %x, %y : index
        %q = arith.addi %acc, %p : index
        scf.yield %q : index
      }
      %s32 = arith.index_cast %sum : index to i32
      %want = arith.sitofp %s32 : i32 to f32
      %got = memref.load %c[%i, %j] : memref<16x16xf32>
      %differs = arith.cmpf une, %want, %got : f32
      %one = arith.extui %differs : i1 to i32
      %old = memref.load %bad[%c0] : memref<1xi32>
      %new = arith.addi %old, %one : i32
      memref.store %new, %bad[%c0] : memref<1xi32>
    }
  }
  %u = memref.cast %bad : memref<1xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
