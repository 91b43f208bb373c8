//===- LoopParts.h - Parts of a loop over tiles -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What passes that rotate loops share: which ops of a body a value needs, and
/// copies of those ops for another iteration.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_LOOPPARTS_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_LOOPPARTS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace kvbuf {

/// Ops of a loop's body.
using OpSlice = llvm::SmallSetVector<mlir::Operation *, 32>;

/// Collects the ops of `loop`'s body that `value` needs, also inside of
/// regions, each after those that it needs itself; false if it needs a value
/// that the loop carries, other than `allowed`, so that another iteration
/// cannot compute it alone.
bool collectSlice(mlir::Value value, mlir::scf::ForOp loop, OpSlice &slice,
                  mlir::Value allowed = {});

/// Clones `op` of `loop`'s body after those ops of the body that it needs and
/// that `mapping` does not have yet.
mlir::Operation *cloneWithOperands(mlir::OpBuilder &b, mlir::scf::ForOp loop,
                                   mlir::Operation *op,
                                   mlir::IRMapping &mapping);

/// An index as another one plus a constant; `base` is null for a constant.
struct OffsetIndex {
  mlir::Value base;
  int64_t offset = 0;
};

/// Takes additions and subtractions of constants off an index.
OffsetIndex stripOffset(mlir::Value index);

/// The number of which the slot that a load names is the remainder by the count
/// of the buffer's slots: `%i + 1` for `(%i + 1) mod stages`, a constant for a
/// constant or a buffer of one slot; nullopt for other slots, and where none is
/// named.
std::optional<OffsetIndex> slotNumber(DramLoadOp load);

/// Whether `op` loads into `buffer`, or an op inside of it does.
bool loadsInto(mlir::Operation *op, mlir::Value buffer);

/// Whether the iterations of `loop` fill the slots of a buffer in turn by
/// `load`, of its body: it leaves its slot to the order of loads, or its number
/// is the iteration's plus a constant.
bool fillsInTurn(DramLoadOp load, mlir::scf::ForOp loop);

/// By how many fillings of one buffer the load of a loop's first iteration
/// comes after `before`, a load in front of the loop; nullopt if that depends
/// on the run.
std::optional<int64_t> fillingsSince(DramLoadOp before, DramLoadOp load);

/// Whether `after`, a load after `loop` in its block, fills the slot that the
/// loop's next iteration would fill by `load`.
bool isNextFilling(DramLoadOp load, DramLoadOp after, mlir::scf::ForOp loop);

/// Whether `outside`, computed after `loop`, is what the loop's body would
/// compute as `inside` in the iteration that follows the last one.
bool isNextIteration(mlir::Value inside, mlir::Value outside,
                     mlir::scf::ForOp loop);

/// Whether what `value` is depends on a result of `op`, also through loops and
/// branches; not whether it is computed at all.
bool followsFrom(mlir::Value value, mlir::Operation *op);

/// Whether `value` follows from a range of keys that is of the mask's own rule,
/// queries and keys: it may say which tiles `mask` hides nothing or all of.
bool isOfRange(mlir::Value value, MaskOp mask);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_LOOPPARTS_H
