//===- PipelineLoop.h - Loops whose iterations overlap ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The passes that let loads run ahead (kvbuf-prefetch-loads,
/// kvbuf-prefetch-blocks, kvbuf-ping-pong), or scores (kvbuf-overlap-softmax),
/// say in which order the ops of a loop's body stand and how far ahead each of
/// them runs; this makes the loop of it.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PIPELINELOOP_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PIPELINELOOP_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include <vector>

namespace kvbuf {

/// All ops of a loop's body but its end, in the order in which they will stand,
/// each with its stage: that of this iteration is the highest, an op of a stage
/// n lower runs n iterations ahead.
using PipelineOrder = std::vector<std::pair<mlir::Operation *, unsigned>>;

/// Marks of ops, before their loop is pipelined: what runs ahead of the last
/// iterations, too (`kEveryTile`), as what stands after the loop goes on with
/// it; and what runs ahead for one iteration more than there are (`kOneMore`).
/// Other loads and look-ups run for the loop's own iterations only.
constexpr llvm::StringLiteral kEveryTile = KVBufferDialect::kEveryTileAttr;
constexpr llvm::StringLiteral kOneMore = "kvbuffer.one_more";

/// Overlaps the iterations of `loop`, whose step is 1. Waits and meetings are
/// the same for all warps, and so have no predicate. Where all tiles but the
/// first are whole (`kWholeAfterFirstAttr`), so are those that the new loop
/// loads ahead. Marks stay until `forgetMarks`. On failure says at the loop
/// that it cannot pipeline it, `what` it is: "that loads tiles".
mlir::FailureOr<mlir::scf::ForOp> pipelineLoop(mlir::IRRewriter &rewriter,
                                               mlir::scf::ForOp loop,
                                               const PipelineOrder &order,
                                               llvm::StringRef what);

/// Overlaps two iterations of `loop`, of stages 0 and 1, whose ops run for its
/// own iterations only without a predicate: the first of stage 0 before the new
/// loop, the last of stage 1 after it, all of it in a branch that is taken if
/// there is an iteration. Results are the branch's. Failure as above.
mlir::FailureOr<mlir::scf::ForOp> pipelinePeeled(mlir::IRRewriter &rewriter,
                                                 mlir::scf::ForOp loop,
                                                 const PipelineOrder &order,
                                                 llvm::StringRef what);

/// Removes the marks in a loop and in what `pipelineLoop` has put before it.
void forgetMarks(mlir::scf::ForOp loop);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PIPELINELOOP_H
