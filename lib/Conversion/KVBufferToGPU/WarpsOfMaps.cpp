//===- WarpsOfMaps.cpp - What the lanes of a warp find out together -------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a map's region has of a tile's columns is often the same for all of a
/// warp's elements, or follows from few numbers that lanes share out.
///
//===----------------------------------------------------------------------===//

#include "MapRegion.h"
#include "kvbuffer/Dialect/KVBuffer/IR/WordsOfColumns.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace kvbuf;

bool MapLowering::findVotes() {
  llvm::SmallPtrSet<Operation *, 8> ofReads;
  auto usersOf = [&](Operation &inner) {
    return llvm::map_range(inner.getUsers(), [&](Operation *user) {
      return body.findAncestorOpInBlock(*user);
    });
  };
  for (Operation &inner : body.without_terminator()) {
    bool follows = isa<memref::LoadOp>(inner) ||
                   llvm::any_of(inner.getOperands(), [&](Value operand) {
                     return ofReads.contains(operand.getDefiningOp());
                   });
    if (levels.lookup(&inner) != PerColumn || !follows)
      continue;
    ofReads.insert(&inner);
    bool ends = llvm::none_of(usersOf(inner), [&](Operation *user) {
      return levels.lookup(user) == PerColumn;
    });
    if (!ends)
      continue;
    // What else is read of columns, or by what lanes vote about, is read as it
    // is.
    if (inner.getNumResults() != 1 ||
        !inner.getResult(0).getType().isInteger(1) || reads.contains(&inner)) {
      voted.clear();
      return false;
    }
    voted.insert(&inner);
  }
  for (Operation &inner : llvm::reverse(body.without_terminator()))
    if (!voted.contains(&inner) &&
        llvm::all_of(usersOf(inner), [&](Operation *user) {
          return voted.contains(user) || ofVotes.contains(user);
        }))
      ofVotes.insert(&inner);
  // What others need, too, is found out for the column that a lane votes about
  // as for its own ones.
  for (Operation &inner : llvm::reverse(body.without_terminator()))
    if (voted.contains(&inner) ||
        llvm::any_of(usersOf(inner), [&](Operation *user) {
          return beforeVotes.contains(user);
        }))
      beforeVotes.insert(&inner);
  for (Operation *inner : ofVotes)
    reads.erase(inner);
  return !voted.empty();
}

LogicalResult MapLowering::vote(const Place &place, int64_t words,
                                Value ownCol) {
  // Not what the lane's own columns have.
  decltype(kept) others;
  std::swap(kept, others);
  for (int64_t word = 0; word < words; ++word) {
    Place here = place;
    here.col = kVoters * word;
    setPlace(here);
    for (Operation &inner : body.without_terminator()) {
      if (!beforeVotes.contains(&inner))
        continue;
      if (failed(evaluateOnce(inner, here)))
        return failure();
      if (!voted.contains(&inner))
        continue;
      Value bits = LaneVoteOp::create(b, b.getI32Type(),
                                      materialize(inner.getResult(0)));
      votes[&inner].push_back(arith::ShRUIOp::create(b, bits, ownCol));
    }
  }
  kept = std::move(others);
  return success();
}

bool MapLowering::findCompared() {
  auto select = cast<YieldOp>(body.getTerminator())
                    .getValue()
                    .getDefiningOp<arith::SelectOp>();
  auto levelOf = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return def && def->getBlock() == &body ? levels.lookup(def)
                                           : unsigned(PerElement);
  };
  if (!select || select->getBlock() != &body ||
      !matchPattern(select.getFalseValue(), m_Constant()) ||
      levelOf(select.getCondition()) == PerElement)
    return false;
  auto loads = comparedWordsOf(
      body.getArgument(op.getInputs().size() + 1),
      [&](Operation *inner) { return levels.lookup(inner) == PerColumn; });
  compared.assign(loads.begin(), loads.end());
  choice = select;
  return !compared.empty();
}

LogicalResult MapLowering::readCompared(const Place &place, int64_t words) {
  // What those need, for the lane's own column, and not for others that are
  // counted as it is.
  decltype(kept) others;
  std::swap(kept, others);
  for (int64_t word = 0; word < words; ++word) {
    kept.clear();
    Place at = place;
    at.col = word * int64_t(lower.chip().waveSize);
    setPlace(at);
    for (Operation &inner : body.without_terminator())
      if (reads.contains(&inner) && !(levels.lookup(&inner) & PerRow) &&
          failed(evaluateOnce(inner, at)))
        return failure();
    for (memref::LoadOp load : compared) {
      Value value = materialize(load.getResult());
      own[load].push_back(value);
      if (value.getType().isInteger(32))
        wordsOfLanes[load].push_back(value);
    }
  }
  kept = std::move(others);
  return success();
}

LogicalResult MapLowering::readFirst(const Place &first, bool asking) {
  setPlace(first);
  for (Operation &inner : body.without_terminator()) {
    auto load = dyn_cast<memref::LoadOp>(inner);
    bool isCompared = load && llvm::is_contained(compared, load);
    if (isCompared && asking && load.getType().isInteger(32)) {
      // The first lane's own column is the tile's first one.
      Value word = gpu::SubgroupBroadcastOp::create(
          b, load.getType(), own[load][0], Value(),
          gpu::BroadcastType::first_active_lane);
      kept[{load, {0, first.col}}] = {
          Known{Term{word, 0, Range::ofI32()}, Value()}};
    }
    if (reads.contains(&inner) && !(levels.lookup(&inner) & PerRow) &&
        failed(evaluateOnce(inner, first)))
      return failure();
    if (isCompared)
      atFirst[load] = materialize(load.getResult());
  }
  return success();
}

Value MapLowering::differs() {
  Value differ;
  for (memref::LoadOp load : compared)
    for (Value word : own[load]) {
      Value other = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, word,
                                          atFirst[load]);
      differ =
          differ ? arith::OrIOp::create(b, differ, other).getResult() : other;
    }
  return differ;
}

void MapLowering::shareRows(const MapLowering &map) {
  for (const auto &[at, values] : map.kept)
    if (!(levels.lookup(at.first) & PerColumn))
      kept[at] = values;
}

FailureOr<Value> MapLowering::isHidden(const Place &place) {
  setPlace(place);
  for (Operation &inner : body.without_terminator())
    if (levels.lookup(&inner) != PerElement &&
        failed(evaluateOnce(inner, place)))
      return failure();
  return arith::XOrIOp::create(
             b, materialize(choice.getCondition()),
             arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult())
      .getResult();
}

Value MapLowering::constant() {
  TypedAttr value;
  matchPattern(choice.getFalseValue(), m_Constant(&value));
  return arith::ConstantOp::create(b, value);
}

FailureOr<Value> MapLowering::shown(ArrayRef<Value> inputs,
                                    const Place &place) {
  if (failed(evaluateAll(inputs, place, choice)))
    return failure();
  return materialize(choice.getTrueValue());
}

/// The operand of an op beside which the other one is a number.
template <typename OpTy>
static Value besideNumber(Value value, int64_t &number) {
  while (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  auto op = value.getDefiningOp<OpTy>();
  for (auto [operand, other] :
       op ? SmallVector<std::pair<Value, Value>>{{op.getLhs(), op.getRhs()},
                                                 {op.getRhs(), op.getLhs()}}
          : SmallVector<std::pair<Value, Value>>{})
    if (std::optional<int64_t> constant = getConstantIntValue(other)) {
      number = *constant;
      return operand;
    }
  return nullptr;
}

bool MapLowering::findClamped() {
  for (Operation &inner : body.without_terminator()) {
    Value result = inner.getNumResults() ? inner.getResult(0) : Value(), x;
    if (isa<arith::MinSIOp>(inner) &&
        (x = besideNumber<arith::MinSIOp>(result, clampedTo.most)))
      x = besideNumber<arith::MaxSIOp>(x, clampedTo.least);
    else if (isa<arith::MaxSIOp>(inner) &&
             (x = besideNumber<arith::MaxSIOp>(result, clampedTo.least)))
      x = besideNumber<arith::MinSIOp>(x, clampedTo.most);
    if (x && levels.lookup(&inner) == PerPlace &&
        clampedTo.least <= clampedTo.most && clampedTo.fits(kCoordinates)) {
      clamp = &inner;
      difference = x;
      break;
    }
  }
  if (!clamp)
    return false;
  llvm::SmallPtrSet<Operation *, 8> before{clamp};
  for (Operation &inner : llvm::reverse(body))
    if (levels.lookup(&inner) != Once &&
        llvm::any_of(inner.getUsers(),
                     [&](Operation *user) { return before.contains(user); }))
      before.insert(&inner);
  auto stays = [&](Value value) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      return before.contains(body.findAncestorOpInBlock(*user));
    });
  };
  return llvm::all_of(body.getArguments().take_back(2), stays) &&
         llvm::all_of(before, [&](Operation *inner) {
           return inner == clamp || (!inner->getNumRegions() &&
                                     llvm::all_of(inner->getResults(), stays));
         });
}

FailureOr<MapLowering::Term> MapLowering::differenceAt(ArrayRef<Place> places) {
  std::optional<Term> all;
  for (const Place &place : places) {
    setPlace(place);
    for (Operation &inner : body.without_terminator()) {
      if (&inner == clamp)
        break;
      if (levels.lookup(&inner) != PerElement && !isa<memref::LoadOp>(inner) &&
          !inner.getNumRegions() && failed(evaluateOnce(inner, place)))
        return failure();
    }
    std::optional<Term> term = termOf(difference);
    if (!term || !term->base || (all && all->base != term->base))
      return failure();
    Range here{term->offset, term->offset};
    if (all)
      here = {std::min(all->range.least, here.least),
              std::max(all->range.most, here.most)};
    all = Term{term->base, 0, here};
  }
  return *all;
}
