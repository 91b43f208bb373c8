// tm_tensor.attention as torch-mlir's tools print it in generic form
// (iree-base-compiler 3.13.0: `iree-opt --mlir-print-op-generic`); `scale` is what later
// versions add. test/Raise/attention-ops.py runs them.

// RUN: kvbuf-opt %s --allow-unregistered-dialect --split-input-file --kvbuf-convert-attention-ops --mlir-print-local-scope | FileCheck %s

// A mask that is added; V has a head size of its own.
// CHECK-LABEL: func.func @masked(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 0.176776692 : f32} : tensor<6x24x1x32xbf16>, tensor<6x40x1x32xbf16>, tensor<6x40x1x16xbf16>, tensor<6x24x1x16xbf16>
// CHECK-SAME:      captures(%{{.*}} : tensor<6x24x40xbf16>) score {
// CHECK-NOT:     tm_tensor
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<6x24x32xbf16>, tensor<6x40x32xbf16>, tensor<6x40x16xbf16>, tensor<6x24x40xbf16>) -> tensor<6x24x16xbf16>, sym_name = "masked"}> ({
  ^bb0(%arg0: tensor<6x24x32xbf16>, %arg1: tensor<6x40x32xbf16>, %arg2: tensor<6x40x16xbf16>, %arg3: tensor<6x24x40xbf16>):
    %0 = "tensor.empty"() : () -> tensor<6x24x16xbf16>
    %1 = "tm_tensor.attention"(%arg0, %arg1, %arg2, %arg3, %0) <{operandSegmentSizes = array<i32: 4, 1>}> : (tensor<6x24x32xbf16>, tensor<6x40x32xbf16>, tensor<6x40x16xbf16>, tensor<6x24x40xbf16>, tensor<6x24x16xbf16>) -> tensor<6x24x16xbf16>
    "func.return"(%1) : (tensor<6x24x16xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// A scale of its own.
// CHECK-LABEL: func.func @scaled(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 5.000000e-01 : f32}
// CHECK-NOT:     tm_tensor
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<6x24x32xbf16>, tensor<6x40x32xbf16>, tensor<6x40x32xbf16>) -> tensor<6x24x32xbf16>, sym_name = "scaled"}> ({
  ^bb0(%arg0: tensor<6x24x32xbf16>, %arg1: tensor<6x40x32xbf16>, %arg2: tensor<6x40x32xbf16>):
    %0 = "tensor.empty"() : () -> tensor<6x24x32xbf16>
    %1 = "tm_tensor.attention"(%arg0, %arg1, %arg2, %0) <{scale = 5.000000e-01 : f64, operandSegmentSizes = array<i32: 3, 1>}> : (tensor<6x24x32xbf16>, tensor<6x40x32xbf16>, tensor<6x40x32xbf16>, tensor<6x24x32xbf16>) -> tensor<6x24x32xbf16>
    "func.return"(%1) : (tensor<6x24x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// Truth values, and four dimensions.
// CHECK-LABEL: func.func @truth(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      tensor<{{.*}}x24x{{.*}}x32xf16>
// CHECK-SAME:      visible {
// CHECK-NOT:     tm_tensor
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x6x24x32xf16>, tensor<2x6x40x32xf16>, tensor<2x6x40x32xf16>, tensor<2x6x24x40xi1>) -> tensor<2x6x24x32xf16>, sym_name = "truth"}> ({
  ^bb0(%arg0: tensor<2x6x24x32xf16>, %arg1: tensor<2x6x40x32xf16>, %arg2: tensor<2x6x40x32xf16>, %arg3: tensor<2x6x24x40xi1>):
    %0 = "tensor.empty"() : () -> tensor<2x6x24x32xf16>
    %1 = "tm_tensor.attention"(%arg0, %arg1, %arg2, %arg3, %0) <{operandSegmentSizes = array<i32: 4, 1>}> : (tensor<2x6x24x32xf16>, tensor<2x6x40x32xf16>, tensor<2x6x40x32xf16>, tensor<2x6x24x40xi1>, tensor<2x6x24x32xf16>) -> tensor<2x6x24x32xf16>
    "func.return"(%1) : (tensor<2x6x24x32xf16>) -> ()
  }) : () -> ()
}) : () -> ()
