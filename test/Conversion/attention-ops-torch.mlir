// torch.aten.scaled_dot_product_attention as torch-mlir's tools print it in generic
// form (iree-base-compiler 3.13.0: `iree-opt --mlir-print-op-generic`), before and after
// torch-func-backend-type-conversion. test/Raise/attention-ops.py runs them.

// RUN: kvbuf-opt %s --allow-unregistered-dialect --split-input-file --kvbuf-convert-attention-ops --mlir-print-local-scope | FileCheck %s

// Heads that share keys, and a mask of truth values. Without the dialect a tensor is cast.
// CHECK-LABEL: func.func @gqa_mask(
// CHECK-SAME:    %[[Q:.*]]: !torch.vtensor<[2,8,24,32],bf16>, %{{.*}}, %{{.*}}, %[[M:.*]]: !torch.vtensor<[2,1,24,40],i1>)
// CHECK-DAG:     %[[QB:.*]] = "torch_c.to_builtin_tensor"(%[[Q]]) : (!torch.vtensor<[2,8,24,32],bf16>) -> tensor<2x8x24x32xbf16>
// CHECK-DAG:     %[[MB:.*]] = "torch_c.to_builtin_tensor"(%[[M]]) : (!torch.vtensor<[2,1,24,40],i1>) -> tensor<2x1x24x40xi1>
// CHECK-NOT:     torch.constant
// CHECK:         %[[O:.*]] = kvbuffer.attention
// CHECK-SAME:      {scale = 0.176776692 : f32} : tensor<{{.*}}x24x{{.*}}x32xbf16>
// CHECK-SAME:      captures(
// CHECK-SAME:      visible {
// CHECK:         "torch_c.from_builtin_tensor"(%{{.*}}) : (tensor<2x8x24x32xbf16>) -> !torch.vtensor<[2,8,24,32],bf16>
// CHECK-NOT:     scaled_dot_product_attention
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[2,8,24,32],bf16>, !torch.vtensor<[2,2,40,32],bf16>, !torch.vtensor<[2,2,40,32],bf16>, !torch.vtensor<[2,1,24,40],i1>) -> !torch.vtensor<[2,8,24,32],bf16>, sym_name = "gqa_mask"}> ({
  ^bb0(%arg0: !torch.vtensor<[2,8,24,32],bf16>, %arg1: !torch.vtensor<[2,2,40,32],bf16>, %arg2: !torch.vtensor<[2,2,40,32],bf16>, %arg3: !torch.vtensor<[2,1,24,40],i1>):
    %0 = "torch.constant.none"() : () -> !torch.none
    %1 = "torch.constant.float"() <{value = 0.000000e+00 : f64}> : () -> !torch.float
    %2 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %3 = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
    %4 = "torch.aten.scaled_dot_product_attention"(%arg0, %arg1, %arg2, %arg3, %1, %2, %0, %3) : (!torch.vtensor<[2,8,24,32],bf16>, !torch.vtensor<[2,2,40,32],bf16>, !torch.vtensor<[2,2,40,32],bf16>, !torch.vtensor<[2,1,24,40],i1>, !torch.float, !torch.bool, !torch.none, !torch.bool) -> !torch.vtensor<[2,8,24,32],bf16>
    "func.return"(%4) : (!torch.vtensor<[2,8,24,32],bf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// The same between casts, which go: causal, and a scale.
// CHECK-LABEL: func.func @causal(
// CHECK-SAME:    tensor<2x4x24x32xf16>
// CHECK-NOT:     torch
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {mask = #kvbuffer.mask<causal = true>, scale = 2.500000e-01 : f32} : tensor<8x24x1x32xf16>, tensor<8x24x1x32xf16>
// CHECK-NOT:     torch
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x24x32xf16>, tensor<2x4x24x32xf16>, tensor<2x4x24x32xf16>) -> tensor<2x4x24x32xf16>, sym_name = "causal"}> ({
  ^bb0(%arg0: tensor<2x4x24x32xf16>, %arg1: tensor<2x4x24x32xf16>, %arg2: tensor<2x4x24x32xf16>):
    %0 = "torch_c.from_builtin_tensor"(%arg2) : (tensor<2x4x24x32xf16>) -> !torch.vtensor<[2,4,24,32],f16>
    %1 = "torch_c.from_builtin_tensor"(%arg1) : (tensor<2x4x24x32xf16>) -> !torch.vtensor<[2,4,24,32],f16>
    %2 = "torch_c.from_builtin_tensor"(%arg0) : (tensor<2x4x24x32xf16>) -> !torch.vtensor<[2,4,24,32],f16>
    %3 = "torch.constant.none"() : () -> !torch.none
    %4 = "torch.constant.float"() <{value = 0.000000e+00 : f64}> : () -> !torch.float
    %5 = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
    %6 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %7 = "torch.constant.float"() <{value = 2.500000e-01 : f64}> : () -> !torch.float
    %8 = "torch.aten.scaled_dot_product_attention"(%2, %1, %0, %3, %4, %5, %7, %6) : (!torch.vtensor<[2,4,24,32],f16>, !torch.vtensor<[2,4,24,32],f16>, !torch.vtensor<[2,4,24,32],f16>, !torch.none, !torch.float, !torch.bool, !torch.float, !torch.bool) -> !torch.vtensor<[2,4,24,32],f16>
    %9 = "torch_c.to_builtin_tensor"(%8) : (!torch.vtensor<[2,4,24,32],f16>) -> tensor<2x4x24x32xf16>
    "func.return"(%9) : (tensor<2x4x24x32xf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// More keys than queries: row 0 sees key 0, which is no window of the op's own.
// One head of keys is for all, and the scores get a bias.
// CHECK-LABEL: func.func @causal_bias(
// CHECK-NOT:     torch
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 0.176776692 : f32}
// CHECK-SAME:      captures(
// CHECK-SAME:      score {
// CHECK:         visible {
// CHECK-NOT:     torch
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x24x32xbf16>, tensor<2x1x40x32xbf16>, tensor<2x1x40x32xbf16>, tensor<4x24x40xbf16>) -> tensor<2x4x24x32xbf16>, sym_name = "causal_bias"}> ({
  ^bb0(%arg0: tensor<2x4x24x32xbf16>, %arg1: tensor<2x1x40x32xbf16>, %arg2: tensor<2x1x40x32xbf16>, %arg3: tensor<4x24x40xbf16>):
    %0 = "torch_c.from_builtin_tensor"(%arg3) : (tensor<4x24x40xbf16>) -> !torch.vtensor<[4,24,40],bf16>
    %1 = "torch_c.from_builtin_tensor"(%arg2) : (tensor<2x1x40x32xbf16>) -> !torch.vtensor<[2,1,40,32],bf16>
    %2 = "torch_c.from_builtin_tensor"(%arg1) : (tensor<2x1x40x32xbf16>) -> !torch.vtensor<[2,1,40,32],bf16>
    %3 = "torch_c.from_builtin_tensor"(%arg0) : (tensor<2x4x24x32xbf16>) -> !torch.vtensor<[2,4,24,32],bf16>
    %4 = "torch.constant.none"() : () -> !torch.none
    %5 = "torch.constant.float"() <{value = 0.000000e+00 : f64}> : () -> !torch.float
    %6 = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
    %7 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %8 = "torch.aten.scaled_dot_product_attention"(%3, %2, %1, %0, %5, %6, %4, %7) : (!torch.vtensor<[2,4,24,32],bf16>, !torch.vtensor<[2,1,40,32],bf16>, !torch.vtensor<[2,1,40,32],bf16>, !torch.vtensor<[4,24,40],bf16>, !torch.float, !torch.bool, !torch.none, !torch.bool) -> !torch.vtensor<[2,4,24,32],bf16>
    %9 = "torch_c.to_builtin_tensor"(%8) : (!torch.vtensor<[2,4,24,32],bf16>) -> tensor<2x4x24x32xbf16>
    "func.return"(%9) : (tensor<2x4x24x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// Sizes that are not known.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    tensor<?x4x?x32xbf16>
// CHECK-NOT:     torch
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 0.176776692 : f32}
// CHECK-SAME:      visible {
// CHECK:         return %{{.*}} : tensor<?x4x?x16xbf16>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?x4x?x32xbf16>, tensor<?x4x?x32xbf16>, tensor<?x4x?x16xbf16>) -> tensor<?x4x?x16xbf16>, sym_name = "dynamic"}> ({
  ^bb0(%arg0: tensor<?x4x?x32xbf16>, %arg1: tensor<?x4x?x32xbf16>, %arg2: tensor<?x4x?x16xbf16>):
    %0 = "torch_c.from_builtin_tensor"(%arg2) : (tensor<?x4x?x16xbf16>) -> !torch.vtensor<[?,4,?,16],bf16>
    %1 = "torch_c.from_builtin_tensor"(%arg1) : (tensor<?x4x?x32xbf16>) -> !torch.vtensor<[?,4,?,32],bf16>
    %2 = "torch_c.from_builtin_tensor"(%arg0) : (tensor<?x4x?x32xbf16>) -> !torch.vtensor<[?,4,?,32],bf16>
    %3 = "torch.constant.none"() : () -> !torch.none
    %4 = "torch.constant.float"() <{value = 0.000000e+00 : f64}> : () -> !torch.float
    %5 = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
    %6 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %7 = "torch.aten.scaled_dot_product_attention"(%2, %1, %0, %3, %4, %5, %3, %6) : (!torch.vtensor<[?,4,?,32],bf16>, !torch.vtensor<[?,4,?,32],bf16>, !torch.vtensor<[?,4,?,16],bf16>, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool) -> !torch.vtensor<[?,4,?,16],bf16>
    %8 = "torch_c.to_builtin_tensor"(%7) : (!torch.vtensor<[?,4,?,16],bf16>) -> tensor<?x4x?x16xbf16>
    "func.return"(%8) : (tensor<?x4x?x16xbf16>) -> ()
  }) : () -> ()
}) : () -> ()
