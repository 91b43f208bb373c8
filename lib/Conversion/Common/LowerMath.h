//===- LowerMath.h - Base-2 mathematics to instructions ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What both vendors' conversions share: the mathematics of a softmax, for
/// which upstream calls libraries that are not there, and ops that upstream
/// does not convert.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_COMMON_LOWERMATH_H
#define KVBUFFER_LIB_CONVERSION_COMMON_LOWERMATH_H

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <numbers>

namespace kvbuf {

/// A math op of one f32 to a vendor's approximate instructions. `Instructions`
/// has static `exp2`, `log2` and `reciprocal`, each of a builder, a location
/// and an f32.
template <typename Op, typename Instructions>
struct LowerMath : mlir::ConvertOpToLLVMPattern<Op> {
  LowerMath(const mlir::LLVMTypeConverter &converter,
            mlir::PatternBenefit benefit)
      : mlir::ConvertOpToLLVMPattern<Op>(converter, benefit) {}

  mlir::LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "not a single f32");
    rewriter.replaceOp(op, lower(rewriter, op.getLoc(), adaptor.getOperand()));
    return mlir::success();
  }

private:
  static mlir::Value lower(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value x) {
    if constexpr (std::is_same_v<Op, mlir::math::Exp2Op>) {
      return Instructions::exp2(b, loc, x);
    } else if constexpr (std::is_same_v<Op, mlir::math::Log2Op>) {
      return Instructions::log2(b, loc, x);
    } else {
      auto number = [&](double value) -> mlir::Value {
        return mlir::LLVM::ConstantOp::create(b, loc, b.getF32Type(),
                                              b.getF32FloatAttr(value));
      };
      // tanh x = 1 - 2 / (exp(2x) + 1): right to a few 1e-7 everywhere; an
      // instruction for tanh is off by 5e-4, more than a score may be.
      mlir::Value e =
          Instructions::exp2(b, loc,
                             mlir::LLVM::FMulOp::create(
                                 b, loc, x, number(2 * std::numbers::log2e)));
      mlir::Value sum = mlir::LLVM::FAddOp::create(b, loc, e, number(1));
      mlir::Value inverse = Instructions::reciprocal(b, loc, sum);
      return mlir::LLVM::FMAOp::create(b, loc, inverse, number(-2), number(1));
    }
  }
};

/// 1 / x, where the division may be a reciprocal (`fastmath<arcp>`): a vendor's
/// approximate instruction.
template <typename Instructions>
struct LowerReciprocal : mlir::ConvertOpToLLVMPattern<mlir::arith::DivFOp> {
  LowerReciprocal(const mlir::LLVMTypeConverter &converter,
                  mlir::PatternBenefit benefit)
      : ConvertOpToLLVMPattern(converter, benefit) {}

  mlir::LogicalResult
  matchAndRewrite(mlir::arith::DivFOp op, OpAdaptor adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32() ||
        !mlir::arith::bitEnumContainsAll(op.getFastmath(),
                                         mlir::arith::FastMathFlags::arcp) ||
        !mlir::matchPattern(op.getLhs(), mlir::m_OneFloat()))
      return rewriter.notifyMatchFailure(op, "not a reciprocal of an f32");
    rewriter.replaceOp(
        op, Instructions::reciprocal(rewriter, op.getLoc(), adaptor.getRhs()));
    return mlir::success();
  }
};

/// An op of two numbers that is one of LLVM's: the larger or the smaller number
/// (an instruction), the rest of a division.
template <typename Op, typename LLVMOp>
struct LowerBinary : mlir::ConvertOpToLLVMPattern<Op> {
  using mlir::ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  mlir::LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVMOp>(op, adaptor.getLhs(), adaptor.getRhs());
    return mlir::success();
  }
};
using LowerMaxNum = LowerBinary<mlir::arith::MaxNumFOp, mlir::LLVM::MaxNumOp>;
using LowerMinNum = LowerBinary<mlir::arith::MinNumFOp, mlir::LLVM::MinNumOp>;
using LowerRest = LowerBinary<mlir::arith::RemFOp, mlir::LLVM::FRemOp>;

/// Upstream's conversions of the math dialect to what both backends have, ahead
/// of those to calls of the vendors' libraries, for which upstream calls ops of
/// LLVM's own illegal.
inline void addOwnMath(mlir::RewritePatternSet &patterns,
                       const mlir::LLVMTypeConverter &converter,
                       mlir::ConversionTarget &target) {
  namespace llvmir = mlir::LLVM;
  target.addLegalOp<llvmir::CopySignOp, llvmir::FAbsOp, llvmir::FCeilOp,
                    llvmir::FFloorOp, llvmir::FMAOp, llvmir::FRemOp,
                    llvmir::FTruncOp, llvmir::RoundEvenOp, llvmir::RoundOp,
                    llvmir::SqrtOp>();
  mlir::populateMathToLLVMConversionPatterns(
      converter, patterns, /*approximateLog1p=*/true, mlir::PatternBenefit(5));
}

/// Rewrites ops that have no conversion of their own into others. Fails where
/// the rewriting does not end.
inline llvm::LogicalResult expandForLLVM(mlir::gpu::GPUModuleOp module) {
  mlir::RewritePatternSet patterns(module.getContext());
  mlir::arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  mlir::vector::populateVectorFromElementsUnrollPatterns(patterns);
  mlir::vector::populateVectorShapeCastLoweringPatterns(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

/// Adds the patterns above with a vendor's instructions.
template <typename Instructions>
void addMathPatterns(mlir::RewritePatternSet &patterns,
                     const mlir::LLVMTypeConverter &converter,
                     mlir::PatternBenefit benefit) {
  patterns
      .add<LowerMath<mlir::math::Exp2Op, Instructions>,
           LowerMath<mlir::math::Log2Op, Instructions>,
           LowerMath<mlir::math::TanhOp, Instructions>,
           LowerReciprocal<Instructions>, LowerMaxNum, LowerMinNum, LowerRest>(
          converter, benefit);
}

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_COMMON_LOWERMATH_H
