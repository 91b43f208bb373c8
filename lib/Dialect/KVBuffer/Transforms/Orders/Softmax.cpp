//===- Softmax.cpp - A tile's softmax beside the last product -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../PipelineLoop.h"
#include "LoopOrder.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace kvbuf;

namespace {

/// An accumulator of a loop: its rescaling, and the product of the weights that
/// is added to it: by the matrix unit, or, where it begins from zero, by the
/// rescaling.
struct Output {
  RescaleOp rescale;
  MmaOp product;
  bool addsApart() { return bool(rescale.getAddend()); }
};

/// A softmax of a loop, and what becomes of its weights.
struct Weights {
  OnlineSoftmaxOp softmax;
  /// The scores as they come out of the matrix unit.
  Value scores;
  /// One or more, in the order of their rescaling.
  SmallVector<Output> outputs;

  /// Whether the softmax adds weights up, and not a product.
  bool addsUp() { return !softmax.getNewSum().use_empty(); }
  /// What the products take of it, and the next iteration.
  void appendHanded(SmallVectorImpl<Value> &values) {
    values.push_back(softmax.getP());
    for (Output &output : outputs)
      values.push_back(output.addsApart() ? softmax.getRescale()
                                          : output.rescale.getResult());
    values.push_back(softmax.getNewMax());
    if (addsUp())
      values.push_back(softmax.getNewSum());
  }
};

/// The parts of a loop over tiles of keys: scores, an optional mask on them,
/// softmax, rescaling of the accumulators, products of the weights; of one
/// softmax, or of several.
struct TileLoop {
  scf::ForOp loop;
  SmallVector<Weights> softmaxes;
  /// All that the scores need.
  OpSlice scoreSlice;
  /// All that the products' operands b need.
  OpSlice valueSlice;
  /// All that other operands of what is done to the scores need.
  OpSlice besideSlice;
  /// All that runs an iteration ahead of the products: scores, softmax and what
  /// they need.
  OpSlice ahead;
  /// What the products take of that, and the next iteration.
  SmallVector<Value> handed;

  /// The number of a value that the loop carries; nullopt of others.
  std::optional<unsigned> carried(Value value) {
    auto arg = dyn_cast<BlockArgument>(value);
    if (!arg || arg.getOwner() != loop.getBody() ||
        arg == loop.getInductionVar())
      return std::nullopt;
    return arg.getArgNumber() - loop.getNumInductionVars();
  }
};

/// Finds the accumulators of a softmax: all that its factor rescales, each with
/// a product of the weights. False if something else becomes of the factor or
/// the weights.
bool matchOutputs(TileLoop &t, Weights &w) {
  OnlineSoftmaxOp softmax = w.softmax;
  auto max = t.carried(softmax.getMax()), sum = t.carried(softmax.getSum());
  ValueRange yielded = t.loop.getYieldedValues();
  if (!max || yielded[*max] != softmax.getNewMax() ||
      (w.addsUp() && (!sum || yielded[*sum] != softmax.getNewSum())))
    return false;
  for (Operation *user : softmax.getRescale().getUsers()) {
    auto rescale = dyn_cast<RescaleOp>(user);
    if (!rescale || rescale->getBlock() != t.loop.getBody() ||
        !rescale.getResult().hasOneUse())
      return false;
    auto acc = t.carried(rescale.getAcc());
    Value addend = rescale.getAddend();
    auto product = addend ? addend.getDefiningOp<MmaOp>()
                          : dyn_cast<MmaOp>(*rescale.getResult().user_begin());
    if (!acc || !product || product.getA() != softmax.getP())
      return false;
    Value sum = addend ? rescale.getResult() : product.getResult();
    if (yielded[*acc] != sum)
      return false;
    if (addend ? product->getBlock() != t.loop.getBody() ||
                     !product.getResult().hasOneUse()
               : product.getAcc() != rescale.getResult())
      return false;
    w.outputs.push_back({rescale, product});
  }
  llvm::sort(w.outputs, [](const Output &one, const Output &other) {
    Operation *before = one.rescale;
    return before->isBeforeInBlock(other.rescale);
  });
  return !w.outputs.empty() && softmax.getP().hasNUses(w.outputs.size());
}

/// Finds the softmaxes of a loop with their accumulators; false if it carries
/// something else.
bool matchSoftmaxes(TileLoop &t) {
  unsigned carried = 0;
  for (auto softmax : t.loop.getBody()->getOps<OnlineSoftmaxOp>()) {
    Weights &w = t.softmaxes.emplace_back();
    w.softmax = softmax;
    if (!matchOutputs(t, w))
      return false;
    carried += w.outputs.size() + 1 + w.addsUp();
  }
  return t.loop.getNumResults() == carried;
}

/// Whether an op does something to each score, and so can wait until they are
/// there: a mask, a function, a factor of each row.
bool isDoneToScores(Operation *op) {
  auto rescale = dyn_cast<RescaleOp>(op);
  return op->hasTrait<OpTrait::Elementwise>() ||
         (rescale && !rescale.getAddend());
}

/// Finds what comes out of the matrix unit; all that is done to it stays with
/// the softmax, where the product of the tile before is in flight. A mask does
/// for another reason, too: the loop can be split where masks end. Branches do
/// something else to the same scores. Adds the other operands to `beside`.
void findScores(TileLoop &t, Weights &w, SmallVectorImpl<Value> &beside) {
  w.scores = w.softmax.getScores();
  llvm::SmallPtrSet<Block *, 4> blocks{t.loop.getBody()};
  while (Operation *op = w.scores.getDefiningOp()) {
    if (auto branch = dyn_cast<scf::IfOp>(op);
        branch && blocks.contains(op->getBlock()) && branch.elseBlock()) {
      blocks.insert(branch.elseBlock());
      w.scores = branch.elseYield().getOperand(
          cast<OpResult>(w.scores).getResultNumber());
      continue;
    }
    if (!isDoneToScores(op) || !blocks.contains(op->getBlock()))
      break;
    w.scores = op->getOperand(0);
    beside.append(op->operand_begin() + 1, op->operand_end());
  }
}

/// Finds all that the parts need; false where that is carried.
bool collectSlices(TileLoop &t) {
  SmallVector<Value> beside;
  for (Weights &w : t.softmaxes) {
    findScores(t, w, beside);
    if (!collectSlice(w.scores, t.loop, t.scoreSlice))
      return false;
    for (Output &output : w.outputs)
      if (!collectSlice(output.product.getB(), t.loop, t.valueSlice))
        return false;
  }
  return llvm::all_of(beside, [&](Value value) {
    return !isa<FragmentType>(value.getType()) ||
           collectSlice(value, t.loop, t.besideSlice);
  });
}

/// Finds the parts of a loop; on failure `why` says what is unexpected.
/// `rings`: whether slots will know when they are free.
std::optional<TileLoop> matchTileLoop(scf::ForOp loop, bool rings,
                                      StringRef &why) {
  TileLoop t;
  t.loop = loop;
  why = "the loop does not carry accumulators, a maximum and a sum";
  if (!matchSoftmaxes(t))
    return std::nullopt;
  why = "the scores, or what the weights are multiplied by, depend on what the "
        "loop carries";
  if (!collectSlices(t))
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
  for (Weights &w : t.softmaxes) {
    for (Output &output : w.outputs)
      (void)collectSlice(output.addsApart() ? w.softmax.getRescale()
                                            : output.rescale.getResult(),
                         t.loop, t.ahead);
    w.appendHanded(t.handed);
  }
  if (!canTakeApart(t.loop, t.ahead, t.handed))
    return std::nullopt;
  // The second tile's load follows the first scores without a barrier.
  why = kOneSlot;
  if (!rings && loadsIntoOneSlot(t.scoreSlice))
    return std::nullopt;
  return t;
}

struct SoftmaxOrder {
  static bool asks(const OrderedKernel &kernel) {
    return kernel.schedule &&
           std::holds_alternative<SoftmaxAhead>(kernel.schedule.getAhead());
  }

  static void find(const OrderedKernel &kernel, FoundLoops &found) {
    kernel.op->walk([&](OnlineSoftmaxOp op) {
      auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
      // One without weights beside a loop joins what that one has summed up.
      bool joins = loop && op.getP().use_empty() &&
                   !loop.getBody()->getOps<scf::ForOp>().empty();
      if (loop && !joins)
        found.add(loop);
    });
  }

  /// Scores, softmax and the rescaling of the accumulators run an iteration
  /// ahead of the products of the weights, which stand after the scores: they
  /// are in flight beside the softmax.
  static Placed place(const OrderedKernel &kernel, scf::ForOp loop,
                      IRRewriter &rewriter, Placement &placement,
                      Refusal &refusal) {
    std::optional<TileLoop> t =
        matchTileLoop(loop, kernel.schedule.getMovingTeam(), refusal.why);
    if (!t)
      return Placed::No;
    placement.placeIf([&](Operation *op) { return t->scoreSlice.contains(op); },
                      1);
    placement.placeRest(rewriter, t->ahead, t->handed);
    placement.placeIf([&](Operation *op) { return t->ahead.contains(op); }, 1);
    // What is added apart awaits its product behind the softmax.
    placement.moveLast([](Operation *op) {
      auto rescale = dyn_cast<RescaleOp>(op);
      return rescale && rescale.getAddend();
    });
    placement.how = Pipeline::PeeledAhead;
    placement.gain = "the product of the weights overlaps the next tile's "
                     "scores and softmax";
    return Placed::Yes;
  }
};
} // namespace

const LoopOrder kvbuf::softmaxOrder = {
    "softmax",
    "overlap",
    "not overlapped: ",
    "not overlapped: no loop has a kvbuffer.online_softmax",
    "of which the weights' product is late",
    SoftmaxOrder::asks,
    SoftmaxOrder::find,
    SoftmaxOrder::place};
