//===- MatchAttention.cpp - Attention in a graph of linalg ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf::raise;

FailureOr<Type> kvbuf::raise::parseRound(MLIRContext *context, StringRef name) {
  if (name.empty())
    return Type();
  if (name == "bf16")
    return Type(BFloat16Type::get(context));
  if (name == "f16")
    return Type(Float16Type::get(context));
  emitError(UnknownLoc::get(context))
      << "expected 'round' to be bf16 or f16, got '" << name << "'";
  return failure();
}

/// Divides by or multiplies with a number.
static std::optional<std::pair<Expr *, double>>
matchConstantFactor(ElementGraph &graph, Expr *e) {
  if (e->isOp("arith.negf"))
    return std::pair(e->operands[0], -1.0);
  if (e->isOp("arith.mulf"))
    for (unsigned k : {0u, 1u})
      if (std::optional<double> factor = graph.constantOf(e->operands[k]))
        return std::pair(e->operands[1 - k], *factor);
  if (e->isOp("arith.divf"))
    if (std::optional<double> divisor = graph.constantOf(e->operands[1]);
        divisor && *divisor != 0)
      return std::pair(e->operands[0], 1.0 / *divisor);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

Expr *AttentionMatcher::matchInverse(Expr *e) {
  e = graph.view(e);
  if (e->isOp("arith.divf") && graph.constantOf(e->operands[0]) == 1.0)
    return e->operands[1];
  return nullptr;
}

Expr *AttentionMatcher::peelSum(Expr *&e) {
  e = graph.view(e);
  if (e->isOp("arith.divf") && !graph.constantOf(e->operands[1])) {
    Expr *sum = e->operands[1];
    e = graph.view(e->operands[0]);
    return sum;
  }
  if (e->isOp("arith.mulf"))
    for (unsigned k : {0u, 1u})
      if (Expr *sum = matchInverse(e->operands[k])) {
        e = graph.view(e->operands[1 - k]);
        return sum;
      }
  return nullptr;
}

bool AttentionMatcher::matchWeights(Expr *e, Weights &weights) {
  e = graph.view(e);
  if (e->isOp("arith.select"))
    for (bool where : {true, false})
      if (graph.constantOf(e->operands[where ? 1 : 2]) == 0.0) {
        weights.noKey = e->operands[0];
        weights.noKeyWhere = where;
        e = e->operands[where ? 2 : 1];
        break;
      }
  weights.sum = peelSum(e);
  if (!e->isOp("math.exp") && !e->isOp("math.exp2"))
    return false;
  weights.exp = e;
  if (e->isOp("math.exp2"))
    weights.factor = std::log(2.0);
  e = graph.view(e->operands[0]);
  while (auto factor = matchConstantFactor(graph, e)) {
    weights.factor *= factor->second;
    e = graph.view(factor->first);
  }
  if (e->isOp("arith.subf")) {
    weights.scores = e->operands[0];
    weights.max = e->operands[1];
  } else {
    weights.scores = e;
  }
  return true;
}

bool AttentionMatcher::isOfRow(Expr *e) {
  llvm::SmallSetVector<Digit, 8> digits;
  graph.collectDigits(e, digits);
  return llvm::none_of(graph.resolve(keys),
                       [&](Digit digit) { return digits.contains(digit); });
}

Expr *AttentionMatcher::peelRowTerms(Expr *scores) {
  Expr *e = graph.view(scores);
  while (e->isOp("arith.subf") && !graph.constantOf(e->operands[1]) &&
         isOfRow(e->operands[1]))
    e = graph.view(e->operands[0]);
  return e;
}

bool AttentionMatcher::isHiddenWhere(Expr *condition, bool where,
                                     Expr *scores) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  for (Expr *e = graph.view(scores); e->isOp("arith.select");) {
    Expr *next = nullptr;
    for (bool hides : {true, false})
      if (graph.constantOf(e->operands[hides ? 1 : 2]) == kLowest) {
        if (hides == where && graph.equal(condition, e->operands[0]))
          return true;
        next = graph.view(e->operands[hides ? 2 : 1]);
      }
    if (!next)
      return false;
    e = next;
  }
  return false;
}

Expr *AttentionMatcher::peelHidden(Expr *e, Expr *scores) {
  e = graph.view(e);
  if (!e->isOp("arith.select"))
    return e;
  for (bool where : {true, false})
    if (graph.constantOf(e->operands[where ? 1 : 2]) == 0.0 &&
        isHiddenWhere(e->operands[0], where, scores))
      return graph.view(e->operands[where ? 2 : 1]);
  return e;
}

bool AttentionMatcher::checkSoftmax(const Weights &weights) {
  if (!weights.sum) {
    why = "the weights are not divided by their sum";
    return false;
  }
  auto reducesKeys = [&](Expr *e, Combiner combiner) {
    return e->kind == Expr::Kind::Reduction && e->combiner == combiner &&
           e->reduced.size() == 1 &&
           graph.getReducedExtents(e)[0] == graph.getExtent(keys);
  };
  Expr *sum = graph.view(weights.sum);
  if (weights.max && weights.factor > 0 &&
      matchSink(weights, sum, graph.view(weights.max)))
    return true;
  if (!reducesKeys(sum, Combiner::Add) ||
      !graph.equal(peelHidden(graph.body(sum, {keys}), weights.scores),
                   weights.exp)) {
    why = "the weights are divided by something else than the sum of "
          "themselves over the keys";
    return false;
  }
  if (!weights.max) {
    why = "the exponential is not of a difference from the row's maximum";
    return false;
  }
  Expr *max = graph.view(weights.max);
  if (!reducesKeys(max, Combiner::Max) ||
      !graph.equal(graph.body(max, {keys}), weights.scores)) {
    why = "what is subtracted from the scores is not their maximum over the "
          "keys";
    return false;
  }
  if (!(weights.factor > 0)) {
    why = "the exponential falls with the scores";
    return false;
  }
  return true;
}

bool AttentionMatcher::matchNoKey(const Weights &weights) {
  // No key: not (some score != -inf), or (all scores == -inf).
  Expr *e = graph.view(weights.noKey);
  bool where = weights.noKeyWhere;
  auto peelNot = [&](Expr *&e) {
    bool negated = false;
    while (e->isOp("arith.cmpi") || e->isOp("arith.xori")) {
      bool isXor = e->isOp("arith.xori");
      int64_t predicate =
          isXor ? 0 : cast<IntegerAttr>(e->attrs.get("predicate")).getInt();
      std::optional<double> value;
      unsigned k = 0;
      for (; k < 2 && !value; ++k)
        value = graph.constantOf(e->operands[k]);
      if (!value || !e->operands[0]->type.isInteger(1) || predicate > 1)
        break;
      // x == false, x != true and x xor true are not x.
      bool isEq = !isXor && predicate == 0;
      negated ^= isEq ? *value == 0 : *value != 0;
      e = graph.view(e->operands[2 - k]);
    }
    return negated;
  };
  where ^= peelNot(e);
  if (e->kind != Expr::Kind::Reduction || e->reduced.size() != 1 ||
      graph.getReducedExtents(e)[0] != graph.getExtent(keys))
    return false;
  bool any = e->combiner == Combiner::Or;
  if (!any && e->combiner != Combiner::And)
    return false;
  Expr *hidden = graph.view(graph.body(e, {keys}));
  bool negated = peelNot(hidden);
  if (!hidden->isOp("arith.cmpf"))
    return false;
  auto predicate = static_cast<arith::CmpFPredicate>(
      cast<IntegerAttr>(hidden->attrs.get("predicate")).getInt());
  if (predicate == arith::CmpFPredicate::UNE ||
      predicate == arith::CmpFPredicate::ONE)
    negated = !negated;
  else if (predicate != arith::CmpFPredicate::OEQ)
    return false;
  bool isScore = false;
  for (unsigned k : {0u, 1u})
    if (std::optional<double> lowest = graph.constantOf(hidden->operands[k]))
      isScore = *lowest == -std::numeric_limits<double>::infinity() &&
                graph.equal(hidden->operands[1 - k], weights.scores);
  // any(visible) false, or all(hidden) true.
  return isScore && any == negated && where == !any;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

bool AttentionMatcher::contains(const SourceTensor &operand,
                                ArrayRef<Digit> coord) {
  llvm::SmallDenseSet<Digit> digits;
  for (const Coord &c : operand.coords)
    for (Digit digit : graph.resolve(c))
      digits.insert(digit);
  return llvm::all_of(graph.resolve(coord),
                      [&](Digit digit) { return digits.contains(digit); });
}

std::optional<SourceTensor> AttentionMatcher::peelOperand(Expr *e,
                                                          bool scaled) {
  std::optional<SourceTensor> best, any;
  double factor = 1.0;
  while (true) {
    if (e->kind == Expr::Kind::Element) {
      // Of a tensor that this is a slice of, the slice is the operand.
      auto type = dyn_cast<RankedTensorType>(e->value.getType());
      bool isWhole = type && llvm::all_of_zip(e->coords, type.getShape(),
                                              [&](const Coord &c, int64_t n) {
                                                return graph.fills(c, n);
                                              });
      if (isWhole)
        any = SourceTensor{e->value, e->coords, factor};
      if (isWhole && (e->type.isF16() || e->type.isBF16()))
        best = any;
      e = graph.define(e);
      if (!e)
        break;
      continue;
    }
    if (e->isOp("arith.extf") || e->isOp("arith.truncf")) {
      if (e->type.getIntOrFloatBitWidth() < 16)
        break;
      e = e->operands[0];
      continue;
    }
    auto scale = matchConstantFactor(graph, e);
    if (!scale || !scaled)
      break;
    factor *= scale->second;
    e = scale->first;
  }
  if (best)
    return best;
  return roundTo && any && any->tensor.getType() ? any : std::nullopt;
}

bool AttentionMatcher::matchProduct(Expr *reduction, Score &result) {
  why = "the scores are no product of queries and keys";
  if (reduction->combiner != Combiner::Add || reduction->reduced.empty())
    return false;
  SmallVector<Coord> at = graph.makeReducedCoords(reduction);
  Expr *e = graph.view(graph.body(reduction, at));
  while (auto factor = matchConstantFactor(graph, e)) {
    result.scale *= factor->second;
    e = graph.view(factor->first);
  }
  if (!e->isOp("arith.mulf"))
    return false;
  std::optional<SourceTensor> a = peelOperand(e->operands[0], /*scaled=*/true);
  std::optional<SourceTensor> b = peelOperand(e->operands[1], /*scaled=*/true);
  if (!a || !b) {
    why = "queries or keys are no tensors of bf16 or f16";
    return false;
  }
  if (contains(*a, keys))
    std::swap(a, b);
  result.q = *a;
  result.k = *b;
  result.scale *= a->factor * b->factor;
  for (Coord &coord : at)
    llvm::append_range(result.depth, coord);
  result.product = reduction->op;
  return true;
}

bool AttentionMatcher::matchScore(Expr *e, Score &result) {
  e = graph.view(e);
  if (e == scoreBefore)
    return true;
  if (e->kind == Expr::Kind::Reduction)
    return matchProduct(e, result);
  auto multiply = [&](double factor) {
    (result.cap ? result.cap : result.scale) *= factor;
    if (result.cap)
      result.scale *= factor;
    for (Hiding &hiding : result.hidings)
      hiding.value *= factor;
  };
  if (auto factor = matchConstantFactor(graph, e)) {
    if (!matchScore(factor->first, result))
      return false;
    multiply(factor->second);
    return true;
  }
  if (e->isOp("math.tanh")) {
    if (!matchScore(e->operands[0], result))
      return false;
    if (result.cap || !result.hidings.empty()) {
      why = "the scores are capped after they are masked, or twice";
      return false;
    }
    // tanh(x) = 1 * tanh(x / 1).
    result.cap = 1.0;
    return true;
  }
  // Masks: the operand with the scores, and what hides them.
  auto hide = [&](Expr *scores, Hiding hiding) {
    Score inner;
    if (!matchScore(scores, inner))
      return false;
    inner.hidings.push_back(hiding);
    result = inner;
    return true;
  };
  if (e->isOp("arith.select"))
    for (bool where : {true, false})
      if (std::optional<double> value =
              graph.constantOf(e->operands[where ? 1 : 2]))
        return hide(e->operands[where ? 2 : 1],
                    {where ? Hiding::Form::WhereTrue : Hiding::Form::WhereFalse,
                     e->operands[0], *value});
  if (e->isOp("arith.addf"))
    return hide(e->operands[0], {Hiding::Form::Added, e->operands[1], 1.0}) ||
           hide(e->operands[1], {Hiding::Form::Added, e->operands[0], 1.0});
  if (e->isOp("arith.subf"))
    return hide(e->operands[0], {Hiding::Form::Added, e->operands[1], -1.0});
  if (e->kind == Expr::Kind::Op)
    why = ("the scores are computed by '" + e->name->getStringRef() +
           "' of something that is no constant factor, cap or mask")
              .str();
  else
    why = "the scores are no product of queries and keys";
  return false;
}

Outcome AttentionMatcher::match() {
  auto type = dyn_cast<RankedTensorType>(root.getType());
  if (!type || !isa<FloatType>(type.getElementType()) || !root.getDefiningOp())
    return Outcome::Other;
  for (int64_t extent : type.getShape())
    rootCoords.push_back(graph.makeCoord(extent));

  // Weights times values, divided before or after.
  Expr *e = graph.element(root, rootCoords);
  Expr *outerSum = peelSum(e);
  if (e->kind != Expr::Kind::Reduction || e->combiner != Combiner::Add ||
      e->reduced.size() != 1)
    return Outcome::Other;
  keys = graph.makeReducedCoords(e)[0];
  Expr *product = graph.view(graph.body(e, {keys}));
  if (!product->isOp("arith.mulf"))
    return Outcome::Other;
  Weights weights;
  Expr *values = nullptr;
  for (unsigned k : {0u, 1u}) {
    weights = Weights();
    if (matchWeights(product->operands[k], weights)) {
      values = product->operands[1 - k];
      break;
    }
  }
  if (!values)
    return Outcome::Other;
  // Values have columns: a sum of weights alone is none of these products.
  llvm::SmallSetVector<Digit, 8> ofValues, ofWeights;
  graph.collectDigits(values, ofValues);
  graph.collectDigits(weights.exp, ofWeights);
  if (llvm::all_of(ofValues,
                   [&](Digit digit) { return ofWeights.contains(digit); }))
    return Outcome::Other;
  anchor = e->op;
  if (outerSum) {
    if (weights.sum)
      return refuse("the weights are divided twice");
    weights.sum = outerSum;
  }
  if (!checkSoftmax(weights))
    return Outcome::Refused;
  if (weights.noKey && !matchNoKey(weights) &&
      !isHiddenWhere(weights.noKey, weights.noKeyWhere, weights.scores))
    return refuse("weights are replaced by 0 where more than rows without a "
                  "key are");
  if (!matchScore(peelRowTerms(weights.scores), score))
    return Outcome::Refused;
  score.scale *= weights.factor;
  if (score.cap)
    score.cap *= weights.factor;
  // cap * tanh(scale / cap * qk) is the same for -cap.
  score.cap = std::fabs(score.cap);
  for (Hiding &hiding : score.hidings)
    hiding.value *= weights.factor;
  std::optional<SourceTensor> found = peelOperand(values, /*scaled=*/false);
  if (!found)
    return refuse("the values are no tensor of bf16 or f16");
  v = *found;
  rootType = type;
  emptyRowsAreZero = weights.noKey != nullptr;
  if (!matchTypes() || !matchDimensions() || (sink && !checkSink()) ||
      !matchMask() || !checkUsers())
    return Outcome::Refused;
  return Outcome::Found;
}

bool AttentionMatcher::matchTypes() {
  auto elementOf = [](const SourceTensor &operand) {
    return cast<RankedTensorType>(operand.tensor.getType()).getElementType();
  };
  elementType = outType = roundTo ? roundTo : elementOf(score.q);
  if (!roundTo &&
      (elementOf(score.k) != elementType || elementOf(v) != elementType)) {
    why = "queries, keys and values have several types of elements";
    return false;
  }
  if (rootType.getElementType().isF32() && !roundTo)
    outType = rootType.getElementType();
  if (!roundTo && rootType.getElementType() != outType) {
    why = "the result is neither of the type of queries, keys and values nor "
          "f32";
    return false;
  }
  return true;
}

void AttentionMatcher::setScore(Expr *e) {
  Score found;
  if (!matchScore(e, found)) {
    score.hidings = {{Hiding::Form::Computed, e, 0.0}};
    return;
  }
  score.scale *= found.scale;
  score.cap = std::fabs(found.cap);
  score.hidings = found.hidings;
}

Outcome AttentionMatcher::matchGiven() {
  emptyRowsAreZero = true;
  auto peel = [&](SourceTensor &operand, bool scaled) {
    std::optional<SourceTensor> found =
        peelOperand(graph.element(operand.tensor, operand.coords), scaled);
    if (found)
      operand = *found;
    return found.has_value();
  };
  if (!peel(score.q, /*scaled=*/true) || !peel(score.k, /*scaled=*/true) ||
      !peel(v, /*scaled=*/false))
    return refuse("queries, keys or values are no tensors of bf16 or f16");
  score.scale *= score.q.factor * score.k.factor;
  if (!matchTypes() || !matchDimensions() || !matchMask())
    return Outcome::Refused;
  return Outcome::Found;
}
