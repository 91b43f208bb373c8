// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(kvbuf-carry-values)))" | FileCheck %s

gpu.module @m {
  // The product of this iteration's x is that of the last one's next x.
  // CHECK-LABEL: gpu.func @product
  // CHECK-SAME: %[[X:.*]]: f32, %[[SCALE:.*]]: f32, %[[OUT:.*]]: memref<?xf32>
  // CHECK:      %[[FIRST:.*]] = arith.mulf %[[X]], %[[SCALE]]
  // CHECK:      scf.for %[[I:.*]] = {{.*}} iter_args(%[[XI:.*]] = %[[X]], %[[PI:.*]] = %[[FIRST]])
  // CHECK-NEXT:   %[[NEXT:.*]] = arith.addf %[[XI]], %[[SCALE]]
  // CHECK-NEXT:   %[[P:.*]] = arith.mulf %[[NEXT]], %[[SCALE]]
  // CHECK-NEXT:   %[[D:.*]] = arith.subf %[[P]], %[[PI]]
  // CHECK-NEXT:   memref.store %[[D]], %[[OUT]][%[[I]]]
  // CHECK-NEXT:   scf.yield %[[NEXT]], %[[P]] : f32, f32
  gpu.func @product(%x: f32, %scale: f32, %out: memref<?xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 iter_args(%xi = %x) -> (f32) {
      %before = arith.mulf %xi, %scale : f32
      %next = arith.addf %xi, %scale : f32
      %after = arith.mulf %next, %scale : f32
      %d = arith.subf %after, %before : f32
      memref.store %d, %out[%i] : memref<?xf32>
      scf.yield %next : f32
    }
    gpu.return
  }

  // One op leads to the next.
  // CHECK-LABEL: gpu.func @chain
  // CHECK:      scf.for
  // CHECK-NEXT:   arith.addf
  // CHECK-NEXT:   arith.mulf
  // CHECK-NEXT:   math.exp2
  // CHECK-NEXT:   arith.subf
  // CHECK-NEXT:   memref.store
  // CHECK-NEXT:   scf.yield
  gpu.func @chain(%x: f32, %scale: f32, %out: memref<?xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 iter_args(%xi = %x) -> (f32) {
      %p = arith.mulf %xi, %scale : f32
      %e = math.exp2 %p : f32
      %next = arith.addf %xi, %scale : f32
      %pn = arith.mulf %next, %scale : f32
      %en = math.exp2 %pn : f32
      %d = arith.subf %en, %e : f32
      memref.store %d, %out[%i] : memref<?xf32>
      scf.yield %next : f32
    }
    gpu.return
  }

  // The other operand changes, flags differ, the value is an address's, or the
  // next value does not go through the op.
  // CHECK-LABEL: gpu.func @others
  // CHECK:      scf.for {{.*}} iter_args(%{{[^,]*}} = %{{[^,]*}}, %{{[^,]*}} = %{{[^,]*}}) -> (f32, index)
  gpu.func @others(%x: f32, %scale: f32, %out: memref<?xf32>, %at: index,
                   %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 iter_args(%xi = %x, %ai = %at)
        -> (f32, index) {
      %next = arith.addf %xi, %scale : f32
      %anext = arith.addi %ai, %c1 : index
      %changing = arith.mulf %xi, %next : f32
      %changing1 = arith.mulf %next, %next : f32
      %flag = arith.mulf %xi, %scale fastmath<contract> : f32
      %noflag = arith.mulf %next, %scale : f32
      %one = math.exp2 %xi : f32
      %a = arith.remui %ai, %n : index
      %a1 = arith.remui %anext, %n : index
      memref.store %changing, %out[%a] : memref<?xf32>
      memref.store %changing1, %out[%a1] : memref<?xf32>
      memref.store %flag, %out[%a] : memref<?xf32>
      memref.store %noflag, %out[%a1] : memref<?xf32>
      memref.store %one, %out[%a1] : memref<?xf32>
      scf.yield %next, %anext : f32, index
    }
    gpu.return
  }
}
