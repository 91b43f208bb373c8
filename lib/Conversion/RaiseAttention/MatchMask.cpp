//===- MatchMask.cpp - Masks and biases of attention -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf::raise;

/// Most ops of a bias or a mask that are computed again for each score.
static constexpr unsigned kMostSteps = 200;

bool AttentionMatcher::canCompute(Expr *e, unsigned &steps) {
  if (++steps > kMostSteps)
    return false;
  switch (e->kind) {
  case Expr::Kind::Element: {
    Expr *definition = graph.define(e);
    unsigned before = steps;
    if (definition && canCompute(definition, steps))
      return true;
    steps = before;
    // The tensor is there: its element is read.
    return llvm::all_of(e->coords,
                        [&](const Coord &coord) { return isKnown(coord); });
  }
  case Expr::Kind::Index:
    return isKnown(e->coords[0]);
  case Expr::Kind::Constant:
    return true;
  case Expr::Kind::Op:
    return llvm::all_of(e->operands,
                        [&](Expr *x) { return canCompute(x, steps); });
  default:
    return false;
  }
}

bool AttentionMatcher::isKnown(ArrayRef<Digit> coord) {
  Coord heads = kvHeads;
  llvm::append_range(heads, group);
  Coord resolved = graph.resolve(coord);
  for (auto [i, digit] : llvm::enumerate(resolved)) {
    bool isStatic = !ShapedType::isDynamic(graph.getExtent(digit));
    bool known = false;
    for (ArrayRef<Digit> part :
         {ArrayRef<Digit>(batch), ArrayRef<Digit>(heads), ArrayRef<Digit>(rows),
          ArrayRef<Digit>(keys)}) {
      Coord whole = graph.resolve(part);
      const Digit *at = llvm::find(whole, digit);
      if (at == whole.end())
        continue;
      // Cut out of a number: the extents to the right have to be known, and its
      // own where something stands to the left.
      ArrayRef<Digit> right(at + 1, whole.end());
      known = !ShapedType::isDynamic(graph.getExtent(right)) &&
              (at == whole.begin() || isStatic);
    }
    if (!known || (i > 0 && !isStatic))
      return false;
  }
  return true;
}

bool AttentionMatcher::matchMask(const Weights &weights) {
  Band band;
  SmallVector<bool> isBand;
  for (Hiding &hiding : score.hidings) {
    if (!(hiding.value < std::numeric_limits<double>::infinity())) {
      why = "hidden scores are no numbers";
      return false;
    }
    bool hides = hiding.form == Hiding::Form::Added || hiding.value <= kHidden;
    std::string ignored;
    std::optional<Band> one =
        hides ? findBand(graph, hiding, rows, keys, ignored) : std::nullopt;
    isBand.push_back(one.has_value());
    if (!one)
      continue;
    band.infinite &= one->infinite;
    if (one->lowest)
      band.lowest = std::max(*one->lowest, band.lowest.value_or(*one->lowest));
    if (one->highest)
      band.highest =
          std::min(*one->highest, band.highest.value_or(*one->highest));
  }
  // The op's windows are about the key that a query stands at, i + keys -
  // queries. Other windows are changes of scores.
  int64_t queries = graph.getExtent(rows), count = graph.getExtent(keys);
  bool isStatic =
      !ShapedType::isDynamic(queries) && !ShapedType::isDynamic(count);
  bool isWindow = isStatic;
  if (isStatic) {
    int64_t shift = count - queries;
    if (band.highest && *band.highest < count - 1)
      right = *band.highest - shift;
    else
      band.highest.reset();
    if (band.lowest && *band.lowest > -(queries - 1))
      left = shift - *band.lowest;
    else
      band.lowest.reset();
    isWindow = (!band.highest || right >= 0) && (!band.lowest || left >= 0);
    // Where a row sees no key the op says 0. So does PyTorch's form; elsewhere
    // the graph says the mean of the values, or, after -inf, nothing.
    for (int64_t row = 0; row < queries; ++row) {
      if ((weights.noKey && band.infinite) ||
          std::max<int64_t>(0, row + band.lowest.value_or(-row)) <=
              std::min(count - 1, row + band.highest.value_or(count)))
        continue;
      if (band.infinite) {
        why = llvm::formatv("query {0} sees no key, for which the graph has no "
                            "number",
                            row);
        return false;
      }
      isWindow = false;
    }
  }
  // Hidden by a number, keys count where all others are hidden so, too.
  for (auto [hiding, one] : llvm::zip_equal(score.hidings, isBand))
    if (!one && !band.infinite && hiding.form != Hiding::Form::Added &&
        !std::isinf(hiding.value))
      isWindow = false;
  if (!isWindow)
    left = right = -1;
  for (auto [hiding, one] : llvm::zip_equal(score.hidings, isBand)) {
    if (one && isWindow)
      continue;
    unsigned steps = 0;
    if (!canCompute(hiding.expr, steps)) {
      why =
          "a mask or bias is computed by more than elements of tensors at the "
          "query and the key, and their indices";
      return false;
    }
    changes.push_back(hiding);
  }
  if (isWindow && band.highest && right == 0) {
    causal = true;
    right = -1;
  }
  return true;
}
