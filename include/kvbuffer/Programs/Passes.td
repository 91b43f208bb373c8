//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PROGRAMS_PASSES_TD
#define KVBUFFER_PROGRAMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ListVisibleBlocks : Pass<"kvbuf-list-visible-blocks", "::mlir::ModuleOp"> {
  let summary = "Make a kernel that lists the blocks of keys which a visible region shows";
  let description = [{
    Each `kvbuffer.attention` with a `visible` region and without a `block_mask`, in a
    function @f of its own, gets a `block_mask` over four new arguments of @f,
    `kv_num_blocks`, `kv_indices`, `full_kv_num_blocks` and `full_kv_indices`, and
    beside @f there is a kernel @f_lists (phase `thread`, in a `gpu.module` of its own)
    that writes them. It takes Q and K, of which it asks the sizes, and the captures
    that the region reads. An artifact has both by name; the lists are good for as long
    as the sizes, and what the region reads, stay: for all layers of a model, say.

    The kernel asks the region, and the mask, about each row and key once: for each
    sequence where the region knows the sequence, for each head where it knows the
    head, else once for all, and the lists have one sequence or head. It does not ask
    about blocks that the mask hides from all rows of a block. A block of keys that the
    last key cuts is partly visible; rows behind the last one do not count.

    Queries are not ragged and caches are dense, as lists need room for a number of
    keys that a launch knows. Others are errors at the op.
  }];
  let options = [
    Option<"rows", "rows", "int64_t", /*default=*/"128",
           "Queries of a block, a multiple of the rows of the attention's tiles">,
    Option<"keys", "keys", "int64_t", /*default=*/"128",
           "Keys of a block, a multiple of the keys of the attention's tiles">];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"];
}

#endif // KVBUFFER_PROGRAMS_PASSES_TD
