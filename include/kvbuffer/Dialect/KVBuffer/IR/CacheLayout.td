//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_CACHELAYOUT_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_CACHELAYOUT_TD

include "mlir/IR/OpBase.td"

def KVBuffer_CacheLayout : TypeInterface<"CacheLayout"> {
  let cppNamespace = "::kvbuf";
  let description = [{
    How a cache lies in memory: which memrefs it is made of and where the row of a
    token is. A type with this interface is a cache to every op on caches at the
    thread stage, and its tiles are read by programs of the tile stage; a new kind
    of cache is one such type.

    Rows of the data have `heads` heads of `cache_depth` elements, of which the
    cache's are the `head_size` from `head_dim_offset` on. The methods that emit
    code take the memrefs of a cache value and yield values of type `index`; what
    they read from tables, lengths and offsets nobody has checked.
  }];
  let methods = [
    InterfaceMethod<"The type of the elements that are read and written.",
      "::mlir::Type", "getElementType">,
    InterfaceMethod<[{The type of the elements of the data in memory, where another
      one: of bytes that elements are packed into.}],
      "::mlir::Type", "getStoredType", (ins), [{}],
      [{ return $_type.getElementType(); }]>,
    InterfaceMethod<"KV heads.", "int64_t", "getHeads">,
    InterfaceMethod<"Elements of a head.", "int64_t", "getHeadSize">,
    InterfaceMethod<"Elements of a row's head in memory.",
      "int64_t", "getCacheDepth">,
    InterfaceMethod<"Where in these the head begins.",
      "int64_t", "getHeadDimOffset">,
    InterfaceMethod<"The type of quantization scales; null without them.",
      "::mlir::Type", "getScaleType">,
    InterfaceMethod<[{What has a scale of its own: kPerTensor, kPerHead, or so
      many elements of a token's head.}], "int64_t", "getGranularity">,
    InterfaceMethod<"The dimensions of the data before heads and columns.",
      "::llvm::SmallVector<::kvbuf::CacheDim>", "getLeadingDims">,
    InterfaceMethod<"The tensors of integers that say where rows are.",
      "::llvm::SmallVector<::kvbuf::CacheTensor>", "getIndexTensors">,
    InterfaceMethod<[{How the rows of a tile's tokens are found. Without a word,
      by `emitPlace`: for each row, or once for a tile of one run.}],
      "::kvbuf::CacheRows", "getRows", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<[{Tokens whose rows lie together from each multiple of this
      number on; 0: those of a sequence all do.}], "int64_t", "getRun">,
    InterfaceMethod<"The number of sequences.",
      "::mlir::Value", "emitBatch",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "const ::kvbuf::CacheParts &":$parts)>,
    InterfaceMethod<"The number of tokens that a sequence has room for.",
      "::mlir::Value", "emitRoom",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "const ::kvbuf::CacheParts &":$parts, "::mlir::Value":$batch)>,
    InterfaceMethod<[{The number of tokens of a sequence, from 0 to its room.}],
      "::mlir::Value", "emitLength",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "const ::kvbuf::CacheParts &":$parts, "::mlir::Value":$batch)>,
    InterfaceMethod<[{The indices of a token's row in the leading dimensions, and
      whether it has one: with `checked` false the caller says so. What is read
      to find out is read for tokens that there is room for alone.}],
      "::kvbuf::CachePlace", "emitPlace",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "const ::kvbuf::CacheParts &":$parts, "::mlir::Value":$batch,
           "::mlir::Value":$token, "bool":$checked)>,
  ];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_CACHELAYOUT_TD
