//===- ReadIREE.cpp - Attention of IREE's linalg extensions ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GivenAttention.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace kvbuf::named;
using kvbuf::raise::kHidden;

namespace {

/// Reads the region over scores as an expression of the score.
class RegionReader {
public:
  RegionReader(GivenAttention &given, ArrayRef<Coord> loops)
      : given(given), loops(loops) {}

  /// The score that the region yields; null, and the reason is said.
  Expr *read(Region &region, Expr *score);

private:
  Expr *compute(Value value);
  Expr *computeOnce(Operation *op);

  GivenAttention &given;
  ArrayRef<Coord> loops;
  Block *block = nullptr;
  DenseMap<Value, Expr *> known;
};

} // namespace

Expr *RegionReader::read(Region &region, Expr *score) {
  block = &region.front();
  Operation &yield = block->back();
  if (!region.hasOneBlock() || block->getNumArguments() != 1 ||
      yield.getNumOperands() != 1) {
    (void)given.refuse("its region is no function of one score");
    return nullptr;
  }
  // The region may be of another float than f32, which scores are here.
  Type type = block->getArgument(0).getType();
  Expr *argument = score;
  if (!type.isF32()) {
    bool isWider = type.isF64();
    argument = given.graph.makeOp(isWider ? "arith.extf" : "arith.truncf", type,
                                  {score});
  }
  known[block->getArgument(0)] = argument;
  Expr *result = compute(yield.getOperand(0));
  if (!result || type.isF32() || result == argument)
    return result == argument ? score : result;
  return given.graph.makeOp(type.isF64() ? "arith.truncf" : "arith.extf",
                            score->type, {result});
}

Expr *RegionReader::compute(Value value) {
  if (Expr *e = known.lookup(value))
    return e;
  Operation *op = value.getDefiningOp();
  Expr *result = op && op->getBlock() == block ? computeOnce(op)
                                               : given.graph.scalar(value);
  return known[value] = result;
}

Expr *RegionReader::computeOnce(Operation *op) {
  StringRef name = op->getName().getStringRef();
  auto refuse = [&]() -> Expr * {
    (void)given.refuse("its region has '" + name +
                       "', which is no op of scalars");
    return nullptr;
  };
  if (name == "iree_linalg_ext.index" || name == "linalg.index") {
    auto dim = dyn_cast_or_null<IntegerAttr>(op->getAttr("dim"));
    if (!dim || dim.getInt() < 0 ||
        dim.getInt() >= static_cast<int64_t>(loops.size()))
      return refuse();
    return given.graph.index(loops[dim.getInt()]);
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<Coord> at;
    auto type = extract.getTensor().getType();
    for (auto [dim, index] : llvm::enumerate(extract.getIndices())) {
      Expr *e = compute(index);
      if (!e)
        return nullptr;
      bool isIndex = e->kind == Expr::Kind::Index;
      if (!isIndex && type.getDimSize(dim) != 1) {
        (void)given.refuse("its region reads a tensor at a computed index");
        return nullptr;
      }
      at.push_back(isIndex ? e->coords[0] : Coord{});
    }
    return given.graph.element(extract.getTensor(), at);
  }
  if (op->hasTrait<OpTrait::ConstantLike>())
    return given.graph.scalar(op->getResult(0));
  bool isOfScalars =
      op->getDialect() &&
      isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  if (!isOfScalars || op->getNumResults() != 1 || !isMemoryEffectFree(op))
    return refuse();
  SmallVector<Expr *> operands;
  for (Value operand : op->getOperands())
    if (Expr *e = compute(operand))
      operands.push_back(e);
    else
      return nullptr;
  return given.graph.makeOpLike(op, operands);
}

/// The coordinates that an indexing map gives; nothing for maps that are no
/// selections of loops.
static std::optional<SmallVector<Coord>> follow(AffineMap map,
                                                ArrayRef<Coord> loops) {
  SmallVector<Coord> coords;
  for (AffineExpr expr : map.getResults())
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      coords.push_back(loops[loop.getPosition()]);
    else if (isa<AffineConstantExpr>(expr) &&
             cast<AffineConstantExpr>(expr).getValue() == 0)
      coords.emplace_back();
    else
      return std::nullopt;
  return coords;
}

/// The operands of the two ops: Q, K, V, the scale, perhaps a mask, and
/// destinations.
struct Operands {
  SmallVector<AffineMap> maps;
  bool hasScale = false, hasMask = false;
  unsigned firstInit = 0;
};

static LogicalResult readOperands(GivenAttention &given, unsigned inits,
                                  Operands &operands) {
  Operation *op = given.op;
  auto maps = given.get<ArrayAttr>("indexing_maps");
  unsigned count = op->getNumOperands();
  if (!maps || maps.size() != count || count < 3 + inits)
    return given.refuse("expected an indexing map for each operand");
  for (Attribute map : maps)
    if (auto affine = dyn_cast<AffineMapAttr>(map))
      operands.maps.push_back(affine.getValue());
    else
      return given.refuse("expected indexing maps that are affine maps");
  operands.firstInit = count - inits;
  // Earlier versions of the op have no scale.
  operands.hasScale =
      count > 3 + inits && isa<FloatType>(op->getOperand(3).getType());
  unsigned next = operands.hasScale ? 4 : 3;
  operands.hasMask = operands.firstInit == next + 1;
  if (operands.firstInit > next + 1)
    return given.refuse(llvm::formatv("expected at most one mask, got {0}",
                                      operands.firstInit - next));
  return success();
}

/// Coordinates of the loops, by the sizes of the tensors.
static LogicalResult makeLoops(GivenAttention &given, const Operands &operands,
                               SmallVectorImpl<Coord> &loops) {
  SmallVector<int64_t> extents(operands.maps[0].getNumDims(),
                               ShapedType::kDynamic);
  for (auto [map, operand] :
       llvm::zip_equal(operands.maps, given.op->getOperands())) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (map.getNumDims() != extents.size() ||
        (type && map.getNumResults() != static_cast<unsigned>(type.getRank())))
      return given.refuse("its indexing maps do not fit its operands");
    if (!type && map.getNumResults())
      return given.refuse("an operand is no tensor");
    for (unsigned dim = 0; dim < map.getNumResults(); ++dim)
      if (auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
          loop && !type.isDynamicDim(dim))
        extents[loop.getPosition()] = type.getDimSize(dim);
  }
  for (int64_t extent : extents)
    loops.push_back(given.graph.makeCoord(extent));
  return success();
}

/// Whether what is done to scores is hiding keys, which means the same in units
/// of any base.
static bool hidesAlone(const kvbuf::raise::Score &score) {
  return !score.cap && llvm::all_of(score.hidings, [](const Hiding &hiding) {
    return (hiding.form == Hiding::Form::WhereTrue ||
            hiding.form == Hiding::Form::WhereFalse) &&
           hiding.value <= kHidden;
  });
}

static LogicalResult readScores(GivenAttention &given, const Operands &operands,
                                ArrayRef<Coord> loops) {
  Operation *op = given.op;
  // The scale, a number or a value.
  auto &graph = given.graph;
  Builder builder(op->getContext());
  Expr *scale = nullptr;
  if (operands.hasScale) {
    scale = graph.scalar(op->getOperand(3));
    if (std::optional<double> number = graph.constantOf(scale)) {
      given.match.score.scale = *number;
      scale = nullptr;
    } else if (!scale->type.isF32()) {
      scale = graph.makeOp("arith.extf", builder.getF32Type(), {scale});
    }
  }
  Expr *product = graph.opaque(op->getOperand(0));
  product->type = builder.getF32Type();
  auto &match = given.match;
  match.scoreBefore = product;
  auto read = [&](Expr *score) {
    bool hasRegion = op->getNumRegions() == 1 && !op->getRegion(0).empty();
    return hasRegion ? RegionReader(given, loops).read(op->getRegion(0), score)
                     : score;
  };
  Expr *score = read(product);
  if (!score)
    return failure();
  kvbuf::raise::Score plain = match.score;
  match.setScore(score);
  // By default the region sees scores in units of base 2.
  auto config = given.get<DictionaryAttr>("decomposition_config");
  auto useExp2 = config ? config.getAs<BoolAttr>("use_exp2") : BoolAttr();
  bool isNatural = useExp2 && !useExp2.getValue();
  if (!isNatural && !hidesAlone(match.score))
    return given.refuse(
        "its region changes scores, which are in units of base 2 there unless "
        "decomposition_config says use_exp2 = false");
  if (!scale)
    return success();
  // A scale that is a value comes before the region.
  Expr *scaled = graph.makeOp("arith.mulf", product->type, {product, scale});
  Hiding first = {Hiding::Form::Computed, scaled, 0.0};
  if (hidesAlone(match.score)) {
    match.score.hidings.insert(match.score.hidings.begin(), first);
    return success();
  }
  match.score = plain;
  first.expr = read(scaled);
  match.score.hidings = {first};
  return success();
}

/// What attention and its online form have in common. `inits` destinations; the
/// first is the result.
static LogicalResult readCommon(GivenAttention &given, unsigned inits) {
  Operands operands;
  SmallVector<Coord> loops;
  if (failed(readOperands(given, inits, operands)) ||
      failed(makeLoops(given, operands, loops)))
    return failure();
  Operation *op = given.op;
  auto at = [&](unsigned operand) {
    return follow(operands.maps[operand], loops);
  };
  auto q = at(0), k = at(1), v = at(2), out = at(operands.firstInit);
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!q || !k || !v || !out || !type)
    return given.refuse("its indexing maps are no selections of loops");
  auto &match = given.match;
  match.score.q = {op->getOperand(0), {q->begin(), q->end()}};
  match.score.k = {op->getOperand(1), {k->begin(), k->end()}};
  match.v = {op->getOperand(2), {v->begin(), v->end()}};
  match.rootType = type;
  match.rootCoords = *out;
  // Q and K alone are contracted over theirs, K and V over the keys.
  auto has = [](ArrayRef<Coord> coords, const Coord &loop) {
    return llvm::is_contained(coords, loop);
  };
  for (const Coord &loop : loops) {
    if (loop.empty() || has(*out, loop) || !has(*k, loop))
      continue;
    if (has(*q, loop))
      llvm::append_range(match.score.depth, loop);
    else if (has(*v, loop))
      llvm::append_range(match.keys, loop);
  }
  if (failed(readScores(given, operands, loops)))
    return failure();
  if (!operands.hasMask)
    return success();
  unsigned mask = operands.firstInit - 1;
  auto coords = at(mask);
  if (!coords)
    return given.refuse("its indexing maps are no selections of loops");
  return given.addMask(op->getOperand(mask), *coords);
}

LogicalResult kvbuf::named::readIREEAttention(GivenAttention &given) {
  if (given.op->getNumResults() != 1)
    return given.refuse("expected one result, a tensor");
  return readCommon(given, /*inits=*/1);
}

LogicalResult kvbuf::named::readIREEOnlineAttention(GivenAttention &given) {
  Operation *op = given.op;
  if (op->getNumResults() != 3 || op->getNumOperands() < 6)
    return given.refuse("expected three results, tensors");
  if (failed(readCommon(given, /*inits=*/3)))
    return failure();
  // It goes on from earlier keys unless it starts from nothing.
  auto startOf = [&](unsigned init) -> std::optional<double> {
    Value tensor = op->getOperand(op->getNumOperands() - 3 + init);
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<Coord> at;
    for (int64_t extent : type.getShape())
      at.push_back(given.graph.makeCoord(extent));
    return given.graph.constantOf(given.graph.element(tensor, at));
  };
  std::optional<double> lowest = startOf(1);
  if (startOf(0) != 0.0 || startOf(2) != 0.0 || !lowest || *lowest > -1e30)
    return given.refuse("it goes on from the result of earlier keys");
  // The result is divided, so its sum is 1. The maximum is in units that the
  // decomposition chooses.
  if (!op->getResult(1).use_empty())
    return given.refuse("the maximum of the scores has users");
  given.others.push_back(
      {2, [op](OpBuilder &b) -> Value {
         Location loc = op->getLoc();
         auto type = cast<RankedTensorType>(op->getResult(2).getType());
         Value one = arith::ConstantOp::create(
             b, loc, b.getFloatAttr(type.getElementType(), 1.0));
         return linalg::FillOp::create(b, loc, one, op->getOperands().back())
             .getResult(0);
       }});
  return success();
}
