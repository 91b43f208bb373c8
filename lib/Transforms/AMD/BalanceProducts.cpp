//===- BalanceProducts.cpp - Deal MFMAs to both sides of a branch ---------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's scheduler works within a block. Where a stage has a branch that is
// seldom taken, as a softmax that raises its maximum, vector instructions
// behind it run beside the MFMAs that stand there, and beside no others. The
// pass moves MFMAs that the branch does not ask for from one side to the other,
// as many as leave the fewest cycles of vector instructions exposed.
//
//===----------------------------------------------------------------------===//

#include "AMDStages.h"
#include "kvbuffer/Transforms/AMD/Passes.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace kvbuf {
#define GEN_PASS_DEF_BALANCEPRODUCTS
#include "kvbuffer/Transforms/AMD/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-balance-products"

/// The block that control reaches from `block` on its only way; null if there
/// are several, or others reach it, too, unless `shared`.
static Block *onlySuccessor(Block *block, bool shared) {
  Block *next =
      block->getNumSuccessors() == 1 ? block->getSuccessor(0) : nullptr;
  return next && (shared || next->getSinglePredecessor()) ? next : nullptr;
}

/// The block behind a branch whose sides are a block each: the last on the only
/// way from where they meet. Null if the branch is another.
static Block *behindBranch(Block *block) {
  if (block->getNumSuccessors() != 2)
    return nullptr;
  Block *meet = nullptr;
  for (Block *side : block->getSuccessors()) {
    Block *next = onlySuccessor(side, /*shared=*/true);
    if (!next || !side->getSinglePredecessor() || (meet && next != meet))
      return nullptr;
    meet = next;
  }
  while (Block *next = onlySuccessor(meet, /*shared=*/false)) {
    if (meet->without_terminator().begin() != meet->without_terminator().end())
      break;
    meet = next;
  }
  return meet;
}

namespace {

/// Two pieces with a branch between them.
struct Sides {
  const StagePiece &front;
  /// Ops of the block behind up to its first barrier.
  SmallVector<Operation *> back;
};

/// What the MFMAs of a piece leave to vector instructions, and these.
struct Load {
  double vector = 0, windows = 0;

  double exposed() const { return std::max(0.0, vector - windows); }
};

struct BalanceProductsPass
    : kvbuf::impl::BalanceProductsBase<BalanceProductsPass> {
  using Base::Base;

  void runOnOperation() override {
    forLoopStages(getOperation(),
                  [&](const StagePiece &piece, const VectorCostModel &costs) {
                    Operation *last = piece.ops.back();
                    if (!isa<LLVM::CondBrOp>(last))
                      return;
                    Block *behind = behindBranch(last->getBlock());
                    if (!behind)
                      return;
                    Sides sides{piece, {}};
                    for (Operation &op : *behind) {
                      if (isa<ROCDL::SBarrierOp>(op))
                        break;
                      sides.back.push_back(&op);
                    }
                    balance(sides, costs);
                  });
  }

  static Load loadOf(ArrayRef<Operation *> ops, const VectorCostModel &costs) {
    const IssueModel &model = costs.issueModel();
    Load load;
    for (Operation *op : ops) {
      load.vector += costs.cost(op).cycles(model);
      if (unsigned cycles = mfmaCycles(op, model))
        load.windows += cycles - model.matrixIssue;
    }
    return load;
  }

  /// The MFMAs of the front that nothing in front of the block behind reads,
  /// the last one first.
  static SmallVector<Operation *> whatMaySink(const Sides &sides,
                                              DominanceInfo &dominance) {
    Block *behind = sides.back.front()->getBlock();
    llvm::DenseSet<Operation *> found;
    SmallVector<Operation *> order;
    for (Operation *op : llvm::reverse(sides.front.ops))
      if (isMfma(op) && llvm::all_of(op->getUsers(), [&](Operation *user) {
            return found.contains(user) ||
                   dominance.dominates(behind, user->getBlock());
          })) {
        found.insert(op);
        order.push_back(op);
      }
    return order;
  }

  /// The MFMAs behind whose operands are there in front, in order.
  static SmallVector<Operation *> whatMayRise(const Sides &sides,
                                              DominanceInfo &dominance) {
    Operation *branch = sides.front.ops.back();
    llvm::DenseSet<Operation *> found;
    SmallVector<Operation *> order;
    for (Operation *op : sides.back)
      if (isMfma(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
            Operation *def = operand.getDefiningOp();
            return found.contains(def) ||
                   dominance.properlyDominates(operand, branch);
          })) {
        found.insert(op);
        order.push_back(op);
      }
    return order;
  }

  void balance(const Sides &sides, const VectorCostModel &costs) {
    const IssueModel &model = costs.issueModel();
    DominanceInfo dominance(getOperation());
    Load front = loadOf(sides.front.ops, costs),
         back = loadOf(sides.back, costs);
    double before = front.exposed() + back.exposed(), best = before;
    // A move costs registers: it has to hide an instruction at least.
    auto search = [&](ArrayRef<Operation *> movable, Load from, Load to) {
      size_t count = 0;
      for (auto [i, op] : llvm::enumerate(movable)) {
        double window = mfmaCycles(op, model) - double(model.matrixIssue);
        from.windows -= window;
        to.windows += window;
        double exposed = from.exposed() + to.exposed();
        if (exposed + model.vector <= best) {
          best = exposed;
          count = i + 1;
        }
      }
      return count;
    };
    SmallVector<Operation *> sinking = whatMaySink(sides, dominance),
                             rising = whatMayRise(sides, dominance);
    size_t sink = search(sinking, front, back),
           rise = search(rising, back, front);
    if (rise)
      sink = 0;
    if (!sink && !rise)
      return;
    // The last one first, each in front of the one that was moved before it.
    Operation *place = sides.back.front();
    for (Operation *op : ArrayRef(sinking).take_front(sink)) {
      op->moveBefore(place);
      place = op;
    }
    for (Operation *op : ArrayRef(rising).take_front(rise))
      op->moveBefore(sides.front.ops.back());
    remark::passed(sides.front.ops.back()->getLoc(),
                   remark::RemarkOpts::name("balanced").category(DEBUG_TYPE))
        << llvm::formatv("{0} MFMAs moved {1} a branch: {2:f0} cycles of "
                         "vector instructions exposed instead of {3:f0}",
                         sink + rise, sink ? "behind" : "in front of", best,
                         before)
               .str();
  }
};
} // namespace
