//===- ExpandMath.cpp - Functions of numbers by arithmetic ----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Upstream lowers most of the math dialect to calls of the vendors' libraries
/// of device code, which no kernel is linked with. Upstream's polynomials take
/// their place. Where these are far off for some arguments, or made for hosts
/// (an exponential without one in base 2), other formulas come before them.
///
//===----------------------------------------------------------------------===//

#include "kvbuffer/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>
#include <numbers>

namespace kvbuf {
#define GEN_PASS_DEF_EXPANDMATH
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// Marks a function whose argument lies where the polynomial is exact: a sine
/// or cosine in [-pi, pi], an arc sine in [-0.5, 0.5].
static constexpr StringLiteral kReduced = "kvbuffer.reduced";

/// Whether both vendors' backends have instructions for an op, of scalars and
/// of vectors.
static bool hasInstructions(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::FloorOp, math::FmaOp, math::IsFiniteOp,
             math::IsNaNOp, math::RoundOp, math::RoundEvenOp, math::SqrtOp,
             math::TruncOp>(op);
}

/// Whether the conversions have instructions for an op: for some of scalars of
/// f32 alone.
static bool isExpanded(Operation *op) {
  return hasInstructions(op) ||
         (isa<math::Exp2Op, math::Log2Op, math::TanhOp>(op) &&
          op->getResult(0).getType().isF32());
}

static bool isMath(Operation *op) {
  return isa_and_nonnull<math::MathDialect>(op->getDialect());
}

namespace {

/// Builds arithmetic of f32.
struct MathEmitter : ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  using P = arith::CmpFPredicate;

  Value number(double value) {
    return arith::ConstantOp::create(*this, getF32FloatAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(*this, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(*this, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(*this, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(*this, x, y); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(*this, x, y, z);
  }
  Value is(Value x, P predicate, Value y) {
    return arith::CmpFOp::create(*this, predicate, x, y);
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(*this, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(*this, condition, x, y);
  }
  template <typename Op, typename... Args> Value op(Args... args) {
    return Op::create(*this, args...).getResult();
  }
  Value abs(Value x) { return op<math::AbsFOp>(x); }
  /// The magnitude with the sign of another number.
  Value signedAs(Value x, Value sign) { return op<math::CopySignOp>(x, sign); }
};

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// An op of a vector as ops of its elements.
struct Scalarize : RewritePattern {
  Scalarize(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/4, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isMath(op) || hasInstructions(op) || op->getNumResults() != 1)
      return failure();
    auto type = dyn_cast<VectorType>(op->getResult(0).getType());
    if (!type || type.isScalable())
      return failure();
    ImplicitLocOpBuilder b(op->getLoc(), rewriter);
    SmallVector<Value> elements;
    SmallVector<int64_t> place(type.getRank(), 0);
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      int64_t rest = i;
      for (int64_t dim = type.getRank(); dim-- > 0;) {
        place[dim] = rest % type.getDimSize(dim);
        rest /= type.getDimSize(dim);
      }
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(
            isa<VectorType>(operand.getType())
                ? vector::ExtractOp::create(b, operand, place).getResult()
                : operand);
      OperationState state(op->getLoc(), op->getName(), operands,
                           type.getElementType(), op->getAttrs());
      elements.push_back(rewriter.create(state)->getResult(0));
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }
};

/// Narrow floats by way of f32.
struct ByF32 : RewritePattern {
  ByF32(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/3, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isMath(op) || op->getNumResults() != 1 ||
        isa<math::AbsFOp, math::CopySignOp, math::FmaOp>(op))
      return failure();
    auto isNarrow = [](Type type) {
      type = getElementTypeOrSelf(type);
      return type.isF16() || type.isBF16();
    };
    if (llvm::none_of(op->getOperandTypes(), isNarrow))
      return failure();
    auto widened = [&](Type type) -> Type {
      if (auto vector = dyn_cast<VectorType>(type))
        return vector.clone(rewriter.getF32Type());
      return rewriter.getF32Type();
    };
    Location loc = op->getLoc();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isNarrow(operand.getType())
                             ? arith::ExtFOp::create(rewriter, loc,
                                                     widened(operand.getType()),
                                                     operand)
                                   .getResult()
                             : operand);
    Type type = op->getResult(0).getType();
    bool narrows = isNarrow(type);
    OperationState state(loc, op->getName(), operands,
                         narrows ? widened(type) : type, op->getAttrs());
    Value result = rewriter.create(state)->getResult(0);
    if (narrows)
      result = arith::TruncFOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

/// An op of f32 by a formula.
template <typename Op> struct Formula : OpRewritePattern<Op> {
  Formula(MLIRContext *context)
      : OpRewritePattern<Op>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op->getOperand(0).getType().isF32() || op->hasAttr(kReduced))
      return failure();
    MathEmitter b(op.getLoc(), rewriter);
    SmallVector<Value> results;
    emit(b, op, results);
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  static void emit(MathEmitter &b, Op op, SmallVectorImpl<Value> &results);
};

} // namespace

/// e to the power of x: in base 2, times what the product with log2(e) has
/// lost.
static Value expOf(MathEmitter &b, Value x) {
  constexpr float high = std::numbers::log2e_v<float>;
  constexpr double low = std::numbers::log2e - double(high);
  Value y = b.mul(x, b.number(high));
  Value lost = b.fma(x, b.number(high), b.op<arith::NegFOp>(y));
  lost = b.fma(x, b.number(low), lost);
  Value power = b.op<math::Exp2Op>(y);
  Value exact = b.fma(power, b.mul(lost, b.number(std::numbers::ln2)), power);
  // Beyond this, 0 and infinity are what they are.
  Value isFinite = b.is(b.abs(x), MathEmitter::P::OLT, b.number(88.7));
  return b.select(isFinite, exact, power);
}

/// x less the multiple of `part` times 2 pi that is nearest, with `part` a
/// power of two, and how many of them.
static std::pair<Value, Value> reduced(MathEmitter &b, Value x,
                                       double part = 1) {
  // 2 pi in parts of few bits: their products with numbers up to 2^13 are
  // exact.
  constexpr double first = 0x1.92p+2, second = 0x1.fb4p-10;
  constexpr double third = 2 * std::numbers::pi - first - second;
  Value turns = b.op<math::RoundEvenOp>(
      b.mul(x, b.number(0.5 * std::numbers::inv_pi / part)));
  Value rest = b.fma(turns, b.number(-first * part), x);
  rest = b.fma(turns, b.number(-second * part), rest);
  return {b.fma(turns, b.number(-third * part), rest), turns};
}

/// An op whose argument lies where the polynomial is exact.
template <typename Op> static Value marked(MathEmitter &b, Value x) {
  auto op = Op::create(b, x);
  op->setAttr(kReduced, b.getUnitAttr());
  return op;
}

template <typename Op> static Value ofReduced(MathEmitter &b, Value x) {
  return marked<Op>(b, reduced(b, x).first);
}

/// a to the power of b.
static Value powerOf(MathEmitter &b, Value base, Value power) {
  using P = MathEmitter::P;
  Value zero = b.number(0), one = b.number(1);
  Value size = expOf(b, b.mul(power, b.op<math::LogOp>(b.abs(base))));
  auto isWhole = [&](Value x) {
    return b.is(b.op<math::FloorOp>(x), P::OEQ, x);
  };
  // Of negative numbers whole powers alone, of which odd ones are negative.
  Value isEven = isWhole(b.mul(power, b.number(0.5)));
  Value ofNegative = b.select(isEven, size, b.op<arith::NegFOp>(size));
  ofNegative = b.select(isWhole(power), ofNegative,
                        b.number(std::numeric_limits<double>::quiet_NaN()));
  Value result = b.select(b.is(base, P::OLT, zero), ofNegative, size);
  result = b.select(b.is(base, P::OEQ, one), one, result);
  return b.select(b.is(power, P::OEQ, zero), one, result);
}

/// log(x) for x from here on is that of 2 x less log(2), where sums of squares
/// would overflow.
static constexpr double kLarge = 0x1p40;

namespace {

#define FORMULA(OP)                                                            \
  template <>                                                                  \
  void Formula<math::OP>::emit(MathEmitter &b, math::OP op,                    \
                               SmallVectorImpl<Value> &results)

FORMULA(ExpOp) { results.push_back(expOf(b, op.getOperand())); }

FORMULA(SinOp) {
  results.push_back(ofReduced<math::SinOp>(b, op.getOperand()));
}

FORMULA(CosOp) {
  results.push_back(ofReduced<math::CosOp>(b, op.getOperand()));
}

FORMULA(SincosOp) {
  results.push_back(ofReduced<math::SinOp>(b, op.getOperand()));
  results.push_back(ofReduced<math::CosOp>(b, op.getOperand()));
}

FORMULA(TanOp) {
  // In [-pi/4, pi/4] sine and cosine are exact to their own size, which they
  // are not where they cross 0; a quarter turn on, the tangent is -1 / tan.
  auto [rest, quarters] = reduced(b, op.getOperand(), 0.25);
  Value size = b.abs(rest);
  Value sine = marked<math::SinOp>(b, size);
  Value cosine = marked<math::CosOp>(b, size);
  Value half = b.mul(quarters, b.number(0.5));
  Value isEven = b.is(b.op<math::FloorOp>(half), MathEmitter::P::OEQ, half);
  Value tangent =
      b.div(b.select(isEven, sine, cosine), b.select(isEven, cosine, sine));
  Value sign = b.select(isEven, rest, b.op<arith::NegFOp>(rest));
  results.push_back(b.signedAs(tangent, sign));
}

FORMULA(AsinOp) {
  // From 0.5 on, the polynomial loses bits. There the arc sine is pi/2 less
  // twice that of the root of (1 - x) / 2, which is at most 0.5.
  Value x = op.getOperand(), size = b.abs(x);
  Value isNear = b.is(size, MathEmitter::P::OLT, b.number(0.5));
  Value rest = b.mul(b.number(0.5), b.sub(b.number(1), size));
  Value arc =
      marked<math::AsinOp>(b, b.select(isNear, size, b.op<math::SqrtOp>(rest)));
  Value far = b.fma(arc, b.number(-2), b.number(std::numbers::pi / 2));
  results.push_back(b.signedAs(b.select(isNear, arc, far), x));
}

FORMULA(Log10Op) {
  results.push_back(b.mul(b.op<math::LogOp>(op.getOperand()),
                          b.number(1 / std::numbers::ln10)));
}

FORMULA(RsqrtOp) {
  results.push_back(b.div(b.number(1), b.op<math::SqrtOp>(op.getOperand())));
}

FORMULA(SinhOp) {
  // (u + u / (u + 1)) / 2 with u = e^|x| - 1: near 0, too.
  Value x = b.abs(op.getOperand());
  Value u = b.op<math::ExpM1Op>(x);
  Value near = b.mul(b.number(0.5), b.add(u, b.div(u, b.add(u, b.number(1)))));
  Value far = expOf(b, b.sub(x, b.number(std::numbers::ln2)));
  Value isNear = b.is(x, MathEmitter::P::OLT, b.number(20));
  results.push_back(b.signedAs(b.select(isNear, near, far), op.getOperand()));
}

FORMULA(CoshOp) {
  // Half of e^x is finite a little longer than e^x.
  Value half =
      expOf(b, b.sub(b.abs(op.getOperand()), b.number(std::numbers::ln2)));
  results.push_back(b.add(half, b.div(b.number(0.25), half)));
}

FORMULA(AsinhOp) {
  Value x = b.abs(op.getOperand()), one = b.number(1);
  Value square = b.mul(x, x);
  Value root = b.op<math::SqrtOp>(b.add(square, one));
  Value near = b.op<math::Log1pOp>(b.add(x, b.div(square, b.add(one, root))));
  Value far = b.add(b.op<math::LogOp>(x), b.number(std::numbers::ln2));
  Value isFar = b.is(x, MathEmitter::P::OGT, b.number(kLarge));
  results.push_back(b.signedAs(b.select(isFar, far, near), op.getOperand()));
}

FORMULA(AcoshOp) {
  Value x = op.getOperand(), t = b.sub(x, b.number(1));
  Value root = b.op<math::SqrtOp>(b.fma(t, t, b.add(t, t)));
  Value near = b.op<math::Log1pOp>(b.add(t, root));
  Value far = b.add(b.op<math::LogOp>(x), b.number(std::numbers::ln2));
  Value isFar = b.is(x, MathEmitter::P::OGT, b.number(kLarge));
  results.push_back(b.select(isFar, far, near));
}

FORMULA(AtanhOp) {
  Value x = b.abs(op.getOperand());
  Value ratio = b.div(b.add(x, x), b.sub(b.number(1), x));
  Value half = b.mul(b.number(0.5), b.op<math::Log1pOp>(ratio));
  results.push_back(b.signedAs(half, op.getOperand()));
}

FORMULA(PowFOp) { results.push_back(powerOf(b, op.getLhs(), op.getRhs())); }

FORMULA(FPowIOp) {
  Value power = b.op<arith::SIToFPOp>(b.getF32Type(), op.getRhs());
  results.push_back(powerOf(b, op.getLhs(), power));
}

FORMULA(ClampFOp) {
  Value above = b.op<arith::MaximumFOp>(op.getValue(), op.getMin());
  results.push_back(b.op<arith::MinimumFOp>(above, op.getMax()));
}

FORMULA(IsInfOp) {
  results.push_back(b.is(b.abs(op.getOperand()), MathEmitter::P::OEQ,
                         b.number(std::numeric_limits<double>::infinity())));
}

FORMULA(IsNormalOp) {
  Value size = b.abs(op.getOperand());
  Value isFinite = b.is(size, MathEmitter::P::OLT,
                        b.number(std::numeric_limits<double>::infinity()));
  results.push_back(
      b.both(isFinite, b.is(size, MathEmitter::P::OGE,
                            b.number(std::numeric_limits<float>::min()))));
}

#undef FORMULA

template <typename... Ops>
void addFormulas(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<Formula<Ops>...>(context);
}

/// Says at an op why it stays.
void refuse(Operation *op) {
  auto isFloat = [](Type type) {
    return isa<FloatType>(getElementTypeOrSelf(type));
  };
  InFlightDiagnostic error = op->emitOpError();
  for (Type type : op->getOperandTypes())
    if (isFloat(type) && !getElementTypeOrSelf(type).isF32()) {
      error << "has operands of " << type
            << ", which no chip computes and no formula is for; expected f32, "
               "f16 or bf16";
      return;
    }
  error << "has no instruction on a chip, and no formula takes its place; "
           "kernels are linked with no library of functions";
}

struct ExpandMathPass : kvbuf::impl::ExpandMathBase<ExpandMathPass> {
  using Base::Base;

  void runOnOperation() override {
    // Most kernels are left as they are. All of what is refused is said at
    // once, before a vector's op is one for each element.
    bool expands = false, good = true;
    getOperation()->walk([&](Operation *op) {
      if (!isMath(op))
        return;
      auto hasOperands = [&](llvm::function_ref<bool(FloatType)> test) {
        return llvm::any_of(op->getOperandTypes(), [&](Type type) {
          auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
          return element && test(element);
        });
      };
      expands |= !isExpanded(op) || hasOperands([](FloatType type) {
        return type.isF16() || type.isBF16();
      });
      if (hasInstructions(op) ||
          !hasOperands([](FloatType type) { return type.getWidth() > 32; }))
        return;
      refuse(op);
      good = false;
    });
    if (!good)
      return signalPassFailure();
    if (!expands)
      return markAllAnalysesPreserved();
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<Scalarize, ByF32>(context);
    addFormulas<math::ExpOp, math::SinOp, math::CosOp, math::SincosOp,
                math::TanOp, math::AsinOp, math::Log10Op, math::RsqrtOp,
                math::SinhOp, math::CoshOp, math::AsinhOp, math::AcoshOp,
                math::AtanhOp, math::PowFOp, math::FPowIOp, math::ClampFOp,
                math::IsInfOp, math::IsNormalOp>(patterns, context);
    static const StringRef polynomials[] = {
        math::AcosOp::getOperationName(),  math::AsinOp::getOperationName(),
        math::AtanOp::getOperationName(),  math::Atan2Op::getOperationName(),
        math::CbrtOp::getOperationName(),  math::CosOp::getOperationName(),
        math::ErfOp::getOperationName(),   math::ErfcOp::getOperationName(),
        math::ExpM1Op::getOperationName(), math::LogOp::getOperationName(),
        math::Log1pOp::getOperationName(), math::SinOp::getOperationName()};
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::is_contained(polynomials, name);
    });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    // What no pattern was for.
    getOperation()->walk([&](Operation *op) {
      if (!isMath(op) || isExpanded(op))
        return;
      refuse(op);
      good = false;
    });
    if (!good)
      signalPassFailure();
  }
};
} // namespace
