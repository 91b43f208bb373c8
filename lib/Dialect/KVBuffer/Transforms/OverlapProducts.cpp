//===- OverlapProducts.cpp - A tile's scores beside the last product ------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopParts.h"
#include "LostRequest.h"
#include "PipelineLoop.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_OVERLAPPRODUCTS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-overlap-products"

namespace {

/// An accumulator of a loop: its rescaling, and the product of the weights that
/// is added to it: by the matrix unit, or, where it begins from zero, by the
/// rescaling.
struct Output {
  RescaleOp rescale;
  MmaOp product;
  bool addsApart() { return bool(rescale.getAddend()); }
};

/// The parts of a loop over tiles of keys: scores, an optional mask on them,
/// softmax, rescaling of the accumulators, products of the weights.
struct TileLoop {
  scf::ForOp loop;
  /// The scores as they come out of the matrix unit, and all that they need.
  Value scores;
  OpSlice scoreSlice;
  OnlineSoftmaxOp softmax;
  /// One or more, in the order of their rescaling.
  SmallVector<Output> outputs;
  /// All that the products' operands b need.
  OpSlice valueSlice;
  /// All that other operands of what is done to the scores need.
  OpSlice besideSlice;
  /// All that runs an iteration ahead of the products: scores, softmax and what
  /// they need.
  OpSlice ahead;

  /// Whether the softmax adds weights up, and not a product.
  bool addsUp() { return !softmax.getNewSum().use_empty(); }
  /// What the products take of that, and the next iteration.
  SmallVector<Value> handed() {
    SmallVector<Value> values{softmax.getP()};
    for (Output &output : outputs)
      values.push_back(output.addsApart() ? softmax.getRescale()
                                          : output.rescale.getResult());
    values.push_back(softmax.getNewMax());
    if (addsUp())
      values.push_back(softmax.getNewSum());
    return values;
  }

  /// The number of a value that the loop carries; nullopt of others.
  std::optional<unsigned> carried(Value value) {
    auto arg = dyn_cast<BlockArgument>(value);
    if (!arg || arg.getOwner() != loop.getBody() ||
        arg == loop.getInductionVar())
      return std::nullopt;
    return arg.getArgNumber() - loop.getNumInductionVars();
  }
};

/// Finds the accumulators of a loop: all that its softmax's factor rescales,
/// each with a product of the weights. False if something else is carried, or
/// becomes of the factor or the weights.
bool matchOutputs(TileLoop &t) {
  OnlineSoftmaxOp softmax = t.softmax;
  auto max = t.carried(softmax.getMax()), sum = t.carried(softmax.getSum());
  ValueRange yielded = t.loop.getYieldedValues();
  if (!max || yielded[*max] != softmax.getNewMax() ||
      (t.addsUp() && (!sum || yielded[*sum] != softmax.getNewSum())))
    return false;
  for (Operation *user : softmax.getRescale().getUsers()) {
    auto rescale = dyn_cast<RescaleOp>(user);
    if (!rescale || rescale->getBlock() != t.loop.getBody() ||
        !rescale.getResult().hasOneUse())
      return false;
    if (Value addend = rescale.getAddend()) {
      auto product = addend.getDefiningOp<MmaOp>();
      auto acc = t.carried(rescale.getAcc());
      if (!acc || !product || product->getBlock() != t.loop.getBody() ||
          !product.getResult().hasOneUse() ||
          product.getA() != softmax.getP() ||
          yielded[*acc] != rescale.getResult())
        return false;
      t.outputs.push_back({rescale, product});
      continue;
    }
    auto product = dyn_cast<MmaOp>(*rescale.getResult().user_begin());
    auto acc = t.carried(rescale.getAcc());
    if (!acc || !product || product.getAcc() != rescale.getResult() ||
        product.getA() != softmax.getP() ||
        yielded[*acc] != product.getResult())
      return false;
    t.outputs.push_back({rescale, product});
  }
  llvm::sort(t.outputs, [](const Output &one, const Output &other) {
    Operation *before = one.rescale;
    return before->isBeforeInBlock(other.rescale);
  });
  return !t.outputs.empty() &&
         t.loop.getNumResults() == t.outputs.size() + 1 + t.addsUp() &&
         softmax.getP().hasNUses(t.outputs.size());
}

/// Whether an op does something to each score, and so can wait until they are
/// there: a mask, a function, a factor of each row.
bool isDoneToScores(Operation *op) {
  auto rescale = dyn_cast<RescaleOp>(op);
  return op->hasTrait<OpTrait::Elementwise>() ||
         (rescale && !rescale.getAddend());
}

/// Finds the parts around a softmax; on failure `why` says what is unexpected.
/// `rings`: whether slots will know when they are free.
std::optional<TileLoop> matchTileLoop(OnlineSoftmaxOp softmax, bool rings,
                                      StringRef &why) {
  TileLoop t;
  t.loop = cast<scf::ForOp>(softmax->getParentOp());
  t.softmax = softmax;
  why = "the loop does not carry accumulators, a maximum and a sum";
  if (!matchOutputs(t))
    return std::nullopt;

  // What comes out of the matrix unit; all that is done to it stays with the
  // softmax, where the product of the tile before is in flight. A mask does for
  // another reason, too: the loop can be split where masks end. Branches do
  // something else to the same scores.
  t.scores = softmax.getScores();
  llvm::SmallPtrSet<Block *, 4> blocks{t.loop.getBody()};
  SmallVector<Value> beside;
  while (Operation *op = t.scores.getDefiningOp()) {
    if (auto branch = dyn_cast<scf::IfOp>(op);
        branch && blocks.contains(op->getBlock()) && branch.elseBlock()) {
      blocks.insert(branch.elseBlock());
      t.scores = branch.elseYield().getOperand(
          cast<OpResult>(t.scores).getResultNumber());
      continue;
    }
    if (!isDoneToScores(op) || !blocks.contains(op->getBlock()))
      break;
    t.scores = op->getOperand(0);
    beside.append(op->operand_begin() + 1, op->operand_end());
  }
  why = "the scores, or what the weights are multiplied by, depend on what the "
        "loop carries";
  if (!collectSlice(t.scores, t.loop, t.scoreSlice) ||
      !llvm::all_of(t.outputs,
                    [&](Output &output) {
                      return collectSlice(output.product.getB(), t.loop,
                                          t.valueSlice);
                    }) ||
      !llvm::all_of(beside, [&](Value value) {
        return !isa<FragmentType>(value.getType()) ||
               collectSlice(value, t.loop, t.besideSlice);
      }))
    return std::nullopt;
  why = "the loop's step is not 1";
  if (getConstantIntValue(t.loop.getStep()) != 1)
    return std::nullopt;
  // Whatever else has an effect would be lost, and what serves both products
  // done twice.
  for (Operation &op : t.loop.getBody()->without_terminator()) {
    bool ofScores = t.scoreSlice.contains(&op),
         ofValues = t.valueSlice.contains(&op),
         isBeside = t.besideSlice.contains(&op);
    why = ofScores ? "the scores and what the weights are multiplied by are "
                     "read from one slot; expected a load for each"
                   : "the loop does more than a softmax between two products";
    if (!canRepeat(op) && ofScores + ofValues + isBeside != 1)
      return std::nullopt;
  }
  t.ahead = t.scoreSlice;
  for (Output &output : t.outputs)
    (void)collectSlice(output.addsApart() ? softmax.getRescale()
                                          : output.rescale.getResult(),
                       t.loop, t.ahead);
  if (!canTakeApart(t.loop, t.ahead, t.handed()))
    return std::nullopt;
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

  /// Scores, softmax and the rescaling of the accumulators run an iteration
  /// ahead of the products of the weights, which stand after the scores: they
  /// are in flight beside the softmax.
  LogicalResult rotate(TileLoop &t) {
    scf::ForOp loop = t.loop;
    Location loc = loop.getLoc();
    IRRewriter rewriter(&getContext());
    PipelineOrder order;
    auto placeAhead = [&](llvm::function_ref<bool(Operation *)> which) {
      for (Operation &op : loop.getBody()->without_terminator())
        if (which(&op))
          order.push_back({&op, 0});
    };
    placeAhead([&](Operation *op) { return t.scoreSlice.contains(op); });
    placeRest(rewriter, loop, t.ahead, t.handed(), order);
    placeAhead([&](Operation *op) {
      return t.ahead.contains(op) && !t.scoreSlice.contains(op);
    });

    // What is added apart awaits its product behind the softmax.
    PipelineOrder last;
    llvm::erase_if(order, [&](const auto &entry) {
      auto rescale = dyn_cast<RescaleOp>(entry.first);
      bool isLast = rescale && rescale.getAddend();
      if (isLast)
        last.push_back(entry);
      return isLast;
    });
    llvm::append_range(order, last);
    annotate(loop, order, Pipeline::PeeledAhead);
    if (annotateOnly)
      return success();
    if (failed(pipelineLoop(rewriter, loop,
                            "of which the weights' product is late")))
      return failure();
    remark::passed(loc,
                   remark::RemarkOpts::name("overlap").category(DEBUG_TYPE))
        << "the product of the weights overlaps the next tile's scores and "
           "softmax";
    return success();
  }

  void runOnOperation() override {
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (!schedule || !std::holds_alternative<SoftmaxAhead>(schedule.getAhead()))
      return;
    SmallVector<OnlineSoftmaxOp> found;
    getOperation().walk([&](OnlineSoftmaxOp op) {
      auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
      // One without weights beside a loop joins what that one has summed up.
      bool joins = loop && op.getP().use_empty() &&
                   !loop.getBody()->getOps<scf::ForOp>().empty();
      if (loop && !joins)
        found.push_back(op);
    });
    if (found.empty())
      warnLost(getOperation(), DEBUG_TYPE, "overlap",
               "not overlapped: no loop has a kvbuffer.online_softmax");
    bool rings = schedule.getMovingTeam();
    for (OnlineSoftmaxOp softmax : found) {
      StringRef why;
      if (std::optional<TileLoop> t = matchTileLoop(softmax, rings, why)) {
        if (failed(rotate(*t)))
          return signalPassFailure();
        continue;
      }
      warnLost(softmax->getParentOp(), DEBUG_TYPE, "overlap",
               "not overlapped: " + why);
    }
  }
};
} // namespace
