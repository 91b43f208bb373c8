//===- Unraised.cpp - Why a softmax's product is no attention ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The matcher follows elements. Where it stops, it cannot tell attention from
/// anything else, so this looks at the ops alone: a sum of exponentials of what
/// comes from a product, on the way to another product.
///
//===----------------------------------------------------------------------===//

#include "Unraised.h"
#include "ElementExpr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace kvbuf::raise;

bool kvbuf::raise::isSumOfProducts(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0)
    return false;
  auto isProduct = [](Operation &inner) { return isa<arith::MulFOp>(inner); };
  auto isSum = [](Operation &inner) { return isa<arith::AddFOp>(inner); };
  return op.getBlock() && llvm::any_of(*op.getBlock(), isProduct) &&
         llvm::any_of(*op.getBlock(), isSum);
}

/// Whether `op`, or its body, is or has an op of these.
template <typename... Ops> static bool has(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isa<Ops...>(inner) ? WalkResult::interrupt()
                                  : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The ops that make `values`, up to sums of products; these are included.
static llvm::SetVector<Operation *> opsBehind(ValueRange values) {
  llvm::SetVector<Operation *> ops;
  auto add = [&](Value value) {
    if (Operation *op = value.getDefiningOp())
      ops.insert(op);
  };
  llvm::for_each(values, add);
  for (size_t i = 0; i < ops.size(); ++i) {
    auto product = dyn_cast<linalg::LinalgOp>(ops[i]);
    if (product && isSumOfProducts(product))
      continue;
    ops[i]->walk(
        [&](Operation *inner) { llvm::for_each(inner->getOperands(), add); });
  }
  return ops;
}

/// Whether the ops are a softmax of a product's result: a sum over a dimension
/// has exponentials behind it, and these a product.
static bool isSoftmax(const llvm::SetVector<Operation *> &ops) {
  auto comesFromProduct = [](Operation *op) {
    return llvm::any_of(opsBehind(op->getOperands()), [](Operation *behind) {
      auto product = dyn_cast<linalg::LinalgOp>(behind);
      return product && isSumOfProducts(product);
    });
  };
  for (Operation *op : ops) {
    if (isa<linalg::SoftmaxOp>(op) && comesFromProduct(op))
      return true;
    auto sum = dyn_cast<linalg::LinalgOp>(op);
    if (!sum || sum.getNumReductionLoops() == 0 || isSumOfProducts(sum) ||
        !has<arith::AddFOp>(op))
      continue;
    auto isExp = [](Operation *behind) {
      return has<math::ExpOp, math::Exp2Op>(behind);
    };
    if ((isExp(op) || llvm::any_of(opsBehind(op->getOperands()), isExp)) &&
        comesFromProduct(op))
      return true;
  }
  return false;
}

/// The op at which following an expression ends, before a sum of products.
static Operation *whereItEnds(ElementGraph &graph, Expr *e,
                              llvm::SmallPtrSetImpl<Expr *> &seen) {
  e = graph.view(e);
  if (!seen.insert(e).second)
    return nullptr;
  if (e->kind == Expr::Kind::Unknown)
    return e->op;
  if (e->kind == Expr::Kind::Element)
    return e->value.getDefiningOp();
  for (Expr *operand : e->operands)
    if (Operation *op = whereItEnds(graph, operand, seen))
      return op;
  return nullptr;
}

std::optional<std::string> kvbuf::raise::whyUnfollowed(linalg::LinalgOp product,
                                                       bool sizesAgree) {
  for (Value operand : product.getDpsInputs()) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !isSoftmax(opsBehind(operand)))
      continue;
    ElementGraph graph(product.getContext(), sizesAgree);
    SmallVector<Coord> coords;
    for (int64_t extent : type.getShape())
      coords.push_back(graph.makeCoord(extent));
    llvm::SmallPtrSet<Expr *, 16> seen;
    if (Operation *op =
            whereItEnds(graph, graph.element(operand, coords), seen))
      return ("what weighs the values comes from a softmax, but elements are "
              "not followed through '" +
              op->getName().getStringRef() + "'")
          .str();
    return "what weighs the values comes from a softmax, but is no exponential "
           "divided by its sum";
  }
  return std::nullopt;
}
