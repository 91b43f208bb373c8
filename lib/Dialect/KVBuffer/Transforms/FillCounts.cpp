//===- FillCounts.cpp - How often slots have been filled --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FillCounts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace kvbuf;

Value kvbuf::timesEach(OpBuilder &b, Location loc, Value n, int64_t each) {
  if (each == 1)
    return n;
  return b.createOrFold<arith::MulIOp>(
      loc, n, arith::ConstantIndexOp::create(b, loc, each));
}

Value kvbuf::tripsOf(OpBuilder &b, Location loc, Value lb, Value ub) {
  Value difference = b.createOrFold<arith::SubIOp>(loc, ub, lb);
  return b.createOrFold<arith::MaxSIOp>(
      loc, difference, arith::ConstantIndexOp::create(b, loc, 0));
}

SmallVector<Value> FillCounts::of(ArrayRef<unsigned> chosen) const {
  return llvm::map_to_vector(chosen, [&](unsigned c) { return counts[c]; });
}

SmallVector<int64_t> FillCounts::directlyIn(Block &block) const {
  SmallVector<int64_t> result(counts.size());
  for (Operation &op : block)
    if (auto channel = channelOf(&op))
      ++result[*channel];
  return result;
}

bool FillCounts::isFilledIn(Operation *op, unsigned channel) const {
  return op
      ->walk([&](Operation *inner) {
        return channelOf(inner) == channel ? WalkResult::interrupt()
                                           : WalkResult::advance();
      })
      .wasInterrupted();
}

bool FillCounts::fillsAlike(Operation *op, unsigned a, unsigned b) const {
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      SmallVector<int64_t> direct = directlyIn(block);
      if (direct[a] != direct[b])
        return false;
      for (Operation &inner : block)
        if (inner.getNumRegions() && !fillsAlike(&inner, a, b))
          return false;
    }
  return true;
}

SmallVector<unsigned> FillCounts::representatives(Operation *op) const {
  SmallVector<unsigned> chosen;
  for (unsigned c = 0; c < counts.size(); ++c)
    if (isFilledIn(op, c) && llvm::none_of(chosen, [&](unsigned r) {
          return counts[r] == counts[c] && fillsAlike(op, r, c);
        }))
      chosen.push_back(c);
  return chosen;
}

void FillCounts::assign(Operation *op, ArrayRef<unsigned> chosen,
                        ValueRange values, ArrayRef<Value> before) {
  for (unsigned c = 0; c < counts.size(); ++c) {
    counts[c] = before[c];
    for (auto [r, value] : llvm::zip_equal(chosen, values))
      if (c == r || (before[r] == before[c] && isFilledIn(op, c) &&
                     fillsAlike(op, r, c))) {
        counts[c] = value;
        break;
      }
  }
}
