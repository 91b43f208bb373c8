//===- ScheduleGroups.cpp - Interleave MFMAs with other instructions ------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's scheduler does not know that an MFMA leaves issue slots to other
// vector instructions: it places them where registers and latencies suggest,
// often all in a row. `sched.group.barrier` lets a kernel prescribe the order
// of classes of instructions in a piece of code: one MFMA, two exponentials,
// two other vector instructions, one MFMA, ...
//
// The pass derives the prescription by playing the schedule through: it walks
// the MFMAs of a piece in order and gives each the vector ops that are ready,
// as many as an even share of what is left. What is ready follows from the
// data flow, so that a group never asks for instructions that wait for a later
// MFMA; a group that cannot be met would void the rest of the pattern.
//
// Operands that lanes read from LDS element by element take a register for each
// two reads, and LLVM begins with as many reads as it has registers for, and
// some more. The pattern asks for those of the MFMA after next before each.
//
//===----------------------------------------------------------------------===//

#include "AMDStages.h"
#include "kvbuffer/Transforms/AMD/Passes.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace kvbuf {
#define GEN_PASS_DEF_SCHEDULEGROUPS
#include "kvbuffer/Transforms/AMD/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-schedule-groups"

/// Classes of instructions, as `sched.group.barrier` numbers them (LLVM's
/// AMDGPUUsage, "llvm.amdgcn.sched.group.barrier"). Transcendental ones are not
/// among the VALU's.
enum GroupMask : int32_t {
  kVector = 0x2,
  kMatrix = 0x8,
  kLdsRead = 0x100,
  kTrans = 0x400
};

namespace {

/// One entry of the pattern: `count` instructions of a class.
struct Group {
  GroupMask mask;
  int32_t count;
};

/// Where vector ops take more than so many times the cycles that MFMAs leave
/// them, some stand beside each MFMA in any order, and a pattern gains nothing.
constexpr double kPlenty = 3.5;
/// Cycles of vector ops from which on such a piece has no pattern: LLVM, which
/// tries each instruction in each group and follows its dependences for that,
/// takes most of a compilation for it, 6.4 of 6.8 s where 8-bit floats are
/// widened by integer arithmetic.
constexpr double kManyCycles = 2000;

/// The address space of LDS.
constexpr unsigned kLdsSpace = 3;
/// MFMAs that stand between reads of elements and the one that takes these.
constexpr unsigned kReadsAhead = 2;

/// Whether an op reads one element of 16 bits or fewer from LDS: LLVM makes one
/// instruction of several wider reads, but not of such.
static bool readsElement(Operation *op) {
  auto load = dyn_cast<LLVM::LoadOp>(op);
  if (!load ||
      cast<LLVM::LLVMPointerType>(load.getAddr().getType()).getAddressSpace() !=
          kLdsSpace)
    return false;
  Type type = load.getType();
  int64_t count = 1;
  if (auto vector = dyn_cast<VectorType>(type)) {
    count = vector.getNumElements();
    type = vector.getElementType();
  }
  return type.isIntOrFloat() && count * type.getIntOrFloatBitWidth() <= 16;
}

/// Plays the schedule of one piece.
class GroupPlanner {
public:
  GroupPlanner(const StagePiece &piece, const VectorCostModel &costs,
               const IssueModel &model);

  /// The pattern, in order; empty if there is nothing to interleave.
  SmallVector<Group> plan();
  /// Cycles of vector ops that stand beside an MFMA, and that do not.
  double hiddenCycles = 0, exposedCycles = 0;
  /// Whether there is no pattern because there are plenty of vector ops.
  bool isPlenty = false;
  /// Cycles that MFMAs leave beside them, less those of all vector ops.
  double spareCycles = 0;
  /// Ops that stand in front of all others, and have no part in the pattern.
  SmallVector<Operation *> front;

private:
  struct Node {
    Operation *op = nullptr;
    VectorCost cost;
    unsigned mfmaCycles = 0;
    /// Ops of this piece whose results it needs.
    SmallVector<unsigned> needs;
    /// Whether it reads an element, and has been asked for.
    bool readsElement = false, asked = false;
    bool issued = false;
    /// The number of the MFMA from which on the result is there.
    unsigned readyAt = 0;
    /// The slot in which it was issued, and the group there.
    unsigned flush = 0;
    size_t group = 0;
  };

  bool isReady(const Node &node, unsigned slot) const;
  void issue(Node &node, unsigned slot);
  /// Issues a part of an op of many instructions that fits into `room` cycles;
  /// returns the cycles taken.
  double takePart(Node &node, double room);
  /// Issues what `node` needs, at any price.
  void issueNeeds(const Node &node, unsigned slot);
  /// Whether nothing that `node` needs takes an instruction of this piece.
  bool needsNothing(const Node &node) const;
  /// Takes pairs to the front, which needs no MFMA to run beside them, and
  /// where LLVM takes none apart.
  void takePairsToFront();
  /// Takes an op, and what it needs, to the front.
  void takeToFront(Node &node);
  /// Asks for the reads of elements that `node` needs.
  void askReads(Node &node);
  /// The first group of the current slot that `node` may be in: none in front
  /// of what it needs.
  size_t firstGroup(const Node &node) const;
  /// Asks for `count` instructions in the current slot, in its group number
  /// `from` or behind; returns the group.
  size_t ask(GroupMask mask, double count, size_t from);
  void flushSlot();

  const IssueModel &model;
  SmallVector<Node> nodes;
  SmallVector<Group> groups;
  /// What the current slot asks for, a class once where no more is needed.
  SmallVector<std::pair<GroupMask, double>, 2> slotWants;
  /// Slots so far.
  unsigned flushes = 1;
  double plainCarry = 0, transCarry = 0;
};

} // namespace

GroupPlanner::GroupPlanner(const StagePiece &piece,
                           const VectorCostModel &costs,
                           const IssueModel &model)
    : model(model) {
  llvm::DenseMap<Operation *, unsigned> index;
  for (Operation *op : piece.ops) {
    Node node;
    node.op = op;
    node.cost = costs.cost(op);
    node.mfmaCycles = mfmaCycles(op, model);
    node.readsElement = readsElement(op);
    for (Value operand : op->getOperands())
      if (auto it = index.find(operand.getDefiningOp()); it != index.end())
        node.needs.push_back(it->second);
    index[op] = nodes.size();
    nodes.push_back(std::move(node));
  }
}

bool GroupPlanner::isReady(const Node &node, unsigned slot) const {
  return llvm::all_of(node.needs, [&](unsigned need) {
    return nodes[need].issued && nodes[need].readyAt <= slot;
  });
}

size_t GroupPlanner::firstGroup(const Node &node) const {
  size_t first = 0;
  for (unsigned need : node.needs)
    if (nodes[need].flush == flushes)
      first = std::max(first, nodes[need].group);
  return first;
}

size_t GroupPlanner::ask(GroupMask mask, double count, size_t from) {
  if (count == 0)
    return from;
  for (size_t i = from; i < slotWants.size(); ++i)
    if (slotWants[i].first == mask) {
      slotWants[i].second += count;
      return i;
    }
  slotWants.push_back({mask, count});
  return slotWants.size() - 1;
}

void GroupPlanner::flushSlot() {
  for (auto [mask, wanted] : slotWants) {
    // Reads are whole.
    double none = 0;
    double &carry = mask == kTrans     ? transCarry
                    : mask == kLdsRead ? none
                                       : plainCarry;
    carry += wanted;
    // Rounded up: asking for one too many later is harmless, an instruction
    // that no group asks for may go anywhere.
    auto count = static_cast<int32_t>(std::ceil(carry));
    carry -= count;
    if (count > 0)
      groups.push_back({mask, count});
  }
  slotWants.clear();
  ++flushes;
}

void GroupPlanner::issue(Node &node, unsigned slot) {
  node.issued = true;
  node.readyAt = slot;
  node.group = ask(kTrans, node.cost.transcendental, firstGroup(node));
  node.group = ask(kVector, node.cost.plain + node.cost.pairs, node.group);
  node.flush = flushes;
}

void GroupPlanner::issueNeeds(const Node &node, unsigned slot) {
  for (unsigned need : node.needs) {
    Node &needed = nodes[need];
    if (needed.issued)
      continue;
    issueNeeds(needed, slot);
    issue(needed, slot);
    exposedCycles += needed.cost.cycles(model);
  }
}

bool GroupPlanner::needsNothing(const Node &node) const {
  return llvm::all_of(node.needs, [&](unsigned need) {
    const Node &needed = nodes[need];
    return needed.issued ||
           (!needed.mfmaCycles && isMemoryEffectFree(needed.op) &&
            needed.cost.cycles(model) == 0 && needsNothing(needed));
  });
}

void GroupPlanner::takeToFront(Node &node) {
  if (node.issued)
    return;
  for (unsigned need : node.needs)
    takeToFront(nodes[need]);
  node.issued = true;
  front.push_back(node.op);
}

void GroupPlanner::takePairsToFront() {
  for (Node &node : nodes)
    if (node.cost.pairs != 0 && needsNothing(node))
      takeToFront(node);
}

void GroupPlanner::askReads(Node &node) {
  if (node.asked)
    return;
  node.asked = true;
  if (node.readsElement)
    ask(kLdsRead, 1, /*from=*/0);
  for (unsigned need : node.needs)
    askReads(nodes[need]);
}

double GroupPlanner::takePart(Node &node, double room) {
  // An op on a vector is many instructions; one scalar instruction is whole.
  auto whole = std::floor(room / model.vector);
  if (node.cost.transcendental || node.cost.plain <= 1 || whole < 1)
    return 0;
  node.cost.plain -= whole;
  ask(kVector, whole, firstGroup(node));
  return whole * model.vector;
}

SmallVector<Group> GroupPlanner::plan() {
  double left = 0, most = 0;
  unsigned mfmasLeft = 0;
  for (const Node &node : nodes) {
    left += node.cost.cycles(model);
    if (!node.mfmaCycles)
      continue;
    ++mfmasLeft;
    most += node.mfmaCycles - model.matrixIssue;
  }
  if (!mfmasLeft || left == 0)
    return {};
  spareCycles = most - left;
  if (left > std::max(kPlenty * most, kManyCycles)) {
    isPlenty = true;
    return {};
  }

  SmallVector<unsigned> mfmas;
  for (auto [i, node] : llvm::enumerate(nodes))
    if (node.mfmaCycles)
      mfmas.push_back(i);
  takePairsToFront();
  unsigned slot = 0;
  for (unsigned number : mfmas) {
    Node &mfma = nodes[number];
    for (unsigned ahead = 0; ahead <= kReadsAhead; ++ahead)
      if (slot + ahead < mfmas.size())
        askReads(nodes[mfmas[slot + ahead]]);
    double before = exposedCycles;
    issueNeeds(mfma, slot);
    left -= exposedCycles - before;
    flushSlot();
    mfma.issued = true;
    // The result is there a little after the matrix unit is free again: after
    // the next MFMA.
    mfma.readyAt = slot + 2;
    groups.push_back({kMatrix, 1});

    // An even share, in whole instructions, of at most what fits: where there
    // is more than the MFMAs can hide, the scheduler places the rest as
    // registers suggest.
    double window = mfma.mfmaCycles - model.matrixIssue;
    double share = std::ceil(left / mfmasLeft / model.vector) * model.vector;
    double room = std::min(std::max(share, window - model.vector), window);
    bool untouched = true;
    for (Node &node : nodes) {
      if (node.issued || node.mfmaCycles || !isReady(node, slot))
        continue;
      double cycles = node.cost.cycles(model);
      // What no MFMA hides has one of its own, which hides a part of it.
      bool longer = cycles > window && untouched && node.cost.plain == 0 &&
                    node.cost.transcendental == 1;
      bool fits = cycles <= room || longer;
      double taken = fits ? cycles : takePart(node, room);
      if (fits)
        issue(node, slot);
      untouched &= taken == 0;
      left -= taken;
      exposedCycles += std::max(0.0, taken - room);
      hiddenCycles += std::min(taken, room);
      room = std::max(0.0, room - taken);
    }
    flushSlot();
    --mfmasLeft;
    ++slot;
  }
  exposedCycles += left;
  if (hiddenCycles == 0)
    groups.clear();
  return groups;
}

/// Instructions that put halves of registers together for the MFMAs of a piece,
/// by ops before the barrier that it begins with. LLVM makes them where they
/// are used: in front of the first MFMA, and not as a part of what a pattern
/// asks for behind it.
static double pairsMadeLate(const StagePiece &piece,
                            const VectorCostModel &costs) {
  llvm::DenseSet<Operation *> seen;
  seen.insert_range(piece.ops);
  SmallVector<Value> pending;
  for (Operation *op : piece.ops)
    if (isMfma(op))
      llvm::append_range(pending, op->getOperands());
  double count = 0;
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!isa_and_nonnull<LLVM::ShuffleVectorOp, LLVM::BitcastOp>(op) ||
        op->getBlock() != piece.ops.front()->getBlock())
      continue;
    bool isNew = seen.insert(op).second;
    double made = costs.cost(op).plain;
    if (isNew)
      count += made;
    // What is in the piece may be parts of what is not.
    if (made == 0)
      llvm::append_range(pending, op->getOperands());
  }
  return count;
}

/// Makes a scheduling fence stand at `point`, unless there is one.
static void fenceAt(OpBuilder &b, Operation *neighbour, bool behind) {
  Operation *next =
      behind ? neighbour->getNextNode() : neighbour->getPrevNode();
  if (auto fence = dyn_cast_or_null<ROCDL::SchedBarrier>(next);
      fence && fence.getMask() == 0)
    return;
  if (behind)
    b.setInsertionPointAfter(neighbour);
  else
    b.setInsertionPoint(neighbour);
  ROCDL::SchedBarrier::create(b, neighbour->getLoc(), TypeRange(), 0u);
}

/// Moves ops of a piece in front of its others, and keeps these behind.
static void moveToFront(const StagePiece &piece, ArrayRef<Operation *> front,
                        OpBuilder &b) {
  if (front.empty())
    return;
  Operation *place = *llvm::find_if(
      piece.ops, [&](Operation *op) { return !llvm::is_contained(front, op); });
  for (Operation *op : front)
    if (!op->isBeforeInBlock(place))
      op->moveBefore(place);
  b.setInsertionPoint(place);
  ROCDL::SchedBarrier::create(b, place->getLoc(), TypeRange(), 0u);
}

namespace {
struct ScheduleGroupsPass
    : kvbuf::impl::ScheduleGroupsBase<ScheduleGroupsPass> {
  using Base::Base;

  void runOnOperation() override {
    LLVM::LLVMFuncOp kernel = getOperation();
    OpBuilder b(kernel);
    bool any = false;
    forLoopStages(kernel,
                  [&](const StagePiece &piece, const VectorCostModel &costs) {
                    any |= schedule(piece, costs, b);
                  });
    if (!any)
      return;
    // Stages that meet without a fence would be one region to the scheduler.
    SmallVector<Operation *> barriers;
    kernel.walk([&](ROCDL::SBarrierOp op) {
      if (isInLoop(op->getBlock()))
        barriers.push_back(op);
    });
    for (Operation *barrier : barriers) {
      fenceAt(b, barrier, /*behind=*/false);
      fenceAt(b, barrier, /*behind=*/true);
    }
  }

  bool schedule(const StagePiece &piece, const VectorCostModel &costs,
                OpBuilder &b) {
    if (llvm::any_of(piece.ops,
                     llvm::IsaPred<ROCDL::SchedGroupBarrier, ROCDL::IglpOpt>))
      return false;
    GroupPlanner planner(piece, costs, costs.issueModel());
    SmallVector<Group> groups = planner.plan();
    Operation *first = piece.ops.front(), *last = piece.ops.back();
    if (groups.empty()) {
      remark::missed(first->getLoc(),
                     remark::RemarkOpts::name("groups").category(DEBUG_TYPE))
          << llvm::formatv("{0} MFMAs with {1} to run beside them", piece.mfmas,
                           planner.isPlenty ? "more than enough" : "nothing")
                 .str();
      return false;
    }
    // Where MFMAs leave cycles for more all find a place, and a register more
    // at the beginning spills where none is left (head size 192 on gfx942).
    if (double made = pairsMadeLate(piece, costs);
        made > 0 && planner.spareCycles < costs.issueModel().vector)
      groups.insert(groups.begin(),
                    {kVector, static_cast<int32_t>(std::ceil(made))});
    moveToFront(piece, planner.front, b);
    // All groups stand at the end of the piece: only what is before them
    // is theirs to order.
    if (last->hasTrait<OpTrait::IsTerminator>())
      b.setInsertionPoint(last);
    else
      b.setInsertionPointAfter(last);
    for (Group group : groups)
      ROCDL::SchedGroupBarrier::create(b, last->getLoc(), TypeRange(),
                                       static_cast<uint32_t>(group.mask),
                                       static_cast<uint32_t>(group.count), 0u);
    remark::passed(first->getLoc(),
                   remark::RemarkOpts::name("groups").category(DEBUG_TYPE))
        << llvm::formatv(
               "{0} MFMAs; {1:f0} cycles of vector instructions beside "
               "them, {2:f0} exposed",
               piece.mfmas, planner.hiddenCycles, planner.exposedCycles)
               .str();
    return true;
  }
};
} // namespace
