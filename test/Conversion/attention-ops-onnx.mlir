// ONNX's Attention: as torch-mlir's importer leaves it, a torch.operator, in generic form
// (iree-base-compiler 3.13.0: `iree-opt --torch-func-backend-type-conversion
// --mlir-print-op-generic`), and by hand as onnx-mlir's tools print it.
// test/Raise/attention-ops.py runs them.

// RUN: kvbuf-opt %s --allow-unregistered-dialect --split-input-file --kvbuf-convert-attention-ops --mlir-print-local-scope | FileCheck %s

// Heads inside of the last dimension, which share keys; causal, a soft cap.
// CHECK-LABEL: func.func @packed(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x24x256xf16>, %[[K:[^:]*]]: tensor<2x24x64xf16>
// CHECK-NOT:     torch.operator
// CHECK-DAG:     tensor.expand_shape %[[Q]] {{\[\[}}0], [1], [2, 3, 4]] output_shape [2, 24, 2, 4, 32]
// CHECK-DAG:     tensor.expand_shape %[[K]] {{\[\[}}0], [1], [2, 3]] output_shape [2, 24, 2, 32]
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {mask = #kvbuffer.mask<causal = true>, scale = 2.500000e-01 : f32, softcap = 2.000000e+01 : f32}
// CHECK:         tensor.collapse_shape {{.*}} into tensor<2x24x256xf16>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x256xf16>, tensor<2x24x64xf16>, tensor<2x24x64xf16>) -> tensor<2x24x256xf16>, sym_name = "packed"}> ({
  ^bb0(%arg0: tensor<2x24x256xf16>, %arg1: tensor<2x24x64xf16>, %arg2: tensor<2x24x64xf16>):
    %0 = "torch_c.from_builtin_tensor"(%arg2) : (tensor<2x24x64xf16>) -> !torch.vtensor<[2,24,64],f16>
    %1 = "torch_c.from_builtin_tensor"(%arg1) : (tensor<2x24x64xf16>) -> !torch.vtensor<[2,24,64],f16>
    %2 = "torch_c.from_builtin_tensor"(%arg0) : (tensor<2x24x256xf16>) -> !torch.vtensor<[2,24,256],f16>
    %3 = "torch.operator"(%2, %1, %0) <{name = "onnx.Attention"}> {torch.onnx.is_causal = 1 : si64, torch.onnx.kv_num_heads = 2 : si64, torch.onnx.q_num_heads = 8 : si64, torch.onnx.scale = 2.500000e-01 : f32, torch.onnx.softcap = 2.000000e+01 : f32} : (!torch.vtensor<[2,24,256],f16>, !torch.vtensor<[2,24,64],f16>, !torch.vtensor<[2,24,64],f16>) -> !torch.vtensor<[2,24,256],f16>
    %4 = "torch_c.to_builtin_tensor"(%3) : (!torch.vtensor<[2,24,256],f16>) -> tensor<2x24x256xf16>
    "func.return"(%4) : (tensor<2x24x256xf16>) -> ()
  }) {torch.onnx_meta.opset_version = 24 : si64} : () -> ()
}) : () -> ()

// -----

// Lengths of the sequences, and a mask of truth values that all heads have.
// CHECK-LABEL: func.func @lengths(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 0.176776692 : f32}
// CHECK-SAME:      visible {
// CHECK:           arith.cmpi slt
// CHECK-NOT:     torch.operator
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x24x32xf16>, tensor<2x4x40x32xf16>, tensor<2x4x40x32xf16>, tensor<24x40xi1>, tensor<2xi64>) -> tensor<2x4x24x32xf16>, sym_name = "lengths"}> ({
  ^bb0(%arg0: tensor<2x4x24x32xf16>, %arg1: tensor<2x4x40x32xf16>, %arg2: tensor<2x4x40x32xf16>, %arg3: tensor<24x40xi1>, %arg4: tensor<2xi64>):
    %0 = "torch_c.from_builtin_tensor"(%arg4) : (tensor<2xi64>) -> !torch.vtensor<[2],si64>
    %1 = "torch_c.from_builtin_tensor"(%arg3) : (tensor<24x40xi1>) -> !torch.vtensor<[24,40],i1>
    %2 = "torch_c.from_builtin_tensor"(%arg2) : (tensor<2x4x40x32xf16>) -> !torch.vtensor<[2,4,40,32],f16>
    %3 = "torch_c.from_builtin_tensor"(%arg1) : (tensor<2x4x40x32xf16>) -> !torch.vtensor<[2,4,40,32],f16>
    %4 = "torch_c.from_builtin_tensor"(%arg0) : (tensor<2x4x24x32xf16>) -> !torch.vtensor<[2,4,24,32],f16>
    %5 = "torch.constant.none"() : () -> !torch.none
    %6 = "torch.operator"(%4, %3, %2, %1, %5, %5, %0) <{name = "onnx.Attention"}> : (!torch.vtensor<[2,4,24,32],f16>, !torch.vtensor<[2,4,40,32],f16>, !torch.vtensor<[2,4,40,32],f16>, !torch.vtensor<[24,40],i1>, !torch.none, !torch.none, !torch.vtensor<[2],si64>) -> !torch.vtensor<[2,4,24,32],f16>
    %7 = "torch_c.to_builtin_tensor"(%6) : (!torch.vtensor<[2,4,24,32],f16>) -> tensor<2x4x24x32xf16>
    "func.return"(%7) : (tensor<2x4x24x32xf16>) -> ()
  }) {torch.onnx_meta.opset_version = 24 : si64} : () -> ()
}) : () -> ()

// -----

// A window.
// CHECK-LABEL: func.func @window(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {mask = #kvbuffer.mask<left = 5, right = 2>, scale = 0.176776692 : f32}
// CHECK-NOT:     torch.operator
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x24x32xf16>, tensor<2x4x24x32xf16>, tensor<2x4x24x32xf16>) -> tensor<2x4x24x32xf16>, sym_name = "window"}> ({
  ^bb0(%arg0: tensor<2x4x24x32xf16>, %arg1: tensor<2x4x24x32xf16>, %arg2: tensor<2x4x24x32xf16>):
    %0 = "torch_c.from_builtin_tensor"(%arg2) : (tensor<2x4x24x32xf16>) -> !torch.vtensor<[2,4,24,32],f16>
    %1 = "torch_c.from_builtin_tensor"(%arg1) : (tensor<2x4x24x32xf16>) -> !torch.vtensor<[2,4,24,32],f16>
    %2 = "torch_c.from_builtin_tensor"(%arg0) : (tensor<2x4x24x32xf16>) -> !torch.vtensor<[2,4,24,32],f16>
    %3 = "torch.operator"(%2, %1, %0) <{name = "onnx.Attention"}> {torch.onnx.left_window_size = 5 : si64, torch.onnx.right_window_size = 2 : si64} : (!torch.vtensor<[2,4,24,32],f16>, !torch.vtensor<[2,4,24,32],f16>, !torch.vtensor<[2,4,24,32],f16>) -> !torch.vtensor<[2,4,24,32],f16>
    %4 = "torch_c.to_builtin_tensor"(%3) : (!torch.vtensor<[2,4,24,32],f16>) -> tensor<2x4x24x32xf16>
    "func.return"(%4) : (tensor<2x4x24x32xf16>) -> ()
  }) {torch.onnx_meta.opset_version = 24 : si64} : () -> ()
}) : () -> ()

// -----

// onnx-mlir's own op.
// CHECK-LABEL: func.func @onnx_mlir(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {mask = #kvbuffer.mask<causal = true>, scale = 0.176776692 : f32}
// CHECK-NOT:     onnx.
"func.func"() <{function_type = (tensor<2x4x24x32xf16>, tensor<2x2x24x32xf16>, tensor<2x2x24x32xf16>) -> tensor<2x4x24x32xf16>, sym_name = "onnx_mlir"}> ({
^bb0(%arg0: tensor<2x4x24x32xf16>, %arg1: tensor<2x2x24x32xf16>, %arg2: tensor<2x2x24x32xf16>):
  %0 = "onnx.NoValue"() {value} : () -> none
  %1:4 = "onnx.Attention"(%arg0, %arg1, %arg2, %0, %0, %0) {is_causal = 1 : si64, softcap = 0.000000e+00 : f32} : (tensor<2x4x24x32xf16>, tensor<2x2x24x32xf16>, tensor<2x2x24x32xf16>, none, none, none) -> (tensor<2x4x24x32xf16>, none, none, none)
  "func.return"(%1#0) : (tensor<2x4x24x32xf16>) -> ()
}) : () -> ()
