// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{granularity belongs to caches with scales; expected scale = f32 besides}}
func.func private @granularity(!kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, granularity = head>)

// -----

// expected-error @below {{a cache with scales has elements of 8-bit floats, such as f8E4M3FN, got 'bf16'}}
func.func private @wide(!kvbuffer.cache<dense, bf16, heads = 8, head_size = 128, scale = f32>)

// -----

// expected-error @below {{scales must be f32, bf16 or f16, got 'i32'}}
func.func private @scale_type(!kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, scale = i32>)

// -----

// expected-error @below {{a scale stands for at most the 128 elements of a token's head, got granularity = 256}}
func.func private @too_many(!kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, scale = f32, granularity = 256>)

// -----

// expected-error @below {{expected granularity = tensor, head or a positive number of elements}}
func.func private @none(!kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, scale = f32, granularity = 0>)

// -----

// expected-error @below {{expected granularity = tensor, head or a positive number of elements}}
func.func private @word(!kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, scale = f32, granularity = token>)

// -----

func.func @data(%data: memref<?x16x8x128xbf16>, %table: memref<?x?xi32>, %lengths: memref<?xi32>) {
  // expected-error @below {{expected data of 'bf16' and shape [?, 64, 8, 128] for '!kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>', got 'memref<?x16x8x128xbf16>'}}
  %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?x?xi32>, memref<?xi32>)
    : memref<?x16x8x128xbf16> -> !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
  return
}

// -----

func.func @columns(%data: memref<?x?x8x128xbf16, strided<[?, ?, ?, 2]>>) {
  // expected-error @below {{expected the elements of a head side by side, a last stride of 1, got}}
  %c = kvbuffer.make_cache %data : memref<?x?x8x128xbf16, strided<[?, ?, ?, 2]>>
    -> !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
  return
}

// -----

func.func @indices(%data: memref<?x64x8x128xbf16>, %table: memref<?x?xi32>) {
  // expected-error @below {{expected 2 indices (table, lengths) for '!kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>', got 1}}
  %c = kvbuffer.make_cache %data indices(%table : memref<?x?xi32>)
    : memref<?x64x8x128xbf16> -> !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
  return
}

// -----

func.func @table(%data: memref<?x64x8x128xbf16>, %table: memref<?xi32>, %lengths: memref<?xi32>) {
  // expected-error @below {{expected table of i32 or i64 and shape [?, ?], got 'memref<?xi32>'}}
  %c = kvbuffer.make_cache %data indices(%table, %lengths : memref<?xi32>, memref<?xi32>)
    : memref<?x64x8x128xbf16> -> !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 64>
  return
}

// -----

func.func @no_scales(%data: memref<?x?x8x128xf8E4M3FN>) {
  // expected-error @below {{expected scales for '!kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, scale = f32, granularity = tensor>'}}
  %c = kvbuffer.make_cache %data : memref<?x?x8x128xf8E4M3FN>
    -> !kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, scale = f32, granularity = tensor>
  return
}

// -----

!groups = !kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 80, scale = f32, granularity = 32>
func.func @scales(%data: memref<?x?x8x80xf8E4M3FN>, %scales: memref<?x?x8x2xf32>) {
  // expected-error @below {{expected scales of 'f32' and shape [?, ?, 8, 3] for}}
  %c = kvbuffer.make_cache %data scales(%scales : memref<?x?x8x2xf32>) : memref<?x?x8x80xf8E4M3FN> -> !groups
  return
}

// -----

!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 64>
func.func @width(%c: !dense, %i: index) {
  // expected-error @below {{expected at most head_size = 64 elements, got 128}}
  %x = kvbuffer.cache.load %c[%i, %i, %i, %i] : !dense -> vector<128xf32>
  return
}

// -----

!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 64>
func.func @alignment(%c: !dense, %i: index) {
  // expected-error @below {{expected an alignment that is a power of two, got 12}}
  %x = kvbuffer.cache.load %c[%i, %i, %i, %i] {alignment = 12 : i64} : !dense -> vector<8xf32>
  return
}

// -----

!groups = !kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, scale = f32, granularity = 32>
func.func @groups(%c: !groups, %i: index) {
  // expected-error @below {{loads 24 elements with scales for 32 each; expected one number to divide the other}}
  %x = kvbuffer.cache.load %c[%i, %i, %i, %i] : !groups -> vector<24xf32>
  return
}

// -----

!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 64>
func.func @stored(%c: !dense, %i: index, %x: vector<8xf32>) {
  // expected-error @below {{expected the cache's elements, 'bf16', got 'f32'}}
  kvbuffer.cache.store %x, %c[%i, %i, %i, %i] : vector<8xf32>, !dense
  return
}

// -----

!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 64>
func.func @unscaled(%c: !dense, %i: index) {
  // expected-error @below {{expected a cache with scales, got '!kvbuffer.cache<dense, bf16, heads = 8, head_size = 64>'}}
  %x = kvbuffer.cache.load_scale %c[%i, %i, %i, %i] : !dense -> vector<1xf32>
  return
}

// -----

!groups = !kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, scale = f32, granularity = head>
func.func @most_scales(%c: !groups, %i: index, %s: vector<2xf32>) {
  // expected-error @below {{expected at most 1 scales of a token's head, got 2}}
  kvbuffer.cache.store_scale %s, %c[%i, %i, %i, %i] : vector<2xf32>, !groups
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 64, page_size = 48>
func.func @tile(%c: !paged, %i: index) {
  // expected-error @below {{expected rows that divide page_size = 48, got 32}}
  %x = kvbuffer.cache.block_paged_ptr %c[%i, %i, %i, %i] : !paged -> memref<32x64xbf16, strided<[?, 1], offset: ?>>
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 64, page_size = 48>
func.func @view(%c: !paged, %i: index) {
  // expected-error @below {{expected a result memref<ROWSxCOLSx'bf16', strided<[?, 1], offset: ?>>, got 'memref<16x64xbf16>'}}
  %x = kvbuffer.cache.block_paged_ptr %c[%i, %i, %i, %i] : !paged -> memref<16x64xbf16>
  return
}

// -----

!head = !kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, scale = f32, granularity = head>
func.func @scale_tile(%c: !head, %i: index) {
  // expected-error @below {{expected a cache with scales by groups of elements, got}}
  %x = kvbuffer.cache.scales_block_paged_ptr %c[%i, %i, %i, %i] : !head -> memref<16x1xf32, strided<[?, 1], offset: ?>>
  return
}

// -----

!head = !kvbuffer.cache<dense, f8E4M3FN, heads = 8, head_size = 128, scale = f32, granularity = head>
func.func @raw(%c: !head) {
  // expected-error @below {{expected a result 'memref<f32, strided<[], offset: ?>>', got 'memref<8xf32>'}}
  %x = kvbuffer.cache.scales_raw_ptr %c : !head -> memref<8xf32>
  return
}

// -----

// Lanes' ops have no place among tiles.
!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 64>
gpu.module @m {
  // expected-note @below {{the kernel is here}}
  gpu.func @tile(%c: !dense) kernel attributes {kvbuffer.phase = #kvbuffer.phase<tile>} {
    // expected-error @below {{'kvbuffer.cache.num_kv_rows' op is not allowed in phase 'tile': values are tiles, not lanes}}
    %n = kvbuffer.cache.num_kv_rows %c : !dense
    gpu.return
  }
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @rank(%k: memref<?x8x128xbf16>, %kc: !paged) {
  // expected-error @below {{expected k of rank 4 ([batch, rows, heads, head_size]) without offsets, got 'memref<?x8x128xbf16>'}}
  kvbuffer.cache_append k(%k : memref<?x8x128xbf16>) to(%kc : !paged)
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @heads(%k: memref<?x?x4x128xbf16>, %kc: !paged) {
  // expected-error @below {{expected k with 8 heads of 128 elements side by side, as its cache has, got 'memref<?x?x4x128xbf16>'}}
  kvbuffer.cache_append k(%k : memref<?x?x4x128xbf16>) to(%kc : !paged)
  return
}

// -----

!dense = !kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>
func.func @positions(%k: memref<?x?x8x128xbf16>, %kc: !dense) {
  // expected-error @below {{expected at(...), the positions of first tokens: '!kvbuffer.cache<dense, bf16, heads = 8, head_size = 128>' has no lengths}}
  kvbuffer.cache_append k(%k : memref<?x?x8x128xbf16>) to(%kc : !dense)
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @tables(%k: memref<?x?x8x128xbf16>, %kc: !paged, %a: memref<?x128xf32>) {
  // expected-error @below {{expected tables of 1 to 64 columns, half the elements that are rotated, got 128}}
  kvbuffer.cache_append k(%k : memref<?x?x8x128xbf16>) to(%kc : !paged) rope(%a, %a : memref<?x128xf32>, memref<?x128xf32>)
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @interleaved(%k: memref<?x?x8x128xbf16>, %kc: !paged) {
  // expected-error @below {{is interleaved, which belongs to rope(cos, sin)}}
  kvbuffer.cache_append k(%k : memref<?x?x8x128xbf16>) to(%kc : !paged) {interleaved}
  return
}

// -----

!paged = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>
func.func @no_tables(%k: memref<?x?x8x128xbf16>, %kc: !paged, %rows: memref<?xi32>) {
  // expected-error @below {{has rope_at(...), which belongs to rope(cos, sin)}}
  kvbuffer.cache_append k(%k : memref<?x?x8x128xbf16>) to(%kc : !paged) rope_at(%rows : memref<?xi32>)
  return
}

// -----

!new = memref<?x8x64xbf16, strided<[?, ?, 1]>>
!newv = memref<?x4x64xbf16, strided<[?, ?, 1]>>
!kc = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 64, page_size = 16>
!vc = !kvbuffer.cache<paged, bf16, heads = 4, head_size = 64, page_size = 16>
func.func @heads(%k: !new, %v: !newv, %kc: !kc, %vc: !vc, %o: memref<?xi32>) {
  // expected-error @below {{expected caches with as many heads, got 8 of k and 4 of v}}
  kvbuffer.cache_append k(%k : !new) to(%kc : !kc) v(%v : !newv) to(%vc : !vc) offsets(%o : memref<?xi32>)
  return
}

// -----

!c = !kvbuffer.cache<dense, i8, heads = 2, head_size = 64>
func.func @integers(%c: !c, %i: index) -> vector<8xf32> {
  // expected-error @below {{expected a cache of floats, got '!kvbuffer.cache<dense, i8, heads = 2, head_size = 64>'}}
  %x = kvbuffer.cache.load %c[%i, %i, %i, %i] : !c -> vector<8xf32>
  return %x : vector<8xf32>
}

// -----

!c = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @scalable(%c: !c, %i: index, %x: vector<[8]xbf16>) {
  // expected-error @below {{expected a vector of a fixed number of elements, got 'vector<[8]xbf16>'}}
  kvbuffer.cache.store %x, %c[%i, %i, %i, %i] : vector<[8]xbf16>, !c
  return
}

// -----

!c = !kvbuffer.cache<dense, f8E4M3FN, heads = 2, head_size = 64, scale = f32, granularity = 16>
func.func @scalable_scales(%c: !c, %i: index) -> vector<[2]xf32> {
  // expected-error @below {{expected a fixed number of scales of 'f32', got 'vector<[2]xf32>'}}
  %x = kvbuffer.cache.load_scale %c[%i, %i, %i, %i] : !c -> vector<[2]xf32>
  return %x : vector<[2]xf32>
}

// -----

!c = !kvbuffer.cache<paged, bf16, heads = 2, head_size = 64, page_size = 6>
func.func @no_rows(%c: !c, %i: index) -> memref<0x8xbf16, strided<[?, 1], offset: ?>> {
  // expected-error @below {{expected a result memref<ROWSxCOLSx'bf16', strided<[?, 1], offset: ?>>, got 'memref<0x8xbf16, strided<[?, 1], offset: ?>>'}}
  %x = kvbuffer.cache.block_paged_ptr %c[%i, %i, %i, %i] : !c -> memref<0x8xbf16, strided<[?, 1], offset: ?>>
  return %x : memref<0x8xbf16, strided<[?, 1], offset: ?>>
}
