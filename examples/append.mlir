// The keys and values of new tokens, stored into a paged cache: lane by lane, in an
// ordinary gpu.func. A program of the thread stage, written by hand; no pass knows
// it.
//
//   kvbuf-compile examples/append.mlir --target=sm_80 -o append.kvbuf
//   kvbuf.load("append.kvbuf")(k_new=k_new, v_new=v_new, offsets=offsets, k=k, ...)
//
// A ragged batch in one launch: one block a new token, whose sequence the offsets
// tell. Sixteen lanes hold a head, eight elements each. A new token comes after the
// tokens that its sequence has (`lengths`, which the program does not change); where
// the cache has no page for it, nothing is stored.

!new = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!kv = !kvbuffer.cache<paged, bf16, heads = 8, head_size = 128, page_size = 16>

gpu.module @append_module {
  gpu.func @append(%k_new: !new {kvbuffer.name = "k_new", kvbuffer.shape = ["total_new", 8, 128]},
                   %v_new: !new {kvbuffer.name = "v_new", kvbuffer.shape = ["total_new", 8, 128]},
                   %offsets: memref<?xi32> {kvbuffer.name = "offsets", kvbuffer.shape = [#kvbuffer.size<sum(batch, 1)>]},
                   %k: !kv {kvbuffer.name = "k"}, %v: !kv {kvbuffer.name = "v"})
      kernel attributes {kvbuffer.phase = #kvbuffer.phase<thread>, known_block_size = array<i32: 128, 1, 1>,
                         kvbuffer.grid = ["total_new", 1, 1]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %row = gpu.block_id x
    %lane = gpu.thread_id x
    %none = arith.constant -1 : index
    %entries = memref.dim %offsets, %c0 : memref<?xi32>
    %sequences = arith.subi %entries, %c1 : index

    // The last sequence that begins at this row or before it.
    %batch, %after_it = scf.while (%low = %c0, %high = %sequences) : (index, index) -> (index, index) {
      %size = arith.subi %high, %low : index
      %more = arith.cmpi sgt, %size, %c1 : index
      scf.condition(%more) %low, %high : index, index
    } do {
    ^bb0(%low: index, %high: index):
      %sum = arith.addi %low, %high : index
      %middle = arith.divui %sum, %c2 : index
      %word = memref.load %offsets[%middle] : memref<?xi32>
      %begin = arith.index_cast %word : i32 to index
      %after = arith.cmpi sle, %begin, %row : index
      %next_low = arith.select %after, %middle, %low : index
      %next_high = arith.select %after, %high, %middle : index
      scf.yield %next_low, %next_high : index, index
    }
    %word = memref.load %offsets[%batch] : memref<?xi32>
    %begin = arith.index_cast %word : i32 to index
    %number = arith.subi %row, %begin : index
    %next = arith.addi %batch, %c1 : index
    %next_word = memref.load %offsets[%next] : memref<?xi32>
    %next_begin = arith.index_cast %next_word : i32 to index
    %is_new = arith.cmpi slt, %row, %next_begin : index

    %head = arith.divui %lane, %c16 : index
    %part = arith.remui %lane, %c16 : index
    %dim = arith.muli %part, %c8 : index
    %length = kvbuffer.cache.cache_length %k[%batch] : !kv
    %position = arith.addi %length, %number : index
    // Rows after the last sequence's go nowhere: no token is at -1.
    %token = arith.select %is_new, %position, %none : index
    %x = vector.load %k_new[%row, %head, %dim] {alignment = 16 : i64} : !new, vector<8xbf16>
    kvbuffer.cache.store %x, %k[%batch, %head, %token, %dim] {alignment = 16 : i64} : vector<8xbf16>, !kv
    %y = vector.load %v_new[%row, %head, %dim] {alignment = 16 : i64} : !new, vector<8xbf16>
    kvbuffer.cache.store %y, %v[%batch, %head, %token, %dim] {alignment = 16 : i64} : vector<8xbf16>, !kv
    gpu.return
  }
}
