//===- MatchSink.cpp - Sums of softmaxes with one more score ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"

using namespace mlir;
using namespace kvbuf::raise;

bool AttentionMatcher::matchSink(const Weights &weights, Expr *sum, Expr *max) {
  // One score more than keys, before or after theirs.
  int64_t count = graph.getExtent(keys);
  auto hasOneMore = [&](Expr *e, Combiner combiner) {
    return e->kind == Expr::Kind::Reduction && e->combiner == combiner &&
           e->reduced.size() == 1 && graph.getReducedExtents(e)[0] == count + 1;
  };
  if (ShapedType::isDynamic(count) || !hasOneMore(sum, Combiner::Add) ||
      !hasOneMore(max, Combiner::Max))
    return false;
  for (bool isFirst : {false, true}) {
    Coord rest = isFirst ? graph.shifted(keys, 1) : keys;
    Coord one = graph.makeFixed(isFirst ? 0 : count);
    Weights alone;
    if (rest.empty() || !graph.equal(graph.body(sum, {rest}), weights.exp) ||
        !graph.equal(graph.body(max, {rest}), weights.scores) ||
        !matchWeights(graph.body(sum, {one}), alone) || alone.sum ||
        alone.noKey || !alone.max || alone.factor != weights.factor ||
        *alone.exp->name != *weights.exp->name ||
        !graph.equal(alone.max, weights.max) ||
        !graph.equal(graph.body(max, {one}), alone.scores))
      continue;
    // A number for each head, as it is in a tensor.
    // What is subtracted from all scores of a row is subtracted from this one.
    Expr *e = graph.view(alone.scores), *others = graph.view(weights.scores);
    while (others->isOp("arith.subf") && e->isOp("arith.subf") &&
           graph.equal(others->operands[1], e->operands[1])) {
      others = graph.view(others->operands[0]);
      e = graph.view(e->operands[0]);
    }
    if (peelRowTerms(others) != others)
      return false;
    if (e->kind != Expr::Kind::Element || !isa<FloatType>(e->type) ||
        weights.factor != 1.0)
      return false;
    sink = SourceTensor{e->value, e->coords, 1.0};
    return true;
  }
  return false;
}

bool AttentionMatcher::checkSink() {
  Coord heads = kvHeads;
  llvm::append_range(heads, group);
  Coord given;
  for (auto [dim, coord] : llvm::enumerate(sink->coords)) {
    if (!graph.fills(
            coord,
            cast<RankedTensorType>(sink->tensor.getType()).getDimSize(dim)))
      given.clear();
    llvm::append_range(given, graph.resolve(coord));
  }
  llvm::SmallDenseSet<Digit> known(given.begin(), given.end());
  heads = graph.resolve(heads);
  bool isOneEach =
      given.size() == heads.size() &&
      llvm::all_of(heads, [&](Digit digit) { return known.contains(digit); });
  if (!isOneEach)
    why = "the sum has one more score than there are keys, which is no number "
          "of each head";
  return isOneEach;
}
