//===- MatchMask.cpp - Masks and biases of attention -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds.h"
#include "MatchAttention.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf::raise;

/// Most ops of a bias or a mask that are computed again for each score.
static constexpr unsigned kMostSteps = 200;

/// Whether kernels read elements of a type, as they are or (integers of fewer
/// bits) as words.
static bool isRead(Type type) {
  return type.isBF16() || type.isF16() || type.isF32() ||
         type.isSignlessInteger(64) ||
         (type.isSignlessInteger() && type.getIntOrFloatBitWidth() <= 32);
}

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
    return isRead(e->type) && llvm::all_of(e->coords, [&](const Coord &coord) {
             return isKnown(coord);
           });
  }
  case Expr::Kind::Scalar:
    return e == scoreBefore || e->type.isIndex() || isRead(e->type);
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

/// A hidden score, where there may be others that are not: the weights of the
/// hidden are 0 if these are larger by far.
static constexpr double kSeen = -1e3;

bool AttentionMatcher::standsAlone(ArrayRef<MaskPart> parts) {
  // A number hides a key from no row that sees no other: then hidden keys
  // count. Where the masks are one window, every row sees a key; others, or
  // biases, may take it away.
  double hidden = -std::numeric_limits<double>::infinity(), lowest = 0;
  for (const MaskPart &part : parts)
    if (part.band)
      hidden = std::max(hidden, part.band->hidden);
  bool isInfinite = std::isinf(hidden), hasBand = false;
  for (const auto &[hiding, band] : parts) {
    hasBand |= band.has_value();
    if (band)
      continue;
    if (hiding.form == Hiding::Form::Computed) {
      if (isInfinite && !hasBand)
        continue;
      return false;
    }
    if (hiding.form != Hiding::Form::Added) {
      // A number that is selected after a mask takes the place of it.
      if (hasBand && !std::isinf(hiding.value))
        return false;
      lowest = std::min(lowest, hiding.value);
      continue;
    }
    if (isInfinite)
      continue;
    std::optional<Bounds> bounds = BoundsFinder(graph).find(hiding.expr);
    if (!bounds)
      return false;
    lowest +=
        std::min({0.0, bounds->lo * hiding.value, bounds->hi * hiding.value});
  }
  return isInfinite || lowest >= hidden / 2;
}

bool AttentionMatcher::hasVisibleKey(ArrayRef<MaskPart> parts) {
  SmallVector<int64_t, 2> candidates{0};
  if (int64_t count = graph.getExtent(keys); !ShapedType::isDynamic(count))
    candidates.push_back(count - 1);
  return llvm::any_of(candidates, [&](int64_t key) {
    BoundsFinder finder(graph);
    finder.fix(keys, key);
    return llvm::all_of(parts, [&](const MaskPart &part) {
      const Hiding &hiding = part.hiding;
      std::optional<Bounds> bounds = finder.find(hiding.expr);
      switch (hiding.form) {
      case Hiding::Form::Added:
        return bounds && std::min(bounds->lo * hiding.value,
                                  bounds->hi * hiding.value) >= kSeen;
      case Hiding::Form::WhereTrue:
        return hiding.value >= kSeen || (bounds && bounds->hi == 0);
      case Hiding::Form::WhereFalse:
        return hiding.value >= kSeen || (bounds && bounds->lo == 1);
      case Hiding::Form::Computed:
        return bounds && bounds->lo >= kSeen;
      }
      llvm_unreachable("all forms are handled");
    });
  });
}

bool AttentionMatcher::matchWindow(ArrayRef<MaskPart> parts, bool &isWindow,
                                   bool &everyRowSees) {
  Band band;
  for (const MaskPart &part : parts) {
    if (!part.band)
      continue;
    const Band &one = *part.band;
    band.infinite &= one.infinite;
    if (one.lowest)
      band.lowest = std::max(*one.lowest, band.lowest.value_or(*one.lowest));
    if (one.highest)
      band.highest =
          std::min(*one.highest, band.highest.value_or(*one.highest));
  }
  // The op's windows are about the key that a query stands at, i + keys -
  // queries. Other windows are changes of scores.
  int64_t queries = graph.getExtent(rows), count = graph.getExtent(keys);
  isWindow = !ShapedType::isDynamic(queries) && !ShapedType::isDynamic(count);
  everyRowSees = isWindow;
  if (!isWindow)
    return true;
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
  // Where a row sees no key the op says 0. So do PyTorch's form and sums with a
  // sink; elsewhere the graph says the mean of the values, or, after -inf,
  // nothing.
  for (int64_t row = 0; row < queries; ++row) {
    if (std::max<int64_t>(0, row + band.lowest.value_or(-row)) <=
        std::min(count - 1, row + band.highest.value_or(count)))
      continue;
    everyRowSees = false;
    if ((emptyRowsAreZero || sink) && band.infinite)
      continue;
    if (band.infinite) {
      why = llvm::formatv("query {0} sees no key, for which the graph has no "
                          "number",
                          row);
      return false;
    }
    isWindow = false;
  }
  if (isWindow && band.highest && right == 0) {
    causal = true;
    right = -1;
  }
  return true;
}

bool AttentionMatcher::matchMask() {
  SmallVector<MaskPart> parts;
  for (const Hiding &hiding : score.hidings) {
    if (!(hiding.value < std::numeric_limits<double>::infinity())) {
      why = "hidden scores are no numbers";
      return false;
    }
    bool hides =
        hiding.form == Hiding::Form::Added ||
        (hiding.form != Hiding::Form::Computed && hiding.value <= kHidden);
    std::string ignored;
    MaskPart &part = parts.emplace_back(MaskPart{hiding, std::nullopt});
    if (hides)
      part.band = findBand(graph, hiding, rows, keys, ignored);
  }
  bool isWindow, everyRowSees;
  if (!matchWindow(parts, isWindow, everyRowSees))
    return false;
  everyRowSees &= llvm::all_of(
      parts, [](const MaskPart &part) { return part.band.has_value(); });
  everyRowSees = everyRowSees || rowsSeeKeys || hasVisibleKey(parts);
  bool alone = standsAlone(parts);
  // What is selected after a mask, and does not hide itself, shows keys again.
  bool hasBand = false, overridden = false;
  for (const auto &[hiding, band] : parts) {
    hasBand |= band.has_value();
    overridden |=
        hasBand && !band && hiding.form != Hiding::Form::Added &&
        (hiding.form == Hiding::Form::Computed || hiding.value > kHidden);
  }
  if (isWindow && !alone && (overridden || !everyRowSees)) {
    rowsMaySeeNoKey = !overridden && (causal || left >= 0 || right >= 0);
    isWindow = false;
  }
  if (!isWindow) {
    left = right = -1;
    causal = false;
  }
  // From the last: what comes before a number that is selected may be
  // replaced by it, and has to stay before it.
  bool mayHide = true;
  for (const auto &[hiding, band] : llvm::reverse(parts)) {
    if (band && isWindow)
      continue;
    unsigned steps = 0;
    if (!canCompute(hiding.expr, steps)) {
      why =
          "a mask or bias is computed by more than elements of tensors at the "
          "query and the key, and their indices";
      return false;
    }
    // An infinite number hides from all rows, others from those that see a key.
    Hiding selected = asSelection(graph, hiding);
    bool isSelected = selected.form == Hiding::Form::WhereTrue ||
                      selected.form == Hiding::Form::WhereFalse;
    if (isSelected && mayHide &&
        (std::isinf(selected.value) ||
         (everyRowSees && selected.value <= kHidden))) {
      unseen.insert(unseen.begin(), selected);
      continue;
    }
    if (hiding.form != Hiding::Form::Added)
      mayHide = false;
    changes.insert(changes.begin(), hiding);
  }
  return true;
}
