// RUN: kvbuf-opt %s --kvbuf-expand-cache-ops --canonicalize --cse | FileCheck %s
// In any function, and nothing of this dialect stays: upstream's conversions go on
// from here, for either vendor.
// RUN: kvbuf-opt %s --kvbuf-expand-cache-ops | FileCheck %s --check-prefix=NONE --implicit-check-not=kvbuffer.
// NONE: func.func @cache_length

!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
!ragged = !kvbuffer.cache<ragged, bf16, heads = 8, head_size = 128>
!slots = !kvbuffer.cache<continuous, f16, heads = 2, head_size = 64, cache_depth = 96, head_dim_offset = 32>
!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 3>
!groups = !kvbuffer.cache<paged, f8E4M3FN, heads = 8, head_size = 128, page_size = 16, scale = f32, granularity = 32>
!perhead = !kvbuffer.cache<dense, f8E5M2, heads = 8, head_size = 128, scale = bf16, granularity = head>

// CHECK-LABEL: func.func @cache_length(
// CHECK-SAME:    %[[DATA:.*]]: memref<?x3x8x128xbf16>, %[[TABLE:.*]]: memref<?x?xi32>, %[[LENGTHS:.*]]: memref<?xi64>, %[[B:.*]]: index)
// CHECK-DAG:     %[[PAGES:.*]] = memref.dim %[[TABLE]], %c1
// CHECK-DAG:     %[[ROOM:.*]] = arith.muli %[[PAGES]], %c3
// CHECK-DAG:     %[[WORD:.*]] = memref.load %[[LENGTHS]][%[[B]]]
// CHECK-DAG:     %[[N:.*]] = arith.index_cast %[[WORD]] : i64 to index
// CHECK:         %[[LOW:.*]] = arith.maxsi %[[N]], %c0
// CHECK:         %[[LENGTH:.*]] = arith.minsi %[[LOW]], %[[ROOM]]
// CHECK:         return %[[LENGTH]]
func.func @cache_length(%data: memref<?x3x8x128xbf16>, %table: memref<?x?xi32>, %lengths: memref<?xi64>, %b: index) -> index {
  %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?x?xi32>, memref<?xi64>)
    : memref<?x3x8x128xbf16> -> !paged
  %n = kvbuffer.cache.cache_length %c[%b] : !paged
  return %n : index
}

// CHECK-LABEL: func.func @max_context_length
// CHECK:         scf.for
// CHECK:           arith.maxsi
// CHECK:         arith.cmpi eq, %{{.*}}, %c0
func.func @max_context_length(%data: memref<?x3x8x128xbf16>, %table: memref<?x?xi32>, %lengths: memref<?xi64>) -> i1 {
  %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?x?xi32>, memref<?xi64>)
    : memref<?x3x8x128xbf16> -> !paged
  %none = kvbuffer.cache.empty_cache %c : !paged
  return %none : i1
}

// What the maker knows is not looked for.
// CHECK-LABEL: func.func @given(
// CHECK-SAME:    %{{.*}}, %[[PROMPT:.*]]: index, %[[CONTEXT:.*]]: index)
// CHECK-NEXT:    return %[[PROMPT]], %[[CONTEXT]]
func.func @given(%data: memref<?x?x8x128xbf16>, %p: index, %m: index) -> (index, index) {
  %c = kvbuffer.make_cache %data max_prompt(%p) max_context(%m) : memref<?x?x8x128xbf16> -> !dense
  %a = kvbuffer.cache.max_prompt_length %c : !dense
  %b = kvbuffer.cache.max_context_length %c : !dense
  return %a, %b : index, index
}

// The table is read for tokens that there is room for, in 64 bits from there on.
// CHECK-LABEL: func.func @row_idx(
// CHECK-SAME:    %[[DATA:.*]]: memref<?x3x8x128xbf16, strided<[?, ?, ?, 1]>>, %[[TABLE:.*]]: memref<?x?xi32>, %{{.*}}, %[[B:.*]]: index, %[[T:.*]]: index)
// CHECK:         %[[FITS:.*]] = arith.cmpi ult, %[[T]], %{{.*}} : index
// CHECK:         %[[NARROW:.*]] = arith.index_cast %[[T]] : index to i32
// CHECK:         %[[PAGE:.*]] = arith.divui %[[NARROW]], %c3_i32
// CHECK:         %[[ROW:.*]] = arith.remui %[[NARROW]], %c3_i32
// CHECK:         %[[BLOCK:.*]] = scf.if %[[FITS]]
// CHECK:           memref.load %[[TABLE]][%[[B]], %{{.*}}]
// CHECK:         arith.cmpi ult, %[[BLOCK]]
// CHECK:         memref.extract_strided_metadata %[[DATA]]
// CHECK:         arith.divui %{{.*}}#0, %{{.*}}#1 : index
// CHECK:         arith.select %{{.*}}, %{{.*}}, %c-1 : index
func.func @row_idx(%data: memref<?x3x8x128xbf16, strided<[?, ?, ?, 1]>>, %table: memref<?x?xi32>, %lengths: memref<?xi32>, %b: index, %t: index) -> index {
  %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?x?xi32>, memref<?xi32>)
    : memref<?x3x8x128xbf16, strided<[?, ?, ?, 1]>> -> !paged
  %row = kvbuffer.cache.row_idx %c[%b, %t] : !paged
  return %row : index
}

// CHECK-LABEL: func.func @rows(
// CHECK:         %[[BLOCK:.*]] = arith.divui %{{.*}}, %c3 : index
// CHECK:         arith.muli %[[BLOCK]], %c3 : index
// CHECK:         return %{{.*}}, %{{.*}}, %c3 : index, index, index
func.func @rows(%data: memref<?x3x8x128xbf16>, %table: memref<?x?xi32>, %lengths: memref<?xi32>, %e: index) -> (index, index, index) {
  %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?x?xi32>, memref<?xi32>)
    : memref<?x3x8x128xbf16> -> !paged
  %n = kvbuffer.cache.num_kv_rows %c : !paged
  %row = kvbuffer.cache.get_tma_row %c[%e] : !paged
  %most = kvbuffer.cache.max_tile_size %c : !paged
  return %n, %row, %most : index, index, index
}

// Columns of a head that lie in a wider row; conversions by way of f32.
// CHECK-LABEL: func.func @load(
// CHECK:         scf.if
// CHECK:           %[[COL:.*]] = arith.addi %{{.*}}, %c32
// CHECK:           vector.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %[[COL]]] {alignment = 16 : i64} : memref<?x?x2x96xf16>, vector<8xf16>
// CHECK:           arith.extf
// CHECK:           arith.truncf %{{.*}} : vector<8xf32> to vector<8xbf16>
// CHECK:         else
// CHECK-NEXT:      scf.yield %cst
func.func @load(%data: memref<?x?x2x96xf16>, %table: memref<?xi32>, %lengths: memref<?xi32>, %b: index, %h: index, %t: index, %d: index) -> vector<8xbf16> {
  %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?xi32>, memref<?xi32>)
    : memref<?x?x2x96xf16> -> !slots
  %x = kvbuffer.cache.load %c[%b, %h, %t, %d] {alignment = 16 : i64} : !slots -> vector<8xbf16>
  return %x : vector<8xbf16>
}

// Whoever says that there is a row is believed.
// CHECK-LABEL: func.func @store_in_bounds(
// CHECK-NOT:     scf.if
// CHECK:         vector.store
func.func @store_in_bounds(%data: memref<?x8x128xbf16>, %offsets: memref<?xi32>, %b: index, %h: index, %t: index, %x: vector<4xbf16>) {
  %c = kvbuffer.make_cache %data indices(%offsets : memref<?xi32>) : memref<?x8x128xbf16> -> !ragged
  kvbuffer.cache.store %x, %c[%b, %h, %t, %h] {in_bounds} : vector<4xbf16>, !ragged
  return
}

// One scale for 32 elements, one vector with two of them.
// CHECK-LABEL: func.func @quantized(
// CHECK-SAME:    %{{.*}}, %[[SCALES:.*]]: memref<?x16x8x4xf32>
// CHECK:         %[[GROUP:.*]] = arith.divui %{{.*}}, %c32
// CHECK:         vector.load %[[SCALES]][%{{.*}}, %{{.*}}, %{{.*}}, %[[GROUP]]] : memref<?x16x8x4xf32>, vector<1xf32>
// CHECK:         arith.mulf
// CHECK:         vector.load %[[SCALES]]{{.*}} vector<2xf32>
// CHECK:         vector.shuffle %{{.*}} [0, 0, 0, {{.*}}0, 1, 1, {{.*}}1] : vector<2xf32>
// CHECK:         vector.load %{{.*}} : memref<?x16x8x128xf8E4M3FN>, vector<16xf8E4M3FN>
// CHECK:         vector.store %{{.*}}, %[[SCALES]]
func.func @quantized(%data: memref<?x16x8x128xf8E4M3FN>, %table: memref<?x?xi32>, %lengths: memref<?xi32>, %scales: memref<?x16x8x4xf32>,
                     %b: index, %h: index, %t: index, %d: index) -> (vector<8xf32>, vector<64xf32>, vector<16xf8E4M3FN>) {
  %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?x?xi32>, memref<?xi32>) scales(%scales : memref<?x16x8x4xf32>)
    : memref<?x16x8x128xf8E4M3FN> -> !groups
  %x = kvbuffer.cache.load %c[%b, %h, %t, %d] : !groups -> vector<8xf32>
  %y = kvbuffer.cache.load %c[%b, %h, %t, %d] : !groups -> vector<64xf32>
  %q = kvbuffer.cache.load_quantized %c[%b, %h, %t, %d] : !groups -> vector<16xf8E4M3FN>
  %s = kvbuffer.cache.load_scale %c[%b, %h, %t, %d] : !groups -> vector<1xf32>
  kvbuffer.cache.store_scale %s, %c[%b, %h, %d, %t] : vector<1xf32>, !groups
  return %x, %y, %q : vector<8xf32>, vector<64xf32>, vector<16xf8E4M3FN>
}

// CHECK-LABEL: func.func @per_head(
// CHECK-SAME:    %{{.*}}, %[[SCALES:.*]]: memref<8xbf16>, %[[B:.*]]: index, %[[H:.*]]: index
// CHECK:         vector.load %[[SCALES]][%[[H]]] : memref<8xbf16>, vector<1xbf16>
func.func @per_head(%data: memref<?x?x8x128xf8E5M2>, %scales: memref<8xbf16>, %b: index, %h: index) -> vector<1xbf16> {
  %c = kvbuffer.make_cache %data scales(%scales : memref<8xbf16>) : memref<?x?x8x128xf8E5M2> -> !perhead
  %s = kvbuffer.cache.load_scale %c[%b, %h, %b, %b] : !perhead -> vector<1xbf16>
  return %s : vector<1xbf16>
}

// CHECK-LABEL: func.func @pointers(
// CHECK:         memref.subview %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] [1, 8, 1, 64] [1, 1, 1, 1]
// CHECK:         memref.subview %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] [1, 16, 1, 4] [1, 1, 1, 1]
// CHECK:         memref.subview %{{.*}}[0, 0, 0, 0] [1, 1, 1, 1] [1, 1, 1, 1]
func.func @pointers(%data: memref<?x16x8x128xf8E4M3FN>, %table: memref<?x?xi32>, %lengths: memref<?xi32>, %scales: memref<?x16x8x4xf32>,
                    %b: index, %h: index, %t: index, %d: index)
    -> (memref<8x64xf8E4M3FN, strided<[?, 1], offset: ?>>, memref<16x4xf32, strided<[?, 1], offset: ?>>, memref<f32, strided<[], offset: ?>>) {
  %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?x?xi32>, memref<?xi32>) scales(%scales : memref<?x16x8x4xf32>)
    : memref<?x16x8x128xf8E4M3FN> -> !groups
  %p = kvbuffer.cache.block_paged_ptr %c[%b, %t, %h, %d] : !groups -> memref<8x64xf8E4M3FN, strided<[?, 1], offset: ?>>
  %s = kvbuffer.cache.scales_block_paged_ptr %c[%b, %t, %h, %d] : !groups -> memref<16x4xf32, strided<[?, 1], offset: ?>>
  %r = kvbuffer.cache.scales_raw_ptr %c : !groups -> memref<f32, strided<[], offset: ?>>
  return %p, %s, %r : memref<8x64xf8E4M3FN, strided<[?, 1], offset: ?>>, memref<16x4xf32, strided<[?, 1], offset: ?>>, memref<f32, strided<[], offset: ?>>
}

// Of one row, or of one column, shapes do not tell which dimensions stay.
// CHECK-LABEL: func.func @thin(
// CHECK:         %[[ROW:.*]] = memref.subview %{{.*}} [1, 1, 1, 8] [1, 1, 1, 1] : {{.*}} to memref<1x1x1x8xbf16, strided<[3072, 1024, 128, 1]
// CHECK:         memref.reinterpret_cast %{{.*}} sizes: [1, 8], strides: [{{.*}}, 1]
// CHECK:         memref.subview %{{.*}} [1, 3, 1, 1] [1, 1, 1, 1] : {{.*}} to memref<1x3x1x1xbf16, strided<[3072, 1024, 128, 1]
// CHECK:         memref.reinterpret_cast %{{.*}} sizes: [3, 1], strides: [1024, 1]
func.func @thin(%data: memref<?x3x8x128xbf16>, %table: memref<?x?xi32>, %lengths: memref<?xi32>,
                %b: index, %h: index, %t: index, %d: index)
    -> (memref<1x8xbf16, strided<[?, 1], offset: ?>>, memref<3x1xbf16, strided<[?, 1], offset: ?>>) {
  %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?x?xi32>, memref<?xi32>)
    : memref<?x3x8x128xbf16> -> !paged
  %p = kvbuffer.cache.block_paged_ptr %c[%b, %t, %h, %d] : !paged -> memref<1x8xbf16, strided<[?, 1], offset: ?>>
  %q = kvbuffer.cache.block_paged_ptr %c[%b, %t, %h, %d] : !paged -> memref<3x1xbf16, strided<[?, 1], offset: ?>>
  return %p, %q : memref<1x8xbf16, strided<[?, 1], offset: ?>>, memref<3x1xbf16, strided<[?, 1], offset: ?>>
}

// f64 is no stop on the way of others.
// CHECK-LABEL: func.func @wide(
// CHECK:         arith.extf %{{.*}} : vector<4xf16> to vector<4xf64>
// CHECK:         arith.truncf %{{.*}} : vector<4xf64> to vector<4xbf16>
func.func @wide(%half: memref<?x?x2x64xf16>, %double: memref<?x?x2x64xf64>, %i: index) -> (vector<4xf64>, vector<4xbf16>) {
  %c = kvbuffer.make_cache %half : memref<?x?x2x64xf16> -> !kvbuffer.cache<dense, f16, heads = 2, head_size = 64>
  %x = kvbuffer.cache.load %c[%i, %i, %i, %i] : !kvbuffer.cache<dense, f16, heads = 2, head_size = 64> -> vector<4xf64>
  %e = kvbuffer.make_cache %double : memref<?x?x2x64xf64> -> !kvbuffer.cache<dense, f64, heads = 2, head_size = 64>
  %y = kvbuffer.cache.load %e[%i, %i, %i, %i] : !kvbuffer.cache<dense, f64, heads = 2, head_size = 64> -> vector<4xbf16>
  return %x, %y : vector<4xf64>, vector<4xbf16>
}
