//===- Scores.cpp - The next scores beside this softmax -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopOrder.h"

using namespace mlir;
using namespace kvbuf;

namespace {
/// What runs an iteration ahead for one softmax of a loop.
struct ScoresHanded {
  SmallVector<Value> values;
  /// The carried value that they may depend on; null if there is none.
  Value carried;
  /// What depends on it; nothing where that comes of what runs ahead, too.
  SmallVector<Operation *, 2> late;
};

struct ScoresOrder {
  /// Programs whose teams divide columns have scores ahead as they are built.
  static bool asks(const OrderedKernel &kernel) {
    return kernel.schedule &&
           !kernel.schedule.getStructure().dividesColumns() &&
           std::holds_alternative<ScoresAhead>(kernel.schedule.getAhead());
  }

  /// What a softmax, or the head of one in two parts, takes of what runs ahead;
  /// nothing of other ops.
  static std::optional<ScoresHanded> handedTo(Operation *op) {
    if (auto softmax = dyn_cast<OnlineSoftmaxOp>(op)) {
      // What comes out of the matrix unit; a mask on it stays with the softmax,
      // so that the loop can be split where masks end.
      Value scores = softmax.getScores();
      if (auto branch = scores.getDefiningOp<scf::IfOp>())
        if (auto yield = branch.elseYield())
          scores = yield.getOperand(cast<OpResult>(scores).getResultNumber());
      return ScoresHanded{{scores}, Value(), {}};
    }
    // All of a head is computed ahead.
    auto head = dyn_cast<SoftmaxHeadOp>(op);
    auto raise =
        head ? head.getMax().getDefiningOp<RaiseMaxOp>() : RaiseMaxOp();
    if (!raise)
      return std::nullopt;
    ScoresHanded handed{
        {raise.getNewMax(), raise.getFactor(), raise.getRaised(),
         head.getExponents(), head.getExcess()},
        isa<BlockArgument>(raise.getMax()) ? raise.getMax() : Value(),
        {}};
    // The end of this tile's softmax may raise the maxima that the next head
    // takes.
    if (raise.getExactOnly())
      handed.late = {raise, head};
    return handed;
  }

  static void find(const OrderedKernel &kernel, FoundLoops &found) {
    kernel.op->walk([&](Operation *op) {
      auto loop = dyn_cast_or_null<scf::ForOp>(op->getParentOp());
      if (loop && handedTo(op))
        found.add(loop);
    });
  }

  static Placed place(const OrderedKernel &, scf::ForOp loop,
                      IRRewriter &rewriter, Placement &placement,
                      Refusal &refusal) {
    Block *body = loop.getBody();
    OpSlice slice;
    SmallVector<Value> values, carried;
    SmallVector<Operation *> late;
    for (Operation &op : *body) {
      std::optional<ScoresHanded> handed = handedTo(&op);
      if (!handed)
        continue;
      refusal.why = "the scores depend on what the loop carries";
      for (Value value : handed->values)
        if (!collectSlice(value, loop, slice, handed->carried))
          return Placed::No;
      llvm::append_range(values, handed->values);
      llvm::append_range(late, handed->late);
      if (handed->carried)
        carried.push_back(handed->carried);
    }
    // A value that only the part ahead reads is carried as what it hands over.
    refusal.why = "the maximum is read by more than the scores";
    for (Value value : carried)
      if (llvm::any_of(value.getUsers(), [&](Operation *user) {
            return !slice.contains(body->findAncestorOpInBlock(*user));
          }))
        return Placed::No;
    // A value of two iterations before would have to be carried twice.
    refusal.why = "the loop carries a value that no op of its own computes";
    if (llvm::any_of(loop.getYieldedValues(), [&](Value value) {
          return value.getParentBlock() != body || isa<BlockArgument>(value);
        }))
      return Placed::No;
    refusal.why = "more than the scores is read of what would run ahead";
    if (!canTakeApart(loop, slice, values))
      return Placed::No;
    // The next tile's load follows the scores of this one without a barrier.
    refusal.why = kOneSlot;
    if (loadsIntoOneSlot(slice))
      return Placed::No;

    placement.placeIf(
        [&](Operation *op) {
          return slice.contains(op) && !llvm::is_contained(late, op);
        },
        1);
    placement.placeRest(rewriter, slice, values);
    placement.place(late, 1);
    placement.how = Pipeline::PeeledNow;
    placement.gain = "the scores of the next tile overlap the softmax of this "
                     "one";
    return Placed::Yes;
  }
};
} // namespace

const LoopOrder kvbuf::scoresOrder = {
    "scores",
    "overlap",
    "not overlapped: ",
    "not overlapped: no loop has a softmax that can be rotated",
    "of which scores run ahead",
    ScoresOrder::asks,
    ScoresOrder::find,
    ScoresOrder::place};
