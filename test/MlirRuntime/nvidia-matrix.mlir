// Copies in the background and the matrix unit, through MLIR's nvgpu and gpu
// dialects: cp.async, TMA with each swizzle, clusters, wmma, mma.sync, wgmma.
//
// REQUIRES: mlir-runner
// RUN: split-file %s %t
// RUN: %nvvm %t/wmma.mlir | %mlir_runner | FileCheck %t/wmma.mlir
// RUN: %nvvm %t/mma.mlir | %mlir_runner | FileCheck %t/mma.mlir
// RUN: %nvvm %t/cpasync.mlir | %mlir_runner | FileCheck %t/cpasync.mlir
// RUN: %nvvm %t/cluster.mlir | %mlir_runner | FileCheck %t/cluster.mlir
// RUN: %nvvm %t/store.mlir | %mlir_runner | FileCheck %t/store.mlir
// RUN: %nvvm %t/wgmma.mlir | %mlir_runner | FileCheck %t/wgmma.mlir
// RUN: sed -e s/SWIZZLE/none/ -e s/MASK/0/ -e s/COLS/8/g %t/tma.mlir | %nvvm | %mlir_runner | FileCheck %t/tma.mlir
// RUN: sed -e s/SWIZZLE/swizzle_32b/ -e s/MASK/1/ -e s/COLS/8/g %t/tma.mlir | %nvvm | %mlir_runner | FileCheck %t/tma.mlir
// RUN: sed -e s/SWIZZLE/swizzle_64b/ -e s/MASK/3/ -e s/COLS/16/g %t/tma.mlir | %nvvm | %mlir_runner | FileCheck %t/tma.mlir
// RUN: sed -e s/SWIZZLE/swizzle_128b/ -e s/MASK/7/ -e s/COLS/32/g %t/tma.mlir | %nvvm | %mlir_runner | FileCheck %t/tma.mlir

//--- wmma.mlir
// A[i][k] = i + k and B = A transposed: C[i][j] = sum over k of (i + k)(j + k),
// which is 16 i j + 120 (i + j) + 1240.
// CHECK: [1240,   1360,   1480,
// CHECK-NEXT: [1360,   1496,   1632,
// CHECK-NEXT: [1480,   1632,   1784,
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 16 : index
  %w = arith.constant 32 : index
  %a = memref.alloc() : memref<16x16xf16>
  %c = memref.alloc() : memref<16x16xf32>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %k = %c0 to %n step %c1 {
      %s = arith.addi %i, %k : index
      %x = arith.index_cast %s : index to i16
      %f = arith.sitofp %x : i16 to f16
      memref.store %f, %a[%i, %k] : memref<16x16xf16>
    }
  }
  %ua = memref.cast %a : memref<16x16xf16> to memref<*xf16>
  %uc = memref.cast %c : memref<16x16xf32> to memref<*xf32>
  gpu.host_register %ua : memref<*xf16>
  gpu.host_register %uc : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %w, %sy = %c1, %sz = %c1) {
    %k0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %A = gpu.subgroup_mma_load_matrix %a[%k0, %k0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
    %B = gpu.subgroup_mma_load_matrix %a[%k0, %k0] {leadDimension = 16 : index, transpose} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
    %C = gpu.subgroup_mma_constant_matrix %zero : !gpu.mma_matrix<16x16xf32, "COp">
    %D = gpu.subgroup_mma_compute %A, %B, %C : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
    gpu.subgroup_mma_store_matrix %D, %c[%k0, %k0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>
    gpu.terminator
  }
  call @printMemrefF32(%uc) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- mma.mlir
// m8n8k4 of f64: A[i][k] = i + 1, B[k][j] = j + 1, so D[i][j] = 4 (i+1)(j+1);
// and m16n8k16 of i8 with ones everywhere but the accumulator, which is 1.
// CHECK: [4,  8,  17]
func.func @main() {
  %c1 = arith.constant 1 : index
  %w = arith.constant 32 : index
  %m = memref.alloc() : memref<3xf64>
  %u = memref.cast %m : memref<3xf64> to memref<*xf64>
  gpu.host_register %u : memref<*xf64>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %w, %sy = %c1, %sz = %c1) {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %k4 = arith.constant 4 : index
    %g = arith.divui %tx, %k4 : index
    %g1 = arith.addi %g, %k1 : index
    %gi = arith.index_cast %g1 : index to i32
    %gf = arith.sitofp %gi : i32 to f64
    %v = vector.broadcast %gf : f64 to vector<1x1xf64>
    %zero = arith.constant dense<0.0> : vector<1x2xf64>
    %d = nvgpu.mma.sync (%v, %v, %zero) {mmaShape = [8, 8, 4]} : (vector<1x1xf64>, vector<1x1xf64>, vector<1x2xf64>) -> vector<1x2xf64>
    %a8 = arith.constant dense<1> : vector<2x4xi8>
    %b8 = arith.constant dense<1> : vector<1x4xi8>
    %c8 = arith.constant dense<1> : vector<2x2xi32>
    %d8 = nvgpu.mma.sync (%a8, %b8, %c8) {mmaShape = [16, 8, 16]} : (vector<2x4xi8>, vector<1x4xi8>, vector<2x2xi32>) -> vector<2x2xi32>
    %first = arith.cmpi eq, %tx, %k0 : index
    scf.if %first {
      %x = vector.extract %d[0, 0] : f64 from vector<1x2xf64>
      %y = vector.extract %d[0, 1] : f64 from vector<1x2xf64>
      %z = vector.extract %d8[1, 1] : i32 from vector<2x2xi32>
      %zf = arith.sitofp %z : i32 to f64
      memref.store %x, %m[%k0] : memref<3xf64>
      memref.store %y, %m[%k1] : memref<3xf64>
      memref.store %zf, %m[%k2] : memref<3xf64>
    }
    gpu.terminator
  }
  call @printMemrefF64(%u) : (memref<*xf64>) -> ()
  return
}
func.func private @printMemrefF64(memref<*xf64>)

//--- cpasync.mlir
// Of the last copy only 2 of 4 elements come from memory; the others are zero.
// CHECK: [0,  1,  2,  3,  4,  5,  0,  0]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 8 : index
  %two = arith.constant 2 : index
  %a = memref.alloc() : memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  scf.for %i = %c0 to %n step %c1 {
    %x = arith.index_cast %i : index to i32
    %f = arith.sitofp %x : i32 to f32
    memref.store %f, %a[%i] : memref<8xf32>
  }
  %ua = memref.cast %a : memref<8xf32> to memref<*xf32>
  %ub = memref.cast %b : memref<8xf32> to memref<*xf32>
  gpu.host_register %ua : memref<*xf32>
  gpu.host_register %ub : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %two, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<8xf32, #gpu.address_space<workgroup>>) {
    %k2 = arith.constant 2 : index
    %k4 = arith.constant 4 : index
    %k0 = arith.constant 0 : index
    %at = arith.muli %tx, %k4 : index
    %is0 = arith.cmpi eq, %tx, %k0 : index
    %count = arith.select %is0, %k4, %k2 : index
    %t = nvgpu.device_async_copy %a[%at], %s[%at], 4, %count {bypassL1} : memref<8xf32> to memref<8xf32, #gpu.address_space<workgroup>>
    %g = nvgpu.device_async_create_group %t
    nvgpu.device_async_wait %g {numGroups = 0 : i32}
    gpu.barrier
    %k1 = arith.constant 1 : index
    %other = arith.subi %k1, %tx : index
    %from = arith.muli %other, %k4 : index
    %v = vector.load %s[%from] : memref<8xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    vector.store %v, %b[%from] : memref<8xf32>, vector<4xf32>
    gpu.terminator
  }
  call @printMemrefF32(%ub) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)

//--- cluster.mlir
// CHECK-DAG: cluster 1,0,0 of 2,2,1, block 1,1 of 2,2 at 3,1
// CHECK-DAG: cluster 0,1,0 of 2,2,1, block 0,1 of 2,2 at 0,3
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k() kernel {
      %cx = gpu.cluster_id x
      %cy = gpu.cluster_id y
      %cz = gpu.cluster_id z
      %nx = gpu.cluster_dim x
      %ny = gpu.cluster_dim y
      %nz = gpu.cluster_dim z
      %ix = gpu.cluster_block_id x
      %iy = gpu.cluster_block_id y
      %sx = gpu.cluster_dim_blocks x
      %sy = gpu.cluster_dim_blocks y
      %bx = gpu.block_id x
      %by = gpu.block_id y
      gpu.printf "cluster %lld,%lld,%lld of %lld,%lld,%lld, block %lld,%lld of %lld,%lld at %lld,%lld\n", %cx, %cy, %cz, %nx, %ny, %nz, %ix, %iy, %sx, %sy, %bx, %by : index, index, index, index, index, index, index, index, index, index, index, index
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @kernels::@k clusters in (%c2, %c2, %c1) blocks in (%c4, %c4, %c1) threads in (%c1, %c1, %c1)
    return
  }
}

//--- tma.mlir
// 16 rows of COLS words. The swizzle exchanges units of 16 bytes by bits of their
// addresses: unit u, counted from the first, is at u ^ (u / 8 & mask). The kernel
// looks for each word there, and counts what is not its number.
// CHECK: wrong: 0
!bar = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16xCOLSxi32, 3>, swizzle = SWIZZLE, l2promo = none, oob = zero, interleave = none>
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 32 : index
  %rows = arith.constant 16 : index
  %cols = arith.constant COLS : index
  %h = memref.alloc() : memref<16xCOLSxi32>
  scf.for %i = %c0 to %rows step %c1 {
    scf.for %j = %c0 to %cols step %c1 {
      %r = arith.muli %i, %cols : index
      %s = arith.addi %r, %j : index
      %x = arith.index_cast %s : index to i32
      memref.store %x, %h[%i, %j] : memref<16xCOLSxi32>
    }
  }
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<16xCOLSxi32>
  %t2 = gpu.memcpy async [%t1] %d, %h : memref<16xCOLSxi32>, memref<16xCOLSxi32>
  gpu.wait [%t2]
  %u = memref.cast %d : memref<16xCOLSxi32> to memref<*xi32>
  %map = nvgpu.tma.create.descriptor %u box[%rows, %cols] : memref<*xi32> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<16xCOLSxi32, #gpu.address_space<workgroup>>) {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k4 = arith.constant 4 : index
    %k8 = arith.constant 8 : index
    %k16 = arith.constant 16 : index
    %kc = arith.constant COLS : index
    %row4 = arith.constant 64 : index
    %bytes = arith.muli %kc, %row4 : index
    %ticks = arith.constant 10000000 : index
    %mask = arith.constant MASK : index
    %phase = arith.constant false
    %first = arith.cmpi eq, %tx, %k0 : index
    %bar = nvgpu.mbarrier.create -> !bar
    nvgpu.mbarrier.init %bar[%k0], %k1, predicate = %first : !bar
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    nvgpu.tma.prefetch.descriptor %map : !map
    nvgpu.mbarrier.arrive.expect_tx %bar[%k0], %bytes, predicate = %first : !bar
    nvgpu.tma.async.load %map[%k0, %k0], %bar[%k0] to %s, predicate = %first : !map, !bar -> memref<16xCOLSxi32, #gpu.address_space<workgroup>>
    nvgpu.mbarrier.try_wait.parity %bar[%k0], %phase, %ticks : !bar
    scf.if %first {
      %zero = arith.constant 0 : i32
      %wrong = scf.for %i = %k0 to %k16 step %k1 iter_args(%w = %zero) -> (i32) {
        %w2 = scf.for %j = %k0 to %kc step %k1 iter_args(%v = %w) -> (i32) {
          %row = arith.muli %i, %kc : index
          %at = arith.addi %row, %j : index
          %unit = arith.divui %at, %k4 : index
          %line = arith.divui %unit, %k8 : index
          %bits = arith.andi %line, %mask : index
          %other = arith.xori %unit, %bits : index
          %in = arith.remui %j, %k4 : index
          %first4 = arith.muli %other, %k4 : index
          %to = arith.addi %first4, %in : index
          %r = arith.divui %to, %kc : index
          %c = arith.remui %to, %kc : index
          %x = memref.load %s[%r, %c] : memref<16xCOLSxi32, #gpu.address_space<workgroup>>
          %want = arith.index_cast %at : index to i32
          %bad = arith.cmpi ne, %x, %want : i32
          %one = arith.extui %bad : i1 to i32
          %sum = arith.addi %v, %one : i32
          scf.yield %sum : i32
        }
        scf.yield %w2 : i32
      }
      gpu.printf "wrong: %d\n", %wrong : i32
    }
    gpu.terminator
  }
  return
}

//--- store.mlir
// TMA stores a box at 2, 0 of a larger array.
// CHECK: [-1,   -1,   -1,   -1]
// CHECK-NEXT: [-1,   -1,   -1,   -1]
// CHECK-NEXT: [0,   1,   2,   3]
// CHECK-NEXT: [4,   5,   6,   7]
!map = !nvgpu.tensormap.descriptor<tensor = memref<2x4xi32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 8 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %h = memref.alloc() : memref<4x4xi32>
  %m1 = arith.constant -1 : i32
  linalg.fill ins(%m1 : i32) outs(%h : memref<4x4xi32>)
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<4x4xi32>
  %t2 = gpu.memcpy async [%t1] %d, %h : memref<4x4xi32>, memref<4x4xi32>
  gpu.wait [%t2]
  %u = memref.cast %d : memref<4x4xi32> to memref<*xi32>
  %map = nvgpu.tma.create.descriptor %u box[%two, %four] : memref<*xi32> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<2x4xi32, #gpu.address_space<workgroup>>) {
    %k0 = arith.constant 0 : index
    %k2 = arith.constant 2 : index
    %k4 = arith.constant 4 : index
    %first = arith.cmpi eq, %tx, %k0 : index
    %r = arith.divui %tx, %k4 : index
    %c = arith.remui %tx, %k4 : index
    %x = arith.index_cast %tx : index to i32
    memref.store %x, %s[%r, %c] : memref<2x4xi32, #gpu.address_space<workgroup>>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    gpu.barrier
    nvgpu.tma.async.store %s to %map[%k0, %k2], predicate = %first : memref<2x4xi32, #gpu.address_space<workgroup>> -> !map
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    gpu.terminator
  }
  %t3 = gpu.wait async
  %t4 = gpu.memcpy async [%t3] %h, %d : memref<4x4xi32>, memref<4x4xi32>
  gpu.wait [%t4]
  %uh = memref.cast %h : memref<4x4xi32> to memref<*xi32>
  call @printMemrefI32(%uh) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)

//--- wgmma.mlir
// 64 x 64 x 64 with A[i][k] = i mod 4 and B[k][j] = j mod 4:
// D[i][j] = 64 (i mod 4) (j mod 4).
// CHECK: [0,   0,   0,   0,
// CHECK-NEXT: [0,   64,   128,   192,
// CHECK-NEXT: [0,   128,   256,   384,
// CHECK-NEXT: [0,   192,   384,   576,
!bar = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!desc = !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>
!acc = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %n = arith.constant 128 : index
  %smem = arith.constant 16384 : i32
  %ha = memref.alloc() : memref<64x64xf16>
  %hb = memref.alloc() : memref<64x64xf16>
  %hd = memref.alloc() : memref<64x64xf32>
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %x = arith.remui %i, %c4 : index
      %y = arith.remui %j, %c4 : index
      %xi = arith.index_cast %x : index to i16
      %yi = arith.index_cast %y : index to i16
      %xf = arith.sitofp %xi : i16 to f16
      %yf = arith.sitofp %yi : i16 to f16
      memref.store %xf, %ha[%i, %j] : memref<64x64xf16>
      memref.store %yf, %hb[%i, %j] : memref<64x64xf16>
    }
  }
  %t0 = gpu.wait async
  %a, %t1 = gpu.alloc async [%t0] () : memref<64x64xf16>
  %b, %t2 = gpu.alloc async [%t1] () : memref<64x64xf16>
  %d, %t3 = gpu.alloc async [%t2] () : memref<64x64xf32>
  %t4 = gpu.memcpy async [%t3] %a, %ha : memref<64x64xf16>, memref<64x64xf16>
  %t5 = gpu.memcpy async [%t4] %b, %hb : memref<64x64xf16>, memref<64x64xf16>
  gpu.wait [%t5]
  %ua = memref.cast %a : memref<64x64xf16> to memref<*xf16>
  %ub = memref.cast %b : memref<64x64xf16> to memref<*xf16>
  %ma = nvgpu.tma.create.descriptor %ua box[%c64, %c64] : memref<*xf16> -> !map
  %mb = nvgpu.tma.create.descriptor %ub box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %smem {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %half = arith.constant 8192 : index
    %bytes = arith.constant 16384 : index
    %ticks = arith.constant 10000000 : index
    %phase = arith.constant false
    %first = arith.cmpi eq, %tx, %k0 : index
    %sh = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %sa = memref.view %sh[%k0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64x64xf16, #gpu.address_space<workgroup>>
    %sb = memref.view %sh[%half][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64x64xf16, #gpu.address_space<workgroup>>
    %bar = nvgpu.mbarrier.create -> !bar
    nvgpu.mbarrier.init %bar[%k0], %k1, predicate = %first : !bar
    nvvm.fence.mbarrier.init
    gpu.barrier
    nvgpu.mbarrier.arrive.expect_tx %bar[%k0], %bytes, predicate = %first : !bar
    nvgpu.tma.async.load %ma[%k0, %k0], %bar[%k0] to %sa, predicate = %first : !map, !bar -> memref<64x64xf16, #gpu.address_space<workgroup>>
    nvgpu.tma.async.load %mb[%k0, %k0], %bar[%k0] to %sb, predicate = %first : !map, !bar -> memref<64x64xf16, #gpu.address_space<workgroup>>
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !acc
    nvgpu.mbarrier.try_wait.parity %bar[%k0], %phase, %ticks : !bar
    %da = nvgpu.warpgroup.generate.descriptor %sa, %ma : memref<64x64xf16, #gpu.address_space<workgroup>>, !map -> !desc
    %db = nvgpu.warpgroup.generate.descriptor %sb, %mb : memref<64x64xf16, #gpu.address_space<workgroup>>, !map -> !desc
    %r = nvgpu.warpgroup.mma %da, %db, %zero {transposeB} : !desc, !desc, !acc -> !acc
    nvvm.wgmma.wait.group.sync.aligned 0
    nvgpu.warpgroup.mma.store %r, %d : !acc to memref<64x64xf32>
    gpu.terminator
  }
  %t6 = gpu.wait async
  %t7 = gpu.memcpy async [%t6] %hd, %d : memref<64x64xf32>, memref<64x64xf32>
  gpu.wait [%t7]
  %uh = memref.cast %hd : memref<64x64xf32> to memref<*xf32>
  call @printMemrefF32(%uh) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
