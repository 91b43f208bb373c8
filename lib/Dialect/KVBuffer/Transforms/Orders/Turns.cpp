//===- Turns.cpp - Halves of a block take turns ---------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two warps that share a matrix unit and do the same at the same time both want
// it, and then both want LDS. One part of an iteration apart, one of them
// always multiplies. The parts are
//
//   A  fragments of the scores' operand from LDS; the output's operand of the
//      next tile starts loading; this tile's is awaited
//   B  the next tile's scores, beside the tail of this tile's softmax
//   C  fragments of the output's operand; a later one of the scores starts
//      loading; the next is awaited
//   D  the second product, beside the head of the next tile's softmax
//
// each with a meeting after it. Parts B and D hold no access to LDS, so that
// the matrix unit waits for nothing.
//
//===----------------------------------------------------------------------===//

#include "../PipelineLoop.h"
#include "LoopOrder.h"
#include "MapReads.h"
#include "kvbuffer/Dialect/KVBuffer/IR/WordsOfColumns.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

namespace {

/// A tile's way from DRAM to the matrix unit, inside of a loop.
struct TilePath {
  DramLoadOp load;
  LdsStageOp stage;
  FragmentLoadOp fragment;
  MmaOp product;
};

/// The attention loop of a rotated kernel.
struct AttentionLoop {
  scf::ForOp loop;
  /// The products that the softmax takes, and that takes the softmax.
  TilePath scores, output;
  RaiseMaxOp raise;
  SoftmaxHeadOp head;
  ApplyRaiseOp apply;
  /// `kvbuffer.softmax_tail` or `kvbuffer.softmax_settle`.
  Operation *tail = nullptr;
};

} // namespace

/// Follows operand b of a product back to its load, within one block.
static std::optional<TilePath> findPath(MmaOp product) {
  TilePath path;
  path.product = product;
  auto here = [&](Operation *op) {
    return op && op->getBlock() == product->getBlock();
  };
  path.fragment = product.getB().getDefiningOp<FragmentLoadOp>();
  if (!here(path.fragment))
    return std::nullopt;
  path.stage = path.fragment.getStaged().getDefiningOp<LdsStageOp>();
  if (!here(path.stage) || path.stage.getTokens().size() != 1)
    return std::nullopt;
  path.load = path.stage.getTokens().front().getDefiningOp<DramLoadOp>();
  if (!here(path.load))
    return std::nullopt;
  return path;
}

/// Finds the parts of a loop; `why` says what is missing.
static std::optional<AttentionLoop> findParts(scf::ForOp loop, StringRef &why) {
  AttentionLoop found;
  found.loop = loop;
  SmallVector<MmaOp> products(loop.getBody()->getOps<MmaOp>());
  why = "its iterations do not have two products";
  if (products.size() != 2)
    return std::nullopt;
  for (MmaOp product : products) {
    std::optional<TilePath> path = findPath(product);
    why = "an operand does not come through LDS in its own iteration";
    if (!path)
      return std::nullopt;
    bool takesWeights = isa_and_nonnull<SoftmaxTailOp, SoftmaxSettleOp>(
        product.getA().getDefiningOp());
    TilePath &place = takesWeights ? found.output : found.scores;
    if (!place.product)
      place = *path;
  }
  why = "fragments for the scores are in registers by parts";
  if (found.scores.product) {
    KVBufferAttr params = found.scores.load.getBuffer().getType().getParams();
    if (params.getRegChunkDepth() < params.getDepth())
      return std::nullopt;
  }
  why = "its softmax is not rescaled lazily";
  if (!found.scores.product || !found.output.product)
    return std::nullopt;
  for (Operation &op : *loop.getBody()) {
    if (auto raise = dyn_cast<RaiseMaxOp>(op))
      found.raise = raise;
    if (auto head = dyn_cast<SoftmaxHeadOp>(op))
      found.head = head;
    if (auto apply = dyn_cast<ApplyRaiseOp>(op))
      found.apply = apply;
  }
  found.tail = found.output.product.getA().getDefiningOp();
  if (!found.raise || !found.head || !found.apply || !found.tail)
    return std::nullopt;
  why = "its scores are not of the next iteration";
  if (!isa<BlockArgument>(found.tail->getOperand(0)))
    return std::nullopt;
  why = "a buffer has fewer than two slots";
  for (TilePath *path : {&found.scores, &found.output})
    if (path->load.getBuffer().getType().getParams().getStages() < 2)
      return std::nullopt;
  why = "a slot is not the iteration modulo the number of slots";
  for (TilePath *path : {&found.scores, &found.output})
    if (!fillsInTurn(path->load, loop))
      return std::nullopt;
  // A wait is for both halves only two meetings before the reads.
  why = "it moves more than what its two products read";
  WalkResult others = loop.getBody()->walk([&](Operation *op) {
    bool moves = isa<DramLoadOp, LdsStageOp, MeetOp>(op) &&
                 op != found.scores.load && op != found.scores.stage &&
                 op != found.output.load && op != found.output.stage;
    return moves ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (others.wasInterrupted())
    return std::nullopt;
  // A number that is read from memory is read an iteration earlier.
  why = "what tells a tile's place is more than numbers of memory";
  for (TilePath *path : {&found.scores, &found.output}) {
    OpSlice slice;
    collectSlice(path->load.getToken(), loop, slice);
    if (llvm::any_of(slice, [](Operation *op) {
          return !isMemoryEffectFree(op) &&
                 !isa<DramLoadOp, CacheTileOp, memref::LoadOp>(op);
        }))
      return std::nullopt;
  }
  // What the output reads is loaded one tile ahead, whatever the iteration.
  why = "the tile after its last one is not loaded after it";
  DramLoadOp next = loadBehind(loop, found.output.load.getBuffer());
  if (!next || next.getPred() ||
      !isNextIteration(found.output.load.getTile(), next.getTile(), loop) ||
      !isNextFilling(found.output.load, next, loop))
    return std::nullopt;
  return found;
}

/// The ops that a load needs, with the load, in order. Index arithmetic that
/// others need too is theirs as a copy.
static SmallVector<Operation *> takeSlice(RewriterBase &rewriter,
                                          DramLoadOp load) {
  Block *body = load->getBlock();
  OpSlice slice;
  collectSlice(load.getToken(), cast<scf::ForOp>(load->getParentOp()), slice);
  for (Operation *op : slice) {
    if (!isMemoryEffectFree(op) || isa<DramLoadOp, CacheTileOp>(op))
      continue;
    auto foreign = [&](OpOperand &use) {
      return !slice.contains(body->findAncestorOpInBlock(*use.getOwner()));
    };
    if (llvm::none_of(op->getUses(), foreign))
      continue;
    rewriter.setInsertionPointAfter(op);
    Operation *copy = rewriter.clone(*op);
    rewriter.replaceUsesWithIf(
        op->getResults(), copy->getResults(),
        [&](OpOperand &use) { return use.getOwner() != copy && foreign(use); });
  }
  return SmallVector<Operation *>(slice.begin(), slice.end());
}

/// The ops of a load's slice that read numbers of memory, as of a list of
/// tiles, and what these need, in order.
static SmallVector<Operation *> numbersOf(scf::ForOp loop,
                                          ArrayRef<Operation *> slice) {
  OpSlice numbers;
  for (Operation *op : slice)
    if (auto number = dyn_cast<memref::LoadOp>(op))
      collectSlice(number.getResult(), loop, numbers);
  return SmallVector<Operation *>(numbers.begin(), numbers.end());
}

/// Cuts the second product: a quarter of it runs beside the maximum, the rest
/// after the branch that may raise it. Returns the parts.
static std::pair<MmaOp, MmaOp>
cutProduct(RewriterBase &rewriter, AttentionLoop &found,
           const OrderedKernel &kernel,
           SmallVector<Operation *> &outputFragments,
           SmallVector<Operation *> &slices) {
  MmaOp output = found.output.product;
  FragmentLoadOp whole = found.output.fragment;
  FragmentType v = output.getB().getType(), p = output.getA().getType();
  int64_t contracted = p.getCols();
  // Operands are read by as much as a lane's vector holds, which is for one
  // instruction or for several (`MatrixInstruction::group`).
  const MatrixShape &shape = kernel.schedule.getMmaShape(productOf(output));
  int64_t unit = shape[2];
  if (kernel.target)
    if (const MatrixInstruction *mma = kernel.target->instructionFor(
            shape, elementName(p.getElementType())))
      unit = mma->k * mma->group;
  int64_t first = llvm::alignTo(contracted / 4, unit);
  rewriter.setInsertionPoint(output);
  Value acc = output.getAcc();
  SmallVector<MmaOp> products;
  for (auto [from, to] : {std::pair(int64_t(0), std::min(first, contracted)),
                          std::pair(first, contracted)}) {
    if (from >= to)
      continue;
    auto slice = FragmentSliceOp::create(
        rewriter, output.getLoc(),
        FragmentType::get(rewriter.getContext(), p.getRows(), to - from,
                          p.getElementType(), p.getRole()),
        output.getA(), 0, from);
    auto load = FragmentLoadOp::create(
        rewriter, output.getLoc(),
        FragmentType::get(rewriter.getContext(), to - from, v.getCols(),
                          v.getElementType(), v.getRole()),
        whole.getStaged(), whole.getRow() + from, whole.getCol(),
        whole.getContractedAttr());
    slices.push_back(slice);
    outputFragments.push_back(load);
    products.push_back(MmaOp::create(rewriter, output.getLoc(), slice, load,
                                     acc, output.getTransposeB()));
    acc = products.back().getResult();
  }
  rewriter.replaceOp(output, acc);
  if (whole->use_empty())
    rewriter.eraseOp(whole);
  return {products.front(), products.back()};
}

/// Whether registers suffice for what functions of the next scores read while
/// these are computed: their operands are in registers as a whole, and nobody
/// needs these any more once they are there.
static bool hasRoomBesideScores(AttentionLoop &found,
                                const OrderedKernel &kernel,
                                ArrayRef<Operation *> reads) {
  if (!kernel.target)
    return false;
  // For addresses and what is on its way through the softmax.
  constexpr int64_t others = 16, bits = 32;
  int64_t lanes = kernel.target->waveSize, warps = kernel.schedule.getWarps();
  auto registersOf = [&](Value value, int64_t threads) {
    auto type = dyn_cast<FragmentType>(value.getType());
    return type ? type.getRows() * type.getCols() *
                      type.getElementType().getIntOrFloatBitWidth() /
                      (threads * bits)
                : 0;
  };
  MmaOp scores = found.scores.product, output = found.output.product;
  int64_t count = others + registersOf(scores.getA(), warps * lanes) +
                  registersOf(scores.getB(), lanes) +
                  2 * registersOf(scores.getResult(), warps * lanes) +
                  registersOf(output.getResult(), warps * lanes);
  for (Operation *read : reads)
    if (!isa<FragmentFillOp>(read))
      for (Value value : read->getResults())
        count += registersOf(value, warps * lanes);
  return count <= kernel.target->registersPerLane;
}

/// The last op of a loop's body with a map that warps find out about by one
/// question (`hidesByWords`), or with a mask that is seldom needed; null: there
/// is none.
static Operation *lastQuestion(Block &body) {
  Operation *last = nullptr;
  body.walk([&](Operation *op) {
    auto map = dyn_cast<MapOp>(op);
    auto mask = dyn_cast<MaskOp>(op);
    if ((map && hidesByWords(map)) || (mask && mask.getSeldom()))
      last = body.findAncestorOpInBlock(*op);
  });
  return last;
}

/// What scores begin with where maps compute it, behind all that it needs of
/// the body but what loads of tiles need, too (`loading`), which is there
/// before; nothing where it is of a tile, which comes in a part of its own.
static SmallVector<Operation *>
beginOf(MmaOp scores, scf::ForOp loop,
        const llvm::DenseSet<Operation *> &loading) {
  Operation *begin = scores.getAcc().getDefiningOp();
  OpSlice slice;
  if (!isa_and_nonnull<MapOp, scf::IfOp>(begin) ||
      begin->getBlock() != loop.getBody() ||
      !collectSlice(scores.getAcc(), loop, slice) ||
      llvm::any_of(slice, llvm::IsaPred<LdsStageOp>))
    return {};
  SmallVector<Operation *> own;
  for (Operation *op : slice)
    if (!loading.contains(op))
      own.push_back(op);
  return own;
}

/// Puts the ops of the loop into the parts A to D.
static void placeParts(IRRewriter &rewriter, AttentionLoop &found,
                       const OrderedKernel &kernel, Placement &placement) {
  scf::ForOp loop = found.loop;
  Block *body = loop.getBody();
  Location loc = loop.getLoc();
  DramLoadOp scoresLoad = found.scores.load, outputLoad = found.output.load;
  SmallVector<Operation *> scoresSlice = takeSlice(rewriter, scoresLoad);
  SmallVector<Operation *> outputSlice = takeSlice(rewriter, outputLoad);
  // What functions of the next scores read stands in front of them.
  SmallVector<Operation *> reads = separateReads(rewriter, loop);
  bool besideScores = hasRoomBesideScores(found, kernel, reads);
  SmallVector<Operation *> outputFragments, slices;
  auto [firstProduct, lastProduct] =
      cutProduct(rewriter, found, kernel, outputFragments, slices);
  MmaOp scores = found.scores.product;
  rewriter.setInsertionPoint(body->getTerminator());
  auto behindB = MeetOp::create(rewriter, loc),
       behindD = MeetOp::create(rewriter, loc);

  // Where both go through registers, a load takes those that its wait has
  // stored: before it, LLVM would copy what is loaded at the iteration's end,
  // and await it for that. (Of one path alone it copies a few registers, which
  // costs less: of the widest heads none is left over behind a barrier.)
  auto staged = [](TilePath &path) {
    return path.load.getBuffer().getType().getParams().getPolicy() ==
           Policy::RegisterStaged;
  };
  bool stagesFirst = staged(found.scores) && staged(found.output);
  auto looksUp = [&](ArrayRef<Operation *> slice) {
    return llvm::any_of(slice, [&](Operation *op) {
      auto tile = dyn_cast<CacheTileOp>(op);
      return tile && tile.getTile().getType().getPageSize() &&
             isLookUp(op, kernel.target, kernel.schedule.getWarps());
    });
  };
  auto move = [&](TilePath &path, ArrayRef<Operation *> slice, int64_t ahead) {
    if (stagesFirst)
      placement.place(path.stage, ahead - 1);
    // Who waits for what lanes have looked up waits for all loads before it: an
    // iteration earlier, and before that one's load.
    if (looksUp(slice))
      for (Operation *op : slice)
        if (op != path.load)
          placement.place(op, ahead + 1);
    // Scalar units await all that they have asked for at once.
    placement.place(numbersOf(loop, slice), ahead + 1);
    placement.place(slice, ahead);
    placement.place(path.stage, ahead - 1);
  };
  llvm::DenseSet<Operation *> loading;
  loading.insert_range(scoresSlice);
  loading.insert_range(outputSlice);

  // A. Index arithmetic of this iteration, too, is in nobody's way here.
  Dialect *arith = rewriter.getContext()->getLoadedDialect("arith");
  placement.placeIf([&](Operation *op) {
    return !loading.contains(op) && op->getDialect() == arith;
  });
  placement.place(found.apply);
  if (Operation *first = scores.getA().getDefiningOp();
      first && first->getBlock() == body)
    placement.place(first);
  placement.place(found.scores.fragment);
  // What the scores begin with, while the other half multiplies: beside its own
  // products it would all stand in front of the first.
  placement.place(beginOf(scores, loop, loading));
  move(found.output, outputSlice, 1);
  // B.
  placement.placeIf([](Operation *op) { return isa<FragmentFillOp>(op); });
  placement.place(scores);
  // Not beside the next head, whose factor and excess would need registers of
  // their own.
  placement.placeIf([](Operation *op) { return isa<CarryExcessOp>(op); });
  placement.place(found.tail);
  placement.place(slices);
  // Behind A's wait, which counts loads of tiles only: for C's, what is read
  // has to be there anyway.
  if (besideScores)
    placement.place(reads);
  placement.place(behindB);
  // C.
  placement.place(reads);
  placement.place(outputFragments);
  move(found.scores, scoresSlice, 2);
  // D. What the maximum needs, a mask, say, stands before it. Where few tiles
  // are looked at for one, no product has to stand beside that, nor beside a
  // question to all lanes whose branch few tiles take.
  Operation *alone = found.raise.getExactOnly() ? found.raise.getOperation()
                                                : lastQuestion(*body);
  for (Operation &op : body->without_terminator()) {
    if (!alone)
      break;
    if (&op != firstProduct && &op != lastProduct && &op != behindD)
      placement.place(&op);
    if (&op == alone)
      break;
  }
  placement.place(firstProduct);
  for (Operation &op : body->without_terminator()) {
    if (&op != lastProduct && &op != behindD)
      placement.place(&op);
    if (&op == found.raise)
      placement.place(lastProduct);
  }
  placement.place(lastProduct);
  placement.place(behindD);

  // One tile ahead of the loop's last is the tile after the loop, which is
  // there in any case: the output's operand is loaded in every iteration, and
  // that of the tile after the loop with them.
  // What is looked up one tile earlier ends with it.
  bool early = looksUp(outputSlice);
  for (Operation *op : outputSlice) {
    bool oneMore = isa<memref::LoadOp>(op) || (early && isa<CacheTileOp>(op));
    setSpan(op, oneMore ? StageSpan::OneMore : StageSpan::All);
  }
  // The first loads of the pipeline go to the slot of the first scores.
  rewriter.setInsertionPoint(loop);
  MeetOp::create(rewriter, loc);
}

namespace {
struct TurnsOrder {
  /// Beside a team that moves, the others have turns of their own.
  static bool asks(const OrderedKernel &kernel) {
    return kernel.schedule && kernel.schedule.hasHalves();
  }

  static void find(const OrderedKernel &kernel, FoundLoops &found) {
    kernel.op->walk([&](scf::ForOp loop) {
      if (!loop.getBody()->getOps<DramLoadOp>().empty())
        found.add(loop);
    });
  }

  static Placed place(const OrderedKernel &kernel, scf::ForOp loop,
                      IRRewriter &rewriter, Placement &placement,
                      Refusal &refusal) {
    std::optional<AttentionLoop> parts = findParts(loop, refusal.why);
    if (!parts)
      return Placed::No;
    placeParts(rewriter, *parts, kernel, placement);
    placement.how = Pipeline::Turns;
    placement.gain = "halves of the block take turns; what the scores read is "
                     "loaded 2 tiles ahead, what the output reads 1";
    return Placed::Yes;
  }
};
} // namespace

const LoopOrder kvbuf::turnsOrder = {
    "turns",
    "turns",
    "no turns in this loop: ",
    "no turns: the kernel has no loop that loads tiles",
    "for turns",
    TurnsOrder::asks,
    TurnsOrder::find,
    TurnsOrder::place};
