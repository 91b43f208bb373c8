//===- ExpandFloat8.cpp - Conversions of 8-bit floats -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `arith.extf` and `arith.truncf` between 8-bit floats and f32, in integer
/// arithmetic: LLVM has no type for 8-bit floats, and few chips have
/// instructions; those are taken where they do as much. The formats are those
/// of the OCP 8-bit floating point specification, and their FNUZ variants;
/// `APFloat` knows their parameters.
///
//===----------------------------------------------------------------------===//

#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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

struct ExpandExtF : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat8(op.getIn().getType()) ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Emitter b(op.getLoc(), rewriter, op.getType());
    Format f(cast<FloatType>(getElementTypeOrSelf(op.getIn().getType())));
    using P = arith::CmpIPredicate;
    Value byte = b.bits(op.getIn(), b.getI8Type());
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
        value = b.select(b.compare(P::ugt, a, b.word(f.largest + 1)),
                         b.word(nan), value);
    }
    Value sign =
        b.op<arith::ShLIOp>(b.op<arith::AndIOp>(u, b.word(0x80)), b.word(24));
    value = b.op<arith::OrIOp>(value, sign);
    if (f.fnuz)
      value = b.select(b.compare(P::eq, u, b.word(0x80)), b.word(nan), value);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), value);
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
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void kvbuf::populateExpandFloat8Patterns(RewritePatternSet &patterns,
                                         bool converts) {
  patterns.add<ExpandTruncF, ExpandExtF>(patterns.getContext());
  if (converts)
    patterns.add<ConvertPairs>(patterns.getContext());
}
