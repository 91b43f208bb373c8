//===- ArgumentUses.h - What a kernel does with an argument -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_ARGUMENTUSES_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_ARGUMENTUSES_H

#include "kvbuffer/Dialect/KVBuffer/Transforms/KernelArguments.h"
#include "llvm/ADT/StringSet.h"
#include <optional>

namespace kvbuf {

/// What a kernel does with an argument, or with the scales of a cache, by its
/// attribute or by its uses.
TensorAccess accessOf(mlir::gpu::GPUFuncOp kernel, unsigned argument,
                      bool scales = false);

/// The rows of the tallest tile that is loaded from a tensor with its rows
/// along a dimension; 0: none is.
int64_t loadedRows(mlir::Value tensor, int64_t dimension);

/// Whether tiles of a tensor have rows along its heads, too.
bool hasGroups(mlir::Value tensor);

/// The dimensions of an argument whose sizes its uses in `make_cache` need.
llvm::SmallVector<unsigned> sizesOfMade(mlir::Value argument);

/// The dimensions of an argument whose sizes new tokens need: the number of
/// them, and of rows of angles.
llvm::SmallVector<unsigned> sizesOfTokens(mlir::Value argument);

/// The bytes that an argument's address and strides have to be multiples of,
/// where that is not what the kernel asks of all. Rows of new tokens and of
/// angles: 16 at most, so that lanes load several elements at once. What lanes
/// load by the element, as the captures of functions of scores, and what
/// nothing reads: an element. What fragments of elements wider than those of
/// which the kernel asks are stored into: `alignment`, which it asks of those.
std::optional<int64_t> ownAlignment(mlir::Value argument, int64_t alignment);

/// The largest alignment that a lane's access to an argument states, at most 16
/// bytes; 1: none does.
int64_t statedAlignment(mlir::Value argument);

/// The sizes of the launch that an op asks for, by their names in the manifest:
/// the room of a cache, the rows of ragged queries; of a cache whose type alone
/// knows where rows are, all that its tensors have.
llvm::SmallVector<llvm::StringRef> sizesNeededBy(mlir::Operation *op);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_ARGUMENTUSES_H
