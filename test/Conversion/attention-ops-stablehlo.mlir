// XLA's calls of cuDNN as JAX makes them for CUDA (jax 0.10.2: `jax.jit(f).trace(...)
// .lower(lowering_platforms=("cuda",))`; backend_config without what does not matter
// here), and a composite of jax.lax.composite, in generic form (iree-base-compiler 3.13.0:
// `iree-opt --mlir-print-op-generic`). test/Raise/attention-ops.py runs them.

// RUN: kvbuf-opt %s --allow-unregistered-dialect --split-input-file --kvbuf-convert-attention-ops --mlir-print-local-scope | FileCheck %s

// Causal: more keys than queries, so no window of the op's own; heads that share keys.
// CHECK-LABEL: func.func @causal(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 2.500000e-01 : f32} : tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>
// CHECK-SAME:      visible {
// CHECK:         linalg.transpose
// CHECK-NOT:     custom_call
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> tensor<2x24x4x32xbf16>, sym_name = "causal"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>):
    %0:2 = "stablehlo.custom_call"(%arg0, %arg1, %arg2) <{api_version = 2 : i32, backend_config = "{\22cudnn_fmha_backend_config\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22CAUSAL\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.0, \22sliding_window_length\22: 0, \22max_seg_per_batch\22: 1, \22is_paged_attention\22: false}}", call_target_name = "__cudnn$fmhaSoftmax", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> (tensor<2x4x24x32xbf16>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// A bias of all sequences.
// CHECK-LABEL: func.func @bias(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      captures(%{{.*}} : tensor<1x4x24x40xbf16>) score {
// CHECK-NOT:     custom_call
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>, tensor<1x4x24x40xbf16>) -> tensor<2x24x4x32xbf16>, sym_name = "bias"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>, %arg3: tensor<1x4x24x40xbf16>):
    %0:2 = "stablehlo.custom_call"(%arg0, %arg1, %arg2, %arg3) <{api_version = 2 : i32, backend_config = "{\22cudnn_fmha_backend_config\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22NO_MASK\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.0, \22sliding_window_length\22: 0, \22max_seg_per_batch\22: 1, \22is_paged_attention\22: false}}", call_target_name = "__cudnn$fmhaScaleBiasSoftmax", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>, tensor<1x4x24x40xbf16>) -> (tensor<2x4x24x32xbf16>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// Lengths of queries and keys.
// CHECK-LABEL: func.func @pad(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      captures(%{{.*}}, %{{.*}} : tensor<2xi32>, tensor<2xi32>) visible {
// CHECK-NOT:     custom_call
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x24x4x32xbf16>, sym_name = "pad"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>, %arg3: tensor<2xi32>, %arg4: tensor<2xi32>):
    %0:2 = "stablehlo.custom_call"(%arg0, %arg1, %arg2, %arg3, %arg4) <{api_version = 2 : i32, backend_config = "{\22cudnn_fmha_backend_config\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22PADDING\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.0, \22sliding_window_length\22: 0, \22max_seg_per_batch\22: 1, \22is_paged_attention\22: false}}", call_target_name = "__cudnn$fmhaSoftmax", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2xi32>, tensor<2xi32>) -> (tensor<2x4x24x32xbf16>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// A causal window.
// CHECK-LABEL: func.func @win(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      visible {
// CHECK-NOT:     custom_call
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> tensor<2x24x4x32xbf16>, sym_name = "win"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>):
    %0:2 = "stablehlo.custom_call"(%arg0, %arg1, %arg2) <{api_version = 2 : i32, backend_config = "{\22cudnn_fmha_backend_config\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22CAUSAL\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.0, \22sliding_window_length\22: 8, \22max_seg_per_batch\22: 1, \22is_paged_attention\22: false}}", call_target_name = "__cudnn$fmhaSoftmax", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> (tensor<2x4x24x32xbf16>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// With the log-sum-exp.
// CHECK-LABEL: func.func @lse(
// CHECK:         %[[L:.*]] = tensor.empty() : tensor<2x4x24xf32>
// CHECK:         %[[A:.*]]:2 = kvbuffer.attention {{.*}} lse(%[[L]]) {scale = 2.500000e-01 : f32}
// CHECK-NOT:     custom_call
// CHECK:         return %{{.*}}, %[[A]]#1 :
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> (tensor<2x24x4x32xbf16>, tensor<2x4x24xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}], sym_name = "lse"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>):
    %0:3 = "stablehlo.custom_call"(%arg0, %arg1, %arg2) <{api_version = 2 : i32, backend_config = "{\22cudnn_fmha_backend_config\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22NO_MASK\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.0, \22sliding_window_length\22: 0, \22max_seg_per_batch\22: 1, \22is_paged_attention\22: false}}", call_target_name = "__cudnn$fmhaSoftmax", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<[2, 1, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> (tensor<2x4x24x32xbf16>, tensor<2x4x24xf32>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1, %0#1) : (tensor<2x24x4x32xbf16>, tensor<2x4x24xf32>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// A composite; its decomposition stays.
// CHECK-LABEL: func.func @composite(
// CHECK-NOT:     stablehlo.composite
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 2.500000e-01 : f32} : tensor<2x24x4x32xbf16>
// CHECK-SAME:      captures(%{{.*}} : tensor<2x1x24x40xf32>) score {
// CHECK-NOT:     stablehlo.composite
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x4x32xbf16>, tensor<2x40x4x32xbf16>, tensor<2x1x24x40xf32>) -> tensor<2x24x4x32xbf16>, res_attrs = [{jax.result_info = "result"}], sym_name = "composite"}> ({
  ^bb0(%arg8: tensor<2x24x4x32xbf16>, %arg9: tensor<2x40x4x32xbf16>, %arg10: tensor<2x40x4x32xbf16>, %arg11: tensor<2x1x24x40xf32>):
    %26 = "stablehlo.composite"(%arg8, %arg9, %arg10, %arg11) <{composite_attributes = {scale = 2.500000e-01 : f32}, decomposition = @odml.scaled_dot_product_attention, name = "odml.scaled_dot_product_attention"}> : (tensor<2x24x4x32xbf16>, tensor<2x40x4x32xbf16>, tensor<2x40x4x32xbf16>, tensor<2x1x24x40xf32>) -> tensor<2x24x4x32xbf16>
    "func.return"(%26) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x4x32xbf16>, tensor<2x40x4x32xbf16>, tensor<2x1x24x40xf32>) -> tensor<2x24x4x32xbf16>, sym_name = "odml.scaled_dot_product_attention", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x4x32xbf16>, %arg2: tensor<2x40x4x32xbf16>, %arg3: tensor<2x1x24x40xf32>):
    %0 = "stablehlo.dot_general"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x4x32xbf16>) -> tensor<2x4x24x40xbf16>
    %1 = "stablehlo.convert"(%0) : (tensor<2x4x24x40xbf16>) -> tensor<2x4x24x40xf32>
    %2 = "stablehlo.constant"() <{value = dense<2.500000e-01> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x4x24x40xf32>
    %4 = "stablehlo.multiply"(%1, %3) : (tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %5 = "stablehlo.broadcast_in_dim"(%arg3) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<2x1x24x40xf32>) -> tensor<2x4x24x40xf32>
    %6 = "stablehlo.add"(%4, %5) : (tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %7 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %8 = "stablehlo.reduce"(%6, %7) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %25 = "stablehlo.maximum"(%arg6, %arg7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%25) : (tensor<f32>) -> ()
    }) : (tensor<2x4x24x40xf32>, tensor<f32>) -> tensor<2x4x24xf32>
    %9 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %10 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x4x24xf32>
    %11 = "stablehlo.maximum"(%10, %8) : (tensor<2x4x24xf32>, tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %12 = "stablehlo.broadcast_in_dim"(%11) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x24xf32>) -> tensor<2x4x24x1xf32>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<2x4x24x1xf32>) -> tensor<2x4x24x40xf32>
    %14 = "stablehlo.subtract"(%6, %13) : (tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %15 = "stablehlo.exponential"(%14) : (tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %16 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.reduce"(%15, %16) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %24 = "stablehlo.add"(%arg4, %arg5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%24) : (tensor<f32>) -> ()
    }) : (tensor<2x4x24x40xf32>, tensor<f32>) -> tensor<2x4x24xf32>
    %18 = "stablehlo.broadcast_in_dim"(%17) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x24xf32>) -> tensor<2x4x24x1xf32>
    %19 = "stablehlo.broadcast_in_dim"(%18) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<2x4x24x1xf32>) -> tensor<2x4x24x40xf32>
    %20 = "stablehlo.divide"(%15, %19) : (tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %21 = "stablehlo.convert"(%20) : (tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xbf16>
    %22 = "stablehlo.dot_general"(%arg2, %21) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x40x4x32xbf16>, tensor<2x4x24x40xbf16>) -> tensor<2x4x32x24xbf16>
    %23 = "stablehlo.transpose"(%22) <{permutation = array<i64: 0, 3, 1, 2>}> : (tensor<2x4x32x24xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%23) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()
