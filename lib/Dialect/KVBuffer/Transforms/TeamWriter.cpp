//===- TeamWriter.cpp - One team's version of a tile program ------------===//
//
// TeamPart of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TeamWriter.h"
#include "LoopParts.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ScaledSlots.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

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

int64_t kvbuf::fillsOfTile(AllocOp buffer) {
  KVBufferAttr params = buffer.getBuffer().getType().getParams();
  return params.getFullKv() ? 1 : params.getNumRepeats();
}

std::optional<unsigned> TeamWriter::countedChannelOf(Operation *op) const {
  std::optional<unsigned> c = channelOf(op);
  auto load = dyn_cast<DramLoadOp>(op);
  if (c && load &&
      int64_t(load.getBlock()) + 1 < fillsOfTile(channels[*c].buffer))
    return std::nullopt;
  return c;
}

Value TeamWriter::fillOf(AllocOp buffer, Value tile, int64_t block) {
  Value first = timesEach(b, b.getLoc(), tile, fillsOfTile(buffer));
  return block ? add(first, constant(block)) : first;
}

bool TeamWriter::takesPosted(Operation *op) {
  auto box = channels[*channelOf(op)].value.getDefiningOp<MailboxOp>();
  return box && box.getShared();
}

void TeamWriter::widen(const TeamChannel &channel, Value fill) {
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
    auto turned = FragmentLoadOp::create(
        b, type, wait.getStaged(), /*row=*/0, /*col=*/0,
        DimensionAttr::get(b.getContext(), Dimension::Rows));
    RingPutOp::create(b, turned, channel.value, fill, /*transpose=*/false);
    RingReleaseOp::create(b, channel.narrow, fill);
    return;
  }
  // The rows of any tile are dealt to the team's warps. What is read goes on
  // into the other slot a part at a time: lanes have no registers for all that
  // two warps have of a tile, and the fence of what they put is that of what
  // they have read.
  auto load = FragmentLoadOp::create(
      b, type, wait.getStaged(), /*row=*/0, /*col=*/0,
      DimensionAttr::get(b.getContext(), Dimension::Cols));
  // Where they have, the slot of bytes goes back as soon as it is read.
  const WideningTeam &team = schedule.getMovingTeam()->widens;
  constexpr int64_t wordBytes = 4, besideWords = 32;
  int64_t words =
      wide.getBN() * wide.getSmemCols() / (team.warps * waveSize * wordBytes);
  bool early = !team.registers || words + besideWords <= team.registers;
  if (early)
    RingReleaseOp::create(b, channel.narrow, fill);
  RingPutOp::create(b, load, channel.value, fill, /*transpose=*/false);
  if (!early)
    RingReleaseOp::create(b, channel.narrow, fill);
}

void TeamWriter::putConstants() {
  Value first = constant(0);
  for (TeamConstant operand : constants) {
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
      AllocOp buffer = channels[c].buffer;
      Value tile = add(count[c], loop.getInductionVar());
      for (int64_t block = 0; block < fillsOfTile(buffer); ++block) {
        Value fill = fillOf(buffer, tile, block);
        RingWaitOp::create(b, channels[c].value, fill);
        RingReleaseOp::create(b, channels[c].value, fill);
      }
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
      range && range.getDescending() && isConsumer && groupsDiffer(range) &&
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
    Value fill = fillOf(channels[*c].buffer, count[*c], load.getBlock());
    if (isProducer)
      RingLoadOp::create(b, map.lookupOrDefault(load.getTile()),
                         channels[*c].narrow ? channels[*c].narrow
                                             : channels[*c].value,
                         fill, load.getWhole(),
                         int64_t(load.getBlock()) *
                             load.getBuffer().getType().getParams().getBK());
    else if (!isConsumer)
      widen(channels[*c], fill);
    else
      tokens[load.getToken()] = {*c, fill};
    if (countedChannelOf(op))
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
      if (Attribute by = stage->getAttr(kScaledByAttr))
        wait->setAttr(kScaledByAttr, by);
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
