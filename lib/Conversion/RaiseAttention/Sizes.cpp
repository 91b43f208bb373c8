//===- Sizes.cpp - Which dimensions have the same size --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Where sizes are not known, exporters compute them again for each op: of the
/// result of the op before, as integers, with a case for sizes below 0. This
/// looks through it, to the dimension of a tensor that has the size.
///
//===----------------------------------------------------------------------===//

#include "Sizes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace kvbuf::raise;

static Size numberOf(int64_t number) { return {number, {}, -1}; }

static Size sizeOf(OpFoldResult number) {
  if (std::optional<int64_t> constant = getConstantIntValue(number))
    return numberOf(*constant);
  return kvbuf::raise::sizeOf(cast<Value>(number));
}

Size kvbuf::raise::sizeOf(Value number) {
  while (true) {
    if (std::optional<int64_t> constant = getConstantIntValue(number))
      return numberOf(*constant);
    if (auto castOp = number.getDefiningOp<arith::IndexCastOp>()) {
      number = castOp.getIn();
      continue;
    }
    if (auto dim = number.getDefiningOp<tensor::DimOp>())
      if (std::optional<int64_t> index = dim.getConstantIndex())
        return sizeOf(dim.getSource(), *index);
    // x < 0 ? y : x is x, a size.
    auto select = number.getDefiningOp<arith::SelectOp>();
    auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>()
                          : arith::CmpIOp();
    if (compare && compare.getPredicate() == arith::CmpIPredicate::slt &&
        getConstantIntValue(compare.getRhs()) == 0) {
      Size size = sizeOf(compare.getLhs());
      if (size.dim >= 0 && size == sizeOf(select.getFalseValue()))
        return size;
    }
    return {0, number, -1};
  }
}

Size kvbuf::raise::sizeOf(Value tensor, int64_t dim) {
  while (true) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    Size unknown = {0, tensor, dim};
    if (!type)
      return unknown;
    if (!type.isDynamicDim(dim))
      return numberOf(type.getDimSize(dim));
    Operation *op = tensor.getDefiningOp();
    if (auto empty = dyn_cast_or_null<tensor::EmptyOp>(op))
      return ::sizeOf(empty.getMixedSizes()[dim]);
    if (auto castOp = dyn_cast_or_null<tensor::CastOp>(op)) {
      if (!isa<RankedTensorType>(castOp.getSource().getType()))
        return unknown;
      tensor = castOp.getSource();
      continue;
    }
    if (auto reshape = dyn_cast_or_null<tensor::ReshapeOp>(op)) {
      auto shape = reshape.getShape().getDefiningOp<tensor::FromElementsOp>();
      return shape ? sizeOf(shape.getElements()[dim]) : unknown;
    }
    if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
      return ::sizeOf(expand.getMixedOutputShape()[dim]);
    if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
      // Of one dimension that is not 1.
      SmallVector<int64_t> parts;
      for (int64_t part : collapse.getReassociationIndices()[dim])
        if (collapse.getSrcType().getDimSize(part) != 1)
          parts.push_back(part);
      if (parts.size() != 1)
        return unknown;
      tensor = collapse.getSrc();
      dim = parts.front();
      continue;
    }
    auto destination = dyn_cast_or_null<DestinationStyleOpInterface>(op);
    if (!destination || !isa<linalg::LinalgOp, linalg::SoftmaxOp>(op))
      return unknown;
    tensor = destination.getTiedOpOperand(cast<OpResult>(tensor))->get();
  }
}

void kvbuf::raise::forwardSizes(Operation *root) {
  root->walk([](tensor::DimOp op) {
    std::optional<int64_t> index = op.getConstantIndex();
    auto type = dyn_cast<RankedTensorType>(op.getSource().getType());
    if (!index || !type || *index < 0 || *index >= type.getRank())
      return;
    Size size = sizeOf(op.getSource(), *index);
    if (size.dim < 0 || (size.of == op.getSource() && size.dim == *index))
      return;
    OpBuilder b(op);
    op.replaceAllUsesWith(
        tensor::DimOp::create(b, op.getLoc(), size.of, size.dim).getResult());
    op.erase();
  });
}
