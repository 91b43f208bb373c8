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
/// (kvbuf-overlap-softmax, kvbuf-overlap-products), say at the ops of a loop's
/// body how far ahead each of them runs and where it will stand
/// (`#kvbuffer.stage`), and at the loop how it is made (`#kvbuffer.pipeline`).
/// `pipelineLoop` reads that, and nothing else, and makes the loop of it.
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

/// Says at the ops of a loop's body when they run, and at the loop how it is
/// made: by predicates, or, where iterations of two stages overlap, with the
/// first of what runs ahead before it and the last of the rest behind it.
void annotate(mlir::scf::ForOp loop, const PipelineOrder &order, Pipeline how);

/// Overlaps the iterations of `loop` as it and its ops say (`annotate`), which
/// say it no more then. On failure says at the loop that it cannot pipeline it,
/// `what` it is: "that loads tiles".
///
/// By predicates: the loop's step is 1; waits and meetings are the same for all
/// warps, and so have no predicate. Where all tiles but the first are whole
/// (`kWholeAfterFirstAttr`), so are those that the new loop loads ahead. Loads
/// behind the loop whose tile it has loaded (`StageSpan`) are those.
///
/// Peeled: the new loop stands in a branch that is taken if there is an
/// iteration, and results are the branch's. Ops that run ahead may read what
/// the others of the iteration before compute. Conditions on the number of an
/// iteration, such as those of masks, are simple for the ops whose iterations
/// the new loop counts.
mlir::FailureOr<mlir::scf::ForOp> pipelineLoop(mlir::IRRewriter &rewriter,
                                               mlir::scf::ForOp loop,
                                               llvm::StringRef what);

/// The first load into `buffer` after a loop, in its block; null if there is
/// none.
DramLoadOp loadBehind(mlir::scf::ForOp loop, mlir::Value buffer);

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

/// Whether nothing notices how often an op runs: it does nothing to memory but
/// read tensors, which no op of the loop writes, as what looks up scales does,
/// and functions of scores.
bool canRepeat(mlir::Operation &op);

/// How far ahead an op runs; 0 where nothing is said of it.
int64_t aheadOf(mlir::Operation *op);
/// Makes the loads whole that run ahead in a loop of which only the tiles of
/// the first iteration can have invalid rows.
void loadWhole(mlir::scf::ForOp loop);
/// Removes what is said of when ops run in a loop, and in what was put before
/// and behind it.
void forgetStages(mlir::scf::ForOp loop);
/// `pipelineLoop` of a loop that is peeled, in the order that its ops say.
mlir::FailureOr<mlir::scf::ForOp>
pipelinePeeled(mlir::IRRewriter &rewriter, mlir::scf::ForOp loop,
               const PipelineOrder &order, Pipeline how, llvm::StringRef what);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PIPELINELOOP_H
