//===- MatchCaches.cpp - Pages and lengths in graphs of linalg ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Keys and values that a graph gathers by a table of pages need not be
/// gathered: they lie in a paged cache. And keys that a length hides need not
/// be read: they are no keys of the cache.
///
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"

using namespace mlir;
using namespace kvbuf::raise;

/// The coordinate that an index is; nothing for computed ones.
static std::optional<Coord> coordOf(ElementGraph &graph, Expr *index) {
  index = graph.view(index);
  if (index->kind == Expr::Kind::Index)
    return index->coords[0];
  if (graph.constantOf(index) == 0.0)
    return Coord{};
  return std::nullopt;
}

std::optional<Pages> AttentionMatcher::matchPages(const SourceTensor &operand,
                                                  ArrayRef<Digit> last) {
  Expr *e = graph.view(graph.element(operand.tensor, operand.coords));
  auto type = e->value ? dyn_cast<RankedTensorType>(e->value.getType())
                       : RankedTensorType();
  if (e->kind != Expr::Kind::Unknown || !type || type.getRank() != 4 ||
      e->operands.size() != 4 || type.getElementType() != elementType)
    return std::nullopt;
  // [page of the table, row, head, column].
  auto row = coordOf(graph, e->operands[1]),
       head = coordOf(graph, e->operands[2]),
       column = coordOf(graph, e->operands[3]);
  if (!row || !head || !column ||
      graph.resolve(*head) != graph.resolve(kvHeads) ||
      graph.resolve(*column) != graph.resolve(last))
    return std::nullopt;
  for (auto [dim, coord] : {std::pair(1, *row), {2, *head}, {3, *column}})
    if (graph.getExtent(coord) != type.getDimSize(dim) ||
        graph.isShifted(coord))
      return std::nullopt;
  Expr *page = e->operands[0];
  if (page->isOp("arith.index_cast"))
    page = page->operands[0];
  int64_t wrapsAt = 0;
  if (page->isOp("arith.select")) {
    // x < 0 ? x + blocks : x, as NumPy counts.
    Expr *isBelow = page->operands[0], *above = page->operands[1],
         *same = page->operands[2];
    auto predicate = isBelow->isOp("arith.cmpi")
                         ? isBelow->attrs.getAs<IntegerAttr>("predicate")
                         : IntegerAttr();
    auto isSlt = [](IntegerAttr attr) {
      return attr &&
             attr.getInt() == static_cast<int64_t>(arith::CmpIPredicate::slt);
    };
    if (!isSlt(predicate) || !graph.equal(isBelow->operands[0], same) ||
        graph.constantOf(isBelow->operands[1]) != 0.0 ||
        !above->isOp("arith.addi") || !graph.equal(above->operands[0], same) ||
        graph.constantOf(above->operands[1]) != double(type.getDimSize(0)))
      return std::nullopt;
    wrapsAt = type.getDimSize(0);
    page = same;
  }
  if (page->kind != Expr::Kind::Element ||
      !(page->type.isSignlessInteger(32) || page->type.isSignlessInteger(64)))
    return std::nullopt;
  // The table is of [batch, pages], and a sequence's keys are those of its
  // pages.
  Coord pages, entries;
  for (Digit digit : graph.resolve(keys))
    pages.push_back(digit);
  Coord rows = graph.resolve(*row);
  if (pages.size() < rows.size() ||
      !llvm::equal(ArrayRef<Digit>(pages).take_back(rows.size()), rows))
    return std::nullopt;
  pages.truncate(pages.size() - rows.size());
  for (const Coord &coord : page->coords)
    llvm::append_range(entries, graph.resolve(coord));
  Coord wanted = graph.resolve(batch);
  llvm::append_range(wanted, pages);
  llvm::SmallDenseSet<Digit> known(entries.begin(), entries.end());
  if (entries.size() != wanted.size() ||
      llvm::any_of(wanted, [&](Digit digit) { return !known.contains(digit); }))
    return std::nullopt;
  return Pages{e->value, {page->value, page->coords, 1.0}, pages, wrapsAt};
}

std::optional<Lengths> AttentionMatcher::matchLengths(const Hiding &hiding) {
  Expr *e = graph.view(hiding.expr);
  bool hidesWhereTrue = hiding.form == Hiding::Form::WhereTrue;
  if (!e->isOp("arith.cmpi"))
    return std::nullopt;
  auto predicate = static_cast<arith::CmpIPredicate>(
      cast<IntegerAttr>(e->attrs.get("predicate")).getInt());
  Expr *key = e->operands[0], *length = e->operands[1];
  auto peel = [&](Expr *x) {
    x = graph.view(x);
    while (x->isOp("arith.index_cast") || x->isOp("arith.extsi"))
      x = graph.view(x->operands[0]);
    return x;
  };
  auto isKey = [&](Expr *x) {
    return x->kind == Expr::Kind::Index && !graph.isShifted(x->coords[0]) &&
           graph.resolve(x->coords[0]) == graph.resolve(keys);
  };
  using P = arith::CmpIPredicate;
  key = peel(key);
  length = peel(length);
  if (!isKey(key)) {
    std::swap(key, length);
    predicate = predicate == P::slt   ? P::sgt
                : predicate == P::sgt ? P::slt
                : predicate == P::sle ? P::sge
                : predicate == P::sge ? P::sle
                                      : predicate;
  }
  if (hidesWhereTrue)
    predicate = arith::invertPredicate(predicate);
  bool isInclusive = predicate == P::sle;
  if (!isKey(key) || (predicate != P::slt && !isInclusive))
    return std::nullopt;
  if (length->kind != Expr::Kind::Element ||
      !(length->type.isSignlessInteger(32) ||
        length->type.isSignlessInteger(64)))
    return std::nullopt;
  Coord entries;
  for (const Coord &coord : length->coords)
    llvm::append_range(entries, graph.resolve(coord));
  // Sequences of several dimensions may share numbers.
  Coord sequences = graph.resolve(batch);
  if (llvm::any_of(
          entries,
          [&](Digit digit) { return !llvm::is_contained(sequences, digit); }) ||
      (sequences.size() > 1 &&
       ShapedType::isDynamic(graph.getExtent(sequences))))
    return std::nullopt;
  return Lengths{{length->value, length->coords, 1.0}, isInclusive};
}

void AttentionMatcher::matchCaches() {
  // Windows are about the end of the keys, which lengths move.
  if (causal || left >= 0 || right >= 0)
    return;
  int64_t count = graph.getExtent(keys);
  if (ShapedType::isDynamic(count))
    return;
  kPages = matchPages(score.k, score.depth);
  vPages = matchPages(v, columns);
  if (!kPages || !vPages)
    kPages = vPages = std::nullopt;
  for (auto it = unseen.begin(); it != unseen.end(); ++it)
    if ((lengths = matchLengths(*it))) {
      unseen.erase(it);
      break;
    }
}
