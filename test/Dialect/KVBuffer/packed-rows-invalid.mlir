// RUN: kvbuf-opt %s --split-input-file --verify-diagnostics

// expected-error @+2 {{expected a part of bf16, f16 or an 8-bit float, got 'f32'}}
// expected-error @below {{failed to parse KVBuffer_RowAttr parameter 'parts'}}
func.func private @element(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, row = <bytes = 256, parts = [<count = 64, element = f32, at = 0>]>>)

// -----

// expected-error @+2 {{expected a part of a multiple of 8 elements, got 12}}
// expected-error @below {{failed to parse KVBuffer_RowAttr parameter 'parts'}}
func.func private @count(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, row = <bytes = 64, parts = [<count = 12, element = f8E4M3FN, at = 0>]>>)

// -----

// expected-error @+2 {{expected a part of 'bf16' at a multiple of 16 bytes, got 520}}
// expected-error @below {{failed to parse KVBuffer_RowAttr parameter 'parts'}}
func.func private @place(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 576, row = <bytes = 656, parts = [<count = 512, element = f8E4M3FN, at = 0>, <count = 64, element = bf16, at = 520>]>>)

// -----

// expected-error @+2 {{granularity and scale_at belong to parts with scales; expected scale = f32 besides}}
// expected-error @below {{failed to parse KVBuffer_RowAttr parameter 'parts'}}
func.func private @no_scale(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, row = <bytes = 64, parts = [<count = 64, element = f8E4M3FN, at = 0, granularity = 32>]>>)

// -----

// expected-error @+2 {{expected scales of f32, bf16, f16 or f8E8M0FNU, got 'f8E4M3FN'}}
// expected-error @below {{failed to parse KVBuffer_RowAttr parameter 'parts'}}
func.func private @scale(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, row = <bytes = 80, parts = [<count = 64, element = f8E4M3FN, at = 0, scale = f8E4M3FN, granularity = 32, scale_at = 64>]>>)

// -----

// expected-error @+2 {{expected scales of groups of a multiple of 8 elements, got granularity = 0}}
// expected-error @below {{failed to parse KVBuffer_RowAttr parameter 'parts'}}
func.func private @groups(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, row = <bytes = 80, parts = [<count = 64, element = f8E4M3FN, at = 0, scale = f32, scale_at = 64>]>>)

// -----

// expected-error @+2 {{expected scales of 'f32' at a multiple of 4 bytes, got 66}}
// expected-error @below {{failed to parse KVBuffer_RowAttr parameter 'parts'}}
func.func private @scale_place(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, row = <bytes = 80, parts = [<count = 64, element = f8E4M3FN, at = 0, scale = f32, granularity = 32, scale_at = 66>]>>)

// -----

// expected-error @below {{expected a row of a multiple of 16 bytes, got 68}}
func.func private @bytes(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, row = <bytes = 68, parts = [<count = 64, element = f8E4M3FN, at = 0, scale = f32, granularity = 64, scale_at = 64>]>>)

// -----

// expected-error @below {{bytes 32 to 160 of a row are taken twice, or do not lie in its 160 bytes or the 0 of its tail}}
func.func private @twice(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 128, row = <bytes = 160, parts = [<count = 64, element = f8E4M3FN, at = 0>, <count = 64, element = bf16, at = 32>]>>)

// -----

// expected-error @below {{bytes 576 to 584 of a row are taken twice, or do not lie in its 576 bytes or the 7 of its tail}}
func.func private @tail(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 512, row = <bytes = 576, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f8E8M0FNU, granularity = 64, scale_at = 576>], tail = 7, rows = 64, stride = 37440>>)

// -----

// expected-error @below {{expected tails of at least a byte, behind rows of which each stride, a multiple of 576 bytes, has room for both; got tail = 8, rows = 64, stride = 37376}}
func.func private @stride(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 512, row = <bytes = 576, parts = [<count = 512, element = f8E4M3FN, at = 0, scale = f8E8M0FNU, granularity = 64, scale_at = 576>], tail = 8, rows = 64, stride = 37376>>)

// -----

// expected-error @below {{packed rows are widened to bf16 or f16, got 'f32'}}
func.func private @widened(!kvbuffer.cache<dense, f32, heads = 1, head_size = 64, row = <bytes = 64, parts = [<count = 64, element = f8E4M3FN, at = 0>]>>)

// -----

// expected-error @below {{expected a row whose parts have head_size = 128 elements, got 64}}
func.func private @elements(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 128, row = <bytes = 64, parts = [<count = 64, element = f8E4M3FN, at = 0>]>>)

// -----

// expected-error @below {{a row says where its bytes and scales are; expected no cache_depth and head_dim_offset, and a scale of the tensor or of the head at most besides}}
func.func private @scaled(!kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, scale = f32, granularity = 64, row = <bytes = 64, parts = [<count = 64, element = f8E4M3FN, at = 0>]>>)

// -----

!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, row = <bytes = 64, parts = [<count = 64, element = f8E4M3FN, at = 0>]>>
func.func @data(%data: memref<?x?x1x64xbf16>) {
  // expected-error @below {{expected data of 'f8E4M3FN' and shape [?, ?, 1, 64]}}
  %c = kvbuffer.make_cache %data : memref<?x?x1x64xbf16> -> !row
  return
}

// -----

!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, row = <bytes = 64, parts = [<count = 64, element = f8E4M3FN, at = 0>]>>
func.func @view(%c: !row, %i: index) {
  // expected-error @below {{is of a cache with packed rows, which no view shows; expected one of elements}}
  %x = kvbuffer.cache.block_paged_ptr %c[%i, %i, %i, %i] : !row -> memref<4x64xbf16, strided<[?, 1], offset: ?>>
  return
}

// -----

!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 120, row = <bytes = 208, parts = [<count = 48, element = f8E4M3FN, at = 0, scale = f32, granularity = 24, scale_at = 48>, <count = 72, element = bf16, at = 64>]>>
func.func @within(%c: !row, %i: index) {
  // expected-error @below {{has vectors of 16 elements; expected a number that divides those of each part that it is of, and that divides those of a scale or is a multiple}}
  %x = kvbuffer.cache.load %c[%i, %i, %i, %i] : !row -> vector<16xbf16>
  return
}

// -----

!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 120, row = <bytes = 208, parts = [<count = 48, element = f8E4M3FN, at = 0, scale = f32, granularity = 24, scale_at = 48>, <count = 72, element = bf16, at = 64>]>>
func.func @no_part(%c: !row, %i: index, %x: vector<8xf8E4M3FN>) {
  // expected-error @below {{is of packed rows; expected part = 0 to 1}}
  kvbuffer.cache.store %x, %c[%i, %i, %i, %i] : vector<8xf8E4M3FN>, !row
  return
}

// -----

!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 120, row = <bytes = 208, parts = [<count = 48, element = f8E4M3FN, at = 0, scale = f32, granularity = 24, scale_at = 48>, <count = 72, element = bf16, at = 64>]>>
func.func @which(%c: !row, %i: index) {
  // expected-error @below {{is of packed rows; expected part = 0 to 1, got 2}}
  %x = kvbuffer.cache.load_quantized %c[%i, %i, %i, %i] {part = 2} : !row -> vector<8xbf16>
  return
}

// -----

!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 120, row = <bytes = 208, parts = [<count = 48, element = f8E4M3FN, at = 0, scale = f32, granularity = 24, scale_at = 48>, <count = 72, element = bf16, at = 64>]>>
func.func @type(%c: !row, %i: index) {
  // expected-error @below {{expected the part's elements, 'bf16', got 'f8E4M3FN'}}
  %x = kvbuffer.cache.load_quantized %c[%i, %i, %i, %i] {part = 1} : !row -> vector<8xf8E4M3FN>
  return
}

// -----

!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 120, row = <bytes = 208, parts = [<count = 48, element = f8E4M3FN, at = 0, scale = f32, granularity = 24, scale_at = 48>, <count = 72, element = bf16, at = 64>]>>
func.func @scales(%c: !row, %i: index) {
  // expected-error @below {{expected a cache whose part has scales}}
  %x = kvbuffer.cache.load_scale %c[%i, %i, %i, %i] {part = 1} : !row -> vector<1xf32>
  return
}

// -----

!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 120, row = <bytes = 208, parts = [<count = 48, element = f8E4M3FN, at = 0, scale = f32, granularity = 24, scale_at = 48>, <count = 72, element = bf16, at = 64>]>>
func.func @many(%c: !row, %i: index) {
  // expected-error @below {{expected at most 2 scales of a token's head, got 3}}
  %x = kvbuffer.cache.load_scale %c[%i, %i, %i, %i] {part = 0} : !row -> vector<3xf32>
  return
}

// -----

!plain = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64>
func.func @plain(%c: !plain, %i: index) {
  // expected-error @below {{has a part, which packed rows have, got}}
  %x = kvbuffer.cache.load_quantized %c[%i, %i, %i, %i] {part = 0} : !plain -> vector<8xbf16>
  return
}

// -----

!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, row = <bytes = 64, parts = [<count = 64, element = f8E4M3FN, at = 0>]>>
!q = memref<?x1x8x64xbf16>
func.func @apart(%q: !q, %k: !row, %v: !row, %o: !q) {
  // expected-error @below {{has packed rows; expected one cache that is k and v (latent attention)}}
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !q, !row, !row, !q
  return
}

// -----

// Programs have a scale beside rows of one part; problems, whose reference knows of none, do not.
!q = memref<?x1x16x64xbf16>
!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, scale = f32, row = <bytes = 64, parts = [<count = 64, element = f8E4M3FN, at = 0>]>>
func.func @beside(%q: !q, %k: !row, %o: !q) {
  // expected-error @below {{has packed rows and a scale beside them; expected scales of the row's parts alone}}
  kvbuffer.attention q(%q) k(%k) v(%k) out(%o) : !q, !row, !row, !q
  return
}

// -----

!row = !kvbuffer.cache<dense, bf16, heads = 1, head_size = 64, scale = f32, row = <bytes = 64, parts = [<count = 64, element = f8E4M3FN, at = 0>]>>
func.func @append(%x: memref<?x?x1x64xbf16>, %k: !row, %at: memref<?xi32>) {
  // expected-error @below {{stores packed rows with a scale beside them; expected scales of the row's parts alone}}
  kvbuffer.cache_append k(%x : memref<?x?x1x64xbf16>) to(%k : !row) at(%at : memref<?xi32>)
  return
}
