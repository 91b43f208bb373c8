//===- KVBufferFragmentOps.cpp - Products and softmax of fragments --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf;

LogicalResult FragmentSliceOp::verify() {
  FragmentType source = getSource().getType(), part = getFragment().getType();
  if (source.getRole() != part.getRole() ||
      source.getElementType() != part.getElementType())
    return emitOpError() << "expected the source's role and element type";
  if (source.getLayout() != part.getLayout())
    return emitOpError() << "expected the source's layout";
  if (int64_t(getRow()) < 0 || int64_t(getCol()) < 0 ||
      int64_t(getRow()) + part.getRows() > source.getRows() ||
      int64_t(getCol()) + part.getCols() > source.getCols())
    return emitOpError() << "part [" << getRow() << ", " << getCol() << "] of "
                         << part.getRows() << "x" << part.getCols()
                         << " leaves " << source;
  return success();
}

OpFoldResult FragmentSliceOp::fold(FoldAdaptor) {
  if (getSource().getType() == getFragment().getType())
    return getSource();
  return {};
}

LogicalResult MmaOp::verify() {
  FragmentType a = getA().getType(), b = getB().getType(),
               acc = getAcc().getType();
  if (a.getRole() != Role::A || b.getRole() != Role::B ||
      acc.getRole() != Role::Acc)
    return emitOpError() << "expected roles a, b and acc, got "
                         << stringifyRole(a.getRole()) << ", "
                         << stringifyRole(b.getRole()) << " and "
                         << stringifyRole(acc.getRole());
  // Matrix units that have 8-bit floats multiply any by any.
  bool areFloat8 = isFloat8(a.getElementType()) && isFloat8(b.getElementType());
  if (a.getElementType() != b.getElementType() && !areFloat8)
    return emitOpError() << "expected operands of one element type";
  int64_t n = getTransposeB() ? b.getRows() : b.getCols();
  int64_t k = getTransposeB() ? b.getCols() : b.getRows();
  int64_t column = getColumn();
  // A block of columns gives a part of the product's, a transposed b all.
  bool fits = getTransposeB() ? column == 0 && n == acc.getCols()
                              : column >= 0 && column + n <= acc.getCols();
  if (a.getRows() != acc.getRows() || !fits || a.getCols() != k) {
    InFlightDiagnostic diag = emitOpError()
                              << "cannot multiply " << a << " by " << b
                              << (getTransposeB() ? " (transposed)" : "")
                              << " into " << acc;
    if (column)
      diag << " from column " << column << " on";
    return diag;
  }
  // A fragment's type does not say which of its dimensions a lane's words run
  // along; the read that it comes from does.
  for (Value source : fragmentSources(getB())) {
    auto load = source.getDefiningOp<FragmentLoadOp>();
    if (!load)
      continue;
    bool turned = !load.contractsRows();
    if (turned == getTransposeB())
      continue;
    InFlightDiagnostic diag = emitOpError();
    if (load.getContracted() ||
        load.getStaged().getType().getParams().isNeutral())
      diag << "multiplies by a fragment that was loaded contracted("
           << (turned ? "cols" : "rows") << ") "
           << (turned ? "without transpose_b" : "with transpose_b")
           << "; expected contracted(" << (turned ? "rows" : "cols") << ") or "
           << (turned ? "transpose_b" : "no transpose_b");
    else if (turned)
      diag << "multiplies by a fragment of a k buffer, whose rows are columns "
              "of the product, without transpose_b; expected transpose_b, or a "
              "fragment of a v buffer";
    else
      diag << "multiplies by a fragment of a v buffer, whose rows are "
              "contracted, with transpose_b; expected no transpose_b, or a "
              "fragment of a k buffer";
    diag.attachNote(load.getLoc()) << "the fragment is loaded here";
    return diag;
  }
  return verifyProductLayouts(*this, a.getLayout(), b.getLayout(),
                              acc.getLayout(), getTransposeB());
}

LogicalResult FragmentConvertOp::verify() {
  FragmentType source = getSource().getType(), result = getFragment().getType();
  if (source.getRows() != result.getRows() ||
      source.getCols() != result.getCols())
    return emitOpError() << "expected fragments of one shape, got " << source
                         << " and " << result;
  return success();
}

/// Whether a number is finite and above 0.
static bool isPositive(const APFloat &x) {
  return x.isFinite() && !x.isNegative() && !x.isZero();
}

/// Scores are accumulators.
static LogicalResult verifyScores(Operation *op, FragmentType scores) {
  if (scores.getRole() != Role::Acc)
    return op->emitOpError()
           << "expected role acc, got " << stringifyRole(scores.getRole());
  return success();
}

LogicalResult SoftcapOp::verify() {
  if (!isPositive(getCap()))
    return emitOpError() << "expected a finite cap above 0";
  if (!getScale().isFinite())
    return emitOpError() << "expected a finite scale";
  return verifyScores(*this, getScores().getType());
}

LogicalResult FragmentScaleOp::verify() {
  if (!getFactor().isFinite())
    return emitOpError() << "expected a finite factor";
  return success();
}

LogicalResult MaskOp::verify() {
  if (getSeldom() && (getMask().boundsLeft() || getMask().boundsRight()))
    return emitOpError() << "is seldom needed, and has the mask " << getMask()
                         << ", which hides keys of any tile; expected one that "
                            "hides none";
  if (failed(verifyGroup(*this, getGroup())))
    return failure();
  return verifyScores(*this, getScores().getType());
}

/// Whether `row` has a value for each row of `acc`.
static LogicalResult verifyRowValues(Operation *op, FragmentType acc,
                                     FragmentType row) {
  if (acc.getRole() != Role::Acc || row.getRole() != Role::Row ||
      acc.getRows() != row.getRows())
    return op->emitOpError() << "expected an accumulator and a row value for "
                                "each of its rows, got "
                             << acc << " and " << row;
  return success();
}

LogicalResult RescaleOp::verify() {
  return verifyRowValues(*this, getAcc().getType(), getFactor().getType());
}

LogicalResult SoftmaxFinishOp::verify() {
  if (!isPositive(getScale()))
    return emitOpError() << "expected a finite scale above 0";
  return verifyRowValues(*this, getAcc().getType(), getMax().getType());
}

LogicalResult LaneMmaOp::verify() {
  if (getShape().size() != 3 ||
      llvm::any_of(getShape(), [](int64_t d) { return d <= 0; }))
    return emitOpError() << "expected shape of three positive sizes M, N, K";
  return success();
}

LogicalResult AnyNegativeOp::verify() {
  FragmentType type = getRows().getType();
  if (type.getRole() == Role::Row && type.getElementType().isF32())
    return success();
  return emitOpError() << "has rows of " << type
                       << ", expected a fragment of role 'row' and type f32";
}

LogicalResult OnlineSoftmaxOp::verify() {
  if (!isPositive(getScale()))
    return emitOpError() << "expected a finite scale above 0: the maximum is "
                            "taken before the scores are scaled";
  FragmentType s = getScores().getType(), p = getP().getType(),
               m = getMax().getType();
  bool isOperand = p.getRole() == Role::A,
       isWide = p.getRole() == Role::Acc && p.getElementType().isF32();
  if (s.getRole() != Role::Acc || (!isOperand && !isWide) ||
      m.getRole() != Role::Row)
    return emitOpError() << "expected roles acc, row and a, or acc of f32 for "
                            "p that is not rounded yet";
  if (s.getRows() != p.getRows() || s.getCols() != p.getCols() ||
      m.getRows() != s.getRows())
    return emitOpError()
           << "expected scores and p of one shape and a row value "
              "for each of their rows";
  // What a power of two multiplies keeps its bits.
  if (float gain = gainOfWeights(); !(gain >= 0x1p-64f && gain <= 0x1p64f) ||
                                    std::ilogb(gain) < -64 ||
                                    gain != std::ldexp(1.0f, std::ilogb(gain)))
    return emitOpError() << "expected a gain that is a power of two, got "
                         << gain;
  return success();
}

/// Whether scores are a product's times what `kvbuffer.fragment_fit` or
/// `kvbuffer.staged_fit` leaves to each row, which is a positive number.
static RescaleOp productWithFit(Value scores) {
  auto product = scores.getDefiningOp<RescaleOp>();
  if (!product || product.getAddend() ||
      !isa_and_nonnull<FragmentFitOp, StagedFitOp>(
          product.getFactor().getDefiningOp()))
    return nullptr;
  return product;
}

namespace {
/// A positive factor leaves -inf as it is: of scores that are hidden first, a
/// softmax takes the factor with its own scale.
struct MaskBeforeFit : OpRewritePattern<OnlineSoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(OnlineSoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    auto mask = op.getScores().getDefiningOp<MaskOp>();
    RescaleOp product = mask && mask->hasOneUse()
                            ? productWithFit(mask.getScores())
                            : RescaleOp();
    if (!product || !product->hasOneUse())
      return failure();
    rewriter.modifyOpInPlace(
        mask, [&] { mask.getScoresMutable().assign(product.getAcc()); });
    rewriter.setInsertionPointAfter(mask);
    auto scaled = RescaleOp::create(rewriter, product.getLoc(),
                                    mask.getResult(), product.getFactor());
    rewriter.modifyOpInPlace(
        op, [&] { op.getScoresMutable().assign(scaled.getResult()); });
    rewriter.eraseOp(product);
    return success();
  }
};

/// Whether a product is added to finite numbers: to those that it begins with,
/// or to what products of the same accumulators have made of them. (What a
/// block's argument is, others answer for.)
static bool isOfFinite(Value acc) {
  while (acc) {
    if (auto fill = acc.getDefiningOp<FragmentFillOp>())
      return fill.getValue().isFinite();
    if (auto product = acc.getDefiningOp<MmaOp>())
      acc = product.getAcc();
    else if (auto wait = acc.getDefiningOp<MmaWaitOp>())
      acc = wait.getPending();
    else if (auto start = acc.getDefiningOp<MmaStartOp>())
      acc = start.getAcc();
    else
      return isa<BlockArgument>(acc);
  }
  return true;
}

/// Scores that no mask has touched are finite: the guard for rows without a key
/// goes away.
struct DropMaskedFlag : OpRewritePattern<OnlineSoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(OnlineSoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    RescaleOp product = productWithFit(op.getScores());
    Value scores = product ? product.getAcc() : op.getScores();
    if (!op.getMasked() ||
        !isa_and_nonnull<MmaOp, MmaWaitOp, SoftcapOp, FragmentScaleOp>(
            scores.getDefiningOp()))
      return failure();
    while (auto scaled = scores.getDefiningOp<FragmentScaleOp>())
      scores = scaled.getSource();
    if (isa_and_nonnull<MmaOp, MmaWaitOp>(scores.getDefiningOp()) &&
        !isOfFinite(scores))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.setMasked(false); });
    return success();
  }
};
} // namespace

void OnlineSoftmaxOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                  MLIRContext *context) {
  patterns.add<DropMaskedFlag, MaskBeforeFit>(context);
}
