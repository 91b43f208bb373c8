//===- AttentionBuilder.cpp - Ops in the place of graphs -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBuilder.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::raise;

Value AttentionBuilder::expandToDigits(Value tensor, ArrayRef<Coord> coords) {
  // Digits of unknown extents get theirs from the tensor at hand.
  SmallVector<ReassociationIndices> groups;
  SmallVector<OpFoldResult> sizes;
  SmallVector<int64_t> shape;
  bool expands = false, hasUnits = false;
  for (auto [dim, coord] : llvm::enumerate(coords)) {
    ReassociationIndices &group = groups.emplace_back();
    if (coord.size() <= 1) {
      group.push_back(shape.size());
      shape.push_back(typeOf(tensor).getDimSize(dim));
      sizes.push_back(sizeOf(tensor, dim));
      hasUnits |= coord.empty();
      continue;
    }
    expands = true;
    int64_t known = 1;
    for (Digit digit : coord)
      if (!ShapedType::isDynamic(graph.getExtent(digit)))
        known *= graph.getExtent(digit);
    for (Digit digit : coord) {
      group.push_back(shape.size());
      int64_t extent = graph.getExtent(digit);
      if (ShapedType::isDynamic(extent) && !typeOf(tensor).isDynamicDim(dim))
        extent = typeOf(tensor).getDimSize(dim) / known;
      shape.push_back(extent);
      if (!ShapedType::isDynamic(extent)) {
        sizes.push_back(b.getIndexAttr(extent));
        continue;
      }
      Value whole = tensor::DimOp::create(b, tensor, dim);
      Value part = arith::ConstantIndexOp::create(b, known);
      sizes.push_back(arith::DivUIOp::create(b, whole, part).getResult());
    }
  }
  Type element = typeOf(tensor).getElementType();
  if (expands)
    tensor = tensor::ExpandShapeOp::create(
        b, RankedTensorType::get(shape, element), tensor, groups, sizes);
  if (!hasUnits)
    return tensor;
  // Dimensions without a digit join the one before, or the first after.
  SmallVector<ReassociationIndices> joined;
  int64_t dim = 0;
  for (const Coord &coord : coords) {
    if (coord.empty()) {
      if (joined.empty())
        joined.emplace_back();
      joined.back().push_back(dim++);
      continue;
    }
    for (size_t digit = 0; digit < coord.size(); ++digit) {
      bool joinsUnits = joined.size() == 1 && digit == 0 &&
                        llvm::all_of(coords.take_front(joined[0].size()),
                                     [](const Coord &c) { return c.empty(); });
      if (!joinsUnits)
        joined.emplace_back();
      joined.back().push_back(dim++);
    }
  }
  return tensor::CollapseShapeOp::create(b, tensor, joined);
}

Value AttentionBuilder::collapseToCoords(Value tensor, ArrayRef<Coord> coords) {
  SmallVector<ReassociationIndices> groups;
  int64_t dim = 0;
  bool collapses = false, hasUnits = false;
  for (const Coord &coord : coords) {
    collapses |= coord.size() > 1;
    hasUnits |= coord.empty();
    if (coord.empty())
      continue;
    ReassociationIndices &group = groups.emplace_back();
    for (size_t digit = 0; digit < coord.size(); ++digit)
      group.push_back(dim++);
  }
  if (collapses)
    tensor = tensor::CollapseShapeOp::create(b, tensor, groups);
  if (!hasUnits)
    return tensor;
  SmallVector<ReassociationIndices> spread(groups.size());
  SmallVector<OpFoldResult> sizes;
  SmallVector<int64_t> shape;
  int64_t next = 0;
  for (auto [i, coord] : llvm::enumerate(coords)) {
    // Units go with the dimension before, those at the front with the first.
    int64_t at = coord.empty() ? std::max<int64_t>(next - 1, 0) : next++;
    spread[at].push_back(i);
    shape.push_back(coord.empty() ? 1 : typeOf(tensor).getDimSize(next - 1));
    sizes.push_back(coord.empty() ? OpFoldResult(b.getIndexAttr(1))
                                  : sizeOf(tensor, next - 1));
  }
  return tensor::ExpandShapeOp::create(
      b, RankedTensorType::get(shape, typeOf(tensor).getElementType()), tensor,
      spread, sizes);
}

Value AttentionBuilder::arrange(Value tensor, ArrayRef<Coord> from,
                                ArrayRef<Coord> to) {
  auto resolve = [&](ArrayRef<Coord> coords) {
    return llvm::map_to_vector(
        coords, [&](const Coord &coord) { return graph.resolve(coord); });
  };
  SmallVector<Coord> source = resolve(from), target = resolve(to);
  if (source == target)
    return tensor;
  auto flatten = [](ArrayRef<Coord> coords) {
    Coord result;
    for (const Coord &coord : coords)
      llvm::append_range(result, coord);
    return result;
  };
  Coord have = flatten(source), want = flatten(target);
  tensor = expandToDigits(tensor, source);
  if (have != want) {
    SmallVector<int64_t> order;
    SmallVector<OpFoldResult> sizes;
    for (Digit digit : want) {
      order.push_back(llvm::find(have, digit) - have.begin());
      sizes.push_back(sizeOf(tensor, order.back()));
    }
    Value init = empty(sizes, typeOf(tensor).getElementType());
    tensor = linalg::TransposeOp::create(b, tensor, init, order)->getResult(0);
  }
  return collapseToCoords(tensor, target);
}

Value AttentionBuilder::convert(Value tensor, Type element) {
  RankedTensorType type = typeOf(tensor);
  if (type.getElementType() == element)
    return tensor;
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    sizes.push_back(sizeOf(tensor, dim));
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  Value init = empty(sizes, element);
  return linalg::GenericOp::create(
             b, init.getType(), tensor, init, ArrayRef<AffineMap>{map, map},
             loops,
             [&](OpBuilder &inner, Location loc, ValueRange args) {
               unsigned from = args[0].getType().getIntOrFloatBitWidth();
               unsigned to = element.getIntOrFloatBitWidth();
               Value x = args[0];
               if (x.getType().isInteger()) {
                 x = arith::ExtUIOp::create(inner, loc, element, x);
                 linalg::YieldOp::create(inner, loc, x);
                 return;
               }
               if (from == to) {
                 x = arith::ExtFOp::create(inner, loc, inner.getF32Type(), x);
                 from = 32;
               }
               if (from < to)
                 x = arith::ExtFOp::create(inner, loc, element, x);
               else
                 x = arith::TruncFOp::create(inner, loc, element, x);
               linalg::YieldOp::create(inner, loc, x);
             })
      .getResult(0);
}

SmallVector<Value> AttentionBuilder::buildRegions(Region &scores,
                                                  Region &visible) {
  SmallVector<Value> captures;
  SmallVector<ScoreEmitter, 2> emitters;
  SmallVector<Region *, 2> regions;
  if (!match.unseen.empty()) {
    regions.push_back(&visible);
    emitters.emplace_back(match, b.getLoc(), &visible.emplaceBlock(), captures,
                          /*scores=*/false);
    for (const Hiding &hiding : match.unseen)
      emitters.back().emitVisible(hiding);
  }
  if (!match.changes.empty()) {
    regions.push_back(&scores);
    emitters.emplace_back(match, b.getLoc(), &scores.emplaceBlock(), captures,
                          /*scores=*/true);
    for (const Hiding &hiding : match.changes)
      emitters.back().emit(hiding);
  }
  for (ScoreEmitter &emitter : emitters)
    emitter.finish();
  // Kernels read tensors, and of them none of few bits.
  for (auto [i, tensor] : llvm::enumerate(captures)) {
    if (RankedTensorType type = ScoreEmitter::tensorTypeOf(tensor);
        type != tensor.getType()) {
      if (tensor.getType().isIndex())
        tensor = arith::IndexCastOp::create(b, type.getElementType(), tensor);
      tensor = tensor::FromElementsOp::create(b, type, tensor);
    }
    Type element = typeOf(tensor).getElementType();
    if (!element.isInteger() || element.getIntOrFloatBitWidth() >= 32)
      continue;
    tensor = convert(tensor, b.getI32Type());
    for (Region *region : regions)
      readWords(region->getArguments().take_back(captures.size())[i],
                tensor.getType());
  }
  return captures;
}

void AttentionBuilder::readWords(BlockArgument arg, Type type) {
  Type element = typeOf(arg).getElementType();
  arg.setType(type);
  for (Operation *user : llvm::make_early_inc_range(arg.getUsers())) {
    auto extract = cast<tensor::ExtractOp>(user);
    OpBuilder inner(extract);
    inner.setInsertionPointAfter(extract);
    extract.getResult().setType(b.getI32Type());
    auto narrow = arith::TruncIOp::create(inner, extract.getLoc(), element,
                                          extract.getResult());
    extract.getResult().replaceAllUsesExcept(narrow.getResult(), narrow);
  }
}

Value AttentionBuilder::buildIntegers(
    ArrayRef<OpFoldResult> sizes, Type element, ValueRange inputs,
    ArrayRef<AffineMap> inputMaps,
    llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  SmallVector<AffineMap> maps(inputMaps);
  maps.push_back(b.getMultiDimIdentityMap(sizes.size()));
  SmallVector<utils::IteratorType> loops(sizes.size(),
                                         utils::IteratorType::parallel);
  Value init = empty(sizes, element);
  return linalg::GenericOp::create(
             b, init.getType(), inputs, init, maps, loops,
             [&](OpBuilder &inner, Location loc, ValueRange args) {
               linalg::YieldOp::create(inner, loc, body(inner, loc, args));
             })
      .getResult(0);
}

Value AttentionBuilder::buildLengths(OpFoldResult batch) {
  int64_t keys = graph.getExtent(match.keys);
  if (!match.lengths)
    return buildIntegers(
        batch, b.getI32Type(), {}, {},
        [&](OpBuilder &inner, Location loc, ValueRange) -> Value {
          return arith::ConstantIntOp::create(inner, loc, keys, /*width=*/32);
        });
  const Lengths &lengths = *match.lengths;
  // A dimension a digit, of the numbers and of the sequences.
  Value numbers = lengths.numbers.tensor;
  Type element = typeOf(numbers).getElementType();
  Coord given, sequences = graph.resolve(match.batch);
  for (const Coord &coord : lengths.numbers.coords)
    llvm::append_range(given, graph.resolve(coord));
  if (given.empty()) {
    if (typeOf(numbers).getRank())
      numbers = tensor::CollapseShapeOp::create(
          b, numbers, ArrayRef<ReassociationIndices>());
  } else {
    SmallVector<Coord> coords;
    for (const Coord &coord : lengths.numbers.coords)
      coords.push_back(graph.resolve(coord));
    numbers = expandToDigits(numbers, coords);
  }
  if (!lengths.isInclusive && given.size() == 1 && given == sequences)
    return numbers;
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> at;
  for (Digit digit : given)
    at.push_back(
        b.getAffineDimExpr(llvm::find(sequences, digit) - sequences.begin()));
  for (Digit digit : sequences)
    sizes.push_back(
        sequences.size() == 1 ? batch : b.getIndexAttr(graph.getExtent(digit)));
  if (sizes.empty())
    sizes.push_back(b.getIndexAttr(1));
  int64_t rank = sizes.size();
  Value result = buildIntegers(
      sizes, element, numbers, AffineMap::get(rank, 0, at, b.getContext()),
      [&](OpBuilder &inner, Location loc, ValueRange args) -> Value {
        if (!lengths.isInclusive)
          return args[0];
        // The last key's number, of those that there are.
        auto number = [&](int64_t value) {
          return arith::ConstantOp::create(
              inner, loc, inner.getIntegerAttr(element, value));
        };
        Value last = arith::MinSIOp::create(inner, loc, args[0], number(keys));
        return arith::AddIOp::create(inner, loc, last, number(1));
      });
  if (rank == 1)
    return result;
  ReassociationIndices all = llvm::to_vector(llvm::seq<int64_t>(rank));
  return tensor::CollapseShapeOp::create(b, result,
                                         ArrayRef<ReassociationIndices>(all));
}

Value AttentionBuilder::makeCache(Value data, CacheKind kind, Value table,
                                  Value lengths) {
  RankedTensorType type = typeOf(data);
  // Kernels take tables and lengths of one type.
  Type wide = b.getI64Type();
  if (typeOf(table).getElementType() != typeOf(lengths).getElementType())
    for (Value *numbers : {&table, &lengths}) {
      SmallVector<OpFoldResult> sizes;
      int64_t rank = typeOf(*numbers).getRank();
      for (int64_t dim = 0; dim < rank; ++dim)
        sizes.push_back(sizeOf(*numbers, dim));
      if (typeOf(*numbers).getElementType() != wide)
        *numbers = buildIntegers(
            sizes, wide, *numbers, b.getMultiDimIdentityMap(rank),
            [&](OpBuilder &inner, Location loc, ValueRange args) -> Value {
              return arith::ExtSIOp::create(inner, loc, wide, args[0]);
            });
    }
  auto cache = CacheType::get(
      b.getContext(), kind, type.getElementType(), type.getDimSize(2),
      type.getDimSize(3),
      /*pageSize=*/kind == CacheKind::Paged ? type.getDimSize(1) : 0,
      /*cacheDepth=*/type.getDimSize(3), /*headDimOffset=*/0,
      /*scaleType=*/Type(), /*granularity=*/0, /*row=*/RowAttr());
  return MakeCacheOp::create(b, cache, data, ValueRange{table, lengths},
                             /*scales=*/Value(), /*max_prompt=*/Value(),
                             /*max_context=*/Value());
}

Value AttentionBuilder::buildPaged(const Pages &pages, Value lengths) {
  Value table = arrange(pages.table.tensor, pages.table.coords,
                        {match.batch, pages.pages});
  if (pages.wrapsAt) {
    Type element = typeOf(table).getElementType();
    table = buildIntegers(
        {sizeOf(table, 0), sizeOf(table, 1)}, element, table,
        b.getMultiDimIdentityMap(2),
        [&](OpBuilder &inner, Location loc, ValueRange args) -> Value {
          auto number = [&](int64_t value) {
            return arith::ConstantOp::create(
                inner, loc, inner.getIntegerAttr(element, value));
          };
          Value isBelow = arith::CmpIOp::create(
              inner, loc, arith::CmpIPredicate::slt, args[0], number(0));
          Value above =
              arith::AddIOp::create(inner, loc, args[0], number(pages.wrapsAt));
          return arith::SelectOp::create(inner, loc, isBelow, above, args[0]);
        });
  }
  return makeCache(pages.pool, CacheKind::Paged, table, lengths);
}

Value AttentionBuilder::buildContinuous(Value tensor, Value lengths) {
  // Each sequence has its own rows.
  Value table = buildIntegers(
      sizeOf(tensor, 0), b.getI32Type(), {}, {},
      [&](OpBuilder &inner, Location loc, ValueRange) -> Value {
        Value sequence = linalg::IndexOp::create(inner, loc, /*dim=*/0);
        return arith::IndexCastOp::create(inner, loc, inner.getI32Type(),
                                          sequence);
      });
  return makeCache(tensor, CacheKind::Continuous, table, lengths);
}

AttentionBuilder::Results AttentionBuilder::build() {
  auto join = [](std::initializer_list<ArrayRef<Digit>> parts) {
    Coord coord;
    for (ArrayRef<Digit> part : parts)
      llvm::append_range(coord, part);
    return coord;
  };
  Coord heads = join({match.kvHeads, match.group});
  SmallVector<Coord> qShape{match.batch, match.rows, heads, match.score.depth};
  SmallVector<Coord> kShape{match.batch, match.keys, match.kvHeads,
                            match.score.depth};
  SmallVector<Coord> vShape{match.batch, match.keys, match.kvHeads,
                            match.columns};
  SmallVector<Coord> oShape{match.batch, match.rows, heads, match.columns};
  auto prepare = [&](const SourceTensor &operand, ArrayRef<Coord> shape) {
    return convert(arrange(operand.tensor, operand.coords, shape),
                   match.elementType);
  };
  Value q = prepare(match.score.q, qShape);
  Value k, v;
  if (match.kPages) {
    Value lengths = buildLengths(sizeOf(q, 0));
    k = buildPaged(*match.kPages, lengths);
    v = buildPaged(*match.vPages, lengths);
  } else {
    k = prepare(match.score.k, kShape);
    v = prepare(match.v, vShape);
    if (match.lengths) {
      Value lengths = buildLengths(sizeOf(q, 0));
      k = buildContinuous(k, lengths);
      v = buildContinuous(v, lengths);
    }
  }
  Value sink;
  if (match.sink)
    sink = convert(arrange(match.sink->tensor, match.sink->coords, {heads}),
                   b.getF32Type());
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0; dim < 3; ++dim)
    sizes.push_back(sizeOf(q, dim));
  sizes.push_back(b.getIndexAttr(graph.getExtent(match.columns)));
  Value init = empty(sizes, match.outType), lse;
  if (match.lseCoords)
    lse = empty({sizes[0], sizes[2], sizes[1]}, b.getF32Type());
  SmallVector<Type> types{init.getType()};
  if (lse)
    types.push_back(lse.getType());
  MaskAttr mask;
  if (match.causal || match.left >= 0 || match.right >= 0)
    mask = MaskAttr::get(b.getContext(), match.causal, match.left, match.right);
  Region scores, visible;
  SmallVector<Value> captures = buildRegions(scores, visible);
  auto op = AttentionOp::create(
      b, types, q, k, v, /*offsets=*/Value(), sink, captures, init, lse, mask,
      /*block_mask=*/BlockMaskAttr(), b.getF32FloatAttr(match.score.scale),
      match.score.cap ? b.getF32FloatAttr(match.score.cap) : FloatAttr(),
      /*batch_invariant=*/false, /*schedule=*/ScheduleAttr());
  if (match.kPages || match.lengths)
    op->setAttr(kLengthsAttr, b.getStringAttr("all"));
  op.getScore().takeBody(scores);
  op.getVisible().takeBody(visible);
  RankedTensorType type = match.rootType;
  Results results;
  results.out = arrange(convert(op->getResult(0), type.getElementType()),
                        oShape, match.rootCoords);
  if (results.out.getType() != type)
    results.out = tensor::CastOp::create(b, type, results.out);
  if (lse)
    results.lse = arrange(op->getResult(1), {match.batch, heads, match.rows},
                          *match.lseCoords);
  return results;
}
