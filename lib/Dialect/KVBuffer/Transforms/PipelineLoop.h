//===- PipelineLoop.h - Loops whose iterations overlap ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Makes loops of what their ops say of when they run: `kvbuf-run-ahead`, or
/// who writes the program, says at the ops of a loop's body how far ahead each
/// of them runs and where it will stand (`#kvbuffer.stage`), and at the loop
/// how it is made (`#kvbuffer.pipeline`). `pipelineLoop` reads that, and
/// nothing else, and makes the loop of it.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PIPELINELOOP_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PIPELINELOOP_H

#include "LoopParts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/PatternMatch.h"
#include <vector>

namespace kvbuf {

/// All ops of a loop's body but its end, in the order in which they will stand,
/// each with its stage: that of this iteration is the highest, an op of a stage
/// n lower runs n iterations ahead.
using PipelineOrder = std::vector<std::pair<mlir::Operation *, unsigned>>;

/// Says when an op runs.
void setStage(mlir::Operation *op, int64_t ahead, StageSpan span, int64_t at);
/// For which iterations it runs, and how far ahead: for the loop's own, and not
/// at all, where nothing is said of it.
StageSpan spanOf(mlir::Operation *op);
int64_t aheadOf(mlir::Operation *op);

/// Overlaps the iterations of `loop` as it and its ops say, which say it no
/// more then. On failure says at the loop that it cannot pipeline it, `what` it
/// is: "that loads tiles".
///
/// By predicates: waits and meetings are the same for all warps, and so have no
/// predicate. Where all tiles but the first are whole (`kWholeAfterFirstAttr`),
/// so are those that the new loop loads ahead. Loads behind the loop whose tile
/// it has loaded (`StageSpan`) are those. Where slots are filled again behind
/// it, all warps meet before. In turns: around that halves of a block are one
/// meeting apart.
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

/// The last wait before a loop, in its block; null if there is none.
LdsStageOp waitBefore(mlir::scf::ForOp loop);
/// Whether something in front of the loop reads what is awaited.
bool isReadBefore(LdsStageOp wait, mlir::scf::ForOp loop);

/// Whether nothing notices how often an op runs: it does nothing to memory but
/// read tensors, which no op of the loop writes, as what looks up scales does,
/// and functions of scores.
bool canRepeat(mlir::Operation &op);

// What both ways of making a loop share.

/// Makes the loads whole that run ahead in a loop of which only the tiles of
/// the first iteration can have invalid rows.
void loadWhole(mlir::scf::ForOp loop);
/// Removes what is said of when ops run in a loop, and in what was put before
/// and behind it.
void forgetStages(mlir::scf::ForOp loop);
/// Lets upstream's pipeliner make a loop in this order, by `options` that say
/// nothing of it yet; see `pipelineLoop` for `what`.
mlir::FailureOr<mlir::scf::ForOp>
runPipeliner(mlir::IRRewriter &rewriter, mlir::scf::ForOp loop,
             const PipelineOrder &order, mlir::scf::PipeliningOption &options,
             llvm::StringRef what);
/// `pipelineLoop` of a loop that is peeled, in the order that its ops say.
mlir::FailureOr<mlir::scf::ForOp>
pipelinePeeled(mlir::IRRewriter &rewriter, mlir::scf::ForOp loop,
               const PipelineOrder &order, Pipeline how, llvm::StringRef what);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_PIPELINELOOP_H
