//===- OverlapProducts.cpp - A tile's scores beside the last product *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopParts.h"
#include "LostRequest.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace kvbuf {
#define GEN_PASS_DEF_OVERLAPPRODUCTS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-overlap-products"

namespace {

/// The parts of a loop over tiles of keys: scores, an optional mask on them,
/// softmax, rescaling of the accumulator, product of the weights.
struct TileLoop {
  scf::ForOp loop;
  /// The scores as they come out of the matrix unit, and all that they need.
  Value scores;
  OpSlice scoreSlice;
  /// What the softmax or the mask takes: the scores, or what a cap or a scale
  /// has made of them.
  Value unmasked;
  /// The branch that masks them, or null.
  scf::IfOp mask;
  OnlineSoftmaxOp softmax;
  RescaleOp rescale;
  MmaOp product;
  /// All that the product's operand b needs.
  OpSlice valueSlice;
  /// Numbers of the carried values.
  unsigned acc, max, sum;
};

/// Finds the parts around a softmax; on failure `why` says what is unexpected.
/// `rings`: whether slots will know when they are free.
std::optional<TileLoop> matchTileLoop(OnlineSoftmaxOp softmax, bool rings,
                                      StringRef &why) {
  TileLoop t;
  t.loop = cast<scf::ForOp>(softmax->getParentOp());
  t.softmax = softmax;
  auto carried = [&](Value value) -> std::optional<unsigned> {
    auto arg = dyn_cast<BlockArgument>(value);
    if (!arg || arg.getOwner() != t.loop.getBody() ||
        arg == t.loop.getInductionVar())
      return std::nullopt;
    return arg.getArgNumber() - t.loop.getNumInductionVars();
  };
  auto onlyUser = [](Value value) -> Operation * {
    return value.hasOneUse() ? *value.getUsers().begin() : nullptr;
  };

  why = "the loop does not carry an accumulator, a maximum and a sum";
  auto max = carried(softmax.getMax()), sum = carried(softmax.getSum());
  t.rescale = dyn_cast_or_null<RescaleOp>(onlyUser(softmax.getRescale()));
  if (!max || !sum || !t.rescale || t.loop.getNumResults() != 3)
    return std::nullopt;
  t.product = dyn_cast_or_null<MmaOp>(onlyUser(t.rescale.getResult()));
  auto acc = carried(t.rescale.getAcc());
  if (!acc || !t.product || t.product.getAcc() != t.rescale.getResult() ||
      t.product.getA() != softmax.getP() || !softmax.getP().hasOneUse())
    return std::nullopt;
  t.acc = *acc;
  t.max = *max;
  t.sum = *sum;
  ValueRange yielded = t.loop.getYieldedValues();
  if (yielded[t.acc] != t.product.getResult() ||
      yielded[t.max] != softmax.getNewMax() ||
      yielded[t.sum] != softmax.getNewSum())
    return std::nullopt;

  // What comes out of the matrix unit; all that is done to it stays with the
  // softmax, where the product of the tile before is in flight. A mask does for
  // another reason, too: the loop can be split where masks end.
  t.unmasked = softmax.getScores();
  if (auto branch = t.unmasked.getDefiningOp<scf::IfOp>())
    if (auto yield = branch.elseYield()) {
      t.mask = branch;
      t.unmasked =
          yield.getOperand(cast<OpResult>(t.unmasked).getResultNumber());
    }
  t.scores = t.unmasked;
  while (Operation *op = t.scores.getDefiningOp()) {
    if (!isa<SoftcapOp, FragmentScaleOp>(op) ||
        op->getBlock() != t.loop.getBody())
      break;
    t.scores = op->getOperand(0);
  }
  why = "the scores, or what the weights are multiplied by, depend on what the "
        "loop carries";
  if (!collectSlice(t.scores, t.loop, t.scoreSlice) ||
      !collectSlice(t.product.getB(), t.loop, t.valueSlice))
    return std::nullopt;
  why = "the loop's step is not 1";
  if (getConstantIntValue(t.loop.getStep()) != 1)
    return std::nullopt;
  // Whatever else has an effect would be lost, and what serves both products
  // done twice.
  why = "the loop does more than a softmax between two products";
  for (Operation &op : t.loop.getBody()->without_terminator()) {
    bool ofScores = t.scoreSlice.contains(&op),
         ofValues = t.valueSlice.contains(&op);
    if (!isMemoryEffectFree(&op) && ofScores == ofValues)
      return std::nullopt;
  }
  // The second tile's load follows the first scores without a barrier.
  why = "a buffer of one slot cannot be loaded while it is read";
  for (Operation *op : t.scoreSlice)
    if (auto load = dyn_cast<DramLoadOp>(op);
        load && !rings &&
        load.getBuffer().getType().getParams().getStages() < 2)
      return std::nullopt;
  return t;
}

struct OverlapProductsPass
    : kvbuf::impl::OverlapProductsBase<OverlapProductsPass> {
  using Base::Base;

  /// The mask alone, where the branch only decides whether it is needed: a mask
  /// hides nothing of a tile that needs none.
  static MaskOp alwaysRight(TileLoop &t) {
    if (!t.mask || t.mask.getNumResults() != 1)
      return nullptr;
    auto mask = t.mask.thenYield().getOperand(0).getDefiningOp<MaskOp>();
    if (!mask || mask->getBlock() != t.mask.thenBlock() ||
        mask.getScores() != t.unmasked)
      return nullptr;
    return mask;
  }

  void rotate(TileLoop &t) {
    scf::ForOp loop = t.loop;
    ImplicitLocOpBuilder b(loop.getLoc(), loop);
    Value lb = loop.getLowerBound(), ub = loop.getUpperBound(),
          one = loop.getStep();
    Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lb, ub);
    auto guarded =
        scf::IfOp::create(b, loop.getResultTypes(), any,
                          /*addThenBlock=*/true, /*addElseBlock=*/true);
    b.setInsertionPointToStart(guarded.elseBlock());
    scf::YieldOp::create(b, loop.getInitArgs());
    b.setInsertionPointToStart(guarded.thenBlock());

    auto startIteration = [&](Value iv) {
      IRMapping mapping;
      mapping.map(loop.getInductionVar(), iv);
      return mapping;
    };
    /// The product of `p` and the values of the iteration in `mapping`.
    auto multiply = [&](IRMapping &mapping, Value p, Value acc) -> Value {
      mapping.map(t.softmax.getP(), p);
      mapping.map(t.rescale.getResult(), acc);
      cloneSlice(b, loop, t.valueSlice, mapping);
      return b.clone(*t.product, mapping)->getResult(0);
    };
    /// The softmax of the scores in `mapping`.
    auto softmax = [&](IRMapping &mapping, Value max, Value sum) {
      mapping.map(loop.getRegionIterArg(t.max), max);
      mapping.map(loop.getRegionIterArg(t.sum), sum);
      return cast<OnlineSoftmaxOp>(
          cloneWithOperands(b, loop, t.softmax, mapping));
    };

    // The first scores and their softmax.
    IRMapping first = startIteration(lb);
    cloneSlice(b, loop, t.scoreSlice, first);
    if (MaskOp mask = alwaysRight(t)) {
      Operation *copy = cloneWithOperands(b, loop, mask, first);
      first.map(t.softmax.getScores(), copy->getResult(0));
    }
    OnlineSoftmaxOp p0 =
        softmax(first, loop.getInitArgs()[t.max], loop.getInitArgs()[t.sum]);
    Value acc0 = loop.getInitArgs()[t.acc];
    auto fill = acc0.getDefiningOp<FragmentFillOp>();
    if (!fill || !fill.getValue().isZero())
      acc0 = RescaleOp::create(b, acc0, p0.getRescale());

    // Scores of this tile, product of the one before, softmax, rescaling.
    Value second = arith::AddIOp::create(b, lb, one);
    SmallVector<Value> inits(3);
    inits[t.acc] = acc0;
    inits[t.max] = p0.getNewMax();
    inits[t.sum] = p0.getNewSum();
    inits.push_back(p0.getP());
    auto rotated = scf::ForOp::create(b, second, ub, one, inits);
    rotated->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(rotated.getBody());
      Value iv = rotated.getInductionVar();
      ValueRange args = rotated.getRegionIterArgs();
      IRMapping now = startIteration(iv);
      cloneSlice(b, loop, t.scoreSlice, now);
      IRMapping before =
          startIteration(arith::SubIOp::create(b, iv, one).getResult());
      Value acc = multiply(before, args.back(), args[t.acc]);
      OnlineSoftmaxOp p = softmax(now, args[t.max], args[t.sum]);
      SmallVector<Value> yields(3);
      yields[t.acc] = RescaleOp::create(b, acc, p.getRescale());
      yields[t.max] = p.getNewMax();
      yields[t.sum] = p.getNewSum();
      yields.push_back(p.getP());
      scf::YieldOp::create(b, yields);
      // Only scores leave the first tile behind; the weights' product is one
      // iteration late.
      if (loop->hasAttr(KVBufferDialect::kWholeAfterFirstAttr))
        for (Operation *op : t.scoreSlice)
          if (auto load = dyn_cast<DramLoadOp>(op))
            cast<DramLoadOp>(now.lookup(load.getToken()).getDefiningOp())
                .setWhole(true);
    }

    IRMapping last =
        startIteration(arith::SubIOp::create(b, ub, one).getResult());
    SmallVector<Value> results(rotated.getResults().take_front(3));
    results[t.acc] =
        multiply(last, rotated.getResults().back(), results[t.acc]);
    scf::YieldOp::create(b, results);
    remark::passed(loop.getLoc(),
                   remark::RemarkOpts::name("overlap").category(DEBUG_TYPE))
        << "the product of the weights overlaps the next tile's scores and "
           "softmax";
    loop.replaceAllUsesWith(guarded.getResults());
    loop.erase();
  }

  void runOnOperation() override {
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (!schedule || !schedule.getOverlapProducts())
      return;
    SmallVector<OnlineSoftmaxOp> found;
    getOperation().walk([&](OnlineSoftmaxOp op) {
      if (isa<scf::ForOp>(op->getParentOp()))
        found.push_back(op);
    });
    if (found.empty())
      warnLost(getOperation(), DEBUG_TYPE, "overlap",
               "not overlapped: no loop has a kvbuffer.online_softmax");
    for (OnlineSoftmaxOp softmax : found) {
      StringRef why;
      if (std::optional<TileLoop> t =
              matchTileLoop(softmax, schedule.getProducers(), why)) {
        rotate(*t);
        continue;
      }
      warnLost(softmax->getParentOp(), DEBUG_TYPE, "overlap",
               "not overlapped: " + why);
    }
  }
};
} // namespace
