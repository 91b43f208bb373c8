//===- CacheScales.cpp - Scales of quantized caches in tiles ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CacheScales.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"

using namespace mlir;
using namespace kvbuf;

/// What scales of V's tokens are multiplied by beside weights, so that products
/// are of magnitudes that f16 has with all bits: scales from 2^-22 to 2^7,
/// those of values from 1e-4 to 6e4 in e4m3. The output is divided by it.
static constexpr float kTokenScaleGain = 256;

/// Less than 1 by so little that a product with it is the number or two of f32
/// below.
static constexpr float kBelowOne = 1 - 0x1p-23f;

/// The bits of an f32 that f16 has, too: sign, exponent and ten of the
/// fraction.
static constexpr int64_t kBitsOfHalf = 0xFFFFE000;

/// Powers of two by which weights up to 1, and what rounding of their exponents
/// adds, stay below the largest number, 448 and 240: with 1 the weights below
/// 2^-10 would be 0.
static constexpr float kFloat8Gain = 256, kFloat8GainFNUZ = 128;

static bool isFloat8(Type type) { return type.getIntOrFloatBitWidth() == 8; }

float kvbuf::weightGain(Type weights) {
  if (!isFloat8(weights))
    return 1;
  return isa<Float8E4M3FNUZType, Float8E5M2FNUZType>(weights) ? kFloat8GainFNUZ
                                                              : kFloat8Gain;
}

bool kvbuf::addsTilesApart(AttentionOp op, const TargetInfo &target) {
  return isFloat8(op.getElementType()) && target.float8SumBits &&
         op.getSchedule()->getAccumulate() == Accumulation::TwoLevel;
}

Type kvbuf::valuesOf(AttentionOp op) {
  bool narrow = op.getV().getType().getElementType() != op.getElementType();
  return narrow ? Float16Type::get(op.getContext()) : op.getElementType();
}

Type kvbuf::weightsOf(AttentionOp op) {
  if (isa<Float8E5M2Type>(op.getElementType()))
    return Float8E4M3FNType::get(op.getContext());
  if (isa<Float8E5M2FNUZType>(op.getElementType()))
    return Float8E4M3FNUZType::get(op.getContext());
  bool narrow = op.getV().getType().getElementType() != op.getElementType();
  return narrow ? Float16Type::get(op.getContext()) : op.getElementType();
}

Type kvbuf::widenedKeysOf(AttentionOp op) {
  bool fits =
      op.getElementType().isBF16() && op.getK().getType().getScaleType();
  return fits ? Type(Float16Type::get(op.getContext())) : op.getElementType();
}

bool kvbuf::fitsQueries(AttentionOp op, const TargetInfo &target) {
  if (readsWidened(op))
    return widenedKeysOf(op) != op.getElementType();
  // Rows of a warp share their power of two, which decides over the bits of
  // elements that are far smaller than others.
  if (op.getBatchInvariant())
    return false;
  // A team of its own has time for the longer way to bf16, where those that
  // multiply would not scale each score else.
  std::optional<ScheduleAttr> schedule = op.getSchedule();
  const MovingTeam *mover = schedule ? schedule->getMovingTeam() : nullptr;
  CacheType keys = op.getK().getType();
  if (mover && mover->widens.warps &&
      (!keys.getScaleType() || isScaledByToken(keys)))
    return false;
  // A lazy softmax takes a row's factor with its own scale, where a scale would
  // multiply each score.
  bool takesFactor = schedule && schedule->getLazyRescale() &&
                     keys.getScaleType() && !isScaledByToken(keys);
  Type key = keys.getElementType();
  return op.getElementType().isBF16() && key.getIntOrFloatBitWidth() == 8 &&
         (takesFactor ||
          !(target.widensToBF16 &&
            llvm::is_contained(target.float8Formats, elementName(key))));
}

bool kvbuf::isScaledByToken(CacheType cache) {
  return cache.getScaleType() && cache.getGranularity() > 0;
}

bool kvbuf::isScaledByGroup(CacheType cache) {
  return isScaledByToken(cache) && cache.getGranularity() < cache.getHeadSize();
}

static CacheType typeOf(Value cache) {
  return cast<CacheType>(cache.getType());
}

Value CacheScales::ofHead(Value cache) {
  if (!typeOf(cache).getScaleType() || isScaledByToken(typeOf(cache)))
    return nullptr;
  Value zero = arith::ConstantIndexOp::create(b, 0);
  return CacheScaleOp::create(b, cache, batch, kvHead, zero, zero);
}

Value CacheScales::multiply(Value x, Value scale) {
  if (!scale)
    return x;
  return mapElements(x, Value(), [&](ValueRange elements, Value) -> Value {
    return arith::MulFOp::create(b, elements.front(), scale);
  });
}

Value CacheScales::fit(AttentionOp op, const TargetInfo &target, Value &q,
                       FragmentType row, Value &scale) {
  if (!q || !fitsQueries(op, target))
    return nullptr;
  if (auto staged = dyn_cast<StagedType>(q.getType())) {
    auto fit = StagedFitOp::create(
        b, StagedFitOp::fittedType(staged.getParams()), row, q, scale);
    q = fit.getFitted();
    scale = nullptr;
    return fit.getFactor();
  }
  auto type = cast<FragmentType>(q.getType());
  auto half = FragmentType::get(b.getContext(), type.getRows(), type.getCols(),
                                b.getF16Type(), Role::A);
  auto fit = FragmentFitOp::create(b, half, row, q, scale);
  q = fit.getFragment();
  scale = nullptr;
  return fit.getFactor();
}

Value CacheScales::ofTokens(Value cache, FragmentType type,
                            const TileTokens &tokens) {
  if (!isScaledByToken(typeOf(cache)) || isScaledByGroup(typeOf(cache)))
    return nullptr;
  return ofTokensAt(cache, type, tokens, arith::ConstantIndexOp::create(b, 0));
}

SmallVector<ScaledColumns> CacheScales::groups(Value cache, int64_t depth,
                                               FragmentType type,
                                               const TileTokens &tokens) {
  CacheType of = typeOf(cache);
  if (!isScaledByGroup(of))
    return {{0, depth, Value()}};
  SmallVector<ScaledColumns> groups;
  int64_t size = of.getGranularity();
  for (int64_t first = 0; first < of.getHeadSize(); first += size) {
    bool isLast = first + size >= of.getHeadSize();
    Value dim = arith::ConstantIndexOp::create(b, first);
    groups.push_back({first, isLast ? depth - first : size,
                      ofTokensAt(cache, type, tokens, dim)});
  }
  return groups;
}

Value CacheScales::addScaled(Value sum, Value x, Value tokenScales) {
  if (!sum || !tokenScales)
    return multiplyByToken(x, tokenScales);
  return mapElements(
      {sum, x, tokenScales}, Value(), [&](ValueRange elements, Value) -> Value {
        Value scaled = arith::MulFOp::create(b, elements[1], elements[2]);
        return arith::AddFOp::create(b, elements[0], scaled);
      });
}

Value CacheScales::ofTokensAt(Value cache, FragmentType type,
                              const TileTokens &tokens, Value dim) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  // A tile may begin before the first key that counts, whose page may be gone,
  // and go beyond the last one: what is hidden there has the scale of one that
  // counts.
  Value last = arith::SubIOp::create(b, tokens.end,
                                     arith::ConstantIndexOp::create(b, 1));
  Value least = arith::MinSIOp::create(
      b, arith::MaxSIOp::create(b, tokens.lo, zero).getResult(), last);
  Value any = FragmentFillOp::create(b, type, b.getF32FloatAttr(0));
  return mapElements(any, tokens.first, [&](ValueRange, Value token) -> Value {
    token = arith::MaxSIOp::create(
        b, arith::MinSIOp::create(b, token, last).getResult(), least);
    return CacheScaleOp::create(b, cache, batch, kvHead, token, dim);
  });
}

Value CacheScales::multiplyByToken(Value x, Value tokenScales) {
  if (!tokenScales)
    return x;
  return mapElements(
      {x, tokenScales}, Value(), [&](ValueRange elements, Value) -> Value {
        return arith::MulFOp::create(b, elements[0], elements[1]);
      });
}

/// The next number of f16 nearer to 0: what it leaves of a number has the same
/// sign and is not 0, so that an infinite element of V times both is infinite.
static Value halfBelow(OpBuilder &b, Location loc, Value x) {
  Value below = arith::MulFOp::create(
      b, loc, x,
      arith::ConstantOp::create(b, loc, b.getF32FloatAttr(kBelowOne)));
  Value bits = arith::AndIOp::create(
      b, loc, arith::BitcastOp::create(b, loc, b.getI32Type(), below),
      arith::ConstantOp::create(
          b, loc, b.getI32IntegerAttr(static_cast<int32_t>(kBitsOfHalf))));
  return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
}

SmallVector<Value, 2> CacheScales::weights(Value p, Value tokenScales,
                                           FragmentType type, AttentionOp op) {
  Type element = type.getElementType();
  // Where the softmax has multiplied them, they are operands already.
  if (cast<FragmentType>(p.getType()) == type)
    return {p};
  if (isFloat8(element)) {
    Value gain =
        arith::ConstantOp::create(b, b.getF32FloatAttr(weightGain(element)));
    return {FragmentConvertOp::create(b, type, multiply(p, gain))};
  }
  if (!tokenScales)
    return {p};
  Value gain = arith::ConstantOp::create(b, b.getF32FloatAttr(kTokenScaleGain));
  Value scaled = mapElements(
      {p, tokenScales}, Value(), [&](ValueRange elements, Value) -> Value {
        Value scale = arith::MulFOp::create(b, elements[1], gain);
        return arith::MulFOp::create(b, elements[0], scale);
      });
  if (op.getOutElementType().isBF16())
    return {FragmentConvertOp::create(b, type, scaled)};
  Value most = scaled;
  if (llvm::APFloat::semanticsHasInf(
          cast<FloatType>(op.getV().getType().getElementType())
              .getFloatSemantics()))
    most = mapElements({scaled}, Value(), [&](ValueRange elements, Value) {
      return halfBelow(b, b.getLoc(), elements.front());
    });
  Value rest = mapElements(
      {scaled, most}, Value(), [&](ValueRange elements, Value) -> Value {
        Value rounded = arith::ExtFOp::create(
            b, b.getF32Type(),
            arith::TruncFOp::create(b, type.getElementType(), elements[1])
                .getResult());
        return arith::SubFOp::create(b, elements[0], rounded);
      });
  return {FragmentConvertOp::create(b, type, most),
          FragmentConvertOp::create(b, type, rest)};
}

Value CacheScales::add(Value x, Value y) {
  return mapElements({x, y}, Value(), [&](ValueRange elements, Value) -> Value {
    return arith::AddFOp::create(b, elements[0], elements[1]);
  });
}

Value CacheScales::finish(Value out, Value v, AttentionOp op, bool isGained) {
  if (!isScaledByToken(typeOf(v))) {
    if (float gain = weightGain(weightsOf(op)); gain != 1 && !isGained)
      out = multiply(out,
                     arith::ConstantOp::create(b, b.getF32FloatAttr(1 / gain)));
    return multiply(out, ofHead(v));
  }
  return multiply(out, arith::ConstantOp::create(
                           b, b.getF32FloatAttr(1 / kTokenScaleGain)));
}

Value CacheScales::mapElements(ValueRange inputs, Value col,
                               function_ref<Value(ValueRange, Value)> make) {
  auto map = MapOp::create(
      b, inputs.front().getType(), inputs,
      col ? arith::ConstantIndexOp::create(b, 0).getResult() : Value(), col);
  OpBuilder::InsertionGuard guard(b);
  Block *body = &map.getBody().emplaceBlock();
  Location loc = b.getLoc();
  for (size_t i = 0; i < inputs.size(); ++i)
    body->addArgument(b.getF32Type(), loc);
  body->addArgument(b.getIndexType(), loc);
  Value column = body->addArgument(b.getIndexType(), loc);
  b.setInsertionPointToStart(body);
  YieldOp::create(
      b,
      make(ValueRange(body->getArguments()).take_front(inputs.size()), column));
  return map.getResult();
}
