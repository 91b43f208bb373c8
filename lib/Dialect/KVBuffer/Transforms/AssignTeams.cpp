//===- AssignTeams.cpp - Split a kernel between movers and multipliers ----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FillCounts.h"
#include "LoopParts.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace kvbuf {
#define GEN_PASS_DEF_ASSIGNTEAMS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-assign-teams"

namespace {

/// What joins the teams: a buffer's ring, or the mailbox of the numbers that
/// only producers may take.
struct Channel {
  /// The ring's buffer; null for the mailbox.
  AllocOp buffer;
  /// The ring or the mailbox.
  Value value;
  /// Where the ring's slots hold elements that a team has widened or turned:
  /// the ring of what producers load; else null.
  Value narrow;
};

/// An operand of groups' products that is one value: a slot that a team puts
/// once.
struct Constant {
  FragmentFillOp fill;
  Value ring;
};

/// What a team does with tiles.
enum class Part { Multiplies, Moves, Widens };

/// Writes one team's version of a tile program. All teams number the fillings
/// of each channel by the same rules, so that they agree.
class TeamWriter {
public:
  TeamWriter(ImplicitLocOpBuilder &b, ArrayRef<Channel> channels,
             ArrayRef<Constant> constants, Part part, ScheduleAttr schedule,
             int64_t groups)
      : b(b), channels(channels), constants(constants),
        isProducer(part == Part::Moves), isConsumer(part == Part::Multiplies),
        schedule(schedule), groups(groups),
        count(
            channels.size(), [this](Operation *op) { return channelOf(op); },
            constant(0)) {}

  /// Writes an op with all that is in it.
  LogicalResult writeOp(Operation *op);
  /// Consumers: releases every slot after its last read.
  void release();
  /// At a team's start: puts the slots of constant operands, or awaits them.
  void putConstants();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value add(Value lhs, Value rhs) {
    return b.createOrFold<arith::AddIOp>(lhs, rhs);
  }
  Value sub(Value lhs, Value rhs) {
    return b.createOrFold<arith::SubIOp>(lhs, rhs);
  }
  /// The number of the channel that an op fills, or nothing.
  std::optional<unsigned> channelOf(Operation *op) const;

  /// Whether this team has values of a type.
  bool has(Type type) {
    return !isa<StagedType, TokenType>(type) &&
           (isConsumer || !isa<FragmentType>(type));
  }
  SmallVector<unsigned> kept(TypeRange types) {
    SmallVector<unsigned> result;
    for (auto [i, type] : llvm::enumerate(types))
      if (has(type))
        result.push_back(i);
    return result;
  }
  template <typename Range>
  SmallVector<Value> mapped(Range values, ArrayRef<unsigned> which) {
    return llvm::map_to_vector(
        which, [&](unsigned i) { return map.lookupOrDefault(values[i]); });
  }

  /// Writes the ops of `body` but for its terminator.
  LogicalResult write(Block &body);
  LogicalResult writeFor(scf::ForOp op);
  LogicalResult writeIf(scf::IfOp op);
  LogicalResult writeWhile(scf::WhileOp op);
  void placeRelease(Block &block, Value staged, Value ring, Value fill);
  /// Whether the producers, too, read a number from the mailbox: it is not
  /// theirs alone.
  bool takesPosted(Operation *op);
  /// Hands a filling on with wider elements, or turned, if the channel's are.
  void widen(const Channel &channel, Value fill);
  /// Asks for a number and posts it.
  void post(NextTileOp op);
  /// Takes number `number` out of the mailbox.
  void take(NextTileOp op, Value number);
  /// The channels that tiles of a range of keys fill; nothing if one is filled
  /// by other tiles, too, so that its fillings are not those of the range.
  std::optional<SmallVector<unsigned>> channelsOf(KeyRangeOp op) const;
  /// Consumers: narrows a descending range of keys, whose tiles fill `keys`, to
  /// what the executing group sees, and passes over the tiles before it.
  void trim(KeyRangeOp op, ArrayRef<unsigned> keys);
  /// The first row of the block, where a range of keys is that of its rows or
  /// of all its cluster's, as kvbuf-assign-work leaves them: the cluster's
  /// first row and a number times BM. Null: not known.
  Value rowOfBlock(KeyRangeOp op) const;
  /// Whether a group of consumers may see fewer tiles of a descending range of
  /// keys than the last one. Where tiles of queries are whole tiles of keys the
  /// groups of the last tile's rows see the same, but for lengths that differ
  /// by a part of a tile; looking would cost each tile 1.3 to 1.6 % of a causal
  /// launch of 4096 rows (docs/tuning.md).
  bool groupsDiffer(KeyRangeOp op) const;

  ImplicitLocOpBuilder &b;
  ArrayRef<Channel> channels;
  ArrayRef<Constant> constants;
  bool isProducer, isConsumer;
  ScheduleAttr schedule;
  /// Groups of consumers, each with as many of a tile's rows.
  int64_t groups;
  IRMapping map;
  /// Fillings of each channel so far.
  FillCounts count;
  /// The filling that a token of the tile program stands for.
  llvm::DenseMap<Value, std::pair<unsigned, Value>> tokens;
  SmallVector<RingWaitOp> waits;
  /// Slots of constant operands, where this team has awaited them.
  llvm::DenseMap<Operation *, Value> constantSlots;
  /// What has been posted and is still to be taken by the producers.
  llvm::DenseMap<Operation *, Value> posted;
};

std::optional<unsigned> TeamWriter::channelOf(Operation *op) const {
  AllocOp buffer;
  if (auto load = dyn_cast<DramLoadOp>(op))
    buffer = load.getBuffer().getDefiningOp<AllocOp>();
  if (!buffer && !isa<NextTileOp>(op))
    return std::nullopt;
  for (auto [i, channel] : llvm::enumerate(channels))
    if (channel.buffer == buffer)
      return i;
  return std::nullopt;
}

bool TeamWriter::takesPosted(Operation *op) {
  auto box = channels[*channelOf(op)].value.getDefiningOp<MailboxOp>();
  return box && box.getShared();
}

void TeamWriter::widen(const Channel &channel, Value fill) {
  if (!channel.narrow)
    return;
  auto wide = cast<RingType>(channel.value.getType()).getParams();
  auto type =
      FragmentType::get(b.getContext(), wide.getBN(), wide.getSmemCols(),
                        wide.getElementType(), Role::A);
  auto wait = RingWaitOp::create(b, channel.narrow, fill);
  if (wide.getOrder() == Dimension::Cols) {
    // Words of rows that are contracted: the slot is read as it is put.
    type = FragmentType::get(b.getContext(), wide.getBN(), wide.getSmemCols(),
                             wide.getElementType(), Role::B);
    auto turned = FragmentLoadOp::create(b, type, wait.getStaged(), /*row=*/0,
                                         /*col=*/0);
    RingPutOp::create(b, turned, channel.value, fill, /*transpose=*/false);
    RingReleaseOp::create(b, channel.narrow, fill);
    return;
  }
  // The rows of any tile are dealt to the team's warps.
  auto load = FragmentLoadOp::create(
      b, type, wait.getStaged(), /*row=*/0, /*col=*/0,
      DimensionAttr::get(b.getContext(), Dimension::Cols));
  RingReleaseOp::create(b, channel.narrow, fill);
  RingPutOp::create(b, load, channel.value, fill, /*transpose=*/false);
}

void TeamWriter::putConstants() {
  Value first = constant(0);
  for (Constant operand : constants) {
    auto type = cast<RingType>(operand.ring.getType());
    KVBufferAttr params = type.getParams();
    if (isConsumer) {
      constantSlots[operand.fill] =
          RingWaitOp::create(b, operand.ring, first).getStaged();
    } else if (!isProducer) {
      auto fragment = FragmentType::get(b.getContext(), params.getBN(),
                                        params.getSmemCols(),
                                        params.getElementType(), Role::A);
      Value all =
          FragmentFillOp::create(b, fragment, operand.fill.getValueAttr());
      RingPutOp::create(b, all, operand.ring, first, /*transpose=*/false);
    }
  }
}

void TeamWriter::post(NextTileOp op) {
  unsigned c = *channelOf(op);
  b.setLoc(op.getLoc());
  auto tile = cast<NextTileOp>(b.clone(*op, map));
  MailboxPostOp::create(b, tile.getTile(), channels[c].value, count[c]);
  count[c] = add(count[c], constant(1));
}

void TeamWriter::take(NextTileOp op, Value number) {
  b.setLoc(op.getLoc());
  map.map(op.getTile(),
          MailboxTakeOp::create(b, b.getIndexType(),
                                channels[*channelOf(op)].value, number));
}

bool TeamWriter::groupsDiffer(KeyRangeOp op) const {
  int64_t rows = op.getBM(), BN = schedule.getBN();
  int64_t rowsOfGroup = schedule.getBM() / groups;
  return rows % BN || rows - rowsOfGroup >= BN;
}

Value TeamWriter::rowOfBlock(KeyRangeOp op) const {
  int64_t BM = schedule.getBM();
  if (int64_t(op.getBM()) == BM)
    return op.getRow();
  for (Operation *user : op.getRow().getUsers()) {
    auto row = dyn_cast<arith::AddIOp>(user);
    auto part = row ? row.getRhs().getDefiningOp<arith::MulIOp>() : nullptr;
    if (part && row.getLhs() == op.getRow() &&
        getConstantIntValue(part.getRhs()) == BM)
      return row;
  }
  return nullptr;
}

/// Whether how often `load` happens follows from a range of keys: from the
/// bounds of a loop around it, or from the condition of one.
static bool isCountedBy(DramLoadOp load, KeyRangeOp op) {
  for (Operation *parent = load->getParentOp();
       parent && !isa<gpu::GPUFuncOp>(parent); parent = parent->getParentOp()) {
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      if (followsFrom(loop.getLowerBound(), op) ||
          followsFrom(loop.getUpperBound(), op))
        return true;
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      if (followsFrom(loop.getConditionOp().getCondition(), op))
        return true;
  }
  return false;
}

std::optional<SmallVector<unsigned>>
TeamWriter::channelsOf(KeyRangeOp op) const {
  SmallVector<unsigned> keys;
  for (auto [c, channel] : llvm::enumerate(channels)) {
    unsigned loads = 0, ofRange = 0;
    if (!channel.buffer)
      continue;
    for (Operation *user : channel.buffer->getUsers())
      if (auto load = dyn_cast<DramLoadOp>(user)) {
        ++loads;
        bool isOfRange = followsFrom(load.getTile(), op);
        ofRange += isOfRange;
        // Who trims the loop would fill and empty it another number of times.
        if (!isOfRange && isCountedBy(load, op))
          return std::nullopt;
      }
    if (ofRange && ofRange != loads)
      return std::nullopt;
    if (ofRange)
      keys.push_back(c);
  }
  return keys;
}

void TeamWriter::trim(KeyRangeOp op, ArrayRef<unsigned> keys) {
  auto whole = cast<KeyRangeOp>(b.clone(*op, map));
  whole.setDescending(false);
  auto own = cast<KeyRangeOp>(b.clone(*whole));
  own.setPerGroup(true);
  own.setBM(schedule.getBM());
  own.getRowMutable().assign(map.lookupOrDefault(rowOfBlock(op)));
  // One tile stays where the block has any: the loop's prologue is one.
  Value zero = constant(0);
  Value least =
      add(b.createOrFold<arith::MaxSIOp>(whole.getLo(), zero), constant(1));
  Value hi = arith::MinSIOp::create(
      b, whole.getHi(), arith::MaxSIOp::create(b, own.getHi(), least));
  auto tilesUp = [&](Value n) {
    return arith::CeilDivUIOp::create(b, arith::MaxSIOp::create(b, n, zero),
                                      constant(schedule.getBN()));
  };
  Value skipped = sub(tilesUp(whole.getHi()), tilesUp(hi));
  // A slot is given back after it was filled: who ran ahead would arrive twice
  // for one filling.
  auto loop = scf::ForOp::create(b, zero, skipped, constant(1));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(loop.getBody()->getTerminator());
    for (unsigned c : keys) {
      Value fill = add(count[c], loop.getInductionVar());
      RingWaitOp::create(b, channels[c].value, fill);
      RingReleaseOp::create(b, channels[c].value, fill);
    }
  }
  // Counts that were the same stay the same value.
  llvm::DenseMap<Value, Value> after;
  for (unsigned c : keys) {
    Value &next = after[count[c]];
    if (!next)
      next = add(count[c], skipped);
    count[c] = next;
  }
  map.map(op.getLo(), whole.getLo());
  map.map(op.getHi(), hi);
  map.map(op.getFullLo(), own.getFullLo());
  map.map(op.getFullHi(), own.getFullHi());
}

LogicalResult TeamWriter::write(Block &body) {
  // Producers ask for a number early; who reads it from the mailbox does so
  // when it is needed, so that it takes no register before.
  SmallVector<Operation *> late;
  for (Operation &op : body.without_terminator()) {
    bool isLate = isa<NextTileOp>(op) &&
                  llvm::all_of(op.getUsers(), [&](Operation *user) {
                    return user == body.getTerminator();
                  });
    if (isLate && isProducer && takesPosted(&op)) {
      // Posted here, taken at the end.
      posted[&op] = count[*channelOf(&op)];
      post(cast<NextTileOp>(op));
      late.push_back(&op);
    } else if (isLate && !isProducer) {
      late.push_back(&op);
    } else if (failed(writeOp(&op))) {
      return failure();
    }
  }
  for (Operation *op : late)
    if (failed(writeOp(op)))
      return failure();
  return success();
}

LogicalResult TeamWriter::writeOp(Operation *op) {
  b.setLoc(op->getLoc());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return writeFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return writeIf(branch);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return writeWhile(loop);
  if (op->getNumRegions() && !isa<MapOp>(op))
    return op->emitOpError()
           << "is not supported in a kernel that is split into teams: expected "
              "scf.for, scf.if or scf.while";
  if (isa<AllocOp>(op))
    return success();
  if (auto range = dyn_cast<KeyRangeOp>(op);
      range && range.getDescending() && isConsumer &&
      !schedule.getStructure().joinsTiles() && groupsDiffer(range) &&
      rowOfBlock(range)) {
    if (std::optional<SmallVector<unsigned>> keys = channelsOf(range)) {
      trim(range, *keys);
      return success();
    }
  }

  if (auto fill = dyn_cast<FragmentFillOp>(op))
    if (Value slot = constantSlots.lookup(op)) {
      map.map(fill.getFragment(),
              FragmentLoadOp::create(
                  b, fill.getFragment().getType(), slot, /*row=*/0, /*col=*/0,
                  DimensionAttr::get(b.getContext(), Dimension::Cols)));
      return success();
    }
  if (auto load = dyn_cast<DramLoadOp>(op)) {
    std::optional<unsigned> c = channelOf(op);
    if (!c)
      return op->emitOpError() << "expected a buffer made by kvbuffer.alloc";
    if (load.getPred())
      return op->emitOpError()
             << "has a predicate; expected loads in front of their use, as "
                "kvbuf-lower-problems leaves them";
    if (isProducer)
      RingLoadOp::create(b, map.lookupOrDefault(load.getTile()),
                         channels[*c].narrow ? channels[*c].narrow
                                             : channels[*c].value,
                         count[*c], load.getWhole());
    else if (!isConsumer)
      widen(channels[*c], count[*c]);
    else
      tokens[load.getToken()] = {*c, count[*c]};
    count[*c] = add(count[*c], constant(1));
    return success();
  }
  if (auto stage = dyn_cast<LdsStageOp>(op)) {
    if (!isConsumer)
      return success();
    for (auto [token, staged] :
         llvm::zip_equal(stage.getTokens(), stage.getStaged())) {
      auto it = tokens.find(token);
      if (it == tokens.end())
        return op->emitOpError()
               << "awaits a load that the program does not issue in front of "
                  "it in the same iteration";
      auto [c, fill] = it->second;
      auto wait = RingWaitOp::create(b, channels[c].value, fill);
      waits.push_back(wait);
      map.map(staged, wait.getStaged());
    }
    return success();
  }
  if (auto next = dyn_cast<NextTileOp>(op)) {
    if (isProducer && !posted.contains(op)) {
      Value number = count[*channelOf(op)];
      post(next);
      if (takesPosted(op))
        take(next, number);
    } else if (isProducer) {
      take(next, posted.lookup(op));
    } else {
      unsigned c = *channelOf(op);
      take(next, count[c]);
      count[c] = add(count[c], constant(1));
    }
    return success();
  }
  auto isOfConsumers = [](Type type) {
    return isa<StagedType, TokenType, FragmentType>(type);
  };
  if (llvm::any_of(op->getOperandTypes(), isOfConsumers) ||
      llvm::any_of(op->getResultTypes(), isOfConsumers)) {
    if (isConsumer)
      b.clone(*op, map);
    return success();
  }
  // What reads only may be done twice.
  if (!isMemoryEffectFree(op) && !hasSingleEffect<MemoryEffects::Read>(op))
    return op->emitOpError()
           << "has an effect that producers and consumers would both have; "
              "expected a schedule without producers";
  b.clone(*op, map);
  return success();
}

LogicalResult TeamWriter::writeFor(scf::ForOp op) {
  SmallVector<unsigned> keep = kept(op.getResultTypes());
  SmallVector<Value> before = count.all();
  SmallVector<unsigned> chosen = count.representatives(op);
  // Where each iteration fills the same number of slots, counts follow from
  // the induction variable; else the loop carries them.
  bool nested = llvm::any_of(*op.getBody(), [&](Operation &inner) {
    return inner.getNumRegions() && llvm::any_of(chosen, [&](unsigned c) {
             return count.isFilledIn(&inner, c);
           });
  });
  bool closedForm = !nested && getConstantIntValue(op.getStep()) == 1;
  SmallVector<int64_t> each = count.directlyIn(*op.getBody());
  Value lb = map.lookupOrDefault(op.getLowerBound()),
        ub = map.lookupOrDefault(op.getUpperBound());
  auto times = [&](Value n, int64_t k) {
    return timesEach(b, op.getLoc(), n, k);
  };

  SmallVector<Value> inits = mapped(op.getInitArgs(), keep);
  SmallVector<Value> offsets(channels.size());
  if (!closedForm)
    llvm::append_range(inits, count.of(chosen));
  else
    for (unsigned c = 0; c < channels.size(); ++c)
      if (each[c])
        offsets[c] = sub(count[c], times(lb, each[c]));
  auto loop =
      scf::ForOp::create(b, lb, ub, map.lookupOrDefault(op.getStep()), inits);
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  loop.setUnsignedCmp(op.getUnsignedCmp());
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body = loop.getBody();
    if (!body->empty())
      body->getTerminator()->erase();
    b.setInsertionPointToEnd(body);
    map.map(op.getInductionVar(), loop.getInductionVar());
    for (auto [i, k] : llvm::enumerate(keep))
      map.map(op.getRegionIterArg(k), loop.getRegionIterArg(i));
    if (!closedForm)
      count.assign(op, chosen, loop.getRegionIterArgs().drop_front(keep.size()),
                   before);
    else
      for (unsigned c = 0; c < channels.size(); ++c)
        if (each[c])
          count[c] = add(offsets[c], times(loop.getInductionVar(), each[c]));
    if (failed(write(*op.getBody())))
      return failure();
    SmallVector<Value> yields = mapped(op.getYieldedValues(), keep);
    if (!closedForm)
      llvm::append_range(yields, count.of(chosen));
    b.setLoc(op.getLoc());
    scf::YieldOp::create(b, yields);
  }
  for (auto [i, k] : llvm::enumerate(keep))
    map.map(op.getResult(k), loop.getResult(i));
  if (!closedForm) {
    count.assign(op, chosen, loop.getResults().drop_front(keep.size()), before);
    return success();
  }
  Value trips;
  for (unsigned c = 0; c < channels.size(); ++c) {
    count[c] = before[c];
    if (!each[c])
      continue;
    if (!trips)
      trips = tripsOf(b, op.getLoc(), lb, ub);
    count[c] = add(count[c], times(trips, each[c]));
  }
  return success();
}

LogicalResult TeamWriter::writeIf(scf::IfOp op) {
  SmallVector<unsigned> keep = kept(op.getResultTypes());
  SmallVector<Value> before = count.all();
  SmallVector<unsigned> chosen = count.representatives(op);
  SmallVector<Type> types = llvm::map_to_vector(
      keep, [&](unsigned k) { return op.getResult(k).getType(); });
  types.append(chosen.size(), b.getIndexType());
  bool hasElse = !types.empty() || !op.getElseRegion().empty();
  auto branch = scf::IfOp::create(
      b, types, map.lookupOrDefault(op.getCondition()), hasElse);
  auto writeSide = [&](Region &from, Block *to) -> LogicalResult {
    OpBuilder::InsertionGuard guard(b);
    if (!to->empty())
      to->getTerminator()->erase();
    b.setInsertionPointToEnd(to);
    count.set(before);
    SmallVector<Value> yields;
    if (!from.empty()) {
      if (failed(write(from.front())))
        return failure();
      yields = mapped(from.front().getTerminator()->getOperands(), keep);
    }
    llvm::append_range(yields, count.of(chosen));
    b.setLoc(op.getLoc());
    scf::YieldOp::create(b, yields);
    return success();
  };
  if (failed(writeSide(op.getThenRegion(), branch.thenBlock())) ||
      (hasElse && failed(writeSide(op.getElseRegion(), branch.elseBlock()))))
    return failure();
  for (auto [i, k] : llvm::enumerate(keep))
    map.map(op.getResult(k), branch.getResult(i));
  count.assign(op, chosen, branch.getResults().drop_front(keep.size()), before);
  return success();
}

LogicalResult TeamWriter::writeWhile(scf::WhileOp op) {
  SmallVector<unsigned> keepInits = kept(op.getOperandTypes());
  SmallVector<unsigned> keep = kept(op.getResultTypes());
  SmallVector<Value> before = count.all();
  SmallVector<unsigned> chosen = count.representatives(op);
  SmallVector<Value> inits = mapped(op.getInits(), keepInits);
  llvm::append_range(inits, count.of(chosen));
  SmallVector<Type> types = llvm::map_to_vector(
      keep, [&](unsigned k) { return op.getResult(k).getType(); });
  types.append(chosen.size(), b.getIndexType());

  auto loop = scf::WhileOp::create(b, types, inits);
  auto enter = [&](Region &region, Block &from, TypeRange argTypes,
                   ArrayRef<unsigned> which) {
    SmallVector<Location> locs(argTypes.size(), op.getLoc());
    Block *block = b.createBlock(&region, {}, argTypes, locs);
    for (auto [i, k] : llvm::enumerate(which))
      map.map(from.getArgument(k), block->getArgument(i));
    count.assign(op, chosen, block->getArguments().drop_front(which.size()),
                 before);
  };
  {
    OpBuilder::InsertionGuard guard(b);
    enter(loop.getBefore(), *op.getBeforeBody(), ValueRange(inits).getTypes(),
          keepInits);
    if (failed(write(*op.getBeforeBody())))
      return failure();
    scf::ConditionOp condition = op.getConditionOp();
    SmallVector<Value> args = mapped(condition.getArgs(), keep);
    llvm::append_range(args, count.of(chosen));
    b.setLoc(op.getLoc());
    scf::ConditionOp::create(b, map.lookupOrDefault(condition.getCondition()),
                             args);

    enter(loop.getAfter(), *op.getAfterBody(), types, keep);
    if (failed(write(*op.getAfterBody())))
      return failure();
    SmallVector<Value> yields =
        mapped(op.getYieldOp().getOperands(), keepInits);
    llvm::append_range(yields, count.of(chosen));
    b.setLoc(op.getLoc());
    scf::YieldOp::create(b, yields);
  }
  for (auto [i, k] : llvm::enumerate(keep))
    map.map(op.getResult(k), loop.getResult(i));
  count.assign(op, chosen, loop.getResults().drop_front(keep.size()), before);
  return success();
}

/// Releases a slot after its last read in a block; inside of a branch whose
/// two sides are all that reads it last, on each side.
void TeamWriter::placeRelease(Block &block, Value staged, Value ring,
                              Value fill) {
  Operation *last = nullptr;
  SmallVector<Operation *> users(staged.getUsers());
  for (unsigned i = 0; i < users.size(); ++i)
    if (auto view = dyn_cast<StagedViewOp>(users[i]))
      llvm::append_range(users, view.getView().getUsers());
  for (Operation *user : users)
    if (Operation *ancestor = block.findAncestorOpInBlock(*user))
      if (!last || last->isBeforeInBlock(ancestor))
        last = ancestor;
  OpBuilder::InsertionGuard guard(b);
  if (auto branch = dyn_cast_or_null<scf::IfOp>(last);
      branch && !branch.getElseRegion().empty()) {
    placeRelease(*branch.thenBlock(), staged, ring, fill);
    placeRelease(*branch.elseBlock(), staged, ring, fill);
    return;
  }
  if (last)
    b.setInsertionPointAfter(last);
  else if (staged.getParentBlock() == &block)
    b.setInsertionPointAfterValue(staged);
  else
    b.setInsertionPointToStart(&block);
  b.setLoc(staged.getLoc());
  RingReleaseOp::create(b, ring, fill);
}

void TeamWriter::release() {
  for (RingWaitOp wait : waits)
    placeRelease(*wait->getBlock(), wait.getStaged(), wait.getRing(),
                 wait.getFill());
}

/// The loads of fragments from slots of a buffer.
static SmallVector<FragmentLoadOp> loadsFrom(AllocOp buffer) {
  SmallVector<FragmentLoadOp> loads;
  for (Operation *user : buffer->getUsers()) {
    auto load = dyn_cast<DramLoadOp>(user);
    if (!load)
      continue;
    for (OpOperand &use : load.getToken().getUses())
      if (auto stage = dyn_cast<LdsStageOp>(use.getOwner()))
        for (Operation *read :
             stage.getStaged()[use.getOperandNumber()].getUsers())
          if (auto fragment = dyn_cast<FragmentLoadOp>(read))
            loads.push_back(fragment);
  }
  return loads;
}

/// The elements that products take of a buffer's, if they are wider; else null.
static Type widerElement(AllocOp buffer) {
  Type element = buffer.getBuffer().getType().getParams().getElementType();
  for (FragmentLoadOp load : loadsFrom(buffer))
    if (Type wide = load.getFragment().getType().getElementType();
        wide != element)
      return wide;
  return nullptr;
}

/// Whether products contract rows of a buffer whose elements are bytes, which a
/// group of warps reads turned.
static bool isTurnedForProducts(AllocOp buffer, const TargetInfo &target) {
  Type element = buffer.getBuffer().getType().getParams().getElementType();
  return target.turnsBytesForGroups() && element.getIntOrFloatBitWidth() == 8 &&
         llvm::any_of(loadsFrom(buffer), [](FragmentLoadOp load) {
           return llvm::any_of(load->getUsers(), [&](Operation *user) {
             auto product = dyn_cast<MmaOp>(user);
             return product && product.getB() == load.getFragment() &&
                    !product.getTransposeB();
           });
         });
}

/// The parameters of a buffer that so many warps read, perhaps with other
/// elements; they lie as a chip's matrix unit reads them.
static KVBufferAttr readBy(KVBufferAttr params, int64_t warps, Type element,
                           const TargetInfo &target,
                           Dimension order = Dimension::Rows) {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  Swizzle swizzle = target.swizzle(
      *target.instructionFor(params.getMmaShape(), elementName(element)),
      params.getBK() * bytes, bytes, params.isTranspose(),
      /*direct=*/true);
  return KVBufferAttr::get(
      params.getContext(), params.getOperand(), element, params.getPolicy(),
      params.getMmaShape(),
      swizzle.movesVectors() && order == Dimension::Rows
          ? swizzleList(swizzle)
          : SmallVector<int64_t>(),
      params.getBN(), params.getWN(), params.getBK(), warps * target.waveSize,
      params.getDepth(), params.getKvNumHeads(), params.getFullKv(),
      params.getCacheDepth(), params.getHeadDimOffset(),
      params.getRegChunkDepth(), params.getSmemDepth(), params.getStages(),
      params.getWarpSize(), order, params.getOpen());
}

/// Makes the ring of a channel's buffer: from the producers to the consumers,
/// or two, where the wideners stand between them.
static void makeRings(ImplicitLocOpBuilder &b, Channel &channel,
                      ScheduleAttr schedule, const TargetInfo &target,
                      StringRef producers, StringRef wideners,
                      StringRef consumers) {
  b.setLoc(channel.buffer.getLoc());
  auto named = [&](StringRef name) {
    return b.getArrayAttr(FlatSymbolRefAttr::get(b.getContext(), name));
  };
  int64_t widens = schedule.getMovingTeam()->widens.warps;
  TypedValue<BufferType> buffer = channel.buffer.getBuffer();
  KVBufferAttr params = buffer.getType().getParams();
  Type wide = widens ? widerElement(channel.buffer) : Type();
  Dimension order = Dimension::Rows;
  if (widens && !wide && isTurnedForProducts(channel.buffer, target)) {
    wide = params.getElementType();
    order = Dimension::Cols;
  }
  if (!wide) {
    channel.value = RingOp::create(b, buffer, producers, named(consumers),
                                   /*shared=*/false);
    return;
  }
  buffer.setType(BufferType::get(
      b.getContext(), readBy(params, widens, params.getElementType(), target)));
  channel.narrow =
      RingOp::create(b, buffer, producers, named(wideners), /*shared=*/false);
  auto alloc = AllocOp::create(
      b, BufferType::get(b.getContext(), readBy(params, schedule.getWarps(),
                                                wide, target, order)));
  channel.value = RingOp::create(b, alloc.getBuffer(), wideners,
                                 named(consumers), /*shared=*/false);
}

/// The ring of an operand that is one value: rows enough for the warps that put
/// it, of which products read as many as it has.
static Value constantRing(ImplicitLocOpBuilder &b, FragmentFillOp fill,
                          int64_t warps, StringRef from, ArrayAttr to,
                          const TargetInfo &target) {
  FragmentType type = fill.getFragment().getType();
  Type element = type.getElementType();
  const MatrixInstruction &mma =
      target.matrixInstructionsFor(elementName(element)).front();
  int64_t rows = mma.m * warps, cols = type.getCols(),
          bytes = element.getIntOrFloatBitWidth() / 8;
  Swizzle swizzle = target.swizzle(mma, cols * bytes, bytes,
                                   /*transposed=*/true, /*direct=*/true);
  auto params = KVBufferAttr::get(
      b.getContext(), Operand::Any, element, Policy::DoubleBuffered,
      ArrayRef<int64_t>(),
      swizzle.movesVectors() ? swizzleList(swizzle) : SmallVector<int64_t>(),
      rows, /*WN=*/rows, /*BK=*/cols, /*num_threads=*/0, /*depth=*/cols,
      /*kv_num_heads=*/1, /*full_kv=*/true, /*cache_depth=*/cols,
      /*head_dim_offset=*/0, /*reg_chunk_depth=*/cols, /*smem_depth=*/cols,
      /*stages=*/1, /*warp_size=*/0, Dimension::Rows, /*open=*/0);
  auto alloc = AllocOp::create(b, BufferType::get(b.getContext(), params));
  return RingOp::create(b, alloc.getBuffer(), from, to, /*shared=*/false);
}

struct AssignTeamsPass : kvbuf::impl::AssignTeamsBase<AssignTeamsPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    auto schedule =
        kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
    const MovingTeam *mover = schedule ? schedule.getMovingTeam() : nullptr;
    if (!mover)
      return;
    // That of latent rows has divided itself.
    if (schedule.getStructure().dividesColumns())
      return;
    std::optional<TargetInfo> target = targetOf(kernel);
    if (!target || !target->hasMovingTeams()) {
      kernel.emitError() << "has producers; expected '"
                         << KVBufferDialect::kTargetAttr
                         << "' to be a chip that has rings, as "
                            "kvbuf-choose-schedule checks";
      return signalPassFailure();
    }
    // Where each warp multiplies by itself, all walk over the same keys.
    int64_t groups = target->warpsPerMatrixGroup
                         ? schedule.getWarps() / target->warpsPerMatrixGroup
                         : 1;

    // Buffers and channels live as long as the block.
    Block &body = kernel.getBody().front();
    ImplicitLocOpBuilder b(kernel.getLoc(), kernel);
    SmallVector<Channel> channels;
    SmallVector<AllocOp> buffers;
    bool counts = false;
    kernel.walk([&](Operation *op) {
      if (auto buffer = dyn_cast<AllocOp>(op))
        buffers.push_back(buffer);
      counts |= isa<NextTileOp>(op);
    });
    StringRef from = "producers", consumers = "consumers",
              wideners = "wideners";
    auto named = [&](ArrayRef<StringRef> names) {
      SmallVector<Attribute> symbols;
      for (StringRef name : names)
        symbols.push_back(FlatSymbolRefAttr::get(b.getContext(), name));
      return b.getArrayAttr(symbols);
    };
    const WideningTeam &widens = mover->widens;
    ArrayAttr to = named(consumers);
    b.setInsertionPointToStart(&body);
    for (AllocOp op : buffers) {
      op->moveBefore(&body, b.getInsertionPoint());
      b.setInsertionPointAfter(op);
      if (llvm::any_of(op->getUsers(), llvm::IsaPred<DramLoadOp>))
        channels.push_back({op, Value(), Value()});
    }
    for (Channel &channel : channels)
      makeRings(b, channel, schedule, *target, from, wideners, consumers);
    b.setLoc(kernel.getLoc());
    SmallVector<Constant> constants;
    if (widens.warps && target->turnsBytesForGroups())
      kernel.walk([&](FragmentFillOp fill) {
        if (llvm::any_of(fill->getUsers(), [&](Operation *user) {
              auto product = dyn_cast<MmaOp>(user);
              return product && product.getB() == fill.getFragment();
            }))
          constants.push_back({fill, constantRing(b, fill, widens.warps,
                                                  wideners, to, *target)});
      });
    // Two numbers in the box: the producers look one tile ahead.
    if (counts)
      channels.push_back(
          {AllocOp(),
           MailboxOp::create(b, MailboxType::get(b.getContext()), from,
                             widens.warps ? named({consumers, wideners}) : to,
                             /*slots=*/2,
                             /*shared=*/bool(kernel.getKnownClusterSize())),
           Value()});
    // What the block does together comes before the teams, with what it needs.
    for (auto op : llvm::to_vector(body.getOps<NumberTilesOp>())) {
      llvm::SetVector<Operation *> needed;
      BackwardSliceOptions inBody;
      inBody.filter = [&](Operation *inner) {
        return inner->getBlock() == &body;
      };
      (void)getBackwardSlice(op.getOperation(), &needed, inBody);
      needed.insert(op);
      for (Operation *inner : needed) {
        Operation *here = &*b.getInsertionPoint();
        if (inner == here)
          b.setInsertionPointAfter(inner);
        else if (here->isBeforeInBlock(inner))
          inner->moveBefore(here);
      }
    }
    // Warps that multiply in groups begin with one.
    auto teams = TeamsOp::create(b);
    Block *members = b.createBlock(&teams.getBody());
    struct Member {
      Part part;
      StringRef name;
      int64_t warps, registers;
    };
    for (const Member &member :
         {Member{Part::Multiplies, consumers, schedule.getWarps(),
                 mover->otherRegisters},
          Member{Part::Widens, wideners, widens.warps, widens.registers},
          Member{Part::Moves, from, mover->warps, mover->registers}}) {
      if (!member.warps)
        continue;
      b.setInsertionPointToEnd(members);
      auto team = TeamOp::create(b, member.name, member.warps, /*copies=*/1,
                                 /*BM=*/0, member.registers);
      b.createBlock(&team.getBody());
      TeamWriter writer(b, channels, constants, member.part, schedule, groups);
      writer.putConstants();
      // What stands before the teams, buffers and channels, stays.
      for (Operation *op = teams->getNextNode(), *end = body.getTerminator();
           op != end; op = op->getNextNode())
        if (failed(writer.writeOp(op)))
          return signalPassFailure();
      if (member.part == Part::Multiplies)
        writer.release();
      b.setLoc(kernel.getLoc());
    }
    while (teams->getNextNode() != body.getTerminator())
      body.getTerminator()->getPrevNode()->erase();
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, teams->getRegions());

    SmallVector<int32_t> size{
        int32_t(schedule.getStructure().blockWarps() * target->waveSize), 1, 1};
    kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(size));
    remark::passed(kernel.getLoc(),
                   remark::RemarkOpts::name("teams").category(DEBUG_TYPE))
        << std::to_string(mover->warps) << " warps move tiles, "
        << std::to_string(schedule.getWarps()) << " multiply in "
        << std::to_string(groups) << " group(s)";
  }
};
} // namespace
