//===- AssignSlots.cpp - Give every load the slot that it fills -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FillCounts.h"
#include "LoopParts.h"
#include "SlotReuse.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

namespace kvbuf {
#define GEN_PASS_DEF_ASSIGNSLOTS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// Whether a value is computed before `point` and may be read after it.
static bool isLiveAcross(Value value, Operation *point) {
  Block *block = value.getParentBlock();
  Operation *at = block->findAncestorOpInBlock(*point);
  Operation *def = value.getDefiningOp();
  if (!at || (def && !def->isBeforeInBlock(at)))
    return false;
  // What reads it beside the point, in an op around both, may run after it.
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *reads = block->findAncestorOpInBlock(*user);
    return reads == at || at->isBeforeInBlock(reads);
  });
}

namespace {

/// Fillings of a buffer so far; nullopt where nobody asks for their number
/// before it begins at 0 again.
using Count = std::optional<OffsetIndex>;

/// Numbers the fillings of one buffer in the order in which its loads run, and
/// gives each load the slot of its number.
class SlotNumbering {
public:
  SlotNumbering(IRRewriter &b, Value buffer, ArrayRef<DramLoadOp> loads)
      : b(b), buffer(buffer), loads(loads.begin(), loads.end()),
        slots(cast<BufferType>(buffer.getType()).getParams().getStages()) {}

  LogicalResult run();

private:
  /// Whether an op is one of the loads.
  bool isLoad(Operation *op) const {
    auto load = dyn_cast<DramLoadOp>(op);
    return load && load.getBuffer() == buffer;
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// `count`, computed at the insertion point.
  Value emit(OffsetIndex count);
  Value times(Value value, int64_t factor) {
    return timesEach(b, loc, value, factor);
  }
  void fill(DramLoadOp load, OffsetIndex count);
  /// Inserts where the slot of `load` is computed from `base`: with the address
  /// of its tile, where no other load takes that.
  void setPlace(DramLoadOp load, Value base);

  /// Whether nothing of the buffer is awaited or read after a meeting of all
  /// warps, so that every slot is free.
  bool isEmptyAt(MeetOp meet) const;
  /// Whether the number of fillings before [it, end) is asked for there, or, if
  /// `after` it is, behind.
  bool isNeeded(Block::iterator it, Block::iterator end, bool after) const;
  bool isNeededIn(Operation *op) const;
  /// Fillings in a block, or by an op, modulo the slots; nullopt if they depend
  /// on the run.
  std::optional<int64_t> fillingsIn(Block &block) const;
  std::optional<int64_t> fillingsBy(Operation *op) const;

  /// Numbers the loads in [it, end); `after`: whether `count` is asked for
  /// behind it.
  LogicalResult number(Block::iterator it, Block::iterator end, Count &count,
                       bool after);
  /// The same of all ops of a block but its terminator.
  LogicalResult numberBody(Block &body, Count &count, bool after) {
    return number(body.begin(), std::prev(body.end()), count, after);
  }
  LogicalResult numberFor(scf::ForOp op, Count &count, bool after);
  LogicalResult numberIf(scf::IfOp op, Count &count, bool after);
  LogicalResult numberWhile(scf::WhileOp op, Count &count, bool after);
  /// A loop that carries the number.
  LogicalResult carryInFor(scf::ForOp op, Count &count);
  LogicalResult carryInWhile(scf::WhileOp op, Count &count);
  /// Lets the terminator of a block hand on the number, too.
  void handOn(Block *block, Count count);
  /// Says at a load inside of `op` that its number is not known there.
  LogicalResult refuse(Operation *op);

  IRRewriter &b;
  /// Of what is being created.
  Location loc = b.getUnknownLoc();
  Value buffer;
  SmallVector<DramLoadOp> loads;
  int64_t slots;
  /// Ops that loads are inside of.
  llvm::SmallPtrSet<Operation *, 16> around;
  /// Whether a number may begin at 0 again. Not where the number of each
  /// iteration of a loop follows from those before it.
  bool mayRestart = true;
};

} // namespace

Value SlotNumbering::emit(OffsetIndex count) {
  if (!count.base)
    return constant(count.offset);
  if (count.offset == 0)
    return count.base;
  return arith::AddIOp::create(b, loc, count.base, constant(count.offset));
}

void SlotNumbering::setPlace(DramLoadOp load, Value base) {
  Operation *tile = load.getTile().getDefiningOp();
  Operation *def = base ? base.getDefiningOp() : nullptr;
  bool ownTile = tile && tile->hasOneUse() &&
                 tile->getBlock() == load->getBlock() &&
                 !(def && def->getBlock() == tile->getBlock() &&
                   tile->isBeforeInBlock(def));
  b.setInsertionPoint(ownTile ? tile : load.getOperation());
}

void SlotNumbering::fill(DramLoadOp load, OffsetIndex count) {
  loc = load.getLoc();
  setPlace(load, count.base);
  Value slot;
  if (!count.base)
    slot = constant((count.offset % slots + slots) % slots);
  else
    slot = arith::RemUIOp::create(b, loc, emit(count), constant(slots));
  b.modifyOpInPlace(load, [&] { load.getSlotMutable().assign(slot); });
}

bool SlotNumbering::isEmptyAt(MeetOp meet) const {
  Value of = buffer;
  KVBufferAttr params = cast<BufferType>(of.getType()).getParams();
  auto isHeld = [&](Value value) {
    KVBufferAttr its;
    if (auto token = dyn_cast<TokenType>(value.getType()))
      its = token.getParams();
    else if (auto staged = dyn_cast<StagedType>(value.getType()))
      its = staged.getParams();
    return its == params && isLiveAcross(value, meet);
  };
  Operation *scope = of.getParentRegion()->getParentOp();
  return !scope
              ->walk([&](Operation *op) {
                bool held = llvm::any_of(op->getResults(), isHeld);
                for (Region &region : op->getRegions())
                  for (Block &block : region)
                    held |= llvm::any_of(block.getArguments(), isHeld);
                return held ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

bool SlotNumbering::isNeeded(Block::iterator it, Block::iterator end,
                             bool after) const {
  for (; it != end; ++it) {
    if (isLoad(&*it) || (around.contains(&*it) && isNeededIn(&*it)))
      return true;
    if (auto meet = dyn_cast<MeetOp>(*it);
        meet && mayRestart && isEmptyAt(meet))
      return false;
  }
  return after;
}

bool SlotNumbering::isNeededIn(Operation *op) const {
  return llvm::any_of(op->getRegions(), [&](Region &region) {
    return !region.empty() &&
           isNeeded(region.front().begin(), region.front().end(), false);
  });
}

std::optional<int64_t> SlotNumbering::fillingsIn(Block &block) const {
  int64_t sum = 0;
  for (Operation &op : block) {
    if (isLoad(&op)) {
      ++sum;
    } else if (around.contains(&op)) {
      std::optional<int64_t> inside = fillingsBy(&op);
      if (!inside)
        return std::nullopt;
      sum += *inside;
    }
  }
  return sum;
}

std::optional<int64_t> SlotNumbering::fillingsBy(Operation *op) const {
  std::optional<int64_t> first;
  for (Region &region : op->getRegions()) {
    std::optional<int64_t> inside =
        region.empty() ? 0 : fillingsIn(region.front());
    if (!inside || (first && (*first - *inside) % slots))
      return std::nullopt;
    first = inside;
  }
  if (isa<scf::IfOp>(op))
    return first;
  // Of a loop nobody knows how often it runs.
  return *first % slots == 0 ? std::optional<int64_t>(0) : std::nullopt;
}

LogicalResult SlotNumbering::refuse(Operation *op) {
  for (DramLoadOp load : loads) {
    if (!op->isAncestor(load))
      continue;
    InFlightDiagnostic diag =
        load.emitOpError()
        << "names no slot, and the order in which it runs is not known; "
           "expected scf.for, scf.while or scf.if around it, or its slot";
    diag.attachNote(op->getLoc()) << "it is inside of this op";
    break;
  }
  return failure();
}

LogicalResult SlotNumbering::number(Block::iterator it, Block::iterator end,
                                    Count &count, bool after) {
  while (it != end) {
    Operation *op = &*it++;
    if (isLoad(op)) {
      fill(cast<DramLoadOp>(op), *count);
      ++count->offset;
    } else if (auto meet = dyn_cast<MeetOp>(op); meet && !count) {
      if (isEmptyAt(meet))
        count = OffsetIndex();
    } else if (around.contains(op)) {
      bool later = isNeeded(it, end, after);
      // A loop that counts becomes another op.
      around.erase(op);
      LogicalResult numbered =
          llvm::TypeSwitch<Operation *, LogicalResult>(op)
              .Case([&](scf::ForOp loop) {
                return numberFor(loop, count, later);
              })
              .Case([&](scf::IfOp branch) {
                return numberIf(branch, count, later);
              })
              .Case([&](scf::WhileOp loop) {
                return numberWhile(loop, count, later);
              })
              .Default([&](Operation *other) { return refuse(other); });
      if (failed(numbered))
        return failure();
    }
  }
  return success();
}

LogicalResult SlotNumbering::numberFor(scf::ForOp loop, Count &count,
                                       bool after) {
  Block &body = *loop.getBody();
  std::optional<int64_t> each = fillingsIn(body);
  // Every iteration begins at the same slot, or at 0.
  if (!count || (!after && !isNeededIn(loop)) || (each && *each % slots == 0)) {
    bool same = each && *each % slots == 0;
    Count inside = same ? count : std::nullopt;
    if (!same)
      count = std::nullopt;
    llvm::SaveAndRestore follows(mayRestart, mayRestart && !inside);
    return numberBody(body, inside, false);
  }
  if (!each || loop.getUnsignedCmp() ||
      getConstantIntValue(loop.getStep()) != 1)
    return carryInFor(loop, count);

  // lb + i has number start + (lb + i) * each, where start + lb * each is
  // that of the first.
  loc = loop.getLoc();
  Value lb = loop.getLowerBound();
  OffsetIndex start = *count;
  b.setInsertionPoint(loop);
  if (std::optional<int64_t> begin = getConstantIntValue(lb))
    start.offset -= *begin * *each;
  else
    start = {arith::SubIOp::create(b, loc, emit(start), times(lb, *each)), 0};
  Operation *first = &*llvm::find_if(
      body, [&](Operation &op) { return isLoad(&op) || around.contains(&op); });
  if (auto load = dyn_cast<DramLoadOp>(first))
    setPlace(load, start.base);
  else
    b.setInsertionPoint(first);
  Value number = times(loop.getInductionVar(), *each);
  if (start.base)
    number = arith::AddIOp::create(b, loc, number, start.base);
  Count inside = OffsetIndex{number, start.offset};
  {
    llvm::SaveAndRestore follows(mayRestart, false);
    if (failed(numberBody(body, inside, false)))
      return failure();
  }
  if (!after) {
    count = std::nullopt;
    return success();
  }
  loc = loop.getLoc();
  b.setInsertionPointAfter(loop);
  Value more = times(tripsOf(b, loc, lb, loop.getUpperBound()), *each);
  if (count->base)
    more = arith::AddIOp::create(b, loc, count->base, more);
  count->base = more;
  return success();
}

void SlotNumbering::handOn(Block *block, Count count) {
  Operation *end = block->getTerminator();
  loc = end->getLoc();
  b.setInsertionPoint(end);
  Value value = emit(*count);
  b.modifyOpInPlace(end,
                    [&] { end->insertOperands(end->getNumOperands(), value); });
}

LogicalResult SlotNumbering::carryInFor(scf::ForOp op, Count &count) {
  loc = op.getLoc();
  b.setInsertionPoint(op);
  SmallVector<Value> inits(op.getInitArgs());
  inits.push_back(emit(*count));
  auto loop = scf::ForOp::create(b, loc, op.getLowerBound(), op.getUpperBound(),
                                 op.getStep(), inits);
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  loop.setUnsignedCmp(op.getUnsignedCmp());
  SmallVector<Value> args(loop.getBody()->getArguments().drop_back());
  if (!loop.getBody()->empty())
    b.eraseOp(loop.getBody()->getTerminator());
  b.mergeBlocks(op.getBody(), loop.getBody(), args);
  b.replaceOp(op, loop.getResults().drop_back());
  count = OffsetIndex{loop.getRegionIterArgs().back()};
  if (failed(numberBody(*loop.getBody(), count, true)))
    return failure();
  handOn(loop.getBody(), count);
  count = OffsetIndex{loop.getResults().back()};
  return success();
}

LogicalResult SlotNumbering::numberIf(scf::IfOp op, Count &count, bool after) {
  Count sides[] = {count, count};
  for (auto [region, side] : llvm::zip_equal(op->getRegions(), sides))
    if (!region.empty() && failed(numberBody(region.front(), side, after)))
      return failure();
  if (!after) {
    count = std::nullopt;
    return success();
  }
  count = sides[0];
  if (sides[0]->base == sides[1]->base &&
      (sides[0]->offset - sides[1]->offset) % slots == 0)
    return success();
  loc = op.getLoc();
  b.setInsertionPoint(op);
  SmallVector<Type> types(op.getResultTypes());
  types.push_back(b.getIndexType());
  auto branch = scf::IfOp::create(b, loc, types, op.getCondition(),
                                  /*addThenBlock=*/false,
                                  /*addElseBlock=*/false);
  branch->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (auto [from, to, side] :
       llvm::zip_equal(op->getRegions(), branch->getRegions(), sides)) {
    if (from.empty()) {
      b.createBlock(&to);
      scf::YieldOp::create(b, loc);
    } else {
      to.takeBody(from);
    }
    handOn(&to.front(), side);
  }
  b.replaceOp(op, branch.getResults().drop_back());
  count = OffsetIndex{branch.getResults().back()};
  return success();
}

LogicalResult SlotNumbering::numberWhile(scf::WhileOp op, Count &count,
                                         bool after) {
  bool same = fillingsBy(op) == 0;
  if (count && !same && (after || isNeededIn(op)))
    return carryInWhile(op, count);
  Count inside = same ? count : std::nullopt;
  if (!same)
    count = std::nullopt;
  llvm::SaveAndRestore follows(mayRestart, mayRestart && !inside);
  if (failed(numberBody(*op.getBeforeBody(), inside, false)))
    return failure();
  // Where the iterations begin at the same slot, this is the other half of one.
  return numberBody(*op.getAfterBody(), inside, false);
}

LogicalResult SlotNumbering::carryInWhile(scf::WhileOp op, Count &count) {
  loc = op.getLoc();
  b.setInsertionPoint(op);
  SmallVector<Value> inits(op.getInits());
  inits.push_back(emit(*count));
  SmallVector<Type> types(op.getResultTypes());
  types.push_back(b.getIndexType());
  auto loop = scf::WhileOp::create(b, loc, types, inits);
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (auto [from, to] :
       llvm::zip_equal(op->getRegions(), loop->getRegions())) {
    to.takeBody(from);
    count = OffsetIndex{to.addArgument(b.getIndexType(), loc)};
    if (failed(numberBody(to.front(), count, true)))
      return failure();
    handOn(&to.front(), count);
  }
  b.replaceOp(op, loop.getResults().drop_back());
  count = OffsetIndex{loop.getResults().back()};
  return success();
}

LogicalResult SlotNumbering::run() {
  Block *block = buffer.getParentBlock();
  for (DramLoadOp load : loads) {
    Operation *op = load;
    for (; op->getBlock() != block; op = op->getParentOp()) {
      if (!op->getParentOp()->getParentRegion() ||
          !llvm::hasSingleElement(*op->getParentRegion()))
        return refuse(op->getParentOp());
      around.insert(op->getParentOp());
    }
  }
  Operation *alloc = buffer.getDefiningOp();
  Count count = OffsetIndex();
  return number(alloc ? std::next(alloc->getIterator()) : block->begin(),
                block->end(), count, false);
}

/// Whether a load has been awaited before `op`, of the same block.
static bool isAwaitedBefore(DramLoadOp load, Operation *op) {
  return llvm::any_of(load.getToken().getUsers(), [&](Operation *user) {
    Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
    return here && here->isBeforeInBlock(op);
  });
}

/// Checks that no load fills a slot that an earlier one of its block is on its
/// way to. Tiles in registers are stored when they are awaited.
static LogicalResult checkInFlight(ArrayRef<DramLoadOp> loads) {
  for (size_t i = 0; i < loads.size(); ++i) {
    DramLoadOp load = loads[i];
    std::optional<OffsetIndex> mine = slotNumber(load);
    KVBufferAttr params = load.getBuffer().getType().getParams();
    if (params.getPolicy() == Policy::RegisterStaged)
      continue;
    int64_t slots = params.getStages();
    for (DramLoadOp other : loads.take_front(i)) {
      std::optional<OffsetIndex> its = slotNumber(other);
      if (!mine || !its || load.getPred() || other.getPred() ||
          other->getBlock() != load->getBlock() || mine->base != its->base ||
          (mine->offset - its->offset) % slots || isAwaitedBefore(other, load))
        continue;
      InFlightDiagnostic diag =
          load.emitOpError()
          << "fills a slot that another load is on its way to; expected a "
             "kvbuffer.lds_stage of that one before, or more than "
          << slots << (slots == 1 ? " slot" : " slots");
      diag.attachNote(other.getLoc()) << "the other load is here";
      return failure();
    }
  }
  return success();
}

/// Whether a loop or branch hands a buffer on, under another name.
static bool isHandedOn(Value buffer) {
  auto argument = dyn_cast<BlockArgument>(buffer);
  bool ofKernel =
      argument && isa<gpu::GPUFuncOp>(argument.getOwner()->getParentOp());
  return (!ofKernel && !buffer.getDefiningOp<AllocOp>()) ||
         llvm::any_of(buffer.getUsers(), [](Operation *user) {
           return isa<LoopLikeOpInterface, scf::YieldOp, scf::ConditionOp>(
               user);
         });
}

/// Lets a loop carry the slots of those of `assigned` whose tiles it carries,
/// which are looked up an iteration before: a slot is computed with the address
/// of its tile.
static void carryWithTiles(IRRewriter &b, scf::ForOp loop,
                           const llvm::SmallPtrSetImpl<Operation *> &assigned) {
  auto tileOf = [&](DramLoadOp load) {
    auto tile = dyn_cast<BlockArgument>(Value(load.getTile()));
    return tile && tile.getOwner() == loop.getBody() ? tile : BlockArgument();
  };
  // Loads of one number and as many slots have one slot.
  llvm::MapVector<std::pair<int64_t, int64_t>, SmallVector<DramLoadOp>> alike;
  for (auto load : loop.getBody()->getOps<DramLoadOp>()) {
    std::optional<OffsetIndex> number = slotNumber(load);
    if (assigned.contains(load) && tileOf(load) && number &&
        number->base == loop.getInductionVar())
      alike[{number->offset,
             load.getBuffer().getType().getParams().getStages()}]
          .push_back(load);
  }
  if (alike.empty() || getConstantIntValue(loop.getStep()) != 1)
    return;
  Location loc = loop.getLoc();
  auto slotOf = [&](Value number, int64_t offset, int64_t slots) {
    Value sum = b.createOrFold<arith::AddIOp>(
        loc, number, arith::ConstantIndexOp::create(b, loc, offset));
    return b.createOrFold<arith::RemUIOp>(
        loc, sum, arith::ConstantIndexOp::create(b, loc, slots));
  };
  SmallVector<Value> first, next;
  for (auto &[number, loads] : alike) {
    b.setInsertionPoint(loop);
    first.push_back(slotOf(loop.getLowerBound(), number.first, number.second));
    Value tile = loop.getTiedLoopYieldedValue(tileOf(loads.front()))->get();
    Operation *lookUp = tile.getDefiningOp();
    b.setInsertionPoint(lookUp && lookUp->getBlock() == loop.getBody()
                            ? lookUp
                            : loop.getBody()->getTerminator());
    next.push_back(
        slotOf(loop.getInductionVar(), number.first + 1, number.second));
  }
  auto carrying = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, first, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return next; }));
  for (auto [slot, group] : llvm::zip_equal(
           carrying.getRegionIterArgs().take_back(first.size()), alike))
    for (DramLoadOp load : group.second)
      b.modifyOpInPlace(load, [&] { load.getSlotMutable().assign(slot); });
}

namespace {
struct AssignSlotsPass : kvbuf::impl::AssignSlotsBase<AssignSlotsPass> {
  using Base::Base;

  /// Loads that have their slots from here.
  llvm::SmallPtrSet<Operation *, 16> assigned;

  LogicalResult assign(Value buffer, ArrayRef<DramLoadOp> loads) {
    auto namesSlot = [](DramLoadOp load) { return bool(load.getSlot()); };
    int64_t slots = cast<BufferType>(buffer.getType()).getParams().getStages();
    auto named = llvm::find_if(loads, namesSlot),
         unnamed = llvm::find_if_not(loads, namesSlot);
    if (slots > 1 && named != loads.end() && unnamed != loads.end()) {
      DramLoadOp load = *unnamed, other = *named;
      InFlightDiagnostic diag = load.emitOpError()
                                << "names no slot, and another load into the "
                                   "buffer does; expected all to, or none";
      diag.attachNote(other.getLoc()) << "the other load is here";
      return failure();
    }
    if (slots > 1 && named == loads.end()) {
      if (DramLoadOp load = *unnamed; isHandedOn(buffer))
        return load.emitOpError()
               << "names no slot of a buffer that a loop or branch hands on; "
                  "expected the result of a kvbuffer.alloc that none does, or "
                  "its slot";
      IRRewriter rewriter(&getContext());
      if (failed(SlotNumbering(rewriter, buffer, loads).run()))
        return failure();
      assigned.insert_range(loads);
    }
    if (failed(checkInFlight(loads)))
      return failure();
    // Tiles in registers are stored when they are awaited; one warp reads what
    // it has asked for before it asks again.
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    bool isCopied =
        cast<BufferType>(buffer.getType()).getParams().getPolicy() !=
        Policy::RegisterStaged;
    return slots > 1 || !isCopied || (schedule && schedule.getWarps() == 1)
               ? success()
               : checkReuseOfSlot(loads);
  }

  /// Moves buffers out of loops: one that a loop allocates is the same in every
  /// iteration, and so its fillings go on.
  void leaveLoops() {
    SmallVector<AllocOp> allocs;
    getOperation().walk([&](AllocOp op) { allocs.push_back(op); });
    for (AllocOp op : allocs) {
      Operation *loop = nullptr;
      for (Operation *at = op->getParentOp();
           !isa<TeamOp, FunctionOpInterface>(at); at = at->getParentOp())
        if (isa<LoopLikeOpInterface>(at))
          loop = at;
      if (loop)
        op->moveBefore(loop);
    }
  }

  void runOnOperation() override {
    assigned.clear();
    leaveLoops();
    llvm::MapVector<Value, SmallVector<DramLoadOp>> loads;
    getOperation().walk(
        [&](DramLoadOp load) { loads[load.getBuffer()].push_back(load); });
    for (auto &[buffer, ofBuffer] : loads)
      if (failed(assign(buffer, ofBuffer)))
        return signalPassFailure();
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    IRRewriter rewriter(&getContext());
    for (scf::ForOp loop : loops)
      carryWithTiles(rewriter, loop, assigned);
  }
};
} // namespace
