// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(convert-kvbuffer-to-nvvm))" --split-input-file | FileCheck %s

gpu.module @m {
  // Words of four 8-bit floats; two instructions side by side share A.
  // CHECK-LABEL: llvm.func @float8(
  // CHECK-COUNT-8: llvm.bitcast %{{.*}} : vector<4xi8> to i32
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f" %[[A:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {{.*}}" %[[A]],
  // CHECK-NOT: llvm.inline_asm
  // CHECK: llvm.return
  gpu.func @float8(%x: vector<4xf8E4M3FN>, %y: vector<4xf8E5M2>, %c: vector<8xf32>, %out: memref<8xf32>) kernel {
    %d = kvbuffer.lane_mma a(%x, %x, %x, %x : vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>) b(%y, %y, %y, %y : vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E5M2>) c(%c : vector<8xf32>) {shape = array<i64: 16, 16, 32>}
    %c0 = arith.constant 0 : index
    vector.store %d, %out[%c0] : memref<8xf32>, vector<8xf32>
    gpu.return
  }

  // L2 is asked for lines of global memory, and nobody for those of shared memory.
  // CHECK-LABEL: llvm.func @prefetch(
  // CHECK: nvvm.prefetch level = L2, %{{.*}} : !llvm.ptr<1>
  // CHECK-NOT: prefetch
  // CHECK: llvm.return
  gpu.func @prefetch(%x: memref<64xf32, #gpu.address_space<global>>, %y: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %c32 = arith.constant 32 : index
    memref.prefetch %x[%c32], read, locality<2>, data : memref<64xf32, #gpu.address_space<global>>
    memref.prefetch %y[%c32], read, locality<2>, data : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.return
  }

  // bf16 operands are words of 32 bits, f16 operands pairs.
  // CHECK-LABEL: llvm.func @bf16(
  // CHECK-COUNT-6: llvm.bitcast %{{.*}} : vector<2xbf16> to i32
  // CHECK:         nvvm.mma.sync A[{{.*}}] B[{{.*}}] C[{{.*}}] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  gpu.func @bf16(%w: vector<2xbf16>, %c: vector<4xf32>, %out: memref<4xf32>) kernel {
    %d = kvbuffer.lane_mma a(%w, %w, %w, %w : vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>) b(%w, %w : vector<2xbf16>, vector<2xbf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 16>}
    %c0 = arith.constant 0 : index
    vector.store %d, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }

  // Words stay in the order of the instruction's registers.
  // CHECK-LABEL: llvm.func @f16(
  // CHECK-SAME:    %[[A0:.*]]: vector<2xf16>, %[[A1:.*]]: vector<2xf16>, %[[A2:.*]]: vector<2xf16>, %[[A3:.*]]: vector<2xf16>, %[[B0:.*]]: vector<2xf16>, %[[B1:.*]]: vector<2xf16>, %[[C:[^:]*]]: vector<4xf32>
  // CHECK-NOT:     llvm.bitcast
  // CHECK-COUNT-4: llvm.extractelement %[[C]]
  // CHECK:         nvvm.mma.sync A[%[[A0]], %[[A1]], %[[A2]], %[[A3]]] B[%[[B0]], %[[B1]]] {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
  gpu.func @f16(%a0: vector<2xf16>, %a1: vector<2xf16>, %a2: vector<2xf16>, %a3: vector<2xf16>, %b0: vector<2xf16>, %b1: vector<2xf16>, %c: vector<4xf32>, %out: memref<4xf32>) kernel {
    %d = kvbuffer.lane_mma a(%a0, %a1, %a2, %a3 : vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>) b(%b0, %b1 : vector<2xf16>, vector<2xf16>) c(%c : vector<4xf32>) {shape = array<i64: 16, 8, 16>}
    %c0 = arith.constant 0 : index
    vector.store %d, %out[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // No call of a library that is not there.
  // CHECK-LABEL: llvm.func @math(
  // CHECK-SAME:    kvbuffer.phase = #kvbuffer.phase<target>
  // CHECK-SAME:    passthrough = {{\[\[}}"denormal-fp-math-f32", "preserve-sign"]]
  // CHECK-NOT:     llvm.call @
  // CHECK:         llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK:         llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"
  // CHECK:         llvm.intr.maxnum
  // tanh x = 1 - 2 / (exp2(2 x log2 e) + 1).
  // CHECK:         %[[TWO:.*]] = llvm.mlir.constant(2.885390e+00 : f32)
  // CHECK:         %[[X:.*]] = llvm.fmul %{{.*}}, %[[TWO]]
  // CHECK:         %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[X]])
  // CHECK:         %[[SUM:.*]] = llvm.fadd %[[E]], %{{.*}}
  // CHECK:         %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[SUM]])
  // CHECK:         llvm.intr.fma(%[[R]], %{{.*}}, %{{.*}})
  gpu.func @math(%x: f32, %out: memref<f32>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>} {
    %e = math.exp2 %x : f32
    %l = math.log2 %e : f32
    %m = arith.maxnumf %l, %x : f32
    %t = math.tanh %m : f32
    memref.store %t, %out[] : memref<f32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // The product of a finite number stays finite: it is cut off.
  // CHECK-LABEL: llvm.func @finite(
  // CHECK-SAME:    %[[X:.*]]: f32
  // CHECK:         llvm.call_intrinsic "llvm.nvvm.mul.rz.f"(%[[X]], %{{.*}})
  // CHECK:         llvm.fmul %[[X]],
  // CHECK-NOT:     mul.rz
  gpu.func @finite(%x: f32, %out: memref<2xf32>) kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %eight = arith.constant 8.0 : f32
    %p = arith.mulf %x, %eight {kvbuffer.finite_product} : f32
    memref.store %p, %out[%c0] : memref<2xf32>
    %r = arith.mulf %x, %x : f32
    memref.store %r, %out[%c1] : memref<2xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  // CHECK-LABEL: llvm.func @lanes(
  // CHECK:         %[[ALL:.*]] = llvm.mlir.constant(-1 : i32)
  // CHECK:         %[[VOTE:.*]] = nvvm.vote.sync ballot %[[ALL]], %{{.*}} -> i32
  // CHECK:         llvm.intr.ctpop(%[[VOTE]]) : (i32) -> i32
  gpu.func @lanes(%mine: i1, %out: memref<i32>) kernel {
    %count = kvbuffer.lane_count %mine
    memref.store %count, %out[] : memref<i32>
    gpu.return
  }
  // CHECK-LABEL: llvm.func @votes(
  // CHECK:         %[[EACH:.*]] = llvm.mlir.constant(-1 : i32)
  // CHECK:         %[[BITS:.*]] = nvvm.vote.sync ballot %[[EACH]], %{{.*}} -> i32
  // CHECK:         llvm.store %[[BITS]]
  gpu.func @votes(%mine: i1, %out: memref<i32>) kernel {
    %bits = kvbuffer.lane_vote %mine
    memref.store %bits, %out[] : memref<i32>
    gpu.return
  }
}
