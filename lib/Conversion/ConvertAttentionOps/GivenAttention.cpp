//===- GivenAttention.cpp - Ops that are attention by their names ---------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GivenAttention.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf::named;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The larger of two extents that are one, or the one that is known.
static int64_t known(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) ? b : a;
}

LogicalResult GivenAttention::setOperands(Value q, Value k, Value v,
                                          Layout layout, int64_t packedHeads,
                                          int64_t packedKVHeads) {
  ArrayRef<int64_t> qShape = typeOf(q).getShape(),
                    kShape = typeOf(k).getShape(),
                    vShape = typeOf(v).getShape();
  int64_t rank = qShape.size();
  int64_t least = layout == Layout::TokensHeads ? 4
                  : layout == Layout::Packed    ? 3
                                                : 2;
  if (kShape.size() != qShape.size() || vShape.size() != qShape.size() ||
      rank < least || (layout != Layout::HeadsTokens && rank != least))
    return refuse(
        llvm::formatv("queries, keys and values have {0}, {1} and {2} "
                      "dimensions",
                      qShape.size(), kShape.size(), vShape.size()));
  int64_t token = layout == Layout::HeadsTokens ? rank - 2 : 1;
  std::optional<int64_t> head;
  if (layout == Layout::TokensHeads)
    head = 2;
  else if (layout == Layout::HeadsTokens && rank >= 3)
    head = rank - 3;

  // Heads: groups of queries' heads share one of the keys'.
  int64_t nq = head ? qShape[*head] : std::max<int64_t>(packedHeads, 1);
  int64_t nk = head ? kShape[*head] : std::max<int64_t>(packedKVHeads, 1);
  int64_t nv = head ? vShape[*head] : nk;
  if (nk != nv)
    return refuse(llvm::formatv("keys have {0} heads and values {1}", nk, nv));
  Coord kvHeads;
  if (ShapedType::isDynamic(nq) || ShapedType::isDynamic(nk) || nq == nk) {
    if (nq != 1 && nk == 1 && ShapedType::isDynamic(nq))
      return refuse("the number of heads is not known here");
    heads = kvHeads = graph.makeCoord(known(nq, nk));
  } else {
    if (nk == 0 || nq % nk != 0)
      return refuse(llvm::formatv("{0} heads of queries are no multiple of {1} "
                                  "heads of keys",
                                  nq, nk));
    heads = kvHeads = graph.makeCoord(nk);
    llvm::append_range(heads, graph.makeCoord(nq / nk));
  }

  match.rows = graph.makeCoord(qShape[token]);
  match.keys = graph.makeCoord(known(kShape[token], vShape[token]));
  match.rowsAreGiven = true;
  auto sizeOf = [&](int64_t packed, int64_t count) {
    return ShapedType::isDynamic(packed) || layout != Layout::Packed
               ? packed
               : (packed % count == 0 ? packed / count : ShapedType::kDynamic);
  };
  Coord depth = graph.makeCoord(
      known(sizeOf(qShape.back(), nq), sizeOf(kShape.back(), nk)));
  match.score.depth = depth;
  // Columns of values are others than those that are contracted.
  columns = graph.makeCoord(sizeOf(vShape.back(), nk));

  auto coordsOf = [&](ArrayRef<int64_t> shape, Coord tokens, Coord ofHeads,
                      Coord last) {
    SmallVector<Coord, 4> coords;
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (dim == token)
        coords.push_back(tokens);
      else if (head && dim == *head)
        coords.push_back(ofHeads);
      else if (dim + 1 == rank) {
        Coord coord = layout == Layout::Packed ? ofHeads : Coord{};
        llvm::append_range(coord, last);
        coords.push_back(coord);
      } else {
        // One sequence of keys may be for all of the queries'.
        coords.push_back(shape[dim] == 1 ? Coord{} : sequences[dim]);
      }
    }
    return coords;
  };
  for (int64_t dim = 0; dim + 1 < rank; ++dim)
    if (dim != token && (!head || dim != *head)) {
      int64_t extent = known(qShape[dim], kShape[dim]);
      for (int64_t other : {kShape[dim], vShape[dim]})
        if (other != extent && other != 1 && !ShapedType::isDynamic(other))
          return refuse("queries, keys and values have other numbers of "
                        "sequences");
      sequences.push_back(graph.makeCoord(extent));
    }
  match.score.q = {q, coordsOf(qShape, match.rows, heads, depth)};
  match.score.k = {k, coordsOf(kShape, match.keys, kvHeads, depth)};
  match.v = {v, coordsOf(vShape, match.keys, kvHeads, columns)};
  return success();
}

LogicalResult GivenAttention::setResult(RankedTensorType type, Layout layout) {
  match.rootType = type;
  match.rootCoords.assign(sequences.begin(), sequences.end());
  Coord last = layout == Layout::Packed ? heads : Coord{};
  llvm::append_range(last, columns);
  if (layout == Layout::TokensHeads)
    llvm::append_range(match.rootCoords,
                       ArrayRef<Coord>{match.rows, heads, last});
  else if (layout == Layout::Packed || type.getRank() == 2)
    llvm::append_range(match.rootCoords, ArrayRef<Coord>{match.rows, last});
  else
    llvm::append_range(match.rootCoords,
                       ArrayRef<Coord>{heads, match.rows, last});
  if (static_cast<int64_t>(match.rootCoords.size()) != type.getRank())
    return refuse(llvm::formatv("the result has {0} dimensions, not {1}",
                                type.getRank(), match.rootCoords.size()));
  for (auto [dim, coord] : llvm::enumerate(match.rootCoords))
    if (int64_t extent = graph.getExtent(coord);
        extent != type.getDimSize(dim) && !type.isDynamicDim(dim) &&
        !ShapedType::isDynamic(extent))
      return refuse(llvm::formatv("dimension {0} of the result is {1}, not {2}",
                                  dim, type.getDimSize(dim), extent));
  return success();
}

void GivenAttention::setScale(std::optional<double> scale) {
  int64_t depth = graph.getExtent(match.score.depth);
  match.score.scale =
      scale ? *scale : 1.0 / std::sqrt(static_cast<double>(depth));
}

SmallVector<Coord> GivenAttention::maskCoords() {
  SmallVector<Coord> coords(sequences);
  llvm::append_range(coords, ArrayRef<Coord>{heads, match.rows, match.keys});
  return coords;
}

LogicalResult GivenAttention::addMask(Value mask, ArrayRef<Coord> coords) {
  auto type = dyn_cast<RankedTensorType>(mask.getType());
  if (!type || type.getRank() > static_cast<int64_t>(coords.size()))
    return refuse("the mask has more dimensions than the scores");
  SmallVector<Coord> at;
  ArrayRef<Coord> last = coords.take_back(type.getRank());
  for (auto [size, coord] : llvm::zip_equal(type.getShape(), last)) {
    int64_t extent = graph.getExtent(coord);
    at.push_back(size == 1 ? Coord{} : coord);
    if (size != 1 && size != extent && !ShapedType::isDynamic(size) &&
        !ShapedType::isDynamic(extent))
      return refuse(llvm::formatv("a dimension of the mask is {0}, and {1} of "
                                  "the scores",
                                  size, extent));
  }
  Expr *element = graph.element(mask, at);
  if (type.getElementType().isInteger(1)) {
    hideUnless(element);
    return success();
  }
  if (!isa<FloatType>(type.getElementType()))
    return refuse("the mask is neither of truth values nor of floats");
  match.score.hidings.push_back({Hiding::Form::Added, element, 1.0});
  return success();
}

void GivenAttention::addCausal() {
  hideUnless(graph.compare(arith::CmpIPredicate::sge, graph.index(match.rows),
                           graph.index(match.keys)));
}

Expr *GivenAttention::subtract(Expr *a, int64_t number) {
  Builder builder(op->getContext());
  Expr *b = graph.makeConstant(builder.getIndexAttr(number));
  return graph.makeOp("arith.subi", a->type, {a, b});
}

LogicalResult GivenAttention::addLengths(Value lengths,
                                         ArrayRef<Digit> tokens) {
  auto type = dyn_cast<RankedTensorType>(lengths.getType());
  if (!type || type.getRank() != 1 ||
      !type.getElementType().isSignlessInteger() || sequences.size() != 1)
    return refuse("lengths are no numbers of each sequence");
  Expr *length = graph.element(lengths, {sequences[0]});
  Expr *token = graph.makeOp("arith.index_cast", type.getElementType(),
                             {graph.index(tokens)});
  hideUnless(graph.compare(arith::CmpIPredicate::slt, token, length));
  return success();
}

bool kvbuf::named::isNone(Value value) {
  if (isa<NoneType>(value.getType()))
    return true;
  std::string text;
  llvm::raw_string_ostream(text) << value.getType();
  return text == "!torch.none";
}
