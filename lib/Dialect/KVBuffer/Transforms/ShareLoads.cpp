//===- ShareLoads.cpp - Rings that a cluster's blocks fill together -------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LostRequest.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "kvbuffer/Dialect/KVBuffer/IR/TradedShelves.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_SHARELOADS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-share-loads"

namespace {

/// Which values of the producers' code may differ between the blocks of a
/// cluster, and which of its branches and loops may go different ways. Memory
/// that it reads is the launch's and the same for all.
class Differences {
public:
  explicit Differences(Region &code) {
    // What is known only grows; a round that adds nothing is the last.
    do {
      changed = false;
      code.walk([&](Operation *op) { visit(op); });
    } while (changed);
  }

  bool contains(Value value) const { return values.contains(value); }
  /// Whether an op may be executed by some of the blocks only, or at different
  /// times of a loop.
  bool maySkip(Operation *op) const {
    for (; op; op = op->getParentOp())
      if (branches.contains(op))
        return true;
    return false;
  }

private:
  void add(Value value) { changed |= values.insert(value).second; }
  void addAll(ValueRange range) {
    for (Value value : range)
      add(value);
  }
  /// Values that pass on others, one by one.
  void pass(ValueRange from, ValueRange to) {
    for (auto [source, target] : llvm::zip_equal(from, to))
      if (contains(source))
        add(target);
  }
  /// A branch that may go different ways: all that it yields may differ.
  void part(Operation *op) {
    changed |= branches.insert(op).second;
    addAll(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        addAll(block.getArguments());
  }
  void visit(Operation *op);

  llvm::DenseSet<Value> values;
  llvm::DenseSet<Operation *> branches;
  bool changed = false;
};

void Differences::visit(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (contains(loop.getLowerBound()) || contains(loop.getUpperBound()) ||
        contains(loop.getStep()))
      part(op);
    pass(loop.getInitArgs(), loop.getRegionIterArgs());
    pass(loop.getYieldedValues(), loop.getRegionIterArgs());
    pass(loop.getRegionIterArgs(), loop.getResults());
    return;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (contains(branch.getCondition()))
      part(op);
    if (branch.getNumResults()) {
      pass(branch.thenYield().getResults(), branch.getResults());
      pass(branch.elseYield().getResults(), branch.getResults());
    }
    return;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    scf::ConditionOp condition = loop.getConditionOp();
    if (contains(condition.getCondition()))
      part(op);
    pass(loop.getInits(), loop.getBeforeArguments());
    pass(condition.getArgs(), loop.getAfterArguments());
    pass(condition.getArgs(), loop.getResults());
    pass(loop.getYieldOp().getResults(), loop.getBeforeArguments());
    return;
  }
  if (isa<ShareWorkOp, SharePairsOp>(op)) {
    // What is inside has been looked at by itself.
    auto yielded = op->getRegion(0).front().getTerminator()->getOperands();
    if (llvm::any_of(op->getOperands(), [&](Value v) { return contains(v); }) ||
        llvm::any_of(yielded, [&](Value v) { return contains(v); }))
      addAll(op->getResults());
    return;
  }
  // Who a block is, and what a counter gives to it alone. A number that the
  // producers find in a mailbox was sent to all. Clusters lie along x.
  auto id = dyn_cast<gpu::BlockIdOp>(op);
  if (isa<gpu::ClusterBlockIdOp, NextTileOp>(op) ||
      (id && id.getDimension() == gpu::Dimension::x) || op->getNumRegions() ||
      llvm::any_of(op->getOperands(), [&](Value v) { return contains(v); }))
    addAll(op->getResults());
}

struct ShareLoadsPass : kvbuf::impl::ShareLoadsBase<ShareLoadsPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    if (!kernel.getKnownClusterSize())
      return;
    // Blocks that trade are a cluster for that, and have keys of their own.
    auto trades = [](ShelfOp shelf) {
      return shelf->hasAttr(kTradedAttr) ? WalkResult::interrupt()
                                         : WalkResult::advance();
    };
    if (kernel.walk(trades).wasInterrupted())
      return;
    // Also of what stands before the teams.
    Differences differences(kernel.getBody());
    kernel.walk([&](RingOp ring) { share(ring, differences); });
  }

  /// Whether consumers read a ring's slots as operand b of products, whose rows
  /// or columns all rows of the result need.
  static bool holdsColumns(RingOp ring) {
    SmallVector<Value> slots;
    for (Operation *user : ring.getRing().getUsers())
      if (auto wait = dyn_cast<RingWaitOp>(user))
        slots.push_back(wait.getStaged());
    while (!slots.empty())
      for (OpOperand &use : slots.pop_back_val().getUses()) {
        if (auto view = dyn_cast<StagedViewOp>(use.getOwner()))
          slots.push_back(view.getView());
        if (auto load = dyn_cast<FragmentLoadOp>(use.getOwner()))
          if (load.getFragment().getType().getRole() == Role::B)
            return true;
        if (auto start = dyn_cast<MmaStartOp>(use.getOwner()))
          if (start.getB() == use.get())
            return true;
      }
    return false;
  }

  /// Whether columns of packed rows are not widened on their way.
  static bool copiesPacked(Value tile, KVBufferAttr params) {
    auto made = tile.getDefiningOp<CacheTileOp>();
    RowAttr row = made ? packedRowOf(made.getCache().getType()) : RowAttr();
    return row && isCopiedWhole(segmentsOf(row, params.getHeadDimOffset(),
                                           params.getSmemCols()),
                                params.getElementType());
  }

  static void share(RingOp ring, const Differences &differences) {
    auto differs = [&](RingLoadOp load) {
      return differences.contains(load.getTile()) ||
             differences.contains(load.getFill()) || differences.maySkip(load);
    };
    SmallVector<RingLoadOp> loads;
    for (Operation *user : ring.getRing().getUsers())
      if (auto load = dyn_cast<RingLoadOp>(user))
        loads.push_back(load);
    // What a team puts there it has computed, each block's for itself.
    if (llvm::any_of(ring.getRing().getUsers(), llvm::IsaPred<RingPutOp>))
      return;
    KVBufferAttr params = ring.getRing().getType().getParams();
    // Who copies columns of packed rows as they are does so for one block.
    if (llvm::any_of(loads, [&](RingLoadOp load) {
          return copiesPacked(load.getTile(), params);
        }))
      return;
    StringRef label = labelOf(ring.getRing());
    std::string name = label.empty() ? "tiles" : label.str();
    if (loads.empty() || llvm::any_of(loads, differs)) {
      std::string text = "the blocks of a cluster load " + name +
                         " each for itself: what they load differs";
      // The blocks compute different rows; what has columns of a product for
      // all of them could be shared, unless rows pass through its slots, too.
      auto isOfRows = [](RingLoadOp load) -> bool {
        return load.getTile().getDefiningOp<DramTileOp>();
      };
      bool passesRows =
          llvm::any_of(loads, isOfRows) && !llvm::all_of(loads, isOfRows);
      if (passesRows || !holdsColumns(ring))
        remark::missed(ring.getLoc(),
                       remark::RemarkOpts::name("cluster").category(DEBUG_TYPE))
            << text;
      else
        warnLost(ring, DEBUG_TYPE, "cluster", text);
      return;
    }
    ring.setShared(true);
    remark::passed(ring.getLoc(),
                   remark::RemarkOpts::name("cluster").category(DEBUG_TYPE))
        << "the blocks of a cluster load " << name << " for each other";
  }
};
} // namespace
