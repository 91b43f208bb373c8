//===- Blocks.cpp - Loads of blocks run ahead -----------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopOrder.h"

using namespace mlir;
using namespace kvbuf;

/// The loads of a loop that takes blocks one after the other, each awaited by
/// itself, in the order in which they are awaited; `why` says what is missing.
static SmallVector<DramLoadOp> findBlocks(scf::ForOp loop, StringRef &why) {
  SmallVector<DramLoadOp> loads;
  for (auto stage : loop.getBody()->getOps<LdsStageOp>()) {
    auto load = stage.getTokens().size() == 1
                    ? stage.getTokens().front().getDefiningOp<DramLoadOp>()
                    : DramLoadOp();
    why = "a wait is not for one load of its own iteration";
    if (!load || load->getBlock() != loop.getBody() || load.getPred())
      return {};
    loads.push_back(load);
  }
  why = "a load is not awaited in its own iteration";
  if (loads.size() !=
      size_t(llvm::range_size(loop.getBody()->getOps<DramLoadOp>())))
    return {};
  why = kOneSlot;
  for (DramLoadOp load : loads)
    if (load.getBuffer().getType().getParams().getStages() < 2)
      return {};
  return loads;
}

namespace {
struct BlocksOrder {
  static bool asks(const OrderedKernel &) { return true; }

  static void find(const OrderedKernel &kernel, FoundLoops &found) {
    kernel.op->walk([&](scf::ForOp loop) {
      // Buffers of one slot ask for no prefetch.
      if (llvm::any_of(
              loop.getBody()->getOps<DramLoadOp>(), [](DramLoadOp load) {
                KVBufferAttr params = load.getBuffer().getType().getParams();
                return !params.getFullKv() && params.getStages() > 1;
              }))
        found.add(loop);
    });
  }

  /// Lets the first loads run an iteration ahead, with copies of all that they
  /// need: tiles and indices are not carried from one iteration to the next.
  /// Returns what runs ahead for each of them.
  static SmallVector<SmallVector<Operation *>>
  copyNeeds(IRRewriter &rewriter, scf::ForOp loop,
            MutableArrayRef<DramLoadOp> loads) {
    Block *body = loop.getBody();
    SmallVector<SmallVector<Operation *>> ahead(loads.size());
    for (auto [load, ops] : llvm::zip_equal(loads, ahead)) {
      rewriter.setInsertionPoint(load);
      IRMapping mapping;
      Operation *previous = load->getPrevNode();
      auto copy =
          cast<DramLoadOp>(cloneWithOperands(rewriter, loop, load, mapping));
      for (Operation *op = previous ? previous->getNextNode() : &body->front();
           op != load; op = op->getNextNode())
        ops.push_back(op);
      rewriter.replaceOp(load, copy.getToken());
      load = copy;
    }
    // Look-ups that the copies have made unnecessary.
    for (auto tile : llvm::make_early_inc_range(body->getOps<CacheTileOp>()))
      if (tile->use_empty())
        rewriter.eraseOp(tile);
    return ahead;
  }

  static Placed place(const OrderedKernel &, scf::ForOp loop,
                      IRRewriter &rewriter, Placement &placement,
                      Refusal &refusal) {
    SmallVector<DramLoadOp> loads = findBlocks(loop, refusal.why);
    if (loads.empty())
      return Placed::No;
    int64_t count = loads.size(), distance = count;
    for (DramLoadOp load : loads)
      distance = std::min(
          distance, load.getBuffer().getType().getParams().getStages() - 1);
    OpSlice needed;
    for (DramLoadOp load : ArrayRef(loads).take_front(distance))
      collectSlice(load.getToken(), loop, needed);
    if (Operation *bound = findBound(needed)) {
      refusal = {bound, kNotAhead};
      return Placed::No;
    }

    SmallVector<SmallVector<Operation *>> ahead =
        copyNeeds(rewriter, loop, MutableArrayRef(loads).take_front(distance));
    llvm::SmallPtrSet<Operation *, 32> runsAhead;
    for (ArrayRef<Operation *> ops : ahead)
      runsAhead.insert_range(ops);
    int64_t awaited = 0;
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (isa<DramLoadOp>(op) || runsAhead.contains(&op))
        continue;
      placement.place(&op);
      if (!isa<LdsStageOp>(op))
        continue;
      // Its barrier has freed a slot.
      int64_t target = awaited++ + distance;
      if (target < count)
        placement.placeWithOperands(loads[target]);
      else
        placement.place(ahead[target - count], 1);
    }
    placement.gain =
        "loads run " + std::to_string(distance) + " block(s) ahead";
    return Placed::Yes;
  }
};
} // namespace

const LoopOrder kvbuf::blocksOrder = {"blocks",
                                      "blocks",
                                      "not prefetched: ",
                                      "",
                                      "that loads blocks",
                                      BlocksOrder::asks,
                                      BlocksOrder::find,
                                      BlocksOrder::place};
