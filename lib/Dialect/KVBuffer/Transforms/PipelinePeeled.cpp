//===- PipelinePeeled.cpp - Loops whose ends stand around them --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipelineLoop.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace kvbuf;

bool kvbuf::canRepeat(Operation &op) {
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(&op);
  return effects && llvm::all_of(*effects, [](const auto &effect) {
           return isa<MemoryEffects::Read>(effect.getEffect()) &&
                  effect.getResource() == SideEffects::DefaultResource::get();
         });
}

/// Takes out of a loop what it carries and nobody reads: what stage 0 reads of
/// stage 1 of the iteration before, it reads directly. The place of one of the
/// first `own` values goes to the first of the others that has its type: of an
/// accumulator, say, to what stage 0 has made of it.
static scf::ForOp dropUnread(IRRewriter &rewriter, scf::ForOp loop,
                             unsigned own) {
  llvm::SetVector<unsigned> kept;
  auto isRead = [&](unsigned i) {
    return !loop.getRegionIterArg(i).use_empty() ||
           !loop.getResult(i).use_empty();
  };
  auto others = llvm::seq<unsigned>(own, loop.getNumResults());
  for (unsigned i = 0; i < own; ++i) {
    if (isRead(i)) {
      kept.insert(i);
      continue;
    }
    for (unsigned other : others)
      if (isRead(other) && !kept.contains(other) &&
          loop.getResult(other).getType() == loop.getResult(i).getType()) {
        kept.insert(other);
        break;
      }
  }
  kept.insert_range(llvm::make_filter_range(others, isRead));
  if (kept.size() == loop.getNumResults())
    return loop;
  SmallVector<Value> inits, yields;
  for (unsigned i : kept) {
    inits.push_back(loop.getInitArgs()[i]);
    yields.push_back(loop.getYieldedValues()[i]);
  }
  rewriter.setInsertionPoint(loop);
  auto result =
      scf::ForOp::create(rewriter, loop.getLoc(), loop.getLowerBound(),
                         loop.getUpperBound(), loop.getStep(), inits);
  result->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  SmallVector<Value> args(loop.getInitArgs());
  for (auto [arg, i] : llvm::zip_equal(result.getRegionIterArgs(), kept)) {
    args[i] = arg;
    rewriter.replaceAllUsesWith(loop.getResult(i),
                                result.getResult(arg.getArgNumber() - 1));
  }
  args.insert(args.begin(), result.getInductionVar());
  Operation *end = loop.getBody()->getTerminator();
  rewriter.modifyOpInPlace(end, [&] { end->setOperands(yields); });
  if (result.getNumResults() == 0)
    rewriter.eraseOp(result.getBody()->getTerminator());
  rewriter.mergeBlocks(loop.getBody(), result.getBody(), args);
  rewriter.eraseOp(loop);
  return result;
}

/// Lets the body of a loop that counts the iterations of its stage 1 count
/// those of stage 0, from the second on.
static void countAhead(IRRewriter &rewriter, scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value iv = loop.getInductionVar(), step = loop.getStep();
  rewriter.setInsertionPoint(loop);
  loop.setLowerBound(
      rewriter.createOrFold<arith::AddIOp>(loc, loop.getLowerBound(), step));
  // What was the next number is this one; others are one less.
  SmallVector<Operation *> nexts;
  SmallVector<OpOperand *> others;
  Operation *first = nullptr;
  for (OpOperand &use : iv.getUses()) {
    Operation *user = use.getOwner();
    if (auto sum = dyn_cast<arith::AddIOp>(user);
        sum && use.getOperandNumber() == 0 &&
        isEqualConstantIntOrValue(sum.getRhs(), step)) {
      nexts.push_back(user);
      continue;
    }
    others.push_back(&use);
    Operation *inBody = loop.getBody()->findAncestorOpInBlock(*user);
    if (!first || inBody->isBeforeInBlock(first))
      first = inBody;
  }
  if (first) {
    rewriter.setInsertionPoint(first);
    Value before = arith::SubIOp::create(rewriter, loc, iv, step);
    for (OpOperand *use : others)
      rewriter.modifyOpInPlace(use->getOwner(), [&] { use->set(before); });
  }
  for (Operation *next : nexts)
    rewriter.replaceOp(next, iv);
}

/// The branch around the mask of a tile at an edge, which is not the mask's
/// where a function hides keys alone; null: there is none.
static scf::IfOp maskOfEdge(scf::IfOp branch) {
  auto inner = branch.thenYield().getOperand(0).getDefiningOp<scf::IfOp>();
  if (!inner || inner->getBlock() != branch.thenBlock() ||
      inner.getNumResults() != 1 || inner.getElseRegion().empty())
    return nullptr;
  auto mask = inner.thenYield().getOperand(0).getDefiningOp<MaskOp>();
  return mask && mask->getBlock() == inner.thenBlock() &&
                 mask.getScores() == inner.elseYield().getOperand(0)
             ? inner
             : scf::IfOp();
}

/// Replaces a branch by its first side.
static void takeThen(RewriterBase &rewriter, scf::IfOp branch) {
  Operation *end = branch.thenBlock()->getTerminator();
  Value value = end->getOperand(0);
  rewriter.eraseOp(end);
  rewriter.inlineBlockBefore(branch.thenBlock(), branch);
  rewriter.replaceOp(branch, value);
}

/// Whether a branch only decides if a mask is needed, which hides nothing of
/// a tile that needs none: its condition follows from the range of keys of
/// that mask.
static bool decidesOverMask(scf::IfOp branch) {
  if (!branch || branch.getNumResults() != 1)
    return false;
  Operation *last = branch.thenYield().getOperand(0).getDefiningOp();
  if (scf::IfOp inner = maskOfEdge(branch))
    last = inner.thenYield().getOperand(0).getDefiningOp();
  auto mask = dyn_cast_or_null<MaskOp>(last);
  return mask && branch.getThenRegion().isAncestor(mask->getParentRegion()) &&
         (mask.getScores() == branch.elseYield().getOperand(0) ||
          branch->hasAttr(KVBufferDialect::kEdgeTilesAttr)) &&
         isOfRange(branch.getCondition(), mask) &&
         llvm::all_of(*branch.thenBlock(), canRepeat);
}

/// What the first scores and their softmax, before the loop, can do without:
/// a branch around a mask, and to rescale zeros.
static void simplifyFirst(RewriterBase &rewriter, scf::ForOp loop) {
  for (Operation &op : llvm::make_early_inc_range(
           llvm::make_range(loop->getBlock()->begin(), loop->getIterator()))) {
    if (auto rescale = dyn_cast<RescaleOp>(op)) {
      auto fill = rescale.getAcc().getDefiningOp<FragmentFillOp>();
      if (fill && fill.getValue().isZero())
        rewriter.replaceOp(rescale, fill);
    } else if (auto branch = dyn_cast<scf::IfOp>(op); decidesOverMask(branch)) {
      if (scf::IfOp inner = maskOfEdge(branch))
        takeThen(rewriter, inner);
      takeThen(rewriter, branch);
    }
  }
}

/// Comparisons of the next iteration's number with what the loop does not
/// change become comparisons of this one's, so that the loop can still be
/// split where they change.
static void compareThisIteration(RewriterBase &rewriter, scf::ForOp loop) {
  // The pipeliner adds the step at each use.
  rewriter.setInsertionPointToStart(loop.getBody());
  Value next = arith::AddIOp::create(rewriter, loop.getLoc(),
                                     loop.getInductionVar(), loop.getStep());
  for (Operation *user :
       llvm::make_early_inc_range(loop.getInductionVar().getUsers()))
    if (auto sum = dyn_cast<arith::AddIOp>(user);
        sum && sum.getResult() != next &&
        isEqualConstantIntOrValue(sum.getRhs(), loop.getStep()))
      rewriter.replaceOp(sum, next);
  for (Operation *user : llvm::make_early_inc_range(next.getUsers())) {
    auto compare = dyn_cast<arith::CmpIOp>(user);
    if (!compare || compare.getLhs() != next ||
        !loop.isDefinedOutsideOfLoop(compare.getRhs()))
      continue;
    // Without signs, a bound of 0 would become the largest number.
    using P = arith::CmpIPredicate;
    if (llvm::is_contained({P::ult, P::ule, P::ugt, P::uge},
                           compare.getPredicate()))
      continue;
    rewriter.setInsertionPoint(loop);
    Value bound = arith::SubIOp::create(rewriter, compare.getLoc(),
                                        compare.getRhs(), loop.getStep());
    compare->setOperands({loop.getInductionVar(), bound});
  }
}

FailureOr<scf::ForOp> kvbuf::pipelinePeeled(IRRewriter &rewriter,
                                            scf::ForOp loop,
                                            const PipelineOrder &order,
                                            Pipeline how, StringRef what) {
  Location loc = loop.getLoc();
  Value upperBound = loop.getUpperBound();
  unsigned carried = loop.getNumResults();
  DictionaryAttr attributes = loop->getDiscardableAttrDictionary();
  rewriter.setInsertionPoint(loop);
  Value any = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt,
                                    loop.getLowerBound(), loop.getUpperBound());
  auto guarded =
      scf::IfOp::create(rewriter, loc, loop.getResultTypes(), any,
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  rewriter.setInsertionPointToStart(guarded.elseBlock());
  scf::YieldOp::create(rewriter, loc, loop.getInitArgs());
  rewriter.replaceAllUsesWith(loop.getResults(), guarded.getResults());
  rewriter.setInsertionPointToStart(guarded.thenBlock());
  Value end = arith::SubIOp::create(rewriter, loc, loop.getUpperBound(),
                                    loop.getStep());
  auto yield = scf::YieldOp::create(rewriter, loc, loop.getResults());
  rewriter.moveOpBefore(loop, yield);

  scf::PipeliningOption options;
  options.peelEpilogue = true;
  // There is an iteration for all that stands before the loop and after it.
  options.predicateFn = [](RewriterBase &, Operation *op, Value) { return op; };
  llvm::DenseSet<Operation *> clones;
  options.annotateFn = [&](Operation *op, scf::PipeliningOption::PipelinerPart,
                           unsigned) { clones.insert(op); };
  FailureOr<scf::ForOp> result =
      runPipeliner(rewriter, loop, order, options, what);
  if (failed(result))
    return failure();
  (*result)->setDiscardableAttrs(attributes);
  // Not beside scores alone: what that saves before the loop costs gfx942 a
  // hundredth of its loop (2.94 and not 2.88 VALU instructions an MFMA).
  if (how == Pipeline::PeeledAhead &&
      (*result)->hasAttr(KVBufferDialect::kWholeAfterFirstAttr))
    loadWhole(*result);
  forgetStages(*result);
  if (how == Pipeline::PeeledAhead) {
    // Only what follows the loop needs the number of the last iteration.
    result->setUpperBound(upperBound);
    rewriter.moveOpAfter(end.getDefiningOp(), *result);
  } else {
    result->setUpperBound(end);
  }
  // The pipeliner does not know of the guard: it asks whether there is an
  // iteration, and after the loop which one was the last.
  for (Operation &op : llvm::make_early_inc_range(*guarded.thenBlock())) {
    if (clones.contains(&op))
      continue;
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      rewriter.replaceOp(select, select.getTrueValue());
    } else if (auto number = dyn_cast<arith::MaxSIOp>(op)) {
      // lb + step * n: of a step of 1, the number that the loop ends before.
      if (isConstantIntValue(result->getStep(), 1))
        for (Operation *steps : number->getUsers())
          for (Operation *last : llvm::make_early_inc_range(steps->getUsers()))
            if (isa<arith::MulIOp>(steps) && isa<arith::AddIOp>(last))
              rewriter.replaceAllUsesWith(last->getResults(), end);
      rewriter.replaceOp(number, number.getRhs());
    }
  }
  // Passes look for indices as programs have them.
  SmallVector<Operation *> scalars;
  guarded.getThenRegion().walk([&](Operation *op) {
    if (isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
      scalars.push_back(op);
  });
  RewritePatternSet patterns(loc.getContext());
  arith::AddIOp::getCanonicalizationPatterns(patterns, loc.getContext());
  arith::SubIOp::getCanonicalizationPatterns(patterns, loc.getContext());
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  (void)applyOpPatternsGreedily(scalars, std::move(patterns), config);
  result = dropUnread(rewriter, *result, carried);
  if (how == Pipeline::PeeledAhead) {
    countAhead(rewriter, *result);
    simplifyFirst(rewriter, *result);
  } else {
    compareThisIteration(rewriter, *result);
  }
  return result;
}
