// What of these ops is not taken, and the remark that says why. The op stays, and no
// cast is left.

// RUN: kvbuf-opt %s --allow-unregistered-dialect --split-input-file --kvbuf-convert-attention-ops --mlir-print-local-scope --remark-format=emitRemark --remarks-filter=kvbuf-convert-attention-ops -o %t.mlir 2> %t.log
// RUN: FileCheck %s < %t.log --implicit-check-not=remark:
// RUN: FileCheck %s --check-prefix=STAYS --implicit-check-not=kvbuffer.attention < %t.mlir
// RUN: not kvbuf-opt %s --allow-unregistered-dialect --kvbuf-convert-attention-ops=round=f32 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: expected 'round' to be bf16 or f16, got 'f32'
// STAYS-NOT: to_builtin_tensor

// CHECK: remark: {{.*}}'torch.aten.scaled_dot_product_attention' stays: it drops weights
// STAYS: torch.aten.scaled_dot_product_attention
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[2,4,24,32],bf16>, !torch.vtensor<[2,4,24,32],bf16>, !torch.vtensor<[2,4,24,32],bf16>) -> !torch.vtensor<[2,4,24,32],bf16>, sym_name = "a"}> ({
  ^bb0(%arg0: !torch.vtensor<[2,4,24,32],bf16>, %arg1: !torch.vtensor<[2,4,24,32],bf16>, %arg2: !torch.vtensor<[2,4,24,32],bf16>):
    %0 = "torch.constant.none"() : () -> !torch.none
    %1 = "torch.constant.float"() <{value = 1.000000e-01 : f64}> : () -> !torch.float
    %2 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %3 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %4 = "torch.aten.scaled_dot_product_attention"(%arg0, %arg1, %arg2, %0, %1, %2, %0, %3) : (!torch.vtensor<[2,4,24,32],bf16>, !torch.vtensor<[2,4,24,32],bf16>, !torch.vtensor<[2,4,24,32],bf16>, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool) -> !torch.vtensor<[2,4,24,32],bf16>
    "func.return"(%4) : (!torch.vtensor<[2,4,24,32],bf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'torch.aten.scaled_dot_product_attention' stays: 4 heads of queries share 2 of keys without enable_gqa
// STAYS: torch.aten.scaled_dot_product_attention
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[2,4,24,32],bf16>, !torch.vtensor<[2,2,24,32],bf16>, !torch.vtensor<[2,2,24,32],bf16>) -> !torch.vtensor<[2,4,24,32],bf16>, sym_name = "a"}> ({
  ^bb0(%arg0: !torch.vtensor<[2,4,24,32],bf16>, %arg1: !torch.vtensor<[2,2,24,32],bf16>, %arg2: !torch.vtensor<[2,2,24,32],bf16>):
    %0 = "torch.constant.none"() : () -> !torch.none
    %1 = "torch.constant.float"() <{value = 0.000000e+00 : f64}> : () -> !torch.float
    %2 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %3 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %4 = "torch.aten.scaled_dot_product_attention"(%arg0, %arg1, %arg2, %0, %1, %2, %0, %3) : (!torch.vtensor<[2,4,24,32],bf16>, !torch.vtensor<[2,2,24,32],bf16>, !torch.vtensor<[2,2,24,32],bf16>, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool) -> !torch.vtensor<[2,4,24,32],bf16>
    "func.return"(%4) : (!torch.vtensor<[2,4,24,32],bf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'torch.aten.scaled_dot_product_attention' stays: 3 heads of queries are no multiple of 2 heads of keys
// STAYS: torch.aten.scaled_dot_product_attention
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[2,3,24,32],bf16>, !torch.vtensor<[2,2,24,32],bf16>, !torch.vtensor<[2,2,24,32],bf16>) -> !torch.vtensor<[2,3,24,32],bf16>, sym_name = "a"}> ({
  ^bb0(%arg0: !torch.vtensor<[2,3,24,32],bf16>, %arg1: !torch.vtensor<[2,2,24,32],bf16>, %arg2: !torch.vtensor<[2,2,24,32],bf16>):
    %0 = "torch.constant.none"() : () -> !torch.none
    %1 = "torch.constant.float"() <{value = 0.000000e+00 : f64}> : () -> !torch.float
    %2 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %3 = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
    %4 = "torch.aten.scaled_dot_product_attention"(%arg0, %arg1, %arg2, %0, %1, %2, %0, %3) : (!torch.vtensor<[2,3,24,32],bf16>, !torch.vtensor<[2,2,24,32],bf16>, !torch.vtensor<[2,2,24,32],bf16>, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool) -> !torch.vtensor<[2,3,24,32],bf16>
    "func.return"(%4) : (!torch.vtensor<[2,3,24,32],bf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'torch.aten.scaled_dot_product_attention' stays: queries, keys or values are no tensors of bf16 or f16
// STAYS: torch.aten.scaled_dot_product_attention
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[2,4,24,32],f32>, !torch.vtensor<[2,4,24,32],f32>, !torch.vtensor<[2,4,24,32],f32>) -> !torch.vtensor<[2,4,24,32],f32>, sym_name = "a"}> ({
  ^bb0(%arg0: !torch.vtensor<[2,4,24,32],f32>, %arg1: !torch.vtensor<[2,4,24,32],f32>, %arg2: !torch.vtensor<[2,4,24,32],f32>):
    %0 = "torch.constant.none"() : () -> !torch.none
    %1 = "torch.constant.float"() <{value = 0.000000e+00 : f64}> : () -> !torch.float
    %2 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %3 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %4 = "torch.aten.scaled_dot_product_attention"(%arg0, %arg1, %arg2, %0, %1, %2, %0, %3) : (!torch.vtensor<[2,4,24,32],f32>, !torch.vtensor<[2,4,24,32],f32>, !torch.vtensor<[2,4,24,32],f32>, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool) -> !torch.vtensor<[2,4,24,32],f32>
    "func.return"(%4) : (!torch.vtensor<[2,4,24,32],f32>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'torch.aten.scaled_dot_product_attention' stays: the head size 20 is no multiple of 8
// STAYS: torch.aten.scaled_dot_product_attention
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[2,4,24,20],bf16>, !torch.vtensor<[2,4,24,20],bf16>, !torch.vtensor<[2,4,24,20],bf16>) -> !torch.vtensor<[2,4,24,20],bf16>, sym_name = "a"}> ({
  ^bb0(%arg0: !torch.vtensor<[2,4,24,20],bf16>, %arg1: !torch.vtensor<[2,4,24,20],bf16>, %arg2: !torch.vtensor<[2,4,24,20],bf16>):
    %0 = "torch.constant.none"() : () -> !torch.none
    %1 = "torch.constant.float"() <{value = 0.000000e+00 : f64}> : () -> !torch.float
    %2 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %3 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %4 = "torch.aten.scaled_dot_product_attention"(%arg0, %arg1, %arg2, %0, %1, %2, %0, %3) : (!torch.vtensor<[2,4,24,20],bf16>, !torch.vtensor<[2,4,24,20],bf16>, !torch.vtensor<[2,4,24,20],bf16>, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool) -> !torch.vtensor<[2,4,24,20],bf16>
    "func.return"(%4) : (!torch.vtensor<[2,4,24,20],bf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'torch.aten.scaled_dot_product_attention' stays: a dimension of the mask is 39, and 40 of the scores
// STAYS: torch.aten.scaled_dot_product_attention
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[2,4,24,32],bf16>, !torch.vtensor<[2,4,40,32],bf16>, !torch.vtensor<[2,4,40,32],bf16>, !torch.vtensor<[24,39],i1>) -> !torch.vtensor<[2,4,24,32],bf16>, sym_name = "a"}> ({
  ^bb0(%arg0: !torch.vtensor<[2,4,24,32],bf16>, %arg1: !torch.vtensor<[2,4,40,32],bf16>, %arg2: !torch.vtensor<[2,4,40,32],bf16>, %arg3: !torch.vtensor<[24,39],i1>):
    %0 = "torch.constant.none"() : () -> !torch.none
    %1 = "torch.constant.float"() <{value = 0.000000e+00 : f64}> : () -> !torch.float
    %2 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %3 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %4 = "torch.aten.scaled_dot_product_attention"(%arg0, %arg1, %arg2, %arg3, %1, %2, %0, %3) : (!torch.vtensor<[2,4,24,32],bf16>, !torch.vtensor<[2,4,40,32],bf16>, !torch.vtensor<[2,4,40,32],bf16>, !torch.vtensor<[24,39],i1>, !torch.float, !torch.bool, !torch.none, !torch.bool) -> !torch.vtensor<[2,4,24,32],bf16>
    "func.return"(%4) : (!torch.vtensor<[2,4,24,32],bf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'tm_tensor.attention' stays: the mask is neither of truth values nor of floats
// STAYS: tm_tensor.attention
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<6x24x32xbf16>, tensor<6x40x32xbf16>, tensor<6x40x32xbf16>, tensor<6x24x40xi8>) -> tensor<6x24x32xbf16>, sym_name = "a"}> ({
  ^bb0(%arg0: tensor<6x24x32xbf16>, %arg1: tensor<6x40x32xbf16>, %arg2: tensor<6x40x32xbf16>, %arg3: tensor<6x24x40xi8>):
    %0 = "tensor.empty"() : () -> tensor<6x24x32xbf16>
    %1 = "tm_tensor.attention"(%arg0, %arg1, %arg2, %arg3, %0) <{operandSegmentSizes = array<i32: 4, 1>}> : (tensor<6x24x32xbf16>, tensor<6x40x32xbf16>, tensor<6x40x32xbf16>, tensor<6x24x40xi8>, tensor<6x24x32xbf16>) -> tensor<6x24x32xbf16>
    "func.return"(%1) : (tensor<6x24x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'tm_tensor.attention' stays: the result is neither of the type of queries, keys and values nor f32
// STAYS: tm_tensor.attention
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<6x24x32xbf16>, tensor<6x40x32xbf16>, tensor<6x40x16xbf16>) -> tensor<6x24x16xf64>, sym_name = "a"}> ({
  ^bb0(%arg0: tensor<6x24x32xbf16>, %arg1: tensor<6x40x32xbf16>, %arg2: tensor<6x40x16xbf16>):
    %0 = "tensor.empty"() : () -> tensor<6x24x16xf64>
    %1 = "tm_tensor.attention"(%arg0, %arg1, %arg2, %0) <{operandSegmentSizes = array<i32: 3, 1>}> : (tensor<6x24x32xbf16>, tensor<6x40x32xbf16>, tensor<6x40x16xbf16>, tensor<6x24x16xf64>) -> tensor<6x24x16xf64>
    "func.return"(%1) : (tensor<6x24x16xf64>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'iree_linalg_ext.attention' stays: its region changes scores, which are in units of base 2 there unless decomposition_config says use_exp2 = false
// STAYS: iree_linalg_ext.attention
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>) -> tensor<4x24x32xf16>, sym_name = "a"}> ({
  ^bb0(%arg0: tensor<4x24x32xf16>, %arg1: tensor<4x40x32xf16>, %arg2: tensor<4x40x32xf16>):
    %0 = "arith.constant"() <{value = 2.500000e-01 : f16}> : () -> f16
    %1 = "tensor.empty"() : () -> tensor<4x24x32xf16>
    %2 = "iree_linalg_ext.attention"(%arg0, %arg1, %arg2, %0, %1) <{indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>]}> ({
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

// CHECK: remark: {{.*}}'iree_linalg_ext.attention' stays: its region has 'test.scalar', which is no op of scalars
// STAYS: iree_linalg_ext.attention
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>) -> tensor<4x24x32xf16>, sym_name = "a"}> ({
  ^bb0(%arg0: tensor<4x24x32xf16>, %arg1: tensor<4x40x32xf16>, %arg2: tensor<4x40x32xf16>):
    %0 = "arith.constant"() <{value = 2.500000e-01 : f16}> : () -> f16
    %1 = "tensor.empty"() : () -> tensor<4x24x32xf16>
    %2 = "iree_linalg_ext.attention"(%arg0, %arg1, %arg2, %0, %1) <{indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>]}> ({
    ^bb0(%arg3: f32):
      %3 = "iree_linalg_ext.index"() <{dim = 1 : i64}> : () -> index
      %4 = "iree_linalg_ext.index"() <{dim = 4 : i64}> : () -> index
      %5 = "arith.subi"(%4, %3) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
      %6 = "arith.index_cast"(%5) : (index) -> i32
      %7 = "arith.sitofp"(%6) : (i32) -> f32
      %8 = "arith.constant"() <{value = 3.125000e-02 : f32}> : () -> f32
      %9 = "test.scalar"(%7, %8) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %10 = "arith.mulf"(%arg3, %arg3) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %11 = "arith.addf"(%10, %9) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "iree_linalg_ext.yield"(%11) : (f32) -> ()
    }) : (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>, f16, tensor<4x24x32xf16>) -> tensor<4x24x32xf16>
    "func.return"(%2) : (tensor<4x24x32xf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'iree_linalg_ext.online_attention' stays: it goes on from the result of earlier keys
// STAYS: iree_linalg_ext.online_attention
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>) -> tensor<4x24x32xf16>, sym_name = "a"}> ({
  ^bb0(%arg0: tensor<4x24x32xf16>, %arg1: tensor<4x40x32xf16>, %arg2: tensor<4x40x32xf16>):
    %0 = "arith.constant"() <{value = 2.500000e-01 : f16}> : () -> f16
    %1 = "tensor.empty"() : () -> tensor<4x24x32xf16>
    %2 = "tensor.empty"() : () -> tensor<4x24x32xf32>
    %3 = "tensor.empty"() : () -> tensor<4x24xf32>
    %4 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
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

// -----

// CHECK: remark: {{.*}}'iree_linalg_ext.online_attention' stays: the maximum of the scores has users
// STAYS: iree_linalg_ext.online_attention
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x24x32xf16>, tensor<4x40x32xf16>, tensor<4x40x32xf16>) -> tensor<4x24x32xf16>, sym_name = "a"}> ({
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
    %11 = "linalg.generic"(%10#1, %10#0, %1) <{indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>}> ({
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

// -----

// CHECK: remark: {{.*}}'stablehlo.custom_call' stays: its backend_config does not say what it computes
// STAYS: stablehlo.custom_call
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> tensor<2x24x4x32xbf16>, sym_name = "causal"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>):
    %0:2 = "stablehlo.custom_call"(%arg0, %arg1, %arg2) <{api_version = 2 : i32, backend_config = "{\22other\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22CAUSAL\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.0, \22sliding_window_length\22: 0, \22max_seg_per_batch\22: 1, \22is_paged_attention\22: false}}", call_target_name = "__cudnn$fmhaSoftmax", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> (tensor<2x4x24x32xbf16>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'stablehlo.custom_call' stays: its mask is 'ALIBI'
// STAYS: stablehlo.custom_call
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> tensor<2x24x4x32xbf16>, sym_name = "causal"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>):
    %0:2 = "stablehlo.custom_call"(%arg0, %arg1, %arg2) <{api_version = 2 : i32, backend_config = "{\22cudnn_fmha_backend_config\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22ALIBI\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.0, \22sliding_window_length\22: 0, \22max_seg_per_batch\22: 1, \22is_paged_attention\22: false}}", call_target_name = "__cudnn$fmhaSoftmax", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> (tensor<2x4x24x32xbf16>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'stablehlo.custom_call' stays: it drops weights
// STAYS: stablehlo.custom_call
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> tensor<2x24x4x32xbf16>, sym_name = "causal"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>):
    %0:2 = "stablehlo.custom_call"(%arg0, %arg1, %arg2) <{api_version = 2 : i32, backend_config = "{\22cudnn_fmha_backend_config\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22CAUSAL\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.5, \22sliding_window_length\22: 0, \22max_seg_per_batch\22: 1, \22is_paged_attention\22: false}}", call_target_name = "__cudnn$fmhaSoftmax", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> (tensor<2x4x24x32xbf16>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'stablehlo.custom_call' stays: its keys and values lie in pages
// STAYS: stablehlo.custom_call
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> tensor<2x24x4x32xbf16>, sym_name = "causal"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>):
    %0:2 = "stablehlo.custom_call"(%arg0, %arg1, %arg2) <{api_version = 2 : i32, backend_config = "{\22cudnn_fmha_backend_config\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22CAUSAL\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.0, \22sliding_window_length\22: 0, \22max_seg_per_batch\22: 1, \22is_paged_attention\22: true}}", call_target_name = "__cudnn$fmhaSoftmax", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> (tensor<2x4x24x32xbf16>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'stablehlo.custom_call' stays: its sequences are packed in segments
// STAYS: stablehlo.custom_call
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> tensor<2x24x4x32xbf16>, sym_name = "causal"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>):
    %0:2 = "stablehlo.custom_call"(%arg0, %arg1, %arg2) <{api_version = 2 : i32, backend_config = "{\22cudnn_fmha_backend_config\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22CAUSAL\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.0, \22sliding_window_length\22: 0, \22max_seg_per_batch\22: 2, \22is_paged_attention\22: false}}", call_target_name = "__cudnn$fmhaSoftmax", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> (tensor<2x4x24x32xbf16>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'stablehlo.custom_call' stays: '__cudnn$fmhaSoftmaxBackward' is not the attention of 16-bit floats alone
// STAYS: stablehlo.custom_call
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> tensor<2x24x4x32xbf16>, sym_name = "causal"}> ({
  ^bb0(%arg0: tensor<2x24x4x32xbf16>, %arg1: tensor<2x40x2x32xbf16>, %arg2: tensor<2x40x2x32xbf16>):
    %0:2 = "stablehlo.custom_call"(%arg0, %arg1, %arg2) <{api_version = 2 : i32, backend_config = "{\22cudnn_fmha_backend_config\22: {\22fmha_scale\22: 0.25, \22mask_type\22: \22CAUSAL\22, \22bmm1_dot_dimension_numbers\22: {\22lhs_contracting_dimensions\22: [\223\22], \22rhs_contracting_dimensions\22: [\223\22], \22lhs_batch_dimensions\22: [\220\22, \222\22], \22rhs_batch_dimensions\22: [\220\22, \222\22]}, \22dropout_rate\22: 0.0, \22sliding_window_length\22: 0, \22max_seg_per_batch\22: 1, \22is_paged_attention\22: false}}", call_target_name = "__cudnn$fmhaSoftmaxBackward", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 1, 2, 0]> : tensor<4xindex>, dense<0> : tensor<1xindex>]}> : (tensor<2x24x4x32xbf16>, tensor<2x40x2x32xbf16>, tensor<2x40x2x32xbf16>) -> (tensor<2x4x24x32xbf16>, tensor<0xui8>)
    %1 = "stablehlo.transpose"(%0#0) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x4x24x32xbf16>) -> tensor<2x24x4x32xbf16>
    "func.return"(%1) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'stablehlo.composite' stays: composite 'my.attention' is none that is known here; stablehlo-legalize-composite-to-call and inlining leave what kvbuf-raise-attention reads
// STAYS: stablehlo.composite
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x24x4x32xbf16>, tensor<2x40x4x32xbf16>, tensor<2x40x4x32xbf16>, tensor<2x1x24x40xf32>) -> tensor<2x24x4x32xbf16>, res_attrs = [{jax.result_info = "result"}], sym_name = "composite"}> ({
  ^bb0(%arg8: tensor<2x24x4x32xbf16>, %arg9: tensor<2x40x4x32xbf16>, %arg10: tensor<2x40x4x32xbf16>, %arg11: tensor<2x1x24x40xf32>):
    %26 = "stablehlo.composite"(%arg8, %arg9, %arg10, %arg11) <{composite_attributes = {scale = 2.500000e-01 : f32}, decomposition = @odml.scaled_dot_product_attention, name = "my.attention"}> : (tensor<2x24x4x32xbf16>, tensor<2x40x4x32xbf16>, tensor<2x40x4x32xbf16>, tensor<2x1x24x40xf32>) -> tensor<2x24x4x32xbf16>
    "func.return"(%26) : (tensor<2x24x4x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'torch.operator' stays: operands of 3 dimensions need q_num_heads and kv_num_heads
// STAYS: torch.operator
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[2,24,256],f16>, !torch.vtensor<[2,24,64],f16>, !torch.vtensor<[2,24,64],f16>) -> !torch.vtensor<[2,24,256],f16>, sym_name = "a"}> ({
  ^bb0(%arg0: !torch.vtensor<[2,24,256],f16>, %arg1: !torch.vtensor<[2,24,64],f16>, %arg2: !torch.vtensor<[2,24,64],f16>):
    %0 = "torch.operator"(%arg0, %arg1, %arg2) <{name = "onnx.Attention"}> : (!torch.vtensor<[2,24,256],f16>, !torch.vtensor<[2,24,64],f16>, !torch.vtensor<[2,24,64],f16>) -> !torch.vtensor<[2,24,256],f16>
    "func.return"(%0) : (!torch.vtensor<[2,24,256],f16>) -> ()
  }) {torch.onnx_meta.opset_version = 24 : si64} : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'torch.operator' stays: its window is about lengths of the sequences
// STAYS: torch.operator
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[2,4,24,32],f16>, !torch.vtensor<[2,4,40,32],f16>, !torch.vtensor<[2,4,40,32],f16>, !torch.vtensor<[2],si64>) -> !torch.vtensor<[2,4,24,32],f16>, sym_name = "a"}> ({
  ^bb0(%arg0: !torch.vtensor<[2,4,24,32],f16>, %arg1: !torch.vtensor<[2,4,40,32],f16>, %arg2: !torch.vtensor<[2,4,40,32],f16>, %arg3: !torch.vtensor<[2],si64>):
    %0 = "torch.constant.none"() : () -> !torch.none
    %1 = "torch.operator"(%arg0, %arg1, %arg2, %0, %0, %0, %arg3) <{name = "onnx.Attention"}> {torch.onnx.is_causal = 1 : si64} : (!torch.vtensor<[2,4,24,32],f16>, !torch.vtensor<[2,4,40,32],f16>, !torch.vtensor<[2,4,40,32],f16>, !torch.none, !torch.none, !torch.none, !torch.vtensor<[2],si64>) -> !torch.vtensor<[2,4,24,32],f16>
    "func.return"(%1) : (!torch.vtensor<[2,4,24,32],f16>) -> ()
  }) {torch.onnx_meta.opset_version = 24 : si64} : () -> ()
}) : () -> ()

// -----

// CHECK: remark: {{.*}}'onnx.Attention' stays: its result 3 has users
// STAYS: onnx.Attention
"func.func"() <{function_type = (tensor<2x4x24x32xf16>) -> tensor<2x4x24x24xf16>, sym_name = "a"}> ({
^bb0(%arg0: tensor<2x4x24x32xf16>):
  %0 = "onnx.NoValue"() {value} : () -> none
  %1:4 = "onnx.Attention"(%arg0, %arg0, %arg0, %0, %0, %0) : (tensor<2x4x24x32xf16>, tensor<2x4x24x32xf16>, tensor<2x4x24x32xf16>, none, none, none) -> (tensor<2x4x24x32xf16>, none, none, tensor<2x4x24x24xf16>)
  "func.return"(%1#3) : (tensor<2x4x24x24xf16>) -> ()
}) : () -> ()
