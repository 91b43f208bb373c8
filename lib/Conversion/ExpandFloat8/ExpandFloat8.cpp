//===- ExpandFloat8.cpp - Conversions of 8-bit floats -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `arith.extf` and `arith.truncf` between 8-bit floats and f32, and
/// `arith.extf` to 16-bit floats, in integer arithmetic: LLVM has no type for
/// 8-bit floats, and few chips have instructions; those are taken where they do
/// as much. The formats are those of the OCP 8-bit floating point
/// specification, and their FNUZ variants; `APFloat` knows their parameters.
///
//===----------------------------------------------------------------------===//

#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace kvbuf {
#define GEN_PASS_DEF_EXPANDFLOAT8
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

namespace {

/// The parameters of an 8-bit format.
struct Format {
  explicit Format(FloatType type) {
    const llvm::fltSemantics &s = type.getFloatSemantics();
    mantissa = APFloat::semanticsPrecision(s) - 1;
    // The exponent of 1.0 as it is stored.
    bias = 1 - APFloat::semanticsMinExponent(s);
    fnuz = isa<Float8E4M3FNUZType, Float8E5M2FNUZType>(type);
    largest = APFloat::getLargest(s).bitcastToAPInt().getZExtValue();
    nan = APFloat::getNaN(s).bitcastToAPInt().getZExtValue();
    hasInfinity = isa<Float8E5M2Type>(type);
    // What exceeds the largest element: infinity, or no number.
    beyond = hasInfinity ? largest + 1 : nan;
  }
  unsigned mantissa;
  int64_t bias;
  bool fnuz, hasInfinity;
  uint32_t largest, nan, beyond;
};

bool isFloat8(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type, Float8E4M3FNUZType,
             Float8E5M2FNUZType>(getElementTypeOrSelf(type));
}

/// Arithmetic on numbers, or vectors of them, of one shape.
struct Emitter : ImplicitLocOpBuilder {
  Emitter(Location loc, OpBuilder &b, Type shape)
      : ImplicitLocOpBuilder(loc, b), shape(shape) {}

  Type like(Type element) {
    auto vector = dyn_cast<VectorType>(shape);
    return vector ? vector.clone(element) : element;
  }
  Value constant(TypedAttr value) {
    TypedAttr attr = value;
    if (auto vector = dyn_cast<VectorType>(shape))
      attr = DenseElementsAttr::get(vector.clone(value.getType()),
                                    Attribute(value));
    return arith::ConstantOp::create(*this, attr);
  }
  Value word(uint32_t value) {
    return constant(getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value number(double value) {
    return constant(getF32FloatAttr(static_cast<float>(value)));
  }
  template <typename Op> Value op(Value x, Value y) {
    return Op::create(*this, x, y);
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(*this, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(*this, condition, x, y);
  }
  Value bits(Value x, Type element) {
    return arith::BitcastOp::create(*this, like(element), x);
  }

  Type shape;
};

struct ExpandTruncF : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat8(op.getType()) ||
        !getElementTypeOrSelf(op.getIn().getType()).isF32())
      return failure();
    Emitter b(op.getLoc(), rewriter, op.getType());
    Format f(cast<FloatType>(getElementTypeOrSelf(op.getType())));
    using P = arith::CmpIPredicate;
    unsigned drop = 23 - f.mantissa;
    Value u = b.bits(op.getIn(), b.getI32Type());
    Value a = b.op<arith::AndIOp>(u, b.word(0x7FFFFFFF));
    // Normal: half of the last place is added, less one unit where that place
    // is even, and the exponent moves to the other bias.
    Value odd =
        b.op<arith::AndIOp>(b.op<arith::ShRUIOp>(a, b.word(drop)), b.word(1));
    Value sum = b.op<arith::AddIOp>(b.op<arith::AddIOp>(a, odd),
                                    b.word((1u << (drop - 1)) - 1));
    Value normal = b.op<arith::SubIOp>(
        b.op<arith::ShRUIOp>(sum, b.word(drop)),
        b.word(static_cast<uint32_t>(127 - f.bias) << f.mantissa));
    // Below the smallest normal number: the sum with 2^23 units of the last
    // place is rounded there, and what was added is taken off its bits.
    int64_t unit = 1 - f.bias - int64_t(f.mantissa);
    uint32_t magic = static_cast<uint32_t>(unit + 23 + 127) << 23;
    Value shifted = b.op<arith::AddFOp>(b.bits(a, b.getF32Type()),
                                        b.bits(b.word(magic), b.getF32Type()));
    Value subnormal =
        b.op<arith::SubIOp>(b.bits(shifted, b.getI32Type()), b.word(magic));
    uint32_t least = static_cast<uint32_t>(1 - f.bias + 127) << 23;
    Value code =
        b.select(b.compare(P::ult, a, b.word(least)), subnormal, normal);
    code = b.select(b.compare(P::ugt, code, b.word(f.largest)),
                    b.word(f.beyond), code);
    code =
        b.select(b.compare(P::ugt, a, b.word(0x7F800000)), b.word(f.nan), code);
    Value sign =
        b.op<arith::AndIOp>(b.op<arith::ShRUIOp>(u, b.word(24)), b.word(0x80));
    // There is no negative zero there: its code is the one that is no number.
    if (f.fnuz)
      sign = b.select(b.compare(P::eq, code, b.word(0)), b.word(0), sign);
    code = b.op<arith::OrIOp>(code, sign);
    Value byte = arith::TruncIOp::create(b, b.like(b.getI8Type()), code);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), byte);
    return success();
  }
};

/// 8-bit floats, or a vector of them, as f32.
Value extendToF32(Emitter &b, Value in) {
  Format f(cast<FloatType>(getElementTypeOrSelf(in.getType())));
  using P = arith::CmpIPredicate;
  Value byte = b.bits(in, b.getI8Type());
  Value u = arith::ExtUIOp::create(b, b.like(b.getI32Type()), byte);
  Value a = b.op<arith::AndIOp>(u, b.word(0x7F));
  Value normal =
      b.op<arith::AddIOp>(b.op<arith::ShLIOp>(a, b.word(23 - f.mantissa)),
                          b.word(static_cast<uint32_t>(127 - f.bias) << 23));
  // Below the smallest normal number: so many units of the last place. Not
  // by a multiplication of a subnormal f32, which kernels flush.
  Value units = arith::SIToFPOp::create(b, b.like(b.getF32Type()), a);
  Value subnormal = b.bits(
      b.op<arith::MulFOp>(
          units, b.number(std::ldexp(1.0, static_cast<int>(1 - f.bias) -
                                              static_cast<int>(f.mantissa)))),
      b.getI32Type());
  Value value = b.select(b.compare(P::ult, a, b.word(1u << f.mantissa)),
                         subnormal, normal);
  constexpr uint32_t nan = 0x7FC00000, infinity = 0x7F800000;
  if (!f.fnuz) {
    value = b.select(b.compare(P::ugt, a, b.word(f.largest)),
                     b.word(f.hasInfinity ? infinity : nan), value);
    if (f.hasInfinity)
      value = b.select(b.compare(P::ugt, a, b.word(f.largest + 1)), b.word(nan),
                       value);
  }
  Value sign =
      b.op<arith::ShLIOp>(b.op<arith::AndIOp>(u, b.word(0x80)), b.word(24));
  value = b.op<arith::OrIOp>(value, sign);
  if (f.fnuz)
    value = b.select(b.compare(P::eq, u, b.word(0x80)), b.word(nan), value);
  return b.bits(value, b.getF32Type());
}

struct ExpandExtF : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat8(op.getIn().getType()) ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Emitter b(op.getLoc(), rewriter, op.getType());
    rewriter.replaceOp(op, extendToF32(b, op.getIn()));
    return success();
  }
};

/// What two selections between `x` and -limit and limit clamp: the instruction
/// clamps by itself, and what is no number stays none either way. Null if `x`
/// is not clamped so.
Value clampedBy(Value x, double limit) {
  auto constantOf = [](Value value) -> std::optional<double> {
    Attribute attr;
    if (!matchPattern(value, m_Constant(&attr)))
      return std::nullopt;
    if (auto dense = dyn_cast<DenseFPElementsAttr>(attr))
      attr = dense.isSplat() ? dense.getSplatValue<Attribute>() : Attribute();
    auto number = dyn_cast_or_null<FloatAttr>(attr);
    return number ? std::optional(number.getValueAsDouble()) : std::nullopt;
  };
  bool above = false, below = false;
  while (!above || !below) {
    auto select = x.getDefiningOp<arith::SelectOp>();
    auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>()
                          : arith::CmpFOp();
    if (!compare || compare.getLhs() != select.getFalseValue() ||
        compare.getRhs() != select.getTrueValue())
      return nullptr;
    std::optional<double> end = constantOf(select.getTrueValue());
    if (compare.getPredicate() == arith::CmpFPredicate::OGT && end == limit)
      above = true;
    else if (compare.getPredicate() == arith::CmpFPredicate::OLT &&
             end == -limit)
      below = true;
    else
      return nullptr;
    x = select.getFalseValue();
  }
  return x;
}

/// Pairs of elements that cannot exceed the format, by the instruction of
/// NVIDIA chips that have the format (PTX ISA, "cvt": sm_89 and later).
struct ConvertPairs : OpRewritePattern<arith::TruncFOp> {
  ConvertPairs(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || type.getRank() != 1 || type.getNumElements() % 2 ||
        !isa<Float8E4M3FNType, Float8E5M2Type>(type.getElementType()) ||
        !getElementTypeOrSelf(op.getIn().getType()).isF32())
      return failure();
    auto element = cast<FloatType>(type.getElementType());
    Value x = clampedBy(
        op.getIn(),
        APFloat::getLargest(element.getFloatSemantics()).convertToDouble());
    if (!x)
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> pairs;
    for (int64_t i = 0; i < type.getNumElements(); i += 2) {
      Value low = vector::ExtractOp::create(b, x, i),
            high = vector::ExtractOp::create(b, x, i + 1);
      pairs.push_back(NVVM::ConvertF32x2ToF8x2Op::create(
          b, b.getI16Type(), high, low, NVVM::FPRoundingMode::RN,
          NVVM::SaturationMode::SATFINITE, /*relu=*/false, element));
    }
    Value words = vector::FromElementsOp::create(
        b, VectorType::get({int64_t(pairs.size())}, b.getI16Type()), pairs);
    Value bytes =
        vector::BitCastOp::create(b, type.clone(b.getI8Type()), words);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, bytes);
    return success();
  }
};

/// Words of elements that cannot exceed the format, by the instruction of AMD
/// chips for the formats that their matrix unit has (CDNA3 ISA,
/// "V_CVT_PK_FP8_F32"), which makes what exceeds them no number.
struct ConvertWords : OpRewritePattern<arith::TruncFOp> {
  ConvertWords(MLIRContext *context, const TargetInfo &target)
      : OpRewritePattern(context, /*benefit=*/2), target(target) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || type.getRank() != 1 || type.getNumElements() % 4 ||
        !llvm::is_contained(target.float8Formats,
                            elementName(type.getElementType())) ||
        !getElementTypeOrSelf(op.getIn().getType()).isF32())
      return failure();
    auto element = cast<FloatType>(type.getElementType());
    if (!clampedBy(
            op.getIn(),
            APFloat::getLargest(element.getFloatSemantics()).convertToDouble()))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    bool isE4 = isa<Float8E4M3FNType, Float8E4M3FNUZType>(element);
    SmallVector<Value> words;
    for (int64_t i = 0; i < type.getNumElements(); i += 4) {
      Value word = arith::ConstantIntOp::create(b, 0, 32);
      for (bool upper : {false, true}) {
        Value low = vector::ExtractOp::create(b, op.getIn(), i + 2 * upper),
              high =
                  vector::ExtractOp::create(b, op.getIn(), i + 2 * upper + 1);
        word = isE4 ? ROCDL::CvtPkFp8F32Op::create(b, b.getI32Type(), low, high,
                                                   word, upper)
                          .getResult()
                    : ROCDL::CvtPkBf8F32Op::create(b, b.getI32Type(), low, high,
                                                   word, upper)
                          .getResult();
      }
      words.push_back(word);
    }
    Value all = vector::FromElementsOp::create(
        b, VectorType::get({int64_t(words.size())}, b.getI32Type()), words);
    Value bytes = vector::BitCastOp::create(b, type.clone(b.getI8Type()), all);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, bytes);
    return success();
  }

  const TargetInfo &target;
};

/// The number of elements of a vector that is whole words of four; 0 for
/// others.
int64_t wordElementsOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 && vector.getNumElements() % 4 == 0
             ? vector.getNumElements()
             : 0;
}

/// Takes bytes by words of four: calls `widen` with each, and with which two of
/// its bytes it is about.
void forPairs(ImplicitLocOpBuilder &b, Value narrow,
              function_ref<void(Value, bool)> widen) {
  auto type = cast<VectorType>(narrow.getType());
  int64_t words = type.getNumElements() / 4;
  Value bytes = arith::BitcastOp::create(b, type.clone(b.getI8Type()), narrow);
  Value all = vector::BitCastOp::create(
      b, VectorType::get({words}, b.getI32Type()), bytes);
  for (int64_t i = 0; i < words; ++i) {
    Value word = vector::ExtractOp::create(b, all, ArrayRef<int64_t>{i});
    for (bool upper : {false, true})
      widen(word, upper);
  }
}

/// Replaces a conversion of words of four elements: `make` gives a pair of f16
/// for the lower and the upper half of each word. Pairs become bf16 by way of
/// f32: f16 has all 8-bit floats, and bf16 has them, too.
template <typename Make>
void replaceByPairs(arith::ExtFOp op, PatternRewriter &rewriter, Make make) {
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  auto type = cast<VectorType>(op.getType());
  SmallVector<Value> elements;
  forPairs(b, op.getIn(), [&](Value word, bool upper) {
    Value pair = make(b, word, upper);
    if (!type.getElementType().isF16()) {
      auto pairType = cast<VectorType>(pair.getType());
      pair = arith::ExtFOp::create(b, pairType.clone(b.getF32Type()), pair);
      pair = arith::TruncFOp::create(b, pairType.clone(type.getElementType()),
                                     pair);
    }
    for (int64_t n : {0, 1})
      elements.push_back(
          vector::ExtractOp::create(b, pair, ArrayRef<int64_t>{n}));
  });
  rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
}

bool isWidening(arith::ExtFOp op) {
  Type wide = getElementTypeOrSelf(op.getType());
  return isFloat8(op.getIn().getType()) && (wide.isF16() || wide.isBF16());
}

/// To a 16-bit float: two at a time where there are words of four, else by way
/// of f32.
struct ExpandWiden : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isWidening(op))
      return failure();
    Format f(cast<FloatType>(getElementTypeOrSelf(op.getIn().getType())));
    // As f16 the largest exponent of formats with a larger bias is infinity.
    constexpr int64_t biasOfF16 = 15;
    if (!wordElementsOf(op.getType()) || f.bias > biasOfF16) {
      Emitter b(op.getLoc(), rewriter, op.getType());
      Value wide = extendToF32(b, op.getIn());
      rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), wide);
      return success();
    }
    replaceByPairs(
        op, rewriter,
        [&](ImplicitLocOpBuilder &b, Value word, bool upper) -> Value {
          auto constant = [&](uint32_t value) -> Value {
            return arith::ConstantIntOp::create(b, static_cast<int32_t>(value),
                                                32);
          };
          auto both = [&](uint32_t half) {
            return constant(half << 16 | half);
          };
          auto bitAnd = [&](Value x, Value y) -> Value {
            return arith::AndIOp::create(b, x, y);
          };
          auto bitOr = [&](Value x, Value y) -> Value {
            return arith::OrIOp::create(b, x, y);
          };
          // Two elements in the upper bytes of the halves.
          Value low = upper
                          ? Value(arith::ShRUIOp::create(b, word, constant(8)))
                          : Value(arith::ShLIOp::create(b, word, constant(8)));
          Value high =
              upper ? word
                    : Value(arith::ShLIOp::create(b, word, constant(16)));
          Value x = bitOr(bitAnd(low, constant(0xFF00)),
                          bitAnd(high, constant(0xFF000000)));
          Value sign = bitAnd(x, both(0x8000));
          Value magnitude = bitAnd(x, both(0x7F00));
          // The exponent stands where that of f16 does; it has another bias.
          unsigned shift = f.mantissa - 2;
          Value bits = magnitude;
          if (shift)
            bits = arith::ShRUIOp::create(b, magnitude, constant(shift));
          auto pair = VectorType::get({2}, b.getF16Type());
          auto word1 = VectorType::get({1}, b.getI32Type());
          Value value = vector::BitCastOp::create(
              b, pair,
              vector::FromElementsOp::create(b, word1,
                                             ValueRange{bitOr(sign, bits)}));
          int64_t more = biasOfF16 - f.bias;
          if (more) {
            auto factor = b.getFloatAttr(b.getF16Type(), std::ldexp(1.0, more));
            value = arith::MulFOp::create(
                b, value,
                arith::ConstantOp::create(
                    b, DenseElementsAttr::get(pair, factor)));
          }
          // What is no number: infinities and the like of e5m2 are f16's own.
          if (f.hasInfinity)
            return value;
          Value none;
          if (f.fnuz)
            none =
                bitAnd(arith::SubIOp::create(b, both(0x8000), magnitude), sign);
          else
            none = bitAnd(arith::AddIOp::create(b, magnitude, both(0x0100)),
                          both(0x8000));
          Value nan = arith::SubIOp::create(
              b, none, arith::ShRUIOp::create(b, none, constant(7)));
          Value whole = vector::ExtractOp::create(
              b, vector::BitCastOp::create(b, word1, value),
              ArrayRef<int64_t>{0});
          return vector::BitCastOp::create(
              b, pair,
              vector::FromElementsOp::create(b, word1,
                                             ValueRange{bitOr(whole, nan)}));
        });
    return success();
  }
};

/// The same where one instruction does both 16-bit halves of a word, for
/// formats whose zeros have two signs: shifts put each element's sign and
/// exponent where f16 has them.
struct WidenPairsByShifts : OpRewritePattern<arith::ExtFOp> {
  WidenPairsByShifts(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    auto narrow = cast<FloatType>(getElementTypeOrSelf(op.getIn().getType()));
    if (!isWidening(op) || !wordElementsOf(op.getType()) ||
        !isa<Float8E4M3FNType, Float8E5M2Type>(narrow))
      return failure();
    Format f(narrow);
    auto halves = VectorType::get({2}, rewriter.getI16Type());
    auto pair = VectorType::get({2}, rewriter.getF16Type());
    replaceByPairs(
        op, rewriter,
        [&](ImplicitLocOpBuilder &b, Value word, bool upper) -> Value {
          auto integers = [&](uint16_t low, uint16_t high) -> Value {
            return arith::ConstantOp::create(
                b,
                DenseElementsAttr::get(halves, ArrayRef<uint16_t>{low, high}));
          };
          auto floats = [&](double value) -> Value {
            return arith::ConstantOp::create(
                b, DenseElementsAttr::get(
                       pair, b.getFloatAttr(b.getF16Type(), value)));
          };
          // Two elements in the upper bytes, and what the masks leave out
          // below.
          Value x = vector::BitCastOp::create(
              b, halves,
              vector::FromElementsOp::create(
                  b, VectorType::get({1}, b.getI32Type()), word));
          x = vector::ShuffleOp::create(b, x, x,
                                        ArrayRef<int64_t>{upper, upper});
          x = arith::ShLIOp::create(b, x, integers(8, 0));
          // E4 has an exponent of a bit less: the sign stands twice then.
          unsigned shift = f.mantissa - 2;
          if (shift)
            x = arith::ShRSIOp::create(b, x, integers(shift, shift));
          uint16_t mask = 0x8000 | (0x7F00 >> shift);
          x = arith::AndIOp::create(b, x, integers(mask, mask));
          x = vector::BitCastOp::create(b, pair, x);
          if (f.hasInfinity)
            return x;
          // Biased by 7, not by 15, numbers up to 1.75. What is none would be
          // 1.875: it alone exceeds f16 by this factor, and infinity times zero
          // is no number.
          Value over = arith::MulFOp::create(b, x, floats(35840.0));
          Value scaled = arith::MulFOp::create(b, x, floats(256.0));
          return math::FmaOp::create(b, over, floats(0.0), scaled);
        });
    return success();
  }
};

/// The same by the instruction of NVIDIA chips that have the format (PTX ISA,
/// "cvt": sm_89 and later).
struct WidenPairs : OpRewritePattern<arith::ExtFOp> {
  WidenPairs(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    auto narrow = cast<FloatType>(getElementTypeOrSelf(op.getIn().getType()));
    if (!isWidening(op) || !wordElementsOf(op.getType()) ||
        !isa<Float8E4M3FNType, Float8E5M2Type>(narrow))
      return failure();
    replaceByPairs(
        op, rewriter,
        [&](ImplicitLocOpBuilder &b, Value word, bool upper) -> Value {
          if (upper)
            word = arith::ShRUIOp::create(
                b, word, arith::ConstantIntOp::create(b, 16, 32));
          // As a half of a word: LLVM takes vectors of bytes apart.
          Value half = arith::TruncIOp::create(b, b.getI16Type(), word);
          Value bytes = vector::BitCastOp::create(
              b, VectorType::get({2}, b.getI8Type()),
              vector::FromElementsOp::create(
                  b, VectorType::get({1}, b.getI16Type()), ValueRange{half}));
          return NVVM::ConvertF8x2ToF16x2Op::create(
              b, VectorType::get({2}, b.getF16Type()), bytes, /*relu=*/false,
              narrow);
        });
    return success();
  }
};

/// The pair of 16-bit floats that CDNA4's scaled conversions make of a half of
/// `word` (CDNA4 ISA, "V_CVT_SCALEF32_PK_F16_FP8"), at a scale of one.
Value widenScaled(ImplicitLocOpBuilder &b, Value word, bool upper, bool isE4,
                  Type element, Value one) {
  auto pair = VectorType::get({2}, element);
  if (element.isF16())
    return isE4
               ? ROCDL::CvtScaleF32PkF16Fp8Op::create(b, pair, word, one, upper)
                     .getResult()
               : ROCDL::CvtScaleF32PkF16Bf8Op::create(b, pair, word, one, upper)
                     .getResult();
  return isE4 ? ROCDL::CvtScaleF32PkBf16Fp8Op::create(b, pair, word, one, upper)
                    .getResult()
              : ROCDL::CvtScaleF32PkBf16Bf8Op::create(b, pair, word, one, upper)
                    .getResult();
}

/// The same by the instructions of AMD chips for the formats that their matrix
/// unit has (CDNA3 ISA, "V_CVT_PK_F32_FP8"): to two f32, exactly. Two of these
/// are f16 by rounding toward zero, which has nothing to round, and their upper
/// halves are bf16. Chips that scale in conversions make either at once.
struct WidenPairsToF32 : OpRewritePattern<arith::ExtFOp> {
  WidenPairsToF32(MLIRContext *context, const TargetInfo &target)
      : OpRewritePattern(context, /*benefit=*/3), target(target) {}

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    Type narrow = getElementTypeOrSelf(op.getIn().getType());
    int64_t count = wordElementsOf(op.getType());
    if (!isWidening(op) || !count ||
        !llvm::is_contained(target.float8Formats, elementName(narrow)))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(op.getType());
    bool isE4 = isa<Float8E4M3FNType, Float8E4M3FNUZType>(narrow);
    bool atOnce = !target.whyNot("rocdl.cvt.scalef32.pk.f16.fp8");
    auto pairType = VectorType::get({2}, b.getF32Type());
    Value one;
    if (atOnce)
      one = arith::ConstantOp::create(b, b.getF32FloatAttr(1));
    SmallVector<Value> halves;
    forPairs(b, op.getIn(), [&](Value word, bool upper) {
      if (atOnce)
        return halves.push_back(
            widenScaled(b, word, upper, isE4, type.getElementType(), one));
      Value pair = isE4 ? ROCDL::CvtPkF32Fp8Op::create(b, pairType, word, upper)
                              .getResult()
                        : ROCDL::CvtPkF32Bf8Op::create(b, pairType, word, upper)
                              .getResult();
      auto at = [&](int64_t n) -> Value {
        return vector::ExtractOp::create(b, pair, ArrayRef<int64_t>{n});
      };
      if (type.getElementType().isF16())
        halves.push_back(ROCDL::CvtPkRtz::create(
            b, VectorType::get({2}, b.getF16Type()), at(0), at(1)));
      else
        halves.push_back(pair);
    });
    auto joined = [&](ArrayRef<Value> parts) -> Value {
      SmallVector<Value> elements;
      for (Value part : parts)
        for (int64_t n = 0; n < 2; ++n)
          elements.push_back(
              vector::ExtractOp::create(b, part, ArrayRef<int64_t>{n}));
      auto of = cast<VectorType>(parts.front().getType());
      return vector::FromElementsOp::create(
          b, VectorType::get({int64_t(elements.size())}, of.getElementType()),
          elements);
    };
    Value result = joined(halves);
    if (!atOnce && !type.getElementType().isF16()) {
      Value parts = vector::BitCastOp::create(
          b, VectorType::get({2 * count}, b.getI16Type()), result);
      SmallVector<int64_t> upper;
      for (int64_t i = 0; i < count; ++i)
        upper.push_back(2 * i + 1);
      result = arith::BitcastOp::create(
          b, type, vector::ShuffleOp::create(b, parts, parts, upper));
    }
    rewriter.replaceOp(op, result);
    return success();
  }

  const TargetInfo &target;
};

struct ExpandFloat8Pass : kvbuf::impl::ExpandFloat8Base<ExpandFloat8Pass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    StringAttr chip;
    for (Operation *op = getOperation(); op && !chip; op = op->getParentOp())
      chip = op->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr);
    std::optional<TargetInfo> target =
        chip ? lookupTarget(chip.getValue()) : std::nullopt;
    populateExpandFloat8Patterns(patterns,
                                 target && target->vendor == Vendor::NVIDIA &&
                                     !target->float8Formats.empty());
    if (target && target->packsHalves)
      patterns.add<WidenPairsByShifts>(&getContext());
    if (target && target->vendor == Vendor::AMD)
      patterns.add<WidenPairsToF32, ConvertWords>(&getContext(), *target);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void kvbuf::populateExpandFloat8Patterns(RewritePatternSet &patterns,
                                         bool converts) {
  patterns.add<ExpandTruncF, ExpandExtF, ExpandWiden>(patterns.getContext());
  if (converts)
    patterns.add<ConvertPairs, WidenPairs>(patterns.getContext());
}
