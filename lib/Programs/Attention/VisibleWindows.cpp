//===- VisibleWindows.cpp - Functions that are attributes -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VisibleWindows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf;

namespace {
/// An integer as a sum: position * a + key * b + c.
struct Linear {
  int64_t position = 0, key = 0, number = 0;
  Linear operator-(const Linear &other) const {
    return {position - other.position, key - other.key, number - other.number};
  }
};

/// A window: keys up to `right` behind a row's position, and from `left` before
/// it; negative: no limit.
struct Window {
  int64_t left = -1, right = -1;
};
} // namespace

/// Numbers that are larger are left alone: windows end at keys, and those fit
/// 32 bits.
static constexpr int64_t kFar = int64_t(1) << 31;

/// `value` of a region of visibility as a sum; nothing if it is none.
static std::optional<Linear> linearOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    constexpr unsigned position = 3, key = 4;
    if (argument.getArgNumber() == position)
      return Linear{1, 0, 0};
    if (argument.getArgNumber() == key)
      return Linear{0, 1, 0};
    return std::nullopt;
  }
  if (std::optional<int64_t> constant = getConstantIntValue(value)) {
    if (std::abs(*constant) >= kFar)
      return std::nullopt;
    return Linear{0, 0, *constant};
  }
  Operation *op = value.getDefiningOp();
  // Positions and keys fit 32 bits, and so do their sums and differences.
  if (!value.getType().isIndex() && !value.getType().isInteger(32) &&
      !value.getType().isInteger(64))
    return std::nullopt;
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return linearOf(op->getOperand(0));
  if (!isa<arith::AddIOp, arith::SubIOp>(op))
    return std::nullopt;
  std::optional<Linear> x = linearOf(op->getOperand(0)),
                        y = linearOf(op->getOperand(1));
  if (!x || !y)
    return std::nullopt;
  Linear zero;
  Linear sum = *x - (isa<arith::SubIOp>(op) ? *y : zero - *y);
  // What is multiplied may leave 32 bits, where i32 wraps, and so may a key
  // and a large number.
  if (std::max(std::abs(sum.position), std::abs(sum.key)) > 1 ||
      std::abs(sum.number) >= kFar / 2)
    return std::nullopt;
  return sum;
}

/// The window that a comparison is; nothing if it is none.
static std::optional<Window> windowOf(Value condition) {
  auto cmp = condition.getDefiningOp<arith::CmpIOp>();
  if (!cmp)
    return std::nullopt;
  std::optional<Linear> lhs = linearOf(cmp.getLhs()),
                        rhs = linearOf(cmp.getRhs());
  if (!lhs || !rhs)
    return std::nullopt;
  // x <= 0.
  Linear x;
  switch (cmp.getPredicate()) {
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::slt:
    x = *lhs - *rhs;
    break;
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::sgt:
    x = *rhs - *lhs;
    break;
  default:
    return std::nullopt;
  }
  if (cmp.getPredicate() == arith::CmpIPredicate::slt ||
      cmp.getPredicate() == arith::CmpIPredicate::sgt)
    ++x.number;
  // Windows that do not hold a row's own position have no attribute.
  if (x.number > 0 || x.position * x.key != -1)
    return std::nullopt;
  return x.key == 1 ? Window{-1, -x.number} : Window{-x.number, -1};
}

/// Takes the windows out of a conjunction; what is left, null for nothing.
static Value takeWindows(Value condition, SmallVectorImpl<Window> &windows) {
  if (std::optional<Window> window = windowOf(condition)) {
    windows.push_back(*window);
    return nullptr;
  }
  auto both = condition.getDefiningOp<arith::AndIOp>();
  if (!both)
    return condition;
  Value lhs = takeWindows(both.getLhs(), windows),
        rhs = takeWindows(both.getRhs(), windows);
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  if (lhs == both.getLhs() && rhs == both.getRhs())
    return condition;
  OpBuilder b(both);
  return arith::AndIOp::create(b, both.getLoc(), lhs, rhs);
}

/// Removes ops that nothing uses; they have no effect but reads.
static void removeUnused(Region &region) {
  if (region.empty())
    return;
  SmallVector<Operation *> ops;
  for (Operation &op : region.front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
}

static void sayWindows(AttentionOp op) {
  if (op.getVisible().empty())
    return;
  auto yield = cast<YieldOp>(op.getVisible().front().getTerminator());
  SmallVector<Window> windows;
  Value rest = takeWindows(yield.getValue(), windows);
  if (windows.empty())
    return;
  MaskAttr mask = op.getMaskValue();
  auto narrower = [](int64_t x, int64_t y) {
    return x < 0 ? y : y < 0 ? x : std::min(x, y);
  };
  int64_t left = mask.getLeft(), right = mask.getRight();
  for (const Window &window : windows) {
    left = narrower(left, window.left);
    right = narrower(right, window.right);
  }
  bool causal = mask.getCausal() || right == 0;
  op.setMaskAttr(
      MaskAttr::get(op.getContext(), causal, left, causal ? -1 : right));
  if (rest) {
    yield.getValueMutable().assign(rest);
    removeUnused(op.getVisible());
    return;
  }
  op.getVisible().dropAllReferences();
  op.getVisible().getBlocks().clear();
}

/// The op of kind OpTy that alone uses `value`; null if there is none.
template <typename OpTy> static OpTy onlyUser(Value value) {
  return value.hasOneUse() ? dyn_cast<OpTy>(*value.getUsers().begin()) : OpTy();
}

/// What a product or quotient of `value` and a number multiplies it by.
static std::optional<double> factorOf(Operation *op, Value value) {
  FloatAttr number;
  if (!op || op->getNumOperands() != 2 ||
      !matchPattern(op->getOperand(1), m_Constant(&number)) ||
      op->getOperand(0) != value)
    return std::nullopt;
  double factor = number.getValueAsDouble();
  if (isa<arith::MulFOp>(op))
    return factor;
  if (isa<arith::DivFOp>(op))
    return 1 / factor;
  return std::nullopt;
}

/// cap * tanh(s / cap) of the score, before anything else reads it.
static void saySoftcap(AttentionOp op) {
  if (op.getScore().empty() || op.getSoftcapValue() != 0)
    return;
  Value score = op.getScore().getArgument(0);
  if (!score.hasOneUse())
    return;
  Operation *inner = *score.getUsers().begin();
  std::optional<double> inverse = factorOf(inner, score);
  if (!inverse)
    return;
  auto tanh = onlyUser<math::TanhOp>(inner->getResult(0));
  auto outer = tanh ? onlyUser<arith::MulFOp>(tanh.getResult()) : nullptr;
  std::optional<double> cap =
      factorOf(outer, tanh ? tanh.getResult() : Value());
  // As far as f32 can tell.
  constexpr double rounding = 1e-6;
  if (!cap || !(*cap > 0) || std::abs(*cap * *inverse - 1) > rounding)
    return;
  op.setSoftcapAttr(Builder(op.getContext()).getF32FloatAttr(*cap));
  outer.getResult().replaceAllUsesWith(score);
  removeUnused(op.getScore());
  auto yield = cast<YieldOp>(op.getScore().front().getTerminator());
  if (yield.getValue() != score)
    return;
  op.getScore().dropAllReferences();
  op.getScore().getBlocks().clear();
}

void kvbuf::sayByAttributes(AttentionOp op) {
  sayWindows(op);
  saySoftcap(op);
}
