//===- ElementDefinition.cpp - Elements by what defines their tensors
//------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementExpr.h"
#include "Sizes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace kvbuf::raise;
using llvm::ArrayRef;

Expr *ElementGraph::define(Expr *e) {
  assert(e->kind == Expr::Kind::Element && "only elements are defined");
  if (!e->asked) {
    e->asked = true;
    e->definition = defineOnce(e);
    if (e->definition)
      if (Operation *op = e->value.getDefiningOp())
        visited.insert(op);
  }
  return e->definition;
}

Expr *ElementGraph::defineOnce(Expr *e) {
  Operation *op = e->value.getDefiningOp();
  if (!op)
    return nullptr;
  DenseElementsAttr elements;
  if (matchPattern(e->value, m_Constant(&elements))) {
    if (elements.isSplat() && isa<FloatType, IntegerType, IndexType>(e->type))
      return makeConstant(elements.getSplatValue<TypedAttr>());
    return nullptr;
  }
  if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    // Extents of 1 have no digit: casts that reveal or hide one are left alone.
    auto from = dyn_cast<RankedTensorType>(cast.getSource().getType());
    auto to = dyn_cast<RankedTensorType>(cast.getType());
    if (!from || !to)
      return nullptr;
    for (auto [a, b] : llvm::zip_equal(from.getShape(), to.getShape()))
      if (a != b && (a == 1 || b == 1))
        return nullptr;
    return element(cast.getSource(), e->coords);
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return defineReshape(e, op);
  if (auto reshape = dyn_cast<tensor::ReshapeOp>(op))
    return defineReshape(e, reshape);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return defineSlice(e, slice);
  if (auto insertion = dyn_cast<tensor::InsertSliceOp>(op))
    return defineInsertion(e, insertion);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return defineConcat(e, concat);
  if (auto splat = dyn_cast<tensor::SplatOp>(op))
    return scalar(splat.getInput());
  if (auto from = dyn_cast<tensor::FromElementsOp>(op))
    return from.getElements().size() == 1 ? scalar(from.getElements().front())
                                          : nullptr;
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
    return softmax.getNumResults() ? defineSoftmax(e, softmax) : nullptr;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.hasPureTensorSemantics()
               ? defineLinalg(e, linalgOp,
                              cast<OpResult>(e->value).getResultNumber())
               : nullptr;
  if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1) {
    Expr *result = makeOp(op->getName().getStringRef(), e->type, {});
    result->attrs = getMeaning(op);
    for (Value operand : op->getOperands())
      result->operands.push_back(isa<TensorType>(operand.getType())
                                     ? element(operand, e->coords)
                                     : scalar(operand));
    return result;
  }
  return nullptr;
}

Expr *ElementGraph::defineReshape(Expr *e, Operation *op) {
  // Numbers of mixed radix are of dimensions that their digits run through.
  auto type = cast<RankedTensorType>(e->value.getType());
  for (auto [dim, coord] : llvm::enumerate(e->coords))
    if (!fills(coord, type.getDimSize(dim)))
      return nullptr;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    SmallVector<Coord> coords;
    for (ReassociationIndices group : expand.getReassociationIndices()) {
      Coord &coord = coords.emplace_back();
      for (int64_t dim : group)
        llvm::append_range(coord, e->coords[dim]);
    }
    return element(expand.getSrc(), coords);
  }
  auto collapse = cast<tensor::CollapseShapeOp>(op);
  SmallVector<Coord> coords;
  ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
  for (auto [coord, group] :
       llvm::zip_equal(e->coords, collapse.getReassociationIndices())) {
    auto parts = splitCoord(coord, shape.slice(group.front(), group.size()));
    if (!parts)
      return nullptr;
    llvm::append_range(coords, *parts);
  }
  coords.resize(shape.size());
  return element(collapse.getSrc(), coords);
}

Expr *ElementGraph::defineReshape(Expr *e, tensor::ReshapeOp op) {
  auto from = dyn_cast<RankedTensorType>(op.getSource().getType());
  auto to = dyn_cast<RankedTensorType>(op.getType());
  if (!from || !to)
    return nullptr;
  for (auto [dim, coord] : llvm::enumerate(e->coords))
    if (!fills(coord, to.getDimSize(dim)))
      return nullptr;
  // From the right: single dimensions of the same size, and runs of known sizes
  // with the same product. What is left has as many elements on both sides.
  SmallVector<Coord> coords(from.getRank());
  int64_t source = from.getRank(), target = to.getRank();
  while (source > 0 && target > 0) {
    bool isOpen = from.isDynamicDim(source - 1);
    if (isOpen != to.isDynamicDim(target - 1))
      break;
    if (isOpen) {
      if (!(sizeOf(op.getSource(), source - 1) ==
            sizeOf(op.getResult(), target - 1)))
        break;
      coords[--source] = e->coords[--target];
      continue;
    }
    int64_t first = source - 1, last = target - 1;
    int64_t have = from.getDimSize(first), want = to.getDimSize(last);
    while (have != want) {
      auto [type, at, size] =
          have < want ? std::tie(from, first, have) : std::tie(to, last, want);
      if (at == 0 || type.isDynamicDim(at - 1))
        break;
      size *= type.getDimSize(--at);
    }
    if (have != want || !regroup(e->coords, last, target, from.getShape(),
                                 first, source, coords))
      break;
    source = first;
    target = last;
  }
  if (source > 1 && target > 1)
    return nullptr;
  if ((source > 0 || target > 0) &&
      !regroup(e->coords, 0, target, from.getShape(), 0, source, coords))
    return nullptr;
  return element(op.getSource(), coords);
}

bool ElementGraph::regroup(ArrayRef<Coord> given, int64_t givenBegin,
                           int64_t givenEnd, ArrayRef<int64_t> shape,
                           int64_t begin, int64_t end,
                           SmallVectorImpl<Coord> &coords) {
  Coord whole;
  for (const Coord &coord : given.slice(givenBegin, givenEnd - givenBegin))
    llvm::append_range(whole, coord);
  auto parts = splitCoord(whole, shape.slice(begin, end - begin));
  if (!parts)
    return false;
  llvm::copy(*parts, coords.begin() + begin);
  return true;
}

Expr *ElementGraph::gathered(tensor::ExtractOp extract, linalg::LinalgOp op,
                             ArrayRef<std::optional<Coord>> loops,
                             DenseMap<Value, Expr *> &memo) {
  Expr *e = makeUnknown(extract.getType(), extract, loops);
  e->value = extract.getTensor();
  for (Value index : extract.getIndices())
    e->operands.push_back(inRegion(index, op, loops, memo));
  return e;
}

std::optional<Coord> ElementGraph::followIndex(
    Value index, Value tensor, unsigned dim, linalg::LinalgOp op,
    ArrayRef<std::optional<Coord>> loops, DenseMap<Value, Expr *> &memo) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getDimSize(dim) == 1)
    return Coord{};
  // A broadcast: 0 where the size is 1.
  Size size = sizeOf(tensor, dim);
  bool isBroadcast = false;
  if (auto select = index.getDefiningOp<arith::SelectOp>()) {
    auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
    isBroadcast = compare &&
                  compare.getPredicate() == arith::CmpIPredicate::eq &&
                  getConstantIntValue(compare.getRhs()) == 1 &&
                  getConstantIntValue(select.getTrueValue()) == 0 &&
                  sizeOf(compare.getLhs()) == size;
    if (!isBroadcast)
      return std::nullopt;
    index = select.getFalseValue();
  }
  Expr *e = view(inRegion(index, op, loops, memo));
  if (e->kind != Expr::Kind::Index)
    return std::nullopt;
  Coord coord = e->coords[0];
  if (!type.isDynamicDim(dim))
    return getExtent(coord) == type.getDimSize(dim) ? std::optional(coord)
                                                    : std::nullopt;
  if (isBroadcast && sizesAgree)
    return coord;
  // The loop is as long as the dimension.
  for (OpOperand &operand : op->getOpOperands())
    for (auto [at, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr);
          loop && loops[loop.getPosition()] == coord &&
          isa<RankedTensorType>(operand.get().getType()) &&
          sizeOf(operand.get(), at) == size)
        return coord;
  return std::nullopt;
}

Expr *ElementGraph::operandAt(OpOperand &operand, linalg::LinalgOp op,
                              ArrayRef<std::optional<Coord>> loops) {
  auto type = dyn_cast<RankedTensorType>(operand.get().getType());
  if (!type)
    return scalar(operand.get());
  SmallVector<Coord> coords;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
      if (!loops[loop.getPosition()])
        return makeUnknown(type.getElementType(), op, loops);
      coords.push_back(*loops[loop.getPosition()]);
    } else if (auto constant = dyn_cast<AffineConstantExpr>(expr);
               constant && constant.getValue() == 0 &&
               type.getDimSize(dim) == 1) {
      coords.emplace_back();
    } else {
      return makeUnknown(type.getElementType(), op, loops);
    }
  }
  return element(operand.get(), coords);
}

Expr *ElementGraph::inRegion(Value value, linalg::LinalgOp op,
                             ArrayRef<std::optional<Coord>> loops,
                             DenseMap<Value, Expr *> &memo) {
  Block *block = op.getBlock();
  if (Expr *known = memo.lookup(value))
    return known;
  auto compute = [&]() -> Expr * {
    if (auto arg = dyn_cast<BlockArgument>(value);
        arg && arg.getOwner() == block)
      return operandAt(*op.getMatchingOpOperand(arg), op, loops);
    Operation *def = value.getDefiningOp();
    if (!def || def->getBlock() != block)
      return scalar(value);
    if (Attribute constant; matchPattern(value, m_Constant(&constant)))
      return scalar(value);
    if (auto index = dyn_cast<linalg::IndexOp>(def)) {
      const std::optional<Coord> &coord = loops[index.getDim()];
      if (!coord || isShifted(*coord))
        return makeUnknown(value.getType(), def, loops);
      return this->index(*coord);
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(def)) {
      SmallVector<Coord> coords;
      for (auto [dim, index] : llvm::enumerate(extract.getIndices())) {
        std::optional<Coord> coord =
            followIndex(index, extract.getTensor(), dim, op, loops, memo);
        if (!coord)
          return gathered(extract, op, loops, memo);
        coords.push_back(*coord);
      }
      return element(extract.getTensor(), coords);
    }
    if (def->getNumResults() != 1 || def->getNumRegions() ||
        !isMemoryEffectFree(def))
      return makeUnknown(value.getType(), def, loops);
    SmallVector<Expr *> operands;
    for (Value operand : def->getOperands())
      operands.push_back(inRegion(operand, op, loops, memo));
    return makeOpLike(def, operands);
  };
  Expr *result = compute();
  memo[value] = result;
  return result;
}

/// The value that a reduction's region combines with what it has so far.
static std::optional<std::pair<Value, Combiner>>
matchCombiner(Value yielded, BlockArgument accumulated) {
  Operation *op = yielded.getDefiningOp();
  if (!op || op->getBlock() != accumulated.getOwner() ||
      op->getNumOperands() != 2)
    return std::nullopt;
  Combiner combiner;
  if (isa<arith::AddFOp>(op))
    combiner = Combiner::Add;
  else if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op))
    combiner = Combiner::Max;
  else if (isa<arith::OrIOp>(op) && yielded.getType().isInteger(1))
    combiner = Combiner::Or;
  else if (isa<arith::AndIOp>(op) && yielded.getType().isInteger(1))
    combiner = Combiner::And;
  else
    return std::nullopt;
  Value other = op->getOperand(0) == accumulated   ? op->getOperand(1)
                : op->getOperand(1) == accumulated ? op->getOperand(0)
                                                   : Value();
  if (!other || other == accumulated)
    return std::nullopt;
  return std::pair(other, combiner);
}

Expr *ElementGraph::defineLinalg(Expr *e, linalg::LinalgOp op,
                                 unsigned result) {
  OpOperand *init = op.getDpsInitOperand(result);
  AffineMap map = op.getMatchingIndexingMap(init);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<std::optional<Coord>> loops(op.getNumLoops());
  auto type = cast<RankedTensorType>(e->value.getType());
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
      if (loops[loop.getPosition()])
        return nullptr;
      loops[loop.getPosition()] = e->coords[dim];
    } else if (auto constant = dyn_cast<AffineConstantExpr>(expr);
               !constant || constant.getValue() != 0 ||
               type.getDimSize(dim) != 1) {
      return nullptr;
    }
  }
  SmallVector<unsigned> reduced;
  bool reduces = false;
  for (unsigned loop = 0; loop < loops.size(); ++loop) {
    if (loops[loop])
      continue;
    if (op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction)
      reduces = true;
    else if (ranges[loop] != 1)
      return nullptr;
    if (ranges[loop] == 1)
      loops[loop] = Coord{};
    else
      reduced.push_back(loop);
  }
  BlockArgument accumulated = op.getMatchingBlockArgument(init);
  Value yielded = op.getMatchingYieldValue(init)->get();
  if (!reduces) {
    DenseMap<Value, Expr *> memo;
    return inRegion(yielded, op, loops, memo);
  }
  auto combined = matchCombiner(yielded, accumulated);
  if (!combined)
    return nullptr;
  // What it starts from has to leave the result as it is.
  std::optional<double> start = constantOf(element(init->get(), e->coords));
  bool neutral =
      start && (combined->second == Combiner::Max   ? isLowest(start, e->type)
                : combined->second == Combiner::And ? *start != 0
                                                    : *start == 0);
  if (!neutral)
    return nullptr;
  Expr *reduction = make(Expr::Kind::Reduction, e->type);
  reduction->op = op;
  reduction->result = result;
  reduction->combiner = combined->second;
  reduction->reduced.assign(reduced.begin(), reduced.end());
  for (std::optional<Coord> &loop : loops)
    reduction->coords.push_back(loop.value_or(Coord{}));
  return reduction;
}

Expr *ElementGraph::defineSoftmax(Expr *e, linalg::SoftmaxOp op) {
  auto reduce = [&](Combiner combiner) {
    Expr *reduction = make(Expr::Kind::Reduction, e->type);
    reduction->op = op;
    reduction->combiner = combiner;
    reduction->coords = e->coords;
    if (op.getInputOperandType().getDimSize(op.getDimension()) != 1)
      reduction->reduced.push_back(op.getDimension());
    return reduction;
  };
  Expr *score = element(op.getInput(), e->coords);
  Expr *shifted = makeOp("arith.subf", e->type, {score, reduce(Combiner::Max)});
  Expr *weight = makeOp("math.exp", e->type, {shifted});
  return makeOp("arith.divf", e->type, {weight, reduce(Combiner::Add)});
}

Expr *ElementGraph::body(Expr *reduction, ArrayRef<Coord> at) {
  SmallVector<std::optional<Coord>> loops(reduction->coords.begin(),
                                          reduction->coords.end());
  for (auto [loop, coord] : llvm::zip_equal(reduction->reduced, at))
    loops[loop] = coord;
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(reduction->op)) {
    SmallVector<Coord> coords;
    for (std::optional<Coord> &loop : loops)
      coords.push_back(*loop);
    if (reduction->combiner == Combiner::Max)
      return element(softmax.getInput(), coords);
    // The sum's elements are the numerators of the softmax.
    Expr *at = element(reduction->op->getResult(0), coords);
    return defineSoftmax(at, softmax)->operands[0];
  }
  auto op = cast<linalg::LinalgOp>(reduction->op);
  OpOperand *init = op.getDpsInitOperand(reduction->result);
  auto combined = matchCombiner(op.getMatchingYieldValue(init)->get(),
                                op.getMatchingBlockArgument(init));
  DenseMap<Value, Expr *> memo;
  // Nothing that is read may be a partial result.
  for (OpOperand &other : op.getDpsInitsMutable())
    memo[op.getMatchingBlockArgument(&other)] =
        makeUnknown(getElementTypeOrSelf(other.get().getType()), op, loops);
  return inRegion(combined->first, op, loops, memo);
}

SmallVector<int64_t> ElementGraph::getReducedExtents(Expr *reduction) {
  SmallVector<int64_t> ranges;
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(reduction->op))
    ranges.assign(softmax.getInputOperandType().getShape());
  else
    ranges = cast<linalg::LinalgOp>(reduction->op).getStaticLoopRanges();
  return llvm::map_to_vector(reduction->reduced,
                             [&](unsigned loop) { return ranges[loop]; });
}

SmallVector<Coord> ElementGraph::makeReducedCoords(Expr *reduction) {
  return llvm::map_to_vector(getReducedExtents(reduction),
                             [&](int64_t extent) { return makeCoord(extent); });
}
