//===- AsyncProducts.cpp - Products in flight, awaited late -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LostRequest.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace kvbuf {
#define GEN_PASS_DEF_ASYNCPRODUCTS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-async-products"

namespace {

/// The load of a fragment that lies in a ring's slot as it is multiplied; null
/// if there is none, or if it is widened or turned on its way.
FragmentLoadOp loadOf(Value fragment) {
  auto load = fragment.getDefiningOp<FragmentLoadOp>();
  if (!load || load.isCrossed() ||
      !slotOfView(load.getStaged()).getDefiningOp<RingWaitOp>() ||
      load.getStaged().getType().getParams().getElementType() !=
          load.getFragment().getType().getElementType())
    return nullptr;
  return load;
}

/// Whether a group of warps can multiply by what lies in a slot: elements of 8
/// bits that are contracted lie side by side.
bool isReadByGroups(MmaOp op) {
  FragmentLoadOp load = loadOf(op.getB());
  if (!load)
    return false;
  KVBufferAttr params = load.getStaged().getType().getParams();
  return params.getElementType().getIntOrFloatBitWidth() > 8 ||
         op.getTransposeB() || params.getOrder() == Dimension::Cols;
}

/// The slot of a ring that a fragment is loaded from, or the view of it that
/// the fragment is; null if there is none.
Value slotOf(OpBuilder &b, Value fragment) {
  FragmentLoadOp load = loadOf(fragment);
  if (!load)
    return nullptr;
  StagedType staged = load.getStaged().getType();
  FragmentType type = load.getFragment().getType();
  auto view =
      StagedType::get(b.getContext(), staged.getParams(), type.getRows(),
                      type.getCols(), load.getSlotRow(), load.getSlotCol());
  if (view == staged)
    return load.getStaged();
  return StagedViewOp::create(b, load.getLoc(), view, load.getStaged(),
                              load.getRow(), load.getCol());
}

/// Whether operand a is some of a slot's columns that are read once, ahead of
/// the loop or branch that multiplies by them: these have registers.
bool isHeld(MmaOp op) {
  FragmentLoadOp load = loadOf(op.getA());
  return load && load->getBlock() != op->getBlock() &&
         load.getFragment().getType().getCols() <
             load.getStaged().getType().getParams().getSmemCols();
}

/// Whether a schedule names an instruction that groups of warps execute for a
/// product, for elements of any type.
bool multipliesByGroups(const TargetInfo &target, ScheduleAttr schedule,
                        ProductKind product) {
  ArrayRef<int64_t> shape = schedule.getMmaShape(product);
  return llvm::any_of(llvm::concat<const MatrixInstruction>(
                          target.matrixInstructions, target.float8Instructions),
                      [&](const MatrixInstruction &mma) {
                        return mma.isOfGroups() &&
                               ArrayRef<int64_t>(mma.shape()) == shape;
                      });
}

bool isZero(Value acc) {
  auto fill = acc.getDefiningOp<FragmentFillOp>();
  return fill && fill.getValue().isZero();
}

struct AsyncProductsPass : kvbuf::impl::AsyncProductsBase<AsyncProductsPass> {
  using Base::Base;

  /// Starts a product in place of `op`.
  static MmaStartOp start(MmaOp op, bool qInRegs) {
    OpBuilder builder(op);
    Value b = slotOf(builder, op.getB());
    Value a = op.getA();
    if (!qInRegs && !isHeld(op))
      if (Value slot = slotOf(builder, a))
        a = slot;
    FragmentType type = op.getResult().getType();
    return MmaStartOp::create(
        builder, op.getLoc(),
        PendingType::get(op.getContext(), type.getRows(), type.getCols(),
                         type.getElementType()),
        a, b, isZero(op.getAcc()) ? Value() : op.getAcc(), op.getTransposeB());
  }

  /// Awaits a product before the first use of `result`, in the block that
  /// starts it, so that no product is in flight from one iteration to the next.
  static MmaWaitOp await(MmaStartOp start, Value result) {
    Block *block = start->getBlock();
    llvm::SmallPtrSet<Operation *, 4> users;
    for (Operation *user : result.getUsers())
      if (Operation *ancestor = block->findAncestorOpInBlock(*user))
        users.insert(ancestor);
    int64_t younger = 0;
    Operation *point = start->getNextNode();
    for (; point != block->getTerminator(); point = point->getNextNode()) {
      if (users.contains(point))
        break;
      if (isa<MmaStartOp>(point)) {
        ++younger;
        continue;
      }
      // Products of a loop or a branch cannot be counted.
      if (point->walk([](MmaStartOp) { return WalkResult::interrupt(); })
              .wasInterrupted())
        break;
    }
    OpBuilder b(point);
    return MmaWaitOp::create(b, start.getLoc(), start.getResult(), younger);
  }

  /// The product that goes on with what `started` sums up, in the same
  /// registers, if that is all that becomes of it; null if there is none.
  static MmaStartOp goesOn(MmaOp op, MmaStartOp started,
                           const llvm::DenseMap<MmaOp, MmaStartOp> &starts) {
    MmaStartOp next;
    for (OpOperand &use : op.getResult().getUses()) {
      auto product = dyn_cast<MmaOp>(use.getOwner());
      MmaStartOp other = product ? starts.lookup(product)
                                 : dyn_cast<MmaStartOp>(use.getOwner());
      if (!other || other.getAcc() != use.get() || (next && next != other))
        return nullptr;
      next = other;
    }
    if (!next || next->getBlock() != started->getBlock() ||
        next.getResult().getType() != started.getResult().getType())
      return nullptr;
    // Products of a loop or a branch cannot be counted.
    for (Operation *between = started->getNextNode(); between != next;
         between = between->getNextNode())
      if (between->getNumRegions() &&
          between->walk([](MmaStartOp) { return WalkResult::interrupt(); })
              .wasInterrupted())
        return nullptr;
    return next;
  }

  /// Awaits a product that `next` goes on with once that one is on its way: the
  /// slots of the first are free then, and the matrix unit has the second.
  static MmaWaitOp awaitBehind(MmaStartOp start, MmaStartOp next) {
    next.getAccMutable().assign(start.getResult());
    int64_t younger = 0;
    for (Operation *op = start; op != next; op = op->getNextNode())
      younger += isa<MmaStartOp>(op->getNextNode());
    OpBuilder b(next->getContext());
    b.setInsertionPointAfter(next);
    return MmaWaitOp::create(b, start.getLoc(), start.getResult(), younger);
  }

  /// Whether the ring's next filling is awaited between a release and an op
  /// behind it, which may need the slot.
  static bool isAwaitedBetween(RingReleaseOp release, Operation *last) {
    return llvm::any_of(release.getRing().getUsers(), [&](Operation *user) {
      Operation *wait = isa<RingWaitOp>(user)
                            ? last->getBlock()->findAncestorOpInBlock(*user)
                            : nullptr;
      return wait && release->isBeforeInBlock(wait) &&
             wait->isBeforeInBlock(last);
    });
  }

  /// Moves the release of a slot behind `last`, the last op that it is there
  /// for: the wait for a product that reads it. One that `mayStay` does where
  /// the ring's next filling is awaited before.
  static void releaseAfter(Value staged, Operation *last,
                           bool mayStay = false) {
    auto filled = slotOfView(staged).getDefiningOp<RingWaitOp>();
    if (!filled)
      return;
    for (Operation *user : filled.getRing().getUsers())
      if (auto release = dyn_cast<RingReleaseOp>(user))
        if (release.getFill() == filled.getFill() &&
            release->getBlock() == last->getBlock() &&
            release->isBeforeInBlock(last) &&
            !(mayStay && isAwaitedBetween(release, last)))
          release->moveAfter(last);
  }

  /// Gives the slots of what a product begins with back behind its start, which
  /// takes what lanes have read there. Words go back as soon as they are
  /// multiplied: lanes fence such reads before they give a slot back. Where the
  /// ring's next filling is awaited before, the release stays.
  static void releaseBegun(MmaStartOp start) {
    Operation *made = start.getAcc() ? start.getAcc().getDefiningOp() : nullptr;
    if (!made || made->getBlock() != start->getBlock())
      return;
    constexpr unsigned word = 32;
    SmallVector<Operation *> left{made};
    llvm::SmallPtrSet<Operation *, 8> seen;
    while (!left.empty()) {
      Operation *op = left.pop_back_val();
      if (isa<MmaWaitOp, MmaStartOp, OnlineSoftmaxOp>(op) ||
          op->getBlock() != start->getBlock() || !seen.insert(op).second)
        continue;
      auto load = dyn_cast<FragmentLoadOp>(op);
      if (!load) {
        for (Value operand : op->getOperands())
          if (Operation *def = operand.getDefiningOp())
            left.push_back(def);
        continue;
      }
      bool isWord = load.getStaged()
                        .getType()
                        .getParams()
                        .getElementType()
                        .getIntOrFloatBitWidth() == word;
      releaseAfter(load.getStaged(), isWord ? made : start,
                   /*mayStay=*/true);
    }
  }

  /// Gives the slots of scores back behind the softmax, right before the wait
  /// for a product that is added apart: such a release knows the maxima, which
  /// keeps the wait from running ahead of them (`kvbuf::lowerOp` of
  /// RingReleaseOp).
  static void releaseBehindMaxima(OnlineSoftmaxOp softmax) {
    Operation *point = softmax->getNextNode();
    while (point && !isa<MmaWaitOp, MmaStartOp>(point))
      point = point->getNextNode();
    auto wait = dyn_cast_or_null<MmaWaitOp>(point);
    if (!wait || !llvm::any_of(wait.getAcc().getUsers(), [&](Operation *user) {
          auto rescale = dyn_cast<RescaleOp>(user);
          return rescale && rescale.getAddend() == wait.getAcc();
        }))
      return;
    SmallVector<RingReleaseOp> releases;
    for (Operation *op = softmax->getPrevNode(); op && !isa<MmaWaitOp>(op);
         op = op->getPrevNode()) {
      if (op->getNumRegions() && !isMemoryEffectFree(op))
        return;
      if (auto release = dyn_cast<RingReleaseOp>(op))
        releases.push_back(release);
    }
    for (RingReleaseOp release : releases)
      release->moveBefore(wait);
  }

  /// Groups take turns from the first start of a loop's body to the second, if
  /// the first product is still in flight then. Starts that go on with a
  /// product are a part of it.
  static bool takeTurns(scf::ForOp loop) {
    SmallVector<MmaStartOp> starts;
    MmaStartOp last;
    for (auto start : loop.getBody()->getOps<MmaStartOp>()) {
      bool goesOn =
          start.getAcc() && isa<PendingType>(start.getAcc().getType());
      if (!goesOn)
        starts.push_back(start);
      if (starts.size() == 1)
        last = start;
    }
    if (starts.size() < 2 ||
        llvm::any_of(last->getUsers(), [&](Operation *wait) {
          return wait->isBeforeInBlock(starts[1]);
        }))
      return false;
    OpBuilder b(starts[0]);
    TurnWaitOp::create(b, starts[0].getLoc());
    b.setInsertionPointAfter(starts[1]);
    TurnPassOp::create(b, starts[1].getLoc());
    return true;
  }

  /// A loop that passes over slots takes the turns of the iterations whose
  /// place it takes, so that all groups take as many: once all slots of the
  /// scores are given back, which another group's turn may wait for.
  static void passTurns(scf::ForOp loop) {
    RingReleaseOp last;
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (!isa<RingWaitOp, RingReleaseOp>(op) &&
          !isa<arith::ArithDialect>(op.getDialect()))
        return;
      auto release = dyn_cast<RingReleaseOp>(op);
      if (release && (!last || release.getRing() == last.getRing()))
        last = release;
    }
    if (!last)
      return;
    OpBuilder b(last->getContext());
    b.setInsertionPointAfter(last);
    TurnWaitOp::create(b, loop.getLoc());
    TurnPassOp::create(b, loop.getLoc());
  }

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    auto schedule =
        kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
    if (!schedule)
      return;
    // Warps that are no whole groups multiply by themselves, and all do where
    // the schedule names such an instruction.
    std::optional<TargetInfo> target = targetOf(kernel);
    auto byGroups = [&](ProductKind product) {
      return !target || multipliesByGroups(*target, schedule, product);
    };
    SmallVector<TeamOp> found;
    kernel.walk([&](TeamOp op) {
      if (op.readsRings() && llvm::any_of(kProducts, byGroups) &&
          (!target || op.isWholeGroups(target->warpsPerMatrixGroup())))
        found.push_back(op);
    });
    for (TeamOp team : found) {
      SmallVector<std::pair<MmaOp, MmaStartOp>> products;
      team.getBody().walk([&](MmaOp op) {
        if (!byGroups(productOf(op)))
          return;
        if (isReadByGroups(op))
          products.push_back({op, start(op, schedule.getQInRegs())});
        else
          remark::missed(
              op.getLoc(),
              remark::RemarkOpts::name("product").category(DEBUG_TYPE))
              << "each warp multiplies by itself: operand b does not lie in a "
                 "ring's slot as it is multiplied, where a group of warps "
                 "would read it";
      });
      llvm::DenseMap<MmaOp, MmaStartOp> starts(products.begin(),
                                               products.end());
      for (auto [op, started] : products) {
        MmaStartOp next = goesOn(op, started, starts);
        MmaWaitOp wait =
            next ? awaitBehind(started, next) : await(started, op.getResult());
        if (!next)
          op.getResult().replaceAllUsesWith(wait.getAcc());
        for (Value operand : {started.getA(), Value(started.getB())})
          releaseAfter(operand, wait);
        releaseBegun(started);
      }
      for (auto [op, started] : llvm::reverse(products))
        op.erase();
      team.getBody().walk(
          [](OnlineSoftmaxOp softmax) { releaseBehindMaxima(softmax); });
      SmallVector<FragmentLoadOp> loads;
      team.getBody().walk([&](FragmentLoadOp op) { loads.push_back(op); });
      for (FragmentLoadOp op : loads)
        if (op->use_empty())
          op.erase();
      // A team that takes turns already, by itself or by an earlier run of this
      // pass, takes no others: groups would wait for each other crosswise.
      bool any = team.getBody()
                     .walk([](TurnWaitOp) { return WalkResult::interrupt(); })
                     .wasInterrupted();
      if (any || !schedule.getMovingTeam() || !schedule.getMovingTeam()->turns)
        continue;
      // Who only widens has no products to take turns with.
      if (!team.getBody()
               .walk([](MmaStartOp) { return WalkResult::interrupt(); })
               .wasInterrupted())
        continue;
      team.getBody().walk([&](scf::ForOp loop) { any |= takeTurns(loop); });
      if (any)
        team.getBody().walk([](scf::ForOp loop) { passTurns(loop); });
      else
        warnLost(team, DEBUG_TYPE, "ping-pong",
                 "no turns: no loop starts two products that overlap");
    }
  }
};
} // namespace
