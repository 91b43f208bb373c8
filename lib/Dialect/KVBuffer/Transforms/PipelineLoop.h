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
/// kvbuf-prefetch-blocks, kvbuf-ping-pong), or scores and softmaxes
/// (kvbuf-overlap-softmax, kvbuf-overlap-products), say in which order the ops
/// of a loop's body stand and how far ahead each of them runs; this makes the
/// loop of it.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PIPELINELOOP_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PIPELINELOOP_H

#include "LoopParts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include <vector>

namespace kvbuf {

/// All ops of a loop's body but its end, in the order in which they will stand,
/// each with its stage: that of this iteration is the highest, an op of a stage
/// n lower runs n iterations ahead.
using PipelineOrder = std::vector<std::pair<mlir::Operation *, unsigned>>;

/// Says for which iterations an op runs ahead, before its loop is pipelined
/// (`#kvbuffer.stage`). What nothing is said of, loads, of numbers too, and
/// look-ups, runs for the loop's own.
void setSpan(mlir::Operation *op, StageSpan span);
/// What was said of it.
StageSpan spanOf(mlir::Operation *op);

/// The first op of those that loads of a loop's body need which cannot run
/// ahead of its iteration; null if all can. Index arithmetic, loads and
/// look-ups of tiles can, and so can a load of one number (`memref.load`) of an
/// argument that its kernel only reads: a list of tiles, say.
mlir::Operation *findBound(const OpSlice &slice);
/// What to say at such an op.
constexpr llvm::StringLiteral kNotAhead =
    "not prefetched: a tile's place depends on this op, which cannot run ahead "
    "of its iteration; expected a memref.load of an argument that the kernel "
    "only reads";

/// Overlaps the iterations of `loop`, whose step is 1. Waits and meetings are
/// the same for all warps, and so have no predicate. Where all tiles but the
/// first are whole (`kWholeAfterFirstAttr`), so are those that the new loop
/// loads ahead. Stages stay at the ops until `forgetStages`. On failure says at
/// the loop that it cannot pipeline it, `what` it is: "that loads tiles".
mlir::FailureOr<mlir::scf::ForOp> pipelineLoop(mlir::IRRewriter &rewriter,
                                               mlir::scf::ForOp loop,
                                               const PipelineOrder &order,
                                               llvm::StringRef what);

/// Ends a loop that `pipelineLoop` has made of loads that run ahead, which have
/// taken their numbers beyond its last iteration, too, although they load
/// nothing there. Where later loads, or the loop's own when a loop around it
/// runs again, fill a slot that its last iteration still reads, all warps meet
/// behind it. Where a copy that copies nothing is on its way all the same
/// (`CopyEngine::Waves`), those copies are awaited before their slots
/// are filled again, whoever names these.
void settleBehind(mlir::IRRewriter &rewriter, mlir::scf::ForOp loop,
                  bool copiesByWave);

/// Whether what is left of an iteration reads nothing of `ahead` but `handed`
/// and what can be computed twice: no products, and no loads but of numbers
/// that tell where tiles are.
bool canTakeApart(mlir::scf::ForOp loop, const OpSlice &ahead,
                  mlir::ArrayRef<mlir::Value> handed);

/// Appends what is left of an iteration to `order`, in stage 1, each op after
/// copies of those ops of `ahead` that it reads besides what is `handed` to it:
/// index arithmetic of what runs ahead may serve the rest, too.
void placeRest(mlir::RewriterBase &rewriter, mlir::scf::ForOp loop,
               const OpSlice &ahead, mlir::ArrayRef<mlir::Value> handed,
               PipelineOrder &order);

/// Which iterations a loop of two overlapping ones counts: those of stage 0,
/// from the second to the last, or those of stage 1, from the first to the last
/// but one. Conditions on the number of an iteration, such as those of masks,
/// are simple for the ops of that stage.
enum class CountedStage { Ahead, Now };

/// Overlaps two iterations of `loop`, of stages 0 and 1, whose ops run for its
/// own iterations only without a predicate: the first of stage 0 before the new
/// loop, the last of stage 1 after it, all of it in a branch that is taken if
/// there is an iteration. Stage 0 may read what stage 1 of the iteration before
/// computes. Where it counts those of stage 0, tiles that the new loop loads
/// ahead are whole as above. Results are the branch's. Failure as above.
mlir::FailureOr<mlir::scf::ForOp> pipelinePeeled(mlir::IRRewriter &rewriter,
                                                 mlir::scf::ForOp loop,
                                                 const PipelineOrder &order,
                                                 CountedStage counted,
                                                 llvm::StringRef what);

/// Removes the stages in a loop and in what `pipelineLoop` has put before it.
void forgetStages(mlir::scf::ForOp loop);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PIPELINELOOP_H
