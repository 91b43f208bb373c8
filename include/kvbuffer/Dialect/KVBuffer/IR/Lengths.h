//===- Lengths.h - What lengths count and their type ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_LENGTHS_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_LENGTHS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace kvbuf {

/// On a `kvbuffer.attention`: what the lengths of its continuous or paged
/// caches count. "cached", the default: the tokens before the new ones, so that
/// a sequence has as many keys as its length and its queries together. "all":
/// all keys, the new ones among them, of which there may be fewer than queries.
inline constexpr llvm::StringLiteral kLengthsAttr = "kvbuffer.lengths";

/// On an argument that is a cache, of a problem's function or of a kernel
/// before the thread stage: the type of the entries of its table, lengths and
/// offsets, i32 (the default) or i64.
inline constexpr llvm::StringLiteral kIndexAttr = "kvbuffer.index";

/// On an argument that functions of a problem read: its numbers never fall
/// along the last dimension. Nobody checks that: of other numbers some keys are
/// missing.
inline constexpr llvm::StringLiteral kRisingAttr = "kvbuffer.rising";

/// On a kernel: sizes of its launch that no argument's shape names, and what
/// they are where the caller does not say; a dictionary from names to
/// expressions over the others: {longest = "rows"}. On a kernel's argument that
/// is a cache: other names for what its type calls its sizes, {num_blocks =
/// "pages_of_k"}, so that caches of one kernel may differ in them.
inline constexpr llvm::StringLiteral kSizesAttr = "kvbuffer.sizes";

/// On a `kvbuffer.attention` over ragged queries, and on its kernel: [over,
/// upto, shared]. A launch whose longest sequence (`seq_q`) has more than
/// `shared` query rows runs several kernels, each for the sequences of more
/// than `over` and up to `upto` rows (-1: any number). One that does not split
/// keys runs in such launches only; the others compute all sequences elsewhere.
inline constexpr llvm::StringLiteral kSharedRowsAttr = "kvbuffer.shared_rows";

/// On a `kvbuffer.attention` over dense queries whose type leaves the number of
/// rows of a sequence open: all launches of its kernel have so many. A promise,
/// as of a kernel that launches choose by this number (`launch_if`): others
/// read and write rows that are not there, or leave some out.
inline constexpr llvm::StringLiteral kKnownRowsAttr = "kvbuffer.known_rows";

/// On a `kvbuffer.attention` of 16-bit queries over dense or paged caches of
/// 8-bit floats, a unit attribute: another kernel of the launch has widened K
/// and V, and this problem's kernel reads them from memory of the launch
/// (`k.wide`, `v.wide`: [sequence, key, head, column]), where a sequence's keys
/// lie side by side.
inline constexpr llvm::StringLiteral kWidenedAttr = "kvbuffer.widened";

/// On a kernel whose blocks have equal shares, with `kSharedRowsAttr` or heads
/// side by side: as many of them as there are for each multiprocessor. More,
/// where one has room early, would be missing elsewhere.
inline constexpr llvm::StringLiteral kResidentBlocksAttr =
    "kvbuffer.resident_blocks";

/// The values of `kSharedRowsAttr`.
struct SharedRows {
  int64_t over, upto, shared;
  static std::optional<SharedRows> of(mlir::Operation *op) {
    auto rows = op->getAttrOfType<mlir::DenseI64ArrayAttr>(kSharedRowsAttr);
    if (!rows || rows.size() != 3)
      return std::nullopt;
    return SharedRows{rows[0], rows[1], rows[2]};
  }
  mlir::Attribute attribute(mlir::MLIRContext *context) const {
    return mlir::DenseI64ArrayAttr::get(context, {over, upto, shared});
  }
};

/// Query rows of each sequence: what the type of dense queries says, or
/// `kKnownRowsAttr`; -1 where neither does.
inline int64_t knownRowsOf(AttentionOp op) {
  auto q = llvm::cast<mlir::ShapedType>(op.getQ().getType());
  if (op.isRagged())
    return -1;
  if (!q.isDynamicDim(1))
    return q.getDimSize(1);
  auto known = op->getAttrOfType<mlir::IntegerAttr>(kKnownRowsAttr);
  return known ? known.getInt() : -1;
}

/// Whether a problem's kernel reads K and V as another one has widened them.
inline bool readsWidened(AttentionOp op) { return op->hasAttr(kWidenedAttr); }

/// Whether the lengths of a problem's caches count the new tokens.
inline bool lengthsCountNew(AttentionOp op) {
  auto lengths = op->getAttrOfType<mlir::StringAttr>(kLengthsAttr);
  return lengths && lengths.getValue() == "all";
}

/// The type of the entries that belong to argument `argument` of a kernel.
inline mlir::Type indexTypeOf(mlir::gpu::GPUFuncOp kernel, unsigned argument) {
  auto type = kernel.getArgAttrOfType<mlir::TypeAttr>(argument, kIndexAttr);
  return type ? type.getValue()
              : mlir::IntegerType::get(kernel.getContext(), 32);
}

/// What launches call the size of a cache that its type calls `name`: the same,
/// unless it is an argument whose `kSizesAttr` says another name.
inline llvm::StringRef sizeOfCache(mlir::Value cache, llvm::StringRef name) {
  auto argument = llvm::dyn_cast_if_present<mlir::BlockArgument>(cache);
  auto kernel = argument ? llvm::dyn_cast<mlir::gpu::GPUFuncOp>(
                               argument.getOwner()->getParentOp())
                         : mlir::gpu::GPUFuncOp();
  if (!kernel || !argument.getOwner()->isEntryBlock() ||
      argument.getArgNumber() >= kernel.getNumArguments())
    return name;
  auto sizes = kernel.getArgAttrOfType<mlir::DictionaryAttr>(
      argument.getArgNumber(), kSizesAttr);
  auto other = sizes ? sizes.getAs<mlir::StringAttr>(name) : mlir::StringAttr();
  return other ? other.getValue() : name;
}

/// Whether a kernel's argument is a cache, or the memref that holds the rows of
/// one that the kernel makes.
inline bool holdsCacheRows(mlir::Value argument) {
  return llvm::isa<CacheLayout>(argument.getType()) ||
         llvm::any_of(argument.getUsers(), [&](mlir::Operation *user) {
           auto make = llvm::dyn_cast<MakeCacheOp>(user);
           return make && make.getData() == argument;
         });
}

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_LENGTHS_H
