//===- MatchDimensions.cpp - What dimensions are of an attention ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Which dimensions of a graph of linalg are rows, keys, heads and sequences,
/// and whether results in between have other users.
///
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace kvbuf::raise;

bool AttentionMatcher::matchDimensions() {
  using Set = llvm::SmallSetVector<Digit, 8>;
  auto digitsOf = [&](ArrayRef<Coord> coords, Set &set) {
    for (const Coord &coord : coords)
      for (Digit digit : graph.resolve(coord))
        if (!set.insert(digit)) {
          why = "an operand is read along a diagonal";
          return false;
        }
    return true;
  };
  Set q, k, values, out;
  if (!digitsOf(score.q.coords, q) || !digitsOf(score.k.coords, k) ||
      !digitsOf(v.coords, values) || !digitsOf(rootCoords, out))
    return false;
  keys = graph.resolve(keys);
  score.depth = graph.resolve(score.depth);
  auto has = [](const Set &set, ArrayRef<Digit> coord) {
    return llvm::all_of(coord, [&](Digit d) { return set.contains(d); });
  };
  auto hasAny = [](const Set &set, ArrayRef<Digit> coord) {
    return llvm::any_of(coord, [&](Digit d) { return set.contains(d); });
  };
  if (!has(k, keys) || hasAny(q, keys)) {
    why = "the scores are not one row of keys for each query";
    return false;
  }
  if (!has(values, keys)) {
    why = "the values are not summed over the keys";
    return false;
  }
  if (!has(q, score.depth) || !has(k, score.depth)) {
    why = "queries and keys are not contracted over their own dimension";
    return false;
  }
  Set common;
  for (Digit digit : k)
    if (!llvm::is_contained(keys, digit) &&
        !llvm::is_contained(score.depth, digit))
      common.insert(digit);
  for (Digit digit : common)
    if (!q.contains(digit) || !values.contains(digit)) {
      why = "the keys have a dimension that queries or values lack";
      return false;
    }
  for (Digit digit : values)
    if (!llvm::is_contained(keys, digit) && !common.contains(digit)) {
      if (q.contains(digit)) {
        why = "the values have a dimension that the keys lack";
        return false;
      }
      columns.push_back(digit);
    }
  SmallVector<Digit> alone;
  for (Digit digit : q)
    if (!llvm::is_contained(score.depth, digit) && !common.contains(digit))
      alone.push_back(digit);
  // The result has each of these dimensions once, and no other.
  unsigned expected = common.size() + columns.size() + alone.size();
  if (out.size() != expected || !has(out, columns) || !has(out, alone) ||
      !has(out, common.getArrayRef())) {
    why = "the result lacks a dimension of the queries or values, or has "
          "another one";
    return false;
  }
  // The queries: what is given, what masks tell apart, else the longest.
  Coord givenRows = std::exchange(rows, {});
  Set masked;
  for (const Hiding &hiding : score.hidings)
    graph.collectDigits(hiding.expr, masked);
  for (Digit digit : masked)
    if (llvm::is_contained(alone, digit))
      rows.push_back(digit);
  if (rowsAreGiven)
    rows = graph.resolve(givenRows);
  else if (rows.size() != 1 && !alone.empty()) {
    auto length = [&](Digit digit) {
      int64_t extent = graph.getExtent(digit);
      return ShapedType::isDynamic(extent) ? std::numeric_limits<int64_t>::max()
                                           : extent;
    };
    SmallVector<Digit> candidates(rows.empty() ? ArrayRef<Digit>(alone)
                                               : ArrayRef<Digit>(rows));
    rows.clear();
    Digit longest = candidates.front();
    for (Digit digit : candidates)
      if (length(digit) > length(longest))
        longest = digit;
    rows.push_back(longest);
  }
  for (Digit digit : alone)
    if (!llvm::is_contained(rows, digit))
      group.push_back(digit);
  SmallVector<Digit> shared;
  for (Digit digit : k)
    if (common.contains(digit))
      shared.push_back(digit);
  placeShared(shared);
  return checkSizes();
}

void AttentionMatcher::placeShared(ArrayRef<Digit> shared) {
  // Common dimensions outside of keys and queries become sequences, those
  // inside heads of a token, which saves transposing operands. Heads are
  // static.
  auto isOutside = [&](ArrayRef<Coord> coords, Digit digit,
                       ArrayRef<Digit> tokens) {
    // One row is neither outside nor inside of anything.
    if (tokens.empty())
      return false;
    for (const Coord &coord : coords)
      for (Digit other : graph.resolve(coord)) {
        if (other == digit)
          return true;
        if (llvm::is_contained(tokens, other))
          return false;
      }
    return false;
  };
  Coord ofSink;
  if (sink)
    for (const Coord &coord : sink->coords)
      llvm::append_range(ofSink, graph.resolve(coord));
  for (Digit digit : shared) {
    // Keys and values are as long as the queries, or longer.
    int outside = isOutside(score.q.coords, digit, rows) +
                  2 * isOutside(score.k.coords, digit, keys) +
                  2 * isOutside(v.coords, digit, keys) +
                  isOutside(rootCoords, digit, rows);
    // Sinks are the heads' own.
    bool hasSink = llvm::is_contained(ofSink, digit);
    if ((outside >= 3 && !hasSink) ||
        ShapedType::isDynamic(graph.getExtent(digit)))
      batch.push_back(digit);
    else
      kvHeads.push_back(digit);
  }
}

bool AttentionMatcher::checkSizes() {
  if (ShapedType::isDynamic(graph.getExtent(group))) {
    why = "the number of heads is not known here";
    return false;
  }
  for (int64_t size :
       {graph.getExtent(score.depth), graph.getExtent(columns)}) {
    if (ShapedType::isDynamic(size)) {
      why = "the head size is not known here";
      return false;
    }
    if (size % 8 != 0) {
      why = llvm::formatv("the head size {0} is no multiple of 8", size);
      return false;
    }
  }
  return true;
}

bool AttentionMatcher::checkUsers() {
  SmallVector<Operation *> worklist{score.product};
  llvm::SmallPtrSet<Operation *, 16> seen;
  Operation *last = root.getDefiningOp();
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (op == last || !seen.insert(op).second)
      continue;
    for (Operation *user : op->getUsers()) {
      // Sizes of results are not their elements.
      if (isa<tensor::DimOp>(user))
        continue;
      // Elements are read in the bodies of ops, too.
      Operation *around = op->getBlock()->findAncestorOpInBlock(*user);
      if (!around || !graph.getVisited().contains(around)) {
        why = ("an intermediate result, of '" + op->getName().getStringRef() +
               "', has another user, '" + user->getName().getStringRef() + "'")
                  .str();
        return false;
      }
      worklist.push_back(around);
    }
  }
  return true;
}
