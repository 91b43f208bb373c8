// Bank conflicts and sectors, against counts by hand. Shared memory has 32
// banks of 4 bytes; 16-byte accesses go in quarters of a warp, 8-byte ones in
// halves, and ldmatrix by the 8 rows of a matrix.
//
// RUN: kvbuf-emu-test %s --block=32 --arg=buf:f32:2048:iota --report --options='{"lanes":false}' | FileCheck %s
// RUN: kvbuf-emu-test %s --block=32 --arg=buf:f32:2048:iota --report --options='{"banks":64,"lanes":false}' | FileCheck %s --check-prefix=WIDE

module {
  llvm.mlir.global internal @sh() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<4096 x f32>
  llvm.func @kernel(%in: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c7 = llvm.mlir.constant(7 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %c33 = llvm.mlir.constant(33 : i32) : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %zeros = llvm.mlir.constant(dense<0.0> : vector<4xf32>) : vector<4xf32>
    %sh = llvm.mlir.addressof @sh : !llvm.ptr<3>

    // Consecutive words: every bank once.
    %p0 = llvm.getelementptr %sh[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %zero, %p0 : f32, !llvm.ptr<3>
    // CHECK: "bank_conflicts": 0,
    // CHECK: "ideal_passes": 1,
    // CHECK-NEXT: "location": "{{.*}}costs.mlir:[[#@LINE-3]]:5",
    // CHECK-NEXT: "op": "llvm.store",
    // CHECK-NEXT: "passes": 1,

    // Every other word: two lanes a bank. With 64 banks, none.
    %t2 = llvm.mul %t, %c2 : i32
    %p1 = llvm.getelementptr %sh[%t2] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %zero, %p1 : f32, !llvm.ptr<3>
    // CHECK: "bank_conflicts": 1,
    // CHECK: "ideal_passes": 1,
    // CHECK-NEXT: "location": "{{.*}}costs.mlir:[[#@LINE-3]]:5",
    // CHECK: "passes": 2,
    // WIDE: "location": "{{.*}}costs.mlir:[[#@LINE-5]]:5",
    // WIDE-NEXT: "op": "llvm.store",
    // WIDE-NEXT: "passes": 1,

    // A row of 32 words each: all lanes in bank 0.
    %t32 = llvm.mul %t, %c32 : i32
    %p2 = llvm.getelementptr %sh[%t32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %zero, %p2 : f32, !llvm.ptr<3>
    // CHECK: "bank_conflicts": 31,
    // CHECK: "passes": 32,

    // The same with a pad of one word: no conflict.
    %t33 = llvm.mul %t, %c33 : i32
    %p3 = llvm.getelementptr %sh[%t33] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %zero, %p3 : f32, !llvm.ptr<3>
    // CHECK: "bank_conflicts": 0,
    // CHECK: "passes": 1,

    // One word for all lanes is a broadcast.
    %b = llvm.load %sh : !llvm.ptr<3> -> f32
    // CHECK: "bank_conflicts": 0,
    // CHECK-NEXT: "bytes": 128,
    // CHECK: "passes": 1,

    // Rows of 128 bytes, 16 bytes from each: the 8 lanes of a quarter share
    // four banks; 8 passes instead of 1, four times.
    %p4 = llvm.getelementptr %sh[%t32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %zeros, %p4 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
    // CHECK: "bank_conflicts": 28,
    // CHECK: "ideal_passes": 4,
    // CHECK: "passes": 32,

    // The same rows for ldmatrix: 8 passes a matrix.
    %m = nvvm.ldmatrix %p4 {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    // CHECK: "bank_conflicts": 28,
    // CHECK: "op": "nvvm.ldmatrix",
    // CHECK: "passes": 32,

    // Swizzled: row r at chunk r mod 8.
    %r = llvm.and %t, %c7 : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %chunk = llvm.mul %r, %c4 : i32
    %at = llvm.add %t32, %chunk : i32
    %p5 = llvm.getelementptr %sh[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %zeros, %p5 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
    // CHECK: "bank_conflicts": 0,
    // CHECK: "passes": 4,
    %m2 = nvvm.ldmatrix %p5 {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    // CHECK: "bank_conflicts": 0,
    // CHECK: "op": "nvvm.ldmatrix",
    // CHECK: "passes": 4,

    // Global memory: 128 consecutive bytes are 4 sectors of 32.
    %g0 = llvm.getelementptr %in[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v0 = llvm.load %g0 : !llvm.ptr<1> -> f32
    // CHECK: "ideal_sectors": 4,
    // CHECK: "sectors": 4,
    // A stride of 32 words: a sector for every lane.
    %g1 = llvm.getelementptr %in[%t32] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v1 = llvm.load %g1 : !llvm.ptr<1> -> f32
    // CHECK: "ideal_sectors": 4,
    // CHECK: "sectors": 32,
    // Off by 4 bytes: one sector more.
    %g2 = llvm.getelementptr %g0[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %v2 = llvm.load %g2 : !llvm.ptr<1> -> f32
    // CHECK: "ideal_sectors": 4,
    // CHECK: "sectors": 5,
    // 16 bytes a lane, copied in the background.
    %g3 = llvm.getelementptr %in[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    nvvm.cp.async.shared.global %p5, %g3, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    // CHECK: "bank_conflicts": 0,
    // CHECK: "ideal_passes": 4,
    // CHECK: "ideal_sectors": 16,
    // CHECK: "op": "nvvm.cp.async.shared.global",
    // CHECK-NEXT: "passes": 4,
    // CHECK-NEXT: "sectors": 16,
    // Into the rows without the swizzle. Lanes that read nothing write zeros.
    %none = llvm.mlir.constant(0 : i32) : i32
    nvvm.cp.async.shared.global %p4, %g3, 16, cache = cg, %none : !llvm.ptr<3>, !llvm.ptr<1>, i32
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    // CHECK: "bank_conflicts": 28,
    // CHECK: "op": "nvvm.cp.async.shared.global",
    // CHECK-NEXT: "passes": 32,
    llvm.return
  }
}
