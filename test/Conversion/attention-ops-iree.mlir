// iree_linalg_ext.attention and online_attention as IREE's tools print them in generic
// form (iree-base-compiler 3.13.0: `iree-opt --mlir-print-op-generic`).
// test/Raise/attention-ops.py runs them.

// RUN: kvbuf-opt %s --allow-unregistered-dialect --split-input-file --kvbuf-convert-attention-ops --mlir-print-local-scope | FileCheck %s

// A mask that is added.
// CHECK-LABEL: func.func @masked(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 2.500000e-01 : f32} : tensor<4x24x1x32xf16>, tensor<4x40x1x32xf16>
// CHECK-SAME:      captures(%{{.*}} : tensor<4x24x40xf16>) score {
// CHECK-NOT:     iree_linalg_ext
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>, tensor<4x24x40xf16>) -> tensor<4x24x32xf16>, sym_name = "masked"}> ({
  ^bb0(%arg0: tensor<4x24x32xf16>, %arg1: tensor<4x40x32xf16>, %arg2: tensor<4x40x32xf16>, %arg3: tensor<4x24x40xf16>):
    %0 = "arith.constant"() <{value = 2.500000e-01 : f16}> : () -> f16
    %1 = "tensor.empty"() : () -> tensor<4x24x32xf16>
    %2 = "iree_linalg_ext.attention"(%arg0, %arg1, %arg2, %0, %arg3, %1) <{indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>]}> ({
    ^bb0(%arg4: f32):
      "iree_linalg_ext.yield"(%arg4) : (f32) -> ()
    }) : (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>, f16, tensor<4x24x40xf16>, tensor<4x24x32xf16>) -> tensor<4x24x32xf16>
    "func.return"(%2) : (tensor<4x24x32xf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// A region that hides keys is the window that it leaves; a result of f32.
// CHECK-LABEL: func.func @causal(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {mask = #kvbuffer.mask<causal = true>, scale = 2.500000e-01 : f32}
// CHECK-SAME:      -> tensor<4x24x1x32xf32>
// CHECK-NOT:     iree_linalg_ext
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>) -> tensor<4x24x32xf32>, sym_name = "causal"}> ({
  ^bb0(%arg0: tensor<4x24x32xf16>, %arg1: tensor<4x40x32xf16>, %arg2: tensor<4x40x32xf16>):
    %0 = "arith.constant"() <{value = 2.500000e-01 : f16}> : () -> f16
    %1 = "tensor.empty"() : () -> tensor<4x24x32xf32>
    %2 = "iree_linalg_ext.attention"(%arg0, %arg1, %arg2, %0, %1) <{indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>]}> ({
    ^bb0(%arg3: f32):
      %3 = "iree_linalg_ext.index"() <{dim = 1 : i64}> : () -> index
      %4 = "iree_linalg_ext.index"() <{dim = 4 : i64}> : () -> index
      %5 = "arith.constant"() <{value = 16 : index}> : () -> index
      %6 = "arith.addi"(%3, %5) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
      %7 = "arith.cmpi"(%6, %4) <{predicate = 5 : i64}> : (index, index) -> i1
      %8 = "arith.constant"() <{value = 0xFF800000 : f32}> : () -> f32
      %9 = "arith.select"(%7, %arg3, %8) : (i1, f32, f32) -> f32
      "iree_linalg_ext.yield"(%9) : (f32) -> ()
    }) : (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>, f16, tensor<4x24x32xf32>) -> tensor<4x24x32xf32>
    "func.return"(%2) : (tensor<4x24x32xf32>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// A scale that is a value comes before the region.
// CHECK-LABEL: func.func @given_scale(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {mask = #kvbuffer.mask<causal = true>, scale = 1.000000e+00 : f32}
// CHECK-SAME:      captures(%{{.*}} : tensor<f16>) score {
// CHECK:           %[[X:.*]] = tensor.extract
// CHECK:           %[[S:.*]] = arith.extf %[[X]] : f16 to f32
// CHECK:           arith.mulf %{{.*}}, %[[S]] : f32
// CHECK-NOT:     iree_linalg_ext
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>, f16) -> tensor<4x24x32xf16>, sym_name = "given_scale"}> ({
  ^bb0(%arg0: tensor<4x24x32xf16>, %arg1: tensor<4x40x32xf16>, %arg2: tensor<4x40x32xf16>, %arg3: f16):
    %0 = "tensor.empty"() : () -> tensor<4x24x32xf16>
    %1 = "iree_linalg_ext.attention"(%arg0, %arg1, %arg2, %arg3, %0) <{indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>]}> ({
    ^bb0(%arg4: f32):
      %2 = "iree_linalg_ext.index"() <{dim = 1 : i64}> : () -> index
      %3 = "iree_linalg_ext.index"() <{dim = 4 : i64}> : () -> index
      %4 = "arith.constant"() <{value = 16 : index}> : () -> index
      %5 = "arith.addi"(%2, %4) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
      %6 = "arith.cmpi"(%5, %3) <{predicate = 5 : i64}> : (index, index) -> i1
      %7 = "arith.constant"() <{value = 0xFF800000 : f32}> : () -> f32
      %8 = "arith.select"(%6, %arg4, %7) : (i1, f32, f32) -> f32
      "iree_linalg_ext.yield"(%8) : (f32) -> ()
    }) : (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>, f16, tensor<4x24x32xf16>) -> tensor<4x24x32xf16>
    "func.return"(%1) : (tensor<4x24x32xf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// A function of scores.
// CHECK-LABEL: func.func @function(
// CHECK:         kvbuffer.attention
// CHECK-SAME:      {scale = 2.500000e-01 : f32}
// CHECK-SAME:      score {
// CHECK:           arith.mulf %[[S:.*]], %[[S]] : f32
// CHECK-NOT:     iree_linalg_ext
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>) -> tensor<4x24x32xf16>, sym_name = "function"}> ({
  ^bb0(%arg0: tensor<4x24x32xf16>, %arg1: tensor<4x40x32xf16>, %arg2: tensor<4x40x32xf16>):
    %0 = "arith.constant"() <{value = 2.500000e-01 : f16}> : () -> f16
    %1 = "tensor.empty"() : () -> tensor<4x24x32xf16>
    %2 = "iree_linalg_ext.attention"(%arg0, %arg1, %arg2, %0, %1) <{decomposition_config = {use_exp2 = false}, indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>]}> ({
    ^bb0(%arg3: f32):
      %3 = "iree_linalg_ext.index"() <{dim = 1 : i64}> : () -> index
      %4 = "iree_linalg_ext.index"() <{dim = 4 : i64}> : () -> index
      %5 = "arith.subi"(%4, %3) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
      %6 = "arith.index_cast"(%5) : (index) -> i32
      %7 = "arith.sitofp"(%6) : (i32) -> f32
      %8 = "arith.constant"() <{value = 3.125000e-02 : f32}> : () -> f32
      %9 = "arith.mulf"(%7, %8) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %10 = "arith.mulf"(%arg3, %arg3) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %11 = "arith.addf"(%10, %9) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "iree_linalg_ext.yield"(%11) : (f32) -> ()
    }) : (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>, f16, tensor<4x24x32xf16>) -> tensor<4x24x32xf16>
    "func.return"(%2) : (tensor<4x24x32xf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// The online form: what it is divided by is 1.
// CHECK-LABEL: func.func @online(
// CHECK:         %[[O:.*]] = kvbuffer.attention
// CHECK-SAME:      {mask = #kvbuffer.mask<causal = true>, scale = 2.500000e-01 : f32}
// CHECK-SAME:      -> tensor<4x24x1x32xf32>
// CHECK:         %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:         linalg.fill ins(%[[ONE]] : f32)
// CHECK-NOT:     iree_linalg_ext
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>) -> tensor<4x24x32xf16>, sym_name = "online"}> ({
  ^bb0(%arg0: tensor<4x24x32xf16>, %arg1: tensor<4x40x32xf16>, %arg2: tensor<4x40x32xf16>):
    %0 = "arith.constant"() <{value = 2.500000e-01 : f16}> : () -> f16
    %1 = "tensor.empty"() : () -> tensor<4x24x32xf16>
    %2 = "tensor.empty"() : () -> tensor<4x24x32xf32>
    %3 = "tensor.empty"() : () -> tensor<4x24xf32>
    %4 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %5 = "arith.constant"() <{value = -3.40282347E+38 : f32}> : () -> f32
    %6 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %7 = "linalg.fill"(%4, %2) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg11: f32, %arg12: f32):
      "linalg.yield"(%arg11) : (f32) -> ()
    }) : (f32, tensor<4x24x32xf32>) -> tensor<4x24x32xf32>
    %8 = "linalg.fill"(%5, %3) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg9: f32, %arg10: f32):
      "linalg.yield"(%arg9) : (f32) -> ()
    }) : (f32, tensor<4x24xf32>) -> tensor<4x24xf32>
    %9 = "linalg.fill"(%6, %3) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg7: f32, %arg8: f32):
      "linalg.yield"(%arg7) : (f32) -> ()
    }) : (f32, tensor<4x24xf32>) -> tensor<4x24xf32>
    %10:3 = "iree_linalg_ext.online_attention"(%arg0, %arg1, %arg2, %0, %7, %8, %9) <{indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>]}> ({
    ^bb0(%arg6: f32):
      %16 = "iree_linalg_ext.index"() <{dim = 1 : i64}> : () -> index
      %17 = "iree_linalg_ext.index"() <{dim = 4 : i64}> : () -> index
      %18 = "arith.constant"() <{value = 16 : index}> : () -> index
      %19 = "arith.addi"(%16, %18) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
      %20 = "arith.cmpi"(%19, %17) <{predicate = 5 : i64}> : (index, index) -> i1
      %21 = "arith.constant"() <{value = 0xFF800000 : f32}> : () -> f32
      %22 = "arith.select"(%20, %arg6, %21) : (i1, f32, f32) -> f32
      "iree_linalg_ext.yield"(%22) : (f32) -> ()
    }) : (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>, f16, tensor<4x24x32xf32>, tensor<4x24xf32>, tensor<4x24xf32>) -> (tensor<4x24x32xf32>, tensor<4x24xf32>, tensor<4x24xf32>)
    %11 = "linalg.generic"(%10#2, %10#0, %1) <{indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg3: f32, %arg4: f32, %arg5: f16):
      %12 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
      %13 = "arith.divf"(%12, %arg3) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %14 = "arith.mulf"(%13, %arg4) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %15 = "arith.truncf"(%14) : (f32) -> f16
      "linalg.yield"(%15) : (f16) -> ()
    }) : (tensor<4x24xf32>, tensor<4x24x32xf32>, tensor<4x24x32xf16>) -> tensor<4x24x32xf16>
    "func.return"(%11) : (tensor<4x24x32xf16>) -> ()
  }) : () -> ()
}) : () -> ()
