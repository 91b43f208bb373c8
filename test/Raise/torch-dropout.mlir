//   def dropout(q,k,v): return sdpa(q,k,v,dropout_p=0.1)
// Made by torch 2.15.0: torch.export.export, run_decompositions; iree-base-compiler
// 3.13.0: FxImporter, and torch-mlir's passes to linalg on tensors.
// RUN: kvbuf-opt %s --allow-unregistered-dialect --kvbuf-raise-attention --remark-format=emitRemark --remarks-filter=kvbuf-raise-attention 2>&1 | FileCheck %s
// CHECK: remark: {{.*}}not raised
// CHECK-NOT: kvbuffer.attention

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map5 = affine_map<(d0, d1, d2, d3) -> ()>
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x24x32xbf16>, tensor<2x4x40x32xbf16>, tensor<2x4x40x32xbf16>) -> tensor<2x4x24x32xbf16>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<2x4x24x32xbf16>, %arg1: tensor<2x4x40x32xbf16>, %arg2: tensor<2x4x40x32xbf16>):
    %0 = "arith.constant"() <{value = 32 : i64}> : () -> i64
    %1 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %2 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %3 = "arith.constant"() <{value = 0xFF800000 : f32}> : () -> f32
    %4 = "arith.constant"() <{value = false}> : () -> i1
    %5 = "arith.constant"() <{value = 4 : i64}> : () -> i64
    %6 = "arith.constant"() <{value = 24 : i64}> : () -> i64
    %7 = "arith.constant"() <{value = 40 : i64}> : () -> i64
    %8 = "arith.constant"() <{value = 0.000000e+00 : f64}> : () -> f64
    %9 = "arith.constant"() <{value = dense<9.000000e-01> : tensor<f64>}> : () -> tensor<f64>
    %10 = "arith.constant"() <{value = 9.000000e-01 : f64}> : () -> f64
    %11 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<2x4x24x40xf32>}> : () -> tensor<2x4x24x40xf32>
    %12 = "arith.constant"() <{value = 0xFFF0000000000000 : f64}> : () -> f64
    %13 = "arith.constant"() <{value = 0.42044820762685725 : f64}> : () -> f64
    %14 = "arith.constant"() <{value = 5.4210107999999998E-20 : f64}> : () -> f64
    %15 = "tensor.empty"() : () -> tensor<2x4x24x32xf32>
    %16 = "linalg.generic"(%arg0, %15) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg69: bf16, %arg70: f32):
      %140 = "arith.extf"(%arg69) : (bf16) -> f32
      "linalg.yield"(%140) : (f32) -> ()
    }) : (tensor<2x4x24x32xbf16>, tensor<2x4x24x32xf32>) -> tensor<2x4x24x32xf32>
    %17 = "tensor.empty"() : () -> tensor<2x4x40x32xf32>
    %18 = "linalg.generic"(%arg1, %17) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg67: bf16, %arg68: f32):
      %139 = "arith.extf"(%arg67) : (bf16) -> f32
      "linalg.yield"(%139) : (f32) -> ()
    }) : (tensor<2x4x40x32xbf16>, tensor<2x4x40x32xf32>) -> tensor<2x4x40x32xf32>
    %19 = "linalg.generic"(%arg2, %17) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg65: bf16, %arg66: f32):
      %138 = "arith.extf"(%arg65) : (bf16) -> f32
      "linalg.yield"(%138) : (f32) -> ()
    }) : (tensor<2x4x40x32xbf16>, tensor<2x4x40x32xf32>) -> tensor<2x4x40x32xf32>
    %20 = "linalg.generic"(%16, %15) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg63: f32, %arg64: f32):
      %136 = "arith.truncf"(%13) : (f64) -> f32
      %137 = "arith.mulf"(%arg63, %136) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%137) : (f32) -> ()
    }) : (tensor<2x4x24x32xf32>, tensor<2x4x24x32xf32>) -> tensor<2x4x24x32xf32>
    %21 = "tensor.empty"() : () -> tensor<2x4x32x40xf32>
    %22 = "linalg.transpose"(%18, %21) <{permutation = array<i64: 0, 1, 3, 2>}> ({
    ^bb0(%arg61: f32, %arg62: f32):
      "linalg.yield"(%arg61) : (f32) -> ()
    }) : (tensor<2x4x40x32xf32>, tensor<2x4x32x40xf32>) -> tensor<2x4x32x40xf32>
    %23 = "linalg.generic"(%22, %21) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg59: f32, %arg60: f32):
      %134 = "arith.truncf"(%13) : (f64) -> f32
      %135 = "arith.mulf"(%arg59, %134) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%135) : (f32) -> ()
    }) : (tensor<2x4x32x40xf32>, tensor<2x4x32x40xf32>) -> tensor<2x4x32x40xf32>
    %24 = "tensor.collapse_shape"(%20) <{reassociation = [[0, 1], [2], [3]]}> : (tensor<2x4x24x32xf32>) -> tensor<8x24x32xf32>
    %25 = "tensor.collapse_shape"(%23) <{reassociation = [[0, 1], [2], [3]]}> : (tensor<2x4x32x40xf32>) -> tensor<8x32x40xf32>
    %26 = "tensor.empty"() : () -> tensor<8x24x40xf32>
    %27 = "linalg.fill"(%1, %26) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg57: f32, %arg58: f32):
      "linalg.yield"(%arg57) : (f32) -> ()
    }) : (f32, tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %28 = "linalg.batch_matmul"(%24, %25, %27) <{indexing_maps = [#map1, #map2, #map3], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg54: f32, %arg55: f32, %arg56: f32):
      %132 = "arith.mulf"(%arg54, %arg55) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %133 = "arith.addf"(%arg56, %132) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%133) : (f32) -> ()
    }) : (tensor<8x24x32xf32>, tensor<8x32x40xf32>, tensor<8x24x40xf32>) -> tensor<8x24x40xf32>
    %29 = "tensor.expand_shape"(%28) <{reassociation = [[0, 1], [2], [3]], static_output_shape = array<i64: 2, 4, 24, 40>}> : (tensor<8x24x40xf32>) -> tensor<2x4x24x40xf32>
    %30 = "tensor.empty"() : () -> tensor<2x4x24xi64>
    %31 = "linalg.fill"(%2, %30) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg52: i64, %arg53: i64):
      "linalg.yield"(%arg52) : (i64) -> ()
    }) : (i64, tensor<2x4x24xi64>) -> tensor<2x4x24xi64>
    %32 = "tensor.empty"() : () -> tensor<2x4x24xf32>
    %33 = "linalg.fill"(%3, %32) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg50: f32, %arg51: f32):
      "linalg.yield"(%arg50) : (f32) -> ()
    }) : (f32, tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
    %34:2 = "linalg.generic"(%29, %33, %31) <{indexing_maps = [#map, #map3, #map3], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 2>}> ({
    ^bb0(%arg47: f32, %arg48: f32, %arg49: i64):
      %127 = "linalg.index"() <{dim = 3 : i64}> : () -> index
      %128 = "arith.index_cast"(%127) : (index) -> i64
      %129 = "arith.maximumf"(%arg47, %arg48) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %130 = "arith.cmpf"(%arg47, %arg48) <{fastmath = #arith.fastmath<none>, predicate = 2 : i64}> : (f32, f32) -> i1
      %131 = "arith.select"(%130, %128, %arg49) : (i1, i64, i64) -> i64
      "linalg.yield"(%129, %131) : (f32, i64) -> ()
    }) : (tensor<2x4x24x40xf32>, tensor<2x4x24xf32>, tensor<2x4x24xi64>) -> (tensor<2x4x24xf32>, tensor<2x4x24xi64>)
    %35 = "tensor.expand_shape"(%34#0) <{reassociation = [[0], [1], [2, 3]], static_output_shape = array<i64: 2, 4, 24, 1>}> : (tensor<2x4x24xf32>) -> tensor<2x4x24x1xf32>
    %36 = "tensor.empty"() : () -> tensor<2x4x24x40xf32>
    %37 = "linalg.generic"(%29, %35, %36) <{indexing_maps = [#map, #map4, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg44: f32, %arg45: f32, %arg46: f32):
      %126 = "arith.subf"(%arg44, %arg45) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%126) : (f32) -> ()
    }) : (tensor<2x4x24x40xf32>, tensor<2x4x24x1xf32>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %38 = "linalg.generic"(%37, %36) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg42: f32, %arg43: f32):
      %125 = "math.exp"(%arg42) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%125) : (f32) -> ()
    }) : (tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %39 = "tensor.empty"() : () -> tensor<2x4x24x1xf32>
    %40 = "linalg.fill"(%1, %39) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg40: f32, %arg41: f32):
      "linalg.yield"(%arg40) : (f32) -> ()
    }) : (f32, tensor<2x4x24x1xf32>) -> tensor<2x4x24x1xf32>
    %41 = "linalg.generic"(%38, %40) <{indexing_maps = [#map, #map4], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg38: f32, %arg39: f32):
      %124 = "arith.addf"(%arg38, %arg39) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%124) : (f32) -> ()
    }) : (tensor<2x4x24x40xf32>, tensor<2x4x24x1xf32>) -> tensor<2x4x24x1xf32>
    %42 = "linalg.generic"(%38, %41, %36) <{indexing_maps = [#map, #map4, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg35: f32, %arg36: f32, %arg37: f32):
      %123 = "arith.divf"(%arg35, %arg36) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%123) : (f32) -> ()
    }) : (tensor<2x4x24x40xf32>, tensor<2x4x24x1xf32>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %43 = "tensor.empty"() : () -> tensor<2x4x24x40xi1>
    %44 = "linalg.generic"(%29, %43) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg33: f32, %arg34: i1):
      %121 = "arith.extf"(%arg33) : (f32) -> f64
      %122 = "arith.cmpf"(%121, %12) <{fastmath = #arith.fastmath<none>, predicate = 1 : i64}> : (f64, f64) -> i1
      "linalg.yield"(%122) : (i1) -> ()
    }) : (tensor<2x4x24x40xf32>, tensor<2x4x24x40xi1>) -> tensor<2x4x24x40xi1>
    %45 = "linalg.generic"(%44, %43) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg31: i1, %arg32: i1):
      %120 = "arith.cmpi"(%arg31, %4) <{predicate = 0 : i64}> : (i1, i1) -> i1
      "linalg.yield"(%120) : (i1) -> ()
    }) : (tensor<2x4x24x40xi1>, tensor<2x4x24x40xi1>) -> tensor<2x4x24x40xi1>
    %46 = "tensor.empty"() : () -> tensor<2x4x24x1xi1>
    %47 = "linalg.fill"(%4, %46) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg29: i1, %arg30: i1):
      "linalg.yield"(%arg29) : (i1) -> ()
    }) : (i1, tensor<2x4x24x1xi1>) -> tensor<2x4x24x1xi1>
    %48 = "linalg.generic"(%45, %47) <{indexing_maps = [#map, #map4], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg27: i1, %arg28: i1):
      %119 = "arith.ori"(%arg27, %arg28) : (i1, i1) -> i1
      "linalg.yield"(%119) : (i1) -> ()
    }) : (tensor<2x4x24x40xi1>, tensor<2x4x24x1xi1>) -> tensor<2x4x24x1xi1>
    %49 = "linalg.generic"(%48, %46) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg25: i1, %arg26: i1):
      %118 = "arith.cmpi"(%arg25, %4) <{predicate = 0 : i64}> : (i1, i1) -> i1
      "linalg.yield"(%118) : (i1) -> ()
    }) : (tensor<2x4x24x1xi1>, tensor<2x4x24x1xi1>) -> tensor<2x4x24x1xi1>
    %50 = "linalg.generic"(%49, %11, %42, %36) <{indexing_maps = [#map4, #map, #map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 3, 1>}> ({
    ^bb0(%arg21: i1, %arg22: f32, %arg23: f32, %arg24: f32):
      %117 = "arith.select"(%arg21, %arg22, %arg23) : (i1, f32, f32) -> f32
      "linalg.yield"(%117) : (f32) -> ()
    }) : (tensor<2x4x24x1xi1>, tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %51 = "torch_c.get_next_seed"() : () -> i64
    %52 = "tensor.empty"() : () -> tensor<2x4x24x40xf64>
    %53 = "linalg.generic"(%52) <{indexing_maps = [#map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>}> ({
    ^bb0(%arg20: f64):
      %74 = "linalg.index"() <{dim = 0 : i64}> : () -> index
      %75 = "arith.index_cast"(%74) : (index) -> i64
      %76 = "linalg.index"() <{dim = 1 : i64}> : () -> index
      %77 = "arith.index_cast"(%76) : (index) -> i64
      %78 = "linalg.index"() <{dim = 2 : i64}> : () -> index
      %79 = "arith.index_cast"(%78) : (index) -> i64
      %80 = "linalg.index"() <{dim = 3 : i64}> : () -> index
      %81 = "arith.index_cast"(%80) : (index) -> i64
      %82 = "arith.muli"(%75, %5) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %83 = "arith.addi"(%82, %77) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %84 = "arith.muli"(%83, %6) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %85 = "arith.addi"(%84, %79) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %86 = "arith.muli"(%85, %7) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %87 = "arith.addi"(%86, %81) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %88 = "arith.muli"(%87, %51) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %89 = "arith.addi"(%88, %51) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %90 = "arith.muli"(%88, %88) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %91 = "arith.addi"(%90, %88) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %92 = "arith.shli"(%91, %0) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %93 = "arith.shrui"(%91, %0) : (i64, i64) -> i64
      %94 = "arith.ori"(%92, %93) : (i64, i64) -> i64
      %95 = "arith.muli"(%94, %94) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %96 = "arith.addi"(%95, %89) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %97 = "arith.shli"(%96, %0) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %98 = "arith.shrui"(%96, %0) : (i64, i64) -> i64
      %99 = "arith.ori"(%97, %98) : (i64, i64) -> i64
      %100 = "arith.muli"(%99, %99) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %101 = "arith.addi"(%100, %88) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %102 = "arith.shli"(%101, %0) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %103 = "arith.shrui"(%101, %0) : (i64, i64) -> i64
      %104 = "arith.ori"(%102, %103) : (i64, i64) -> i64
      %105 = "arith.muli"(%104, %104) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %106 = "arith.addi"(%105, %89) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %107 = "arith.shli"(%106, %0) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %108 = "arith.shrui"(%106, %0) : (i64, i64) -> i64
      %109 = "arith.ori"(%107, %108) : (i64, i64) -> i64
      %110 = "arith.muli"(%109, %109) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %111 = "arith.addi"(%110, %88) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
      %112 = "arith.shrui"(%111, %0) : (i64, i64) -> i64
      %113 = "arith.xori"(%106, %112) : (i64, i64) -> i64
      %114 = "arith.uitofp"(%113) : (i64) -> f64
      %115 = "arith.mulf"(%114, %14) <{fastmath = #arith.fastmath<none>}> : (f64, f64) -> f64
      %116 = "arith.addf"(%115, %8) <{fastmath = #arith.fastmath<none>}> : (f64, f64) -> f64
      "linalg.yield"(%116) : (f64) -> ()
    }) : (tensor<2x4x24x40xf64>) -> tensor<2x4x24x40xf64>
    %54 = "linalg.generic"(%53, %9, %43) <{indexing_maps = [#map, #map5, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg17: f64, %arg18: f64, %arg19: i1):
      %73 = "arith.cmpf"(%arg17, %arg18) <{fastmath = #arith.fastmath<none>, predicate = 4 : i64}> : (f64, f64) -> i1
      "linalg.yield"(%73) : (i1) -> ()
    }) : (tensor<2x4x24x40xf64>, tensor<f64>, tensor<2x4x24x40xi1>) -> tensor<2x4x24x40xi1>
    %55 = "linalg.generic"(%54, %36) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg15: i1, %arg16: f32):
      %72 = "arith.uitofp"(%arg15) : (i1) -> f32
      "linalg.yield"(%72) : (f32) -> ()
    }) : (tensor<2x4x24x40xi1>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %56 = "linalg.generic"(%55, %50, %36) <{indexing_maps = [#map, #map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg12: f32, %arg13: f32, %arg14: f32):
      %71 = "arith.mulf"(%arg12, %arg13) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%71) : (f32) -> ()
    }) : (tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %57 = "linalg.generic"(%56, %36) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg10: f32, %arg11: f32):
      %69 = "arith.truncf"(%10) : (f64) -> f32
      %70 = "arith.divf"(%arg10, %69) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%70) : (f32) -> ()
    }) : (tensor<2x4x24x40xf32>, tensor<2x4x24x40xf32>) -> tensor<2x4x24x40xf32>
    %58 = "tensor.collapse_shape"(%57) <{reassociation = [[0, 1], [2], [3]]}> : (tensor<2x4x24x40xf32>) -> tensor<8x24x40xf32>
    %59 = "tensor.collapse_shape"(%19) <{reassociation = [[0, 1], [2], [3]]}> : (tensor<2x4x40x32xf32>) -> tensor<8x40x32xf32>
    %60 = "tensor.empty"() : () -> tensor<8x24x32xf32>
    %61 = "linalg.fill"(%1, %60) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg8: f32, %arg9: f32):
      "linalg.yield"(%arg8) : (f32) -> ()
    }) : (f32, tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %62 = "linalg.batch_matmul"(%58, %59, %61) <{indexing_maps = [#map1, #map2, #map3], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg5: f32, %arg6: f32, %arg7: f32):
      %67 = "arith.mulf"(%arg5, %arg6) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %68 = "arith.addf"(%arg7, %67) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%68) : (f32) -> ()
    }) : (tensor<8x24x40xf32>, tensor<8x40x32xf32>, tensor<8x24x32xf32>) -> tensor<8x24x32xf32>
    %63 = "tensor.expand_shape"(%62) <{reassociation = [[0, 1], [2], [3]], static_output_shape = array<i64: 2, 4, 24, 32>}> : (tensor<8x24x32xf32>) -> tensor<2x4x24x32xf32>
    %64 = "tensor.empty"() : () -> tensor<2x4x24x32xbf16>
    %65 = "linalg.generic"(%63, %64) <{indexing_maps = [#map, #map], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg3: f32, %arg4: bf16):
      %66 = "arith.truncf"(%arg3) : (f32) -> bf16
      "linalg.yield"(%66) : (bf16) -> ()
    }) : (tensor<2x4x24x32xf32>, tensor<2x4x24x32xbf16>) -> tensor<2x4x24x32xbf16>
    "func.return"(%65) : (tensor<2x4x24x32xbf16>) -> ()
  }) : () -> ()
}) : () -> ()

