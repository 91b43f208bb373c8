//===- AppendTokens.cpp - New tokens into caches, by lanes ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/AppendTokens.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;

/// Whether a scale is made, of `getGranularity` elements.
static bool makesScales(CacheLayout layout) {
  return layout && layout.getScaleType() && layout.getGranularity() > 0;
}

AppendEmitter::AppendEmitter(ImplicitLocOpBuilder &b,
                             const AppendOperands &operands,
                             const AppendShares &shares)
    : b(b), operands(operands), shares(shares), layout(operands.keysLayout()) {
  if (!shares.valueWidth)
    return;
  AppendShares own = shares;
  own.width = std::exchange(own.valueWidth, 0);
  own.pieces = 1;
  values = std::make_unique<AppendEmitter>(b, operands.valuesAlone(), own);
}

void AppendEmitter::dealValues(Value place, Value exists) {
  int64_t lanes = values->layout.getHeadSize() / values->shares.width;
  values->active = both(exists, isLess(place, constant(lanes)));
  Value first = arith::MulIOp::create(b, place, constant(values->shares.width));
  values->dim = select(values->active, first, constant(0));
}

Value AppendEmitter::splat(double value) {
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(vector(b.getF32Type()),
                                static_cast<float>(value)));
}

Value AppendEmitter::widen(Value x) {
  auto type = cast<VectorType>(x.getType());
  return type.getElementType().isF32()
             ? x
             : arith::ExtFOp::create(b, type.clone(b.getF32Type()), x)
                   .getResult();
}

Value AppendEmitter::joined(Value x, Value y) {
  int64_t count = cast<VectorType>(x.getType()).getNumElements();
  return vector::ShuffleOp::create(b, x, y,
                                   llvm::to_vector(llvm::seq(2 * count)));
}

Value AppendEmitter::onlyIf(Value condition, Value otherwise,
                            function_ref<Value()> make) {
  auto ifOp = scf::IfOp::create(b, TypeRange{otherwise.getType()}, condition,
                                /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, otherwise);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, make());
  return ifOp.getResult(0);
}

IntegerAttr AppendEmitter::alignment(Type element, int64_t elements) {
  if (shares.unaligned)
    elements = 1;
  int64_t bytes =
      std::gcd(elements, shares.piece()) * element.getIntOrFloatBitWidth() / 8;
  return b.getI64IntegerAttr(std::min<int64_t>(bytes, 16));
}

Value AppendEmitter::loadNew(Value tokens, Value from) {
  Type element = cast<MemRefType>(tokens.getType()).getElementType();
  Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(vector(element)));
  return onlyIf(active, zeros, [&] {
    SmallVector<Value> loaded;
    for (int64_t piece = 0; piece < shares.pieces; ++piece) {
      SmallVector<Value> at(lead);
      at.append({head, pieceAt(from, piece)});
      auto load = vector::LoadOp::create(
          b, VectorType::get({shares.piece()}, element), tokens, at);
      load.setAlignmentAttr(alignment(element, layout.getHeadSize()));
      loaded.push_back(load);
    }
    return loaded.size() == 1 ? loaded[0] : joined(loaded[0], loaded[1]);
  });
}

Value AppendEmitter::loadAngles(Value table, Value col, int64_t count) {
  auto type = cast<MemRefType>(table.getType());
  Value last = sub(memref::DimOp::create(b, table, 0), constant(1));
  Value row = position;
  if (angles)
    row = arith::MaxSIOp::create(b, angles, constant(0));
  row = arith::MinSIOp::create(b, row, last);
  auto load =
      vector::LoadOp::create(b, VectorType::get({count}, type.getElementType()),
                             table, ValueRange{row, col});
  int64_t elements = shares.unaligned ? 1 : std::gcd(count, type.getDimSize(1));
  int64_t bytes = elements * type.getElementTypeBitWidth() / 8;
  load.setAlignmentAttr(b.getI64IntegerAttr(std::min<int64_t>(bytes, 16)));
  return widen(load);
}

Value AppendEmitter::rotate(Value x, Value tokens) {
  Value cos = operands.cos, sin = operands.sin;
  int64_t pairs = operands.pairs();
  int64_t width = shares.width;
  // Elements that are not rotated, and tokens without a place.
  Value rotated = isLess(dim, constant(2 * pairs));
  rotated = both(rotated, isLess(constant(-1), position));
  rotated =
      both(rotated, isLess(constant(0), memref::DimOp::create(b, cos, 0)));
  if (operands.interleaved)
    return onlyIf(rotated, x, [&]() -> Value {
      Value col = arith::DivUIOp::create(b, dim, constant(2));
      SmallVector<int64_t> twice, swapped;
      SmallVector<float> signs;
      for (int64_t i = 0; i < width; ++i) {
        twice.push_back(i / 2);
        swapped.push_back(i ^ 1);
        signs.push_back(i % 2 ? 1.0f : -1.0f);
      }
      Value c = loadAngles(cos, col, width / 2);
      Value s = loadAngles(sin, col, width / 2);
      c = vector::ShuffleOp::create(b, c, c, twice);
      s = vector::ShuffleOp::create(b, s, s, twice);
      Value other = vector::ShuffleOp::create(b, x, x, swapped);
      Value sign = arith::ConstantOp::create(
          b, DenseElementsAttr::get(vector(b.getF32Type()),
                                    ArrayRef<float>(signs)));
      s = arith::MulFOp::create(b, s, sign);
      return math::FmaOp::create(b, other, s, arith::MulFOp::create(b, x, c));
    });
  if (shares.pieces == 2)
    return onlyIf(rotated, x, [&]() -> Value {
      // A half rotates the other.
      Value c = loadAngles(cos, dim, shares.piece());
      Value s = loadAngles(sin, dim, shares.piece());
      SmallVector<int64_t> halves(llvm::to_vector(llvm::seq(width / 2, width)));
      llvm::append_range(halves, llvm::seq<int64_t>(0, width / 2));
      Value other = vector::ShuffleOp::create(b, x, x, halves);
      s = joined(arith::NegFOp::create(b, s), s);
      return math::FmaOp::create(b, other, s,
                                 arith::MulFOp::create(b, x, joined(c, c)));
    });
  return onlyIf(rotated, x, [&]() -> Value {
    Value half = constant(pairs);
    Value isFirst = isLess(dim, half);
    Value col = select(isFirst, dim, sub(dim, half));
    Value from = select(isFirst, add(dim, half), col);
    Value other = widen(loadNew(tokens, from));
    Value c = loadAngles(cos, col, width);
    Value s = loadAngles(sin, col, width);
    Value sign = select(isFirst, splat(-1.0), splat(1.0));
    s = arith::MulFOp::create(b, s, sign);
    return math::FmaOp::create(b, other, s, arith::MulFOp::create(b, x, c));
  });
}

/// The largest finite element of a type.
static double largestOf(Type element) {
  return APFloat::getLargest(cast<FloatType>(element).getFloatSemantics())
      .convertToDouble();
}

Value AppendEmitter::largestOfGroup(Value x, int64_t granularity) {
  Value amax;
  for (int64_t i = 0; i < shares.width; ++i) {
    Value magnitude =
        math::AbsFOp::create(b, vector::ExtractOp::create(b, x, i));
    amax = amax ? arith::MaxNumFOp::create(b, amax, magnitude).getResult()
                : magnitude;
  }
  int64_t lanes =
      std::min(shares.lanes, int64_t(llvm::PowerOf2Ceil(llvm::divideCeilSigned(
                                 granularity, shares.width))));
  for (int64_t step = 1; step < lanes; step *= 2)
    amax = arith::MaxNumFOp::create(
        b, amax,
        gpu::ShuffleOp::create(b, amax, step, shares.wave,
                               gpu::ShuffleMode::XOR)
            .getShuffleResult());
  return amax;
}

std::pair<Value, Value> AppendEmitter::roundScale(Value scale, Type stored) {
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  auto number = [&](float value) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  };
  auto word = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  if (isa<Float8E8M0FNUType>(stored)) {
    Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, scale,
                                         number(0.0f));
    // The least power of two that is not below it: all elements have room.
    scale = select(isZero, number(1.0f), scale);
    Value bits = arith::BitcastOp::create(b, i32, scale);
    Value code = arith::ShRUIOp::create(
        b, arith::AddIOp::create(b, bits, word(0x007fffff)), word(23));
    code = arith::MinUIOp::create(
        b, arith::MaxUIOp::create(b, code, word(1)).getResult(), word(254));
    scale = arith::BitcastOp::create(
        b, f32, arith::ShLIOp::create(b, code, word(23)).getResult());
    code = arith::TruncIOp::create(b, b.getI8Type(), code);
    return {scale, arith::BitcastOp::create(b, stored, code)};
  }
  // As it is stored, so that whoever reads the cache multiplies by the same.
  if (!stored.isF32()) {
    scale = arith::TruncFOp::create(b, stored, scale);
    scale = arith::ExtFOp::create(b, f32, scale);
  }
  // The inverse of one below the normal numbers may be infinite: such elements
  // are zeros, whose scale is 1.
  constexpr float leastNormal = 0x1p-126f;
  Value isTiny = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, scale,
                                       number(leastNormal));
  scale = select(isTiny, number(1.0f), scale);
  return {scale, stored.isF32()
                     ? scale
                     : arith::TruncFOp::create(b, stored, scale).getResult()};
}

Value AppendEmitter::inverseScale(Value x, Value cache) {
  auto into = cast<CacheLayout>(cache.getType());
  if (makesScales(into))
    return inverseOfMade(
        x, cache,
        {into.getElementType(), into.getScaleType(), into.getGranularity()});
  auto scaleVector = VectorType::get({1}, into.getScaleType());
  Value given = LoadScaleOp::create(b, scaleVector, cache, batch, head,
                                    position, dim, UnitAttr(), IntegerAttr());
  Value scale = vector::ExtractOp::create(b, widen(given), 0);
  return arith::DivFOp::create(
      b, arith::ConstantOp::create(b, b.getF32FloatAttr(1.0f)), scale);
}

Value AppendEmitter::inverseOfMade(Value x, Value cache,
                                   const MadeScale &made) {
  double largest = largestOf(made.element);
  Value scale = arith::DivFOp::create(
      b, largestOfGroup(x, made.granularity),
      arith::ConstantOp::create(
          b, b.getF32FloatAttr(static_cast<float>(largest))));
  auto [rounded, stored] = roundScale(scale, made.type);
  Value at = made.begin ? sub(dim, constant(made.begin)) : dim;
  Value first = arith::RemUIOp::create(b, at, constant(made.granularity));
  first =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, first, constant(0));
  auto ifOp =
      scf::IfOp::create(b, both(first, made.active ? made.active : active),
                        /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  StoreScaleOp::create(
      b,
      vector::BroadcastOp::create(b, VectorType::get({1}, made.type), stored),
      cache, batch, head, position, dim, UnitAttr(), made.part);
  b.setInsertionPointAfter(ifOp);
  return arith::DivFOp::create(
      b, arith::ConstantOp::create(b, b.getF32FloatAttr(1.0f)), rounded);
}

Value AppendEmitter::narrow(Value x, Type stored) {
  if (stored.isF32())
    return x;
  if (stored.getIntOrFloatBitWidth() == 8) {
    // The nearest element that there is; what is no number stays none.
    double largest = largestOf(stored);
    for (auto [predicate, limit] :
         {std::pair(arith::CmpFPredicate::OGT, largest),
          std::pair(arith::CmpFPredicate::OLT, -largest)}) {
      Value end = splat(limit);
      Value exceeds = arith::CmpFOp::create(b, predicate, x, end);
      x = select(exceeds, end, x);
    }
  }
  return arith::TruncFOp::create(b, vector(stored), x);
}

void AppendEmitter::store(Value x, Value cache, Value condition,
                          IntegerAttr bytes, IntegerAttr part) {
  auto ifOp = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  for (int64_t piece = 0; piece < shares.pieces; ++piece) {
    Value own = x;
    if (shares.pieces > 1)
      own = vector::ShuffleOp::create(
          b, x, x,
          llvm::to_vector(
              llvm::seq(piece * shares.piece(), (piece + 1) * shares.piece())));
    CacheStoreOp::create(b, own, cache, batch, head, position,
                         pieceAt(dim, piece), bytes, UnitAttr(), part);
  }
}

Value AppendEmitter::quantize(Value x, Value inverse) {
  return arith::MulFOp::create(
      b, x, vector::BroadcastOp::create(b, vector(b.getF32Type()), inverse));
}

void AppendEmitter::append(Value x, Value cache) {
  auto into = cast<CacheLayout>(cache.getType());
  if (RowAttr row = packedRowOf(into))
    return appendPacked(x, cache, row);
  Type stored = into.getElementType();
  if (into.getScaleType()) {
    x = widen(x);
    x = quantize(x, inverseScale(x, cache));
  }
  if (cast<VectorType>(x.getType()).getElementType() != stored)
    x = narrow(widen(x), stored);
  store(x, cache, active,
        alignment(stored,
                  std::gcd(into.getCacheDepth(), into.getHeadDimOffset())),
        IntegerAttr());
}

void AppendEmitter::appendPacked(Value x, Value cache, RowAttr row) {
  int64_t begin = 0;
  for (auto [number, part] : llvm::enumerate(row.getParts())) {
    int64_t end = begin + part.getCount();
    Value here = active;
    if (begin)
      here = both(here, isLess(constant(begin - 1), dim));
    if (end < row.getElements())
      here = both(here, isLess(dim, constant(end)));
    IntegerAttr which = b.getI64IntegerAttr(int64_t(number));
    Type stored = part.getElement();
    Value own = x;
    if (part.getScale()) {
      own = widen(own);
      own = quantize(
          own, inverseOfMade(own, cache,
                             {stored, part.getScale(), part.getGranularity(),
                              begin, here, which}));
    }
    if (cast<VectorType>(own.getType()).getElementType() != stored)
      own = narrow(widen(own), stored);
    // Parts and rows begin at multiples of what eight elements take.
    int64_t bytes = stored.getIntOrFloatBitWidth() / 8;
    store(own, cache, here, alignment(stored, row.getBytes() / bytes), which);
    begin = end;
  }
}

void AppendEmitter::emit(function_ref<void()> findPlace) {
  // Both are on their way before anything waits for either, or for the place.
  Value k = operands.k, v = operands.v;
  AppendEmitter &own = values ? *values : *this;
  if (values) {
    own.lead = lead;
    own.head = head;
  }
  Value x = loadNew(k, dim), y = v ? own.loadNew(v, own.dim) : Value();
  findPlace();
  if (operands.cos)
    x = rotate(widen(x), k);
  append(x, operands.kCache);
  if (values) {
    own.batch = batch;
    own.position = position;
  }
  if (y)
    own.append(y, operands.vCache);
}

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

/// The most elements of a lane.
static constexpr int64_t kMostOfLane = 32;

/// The parts of the rows of a cache, which may be null; none where rows are not
/// packed.
static ArrayRef<RowPartAttr> partsOf(CacheLayout into) {
  RowAttr row = into ? packedRowOf(into) : RowAttr();
  return row ? row.getParts() : ArrayRef<RowPartAttr>();
}

/// Whether scales are made of elements of several lanes.
static bool exchangesMaxima(CacheLayout into) {
  return makesScales(into) || llvm::any_of(partsOf(into), [](RowPartAttr part) {
           return bool(part.getScale());
         });
}

/// Errors at `op` unless the groups of the scales of packed rows are dealt to
/// lanes of one wave, so many elements to each, whose numbers begin at a
/// multiple of theirs.
static LogicalResult verifyGroups(Operation *op, CacheLayout into,
                                  int64_t width, const TargetInfo &target) {
  int64_t begin = 0;
  for (RowPartAttr part : partsOf(into)) {
    int64_t first = std::exchange(begin, begin + part.getCount());
    if (!part.getScale())
      continue;
    int64_t group = part.getGranularity(), lanes = group / width;
    if (group % width || !llvm::isPowerOf2_64(lanes) || first % group ||
        part.getCount() % group || lanes > target.waveSize)
      return op->emitOpError()
             << "makes scales for groups of " << group << " of the "
             << part.getCount() << " elements from " << first
             << " on; expected groups that divide a part, of " << width
             << " times a power of two up to " << target.waveSize
             << ", behind a multiple of them";
  }
  return success();
}

/// What a lane's elements lie within: a rotated half, or a pair of neighbours'
/// part of a head, and the group of a scale.
static int64_t unitOf(const AppendOperands &operands, CacheLayout vInto) {
  CacheLayout kInto = operands.keysLayout();
  int64_t size = kInto.getHeadSize(), unit = size;
  if (operands.cos)
    unit = std::gcd(unit, operands.interleaved ? 2 * operands.pairs()
                                               : operands.pairs());
  for (CacheLayout into : {kInto, vInto}) {
    if (makesScales(into) && into.getGranularity() < size)
      unit = std::gcd(unit, into.getGranularity());
    for (RowPartAttr part : partsOf(into)) {
      unit = std::gcd(unit, part.getCount());
      if (part.getScale())
        unit = std::gcd(unit, part.getGranularity());
    }
  }
  return unit;
}

/// Deals heads of K and of V of two sizes to the same lanes, of which some have
/// elements of one of them only.
static FailureOr<AppendShares> dealApart(Operation *op,
                                         const AppendOperands &operands,
                                         const TargetInfo &target,
                                         int64_t mostLanes) {
  AppendOperands keys = operands, values = operands.valuesAlone();
  keys.v = keys.vCache = nullptr;
  FailureOr<AppendShares> shares = dealHeads(op, keys, target, mostLanes),
                          ofValues = dealHeads(op, values, target, mostLanes);
  if (failed(shares) || failed(ofValues))
    return failure();
  shares->valueWidth = ofValues->width;
  shares->lanes = std::max(shares->lanes, ofValues->lanes);
  // Lanes that exchange maxima lie within a wave.
  if (exchangesMaxima(keys.keysLayout()) ||
      exchangesMaxima(values.keysLayout()))
    shares->lanes = llvm::PowerOf2Ceil(shares->lanes);
  return shares;
}

FailureOr<AppendShares> kvbuf::dealHeads(Operation *op,
                                         const AppendOperands &operands,
                                         const TargetInfo &target,
                                         int64_t mostLanes) {
  CacheLayout kInto = operands.keysLayout();
  CacheLayout vInto;
  if (operands.v)
    vInto = cast<CacheLayout>(operands.vCache.getType());
  int64_t size = kInto.getHeadSize();
  if (vInto && vInto.getHeadSize() != size)
    return dealApart(op, operands, target, mostLanes);
  AppendShares shares;
  shares.wave = target.waveSize;
  // 16 bytes of what is stored, a vector of which lies within whatever is one.
  Type stored = kInto.getElementType();
  shares.width = 128 / std::min(32u, stored.getIntOrFloatBitWidth());
  shares.width = std::gcd(shares.width, size);
  shares.width = std::gcd(shares.width, unitOf(operands, vInto));
  if (operands.cos && operands.interleaved && shares.width % 2)
    return op->emitOpError() << "rotates neighbours, for which head_size is "
                                "even, got "
                             << size;
  // Halves that rotate each other, as a whole and with scales of whole heads:
  // of each a piece, 16 bytes of what is loaded.
  if (operands.cos && !operands.interleaved) {
    int64_t pairs = operands.pairs();
    int64_t width = std::gcd(int64_t(16), pairs);
    if (2 * pairs == size && width > 1 &&
        llvm::all_of(
            ArrayRef<CacheLayout>{kInto, vInto}, [&](CacheLayout into) {
              return partsOf(into).empty() &&
                     (!makesScales(into) || into.getGranularity() >= size);
            })) {
      shares.pieces = 2;
      shares.width = width;
    }
  }
  bool exchanges = exchangesMaxima(kInto) || exchangesMaxima(vInto);
  auto lanesOf = [&](int64_t width) {
    int64_t lanes = size / width;
    return exchanges ? int64_t(llvm::PowerOf2Ceil(lanes)) : lanes;
  };
  // Where there are few lanes, each has several vectors.
  int64_t unit = shares.pieces == 2 ? size : unitOf(operands, vInto);
  while (lanesOf(shares.width) > mostLanes && shares.width < kMostOfLane &&
         unit % (2 * shares.width) == 0)
    shares.width *= 2;
  int64_t most = 1;
  for (CacheLayout into : {kInto, vInto}) {
    if (!makesScales(into))
      continue;
    int64_t group = std::min(into.getGranularity(), size);
    int64_t lanes = llvm::divideCeilSigned(group, shares.width);
    most = std::max(most, lanes);
    if (group < size && (!llvm::isPowerOf2_64(lanes) || size % group))
      return op->emitOpError()
             << "makes scales for groups of " << group << " elements of "
             << size << "; expected groups that divide a head, of "
             << shares.width << " times a power of two, or whole heads";
  }
  for (CacheLayout into : {kInto, vInto})
    if (failed(verifyGroups(op, into, shares.width, target)))
      return failure();
  if (most > target.waveSize)
    return op->emitOpError()
           << "makes scales for groups of " << most * shares.width
           << " elements; a wave of " << target.chip << " holds "
           << target.waveSize * shares.width;
  shares.lanes = lanesOf(shares.width);
  if (shares.lanes > mostLanes)
    return op->emitOpError()
           << "has heads of " << size << " elements, " << shares.width
           << " to a lane; a block of " << target.chip << " has at most "
           << mostLanes << " lanes";
  return shares;
}
