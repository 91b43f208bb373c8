// Functions of numbers by arithmetic: no library is linked.

// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(kvbuf-expand-math))" | FileCheck %s
// RUN: kvbuf-opt %s --pass-pipeline="builtin.module(gpu.module(kvbuf-expand-math,convert-kvbuffer-to-nvvm))" | FileCheck %s --check-prefix=LLVM
// RUN: sed s/sm_80/gfx942/ %s | kvbuf-opt --pass-pipeline="builtin.module(gpu.module(kvbuf-expand-math,convert-kvbuffer-to-rocdl))" | FileCheck %s --check-prefix=LLVM

// LLVM-NOT: __nv_
// LLVM-NOT: __ocml_

module attributes {kvbuffer.target = "sm_80"} {
gpu.module @m {
  // In base 2, times what the product with log2(e) has lost.
  // CHECK-LABEL: gpu.func @exp
  // CHECK-SAME:    %[[X:.*]]: f32
  // CHECK:         %[[Y:.*]] = arith.mulf %[[X]], %{{.*}} : f32
  // CHECK:         %[[NEG:.*]] = arith.negf %[[Y]]
  // CHECK:         %[[LOST:.*]] = math.fma %[[X]], %{{.*}}, %[[NEG]]
  // CHECK:         math.fma %[[X]], %{{.*}}, %[[LOST]]
  // CHECK:         %[[POWER:.*]] = math.exp2 %[[Y]]
  // CHECK:         arith.select %{{.*}}, %{{.*}}, %[[POWER]]
  gpu.func @exp(%x: f32) -> f32 {
    %y = math.exp %x : f32
    gpu.return %y : f32
  }

  // Elements one by one, narrow ones by way of f32.
  // CHECK-LABEL: gpu.func @narrow
  // CHECK:         %[[FIRST:.*]] = vector.extract %{{.*}}[0] : bf16
  // CHECK:         %[[WIDE:.*]] = arith.extf %[[FIRST]] : bf16 to f32
  // CHECK:         %[[TANH:.*]] = math.tanh %[[WIDE]] : f32
  // CHECK:         %[[LOW:.*]] = arith.truncf %[[TANH]] : f32 to bf16
  // CHECK:         vector.extract %{{.*}}[1] : bf16
  // CHECK:         math.tanh
  // CHECK:         vector.from_elements %[[LOW]], %{{.*}} : vector<2xbf16>
  gpu.func @narrow(%x: vector<2xbf16>) -> vector<2xbf16> {
    %y = math.tanh %x : vector<2xbf16>
    gpu.return %y : vector<2xbf16>
  }

  // What has instructions stays.
  // CHECK-LABEL: gpu.func @kept
  // CHECK-NEXT:    math.exp2
  // CHECK-NEXT:    math.log2
  // CHECK-NEXT:    math.tanh
  // CHECK-NEXT:    math.floor
  // CHECK-NEXT:    math.ceil
  // CHECK-NEXT:    math.round
  // CHECK-NEXT:    math.roundeven
  // CHECK-NEXT:    math.trunc
  // CHECK-NEXT:    math.copysign
  // CHECK-NEXT:    math.sqrt
  // CHECK-NEXT:    math.sqrt {{.*}} : f64
  // CHECK-NEXT:    math.fma
  // CHECK-NEXT:    math.ctpop
  // CHECK-NEXT:    math.isnan
  // CHECK-NEXT:    arith.minnumf
  // CHECK-NEXT:    arith.remf
  // CHECK-NEXT:    gpu.return
  gpu.func @kept(%x: f32, %d: f64, %i: i32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f64, f32, i32, i1, f32, f32) {
    %0 = math.exp2 %x : f32
    %1 = math.log2 %x : f32
    %2 = math.tanh %x : f32
    %3 = math.floor %x : f32
    %4 = math.ceil %x : f32
    %5 = math.round %x : f32
    %6 = math.roundeven %x : f32
    %7 = math.trunc %x : f32
    %8 = math.copysign %x, %0 : f32
    %9 = math.sqrt %x : f32
    %10 = math.sqrt %d : f64
    %11 = math.fma %x, %0, %1 : f32
    %12 = math.ctpop %i : i32
    %13 = math.isnan %x : f32
    %14 = arith.minnumf %x, %0 : f32
    %15 = arith.remf %x, %1 : f32
    gpu.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15 : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f64, f32, i32, i1, f32, f32
  }

  // Nothing of the others is left.
  // CHECK-LABEL: gpu.func @others
  // CHECK-NOT:     math.{{(exp|expm1|log|log10|log1p|rsqrt|cbrt|a?sin|a?cos|a?tan2?|sincos|a?sinh|a?cosh|atanh|erfc?|powf|fpowi|clampf|isinf|isnormal)}} %
  gpu.func @others(%x: f32, %i: i32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, i1, i1) {
    %0 = math.expm1 %x : f32
    %1 = math.log10 %x : f32
    %2 = math.rsqrt %x : f32
    %3 = math.cbrt %x : f32
    %4, %5 = math.sincos %x : f32
    %6 = math.tan %x : f32
    %7 = math.atan2 %x, %0 : f32
    %8 = math.acosh %x : f32
    %9 = math.erfc %x : f32
    %10 = math.powf %x, %0 : f32
    %11 = math.fpowi %x, %i : f32, i32
    %12 = math.isinf %x : f32
    %13 = math.isnormal %x : f32
    gpu.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13 : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, i1, i1
  }
}
}
