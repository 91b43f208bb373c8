//===- JoinTiles.cpp - Start a tile beside the last product of another ----===//
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
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace kvbuf {
#define GEN_PASS_DEF_JOINTILES
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-join-tiles"

namespace {

/// A loop over tiles of queries, taken apart:
///
///   for each tile (`outer`)
///     if it has rows (`active`)
///       load its rows
///       if it has keys (`guard`)
///         first scores and softmax, loop over keys (`inner`), last product
///       normalize and store
struct ItemLoop {
  /// scf.for over the numbers, or scf.while that starts with `next`.
  Operation *outer;
  NextTileOp next;
  Value tile;
  scf::IfOp active, guard;
  MmaOp firstScores;
  OnlineSoftmaxOp firstSoftmax;
  scf::ForOp inner;
  MmaOp lastProduct;
  /// Tiles of keys of a tile of queries: from `begin`, included, to `end`.
  Value begin, end;
};

std::optional<ItemLoop> matchProgram(Operation *outer, StringRef &why) {
  ItemLoop t;
  t.outer = outer;
  Block *body;
  why = "the loop over tiles carries values";
  if (auto loop = dyn_cast<scf::ForOp>(outer)) {
    if (loop.getNumResults())
      return std::nullopt;
    body = loop.getBody();
    t.tile = loop.getInductionVar();
  } else {
    auto whileOp = cast<scf::WhileOp>(outer);
    if (whileOp.getInits().size() != 1 || whileOp.getNumResults() != 1)
      return std::nullopt;
    t.next = whileOp.getInits().front().getDefiningOp<NextTileOp>();
    if (!t.next)
      return std::nullopt;
    body = whileOp.getAfterBody();
    t.tile = body->getArgument(0);
  }

  why = "a tile is not a branch on its rows around a branch on its keys, as "
        "kvbuf-overlap-products leaves them";
  auto last = [](Block *block) -> Operation * {
    return block->getTerminator()->getPrevNode();
  };
  t.active = dyn_cast_or_null<scf::IfOp>(last(body));
  if (!t.active || t.active.getNumResults() ||
      !t.active.getElseRegion().empty())
    return std::nullopt;
  for (auto branch : t.active.thenBlock()->getOps<scf::IfOp>())
    t.guard = branch;
  if (!t.guard || t.guard.getNumResults() != 3)
    return std::nullopt;
  for (Operation &op : *t.guard.thenBlock()) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (t.inner)
        return std::nullopt;
      t.inner = loop;
    }
    if (auto product = dyn_cast<MmaOp>(op))
      (t.inner ? t.lastProduct : t.firstScores) = product;
    if (auto softmax = dyn_cast<OnlineSoftmaxOp>(op))
      t.firstSoftmax = softmax;
  }
  auto isInner = [&](Value value) {
    return value.getDefiningOp() == t.inner.getOperation();
  };
  if (!t.firstScores || !t.firstSoftmax || !t.inner || !t.lastProduct ||
      !isInner(t.lastProduct.getA()) || !isInner(t.lastProduct.getAcc()) ||
      t.guard.thenYield().getOperand(0) != t.lastProduct.getResult() ||
      !isInner(t.guard.thenYield().getOperand(1)) ||
      !isInner(t.guard.thenYield().getOperand(2)))
    return std::nullopt;
  why = "the number of tiles of keys is not a difference of two";
  auto count = t.inner.getUpperBound().getDefiningOp<arith::SubIOp>();
  if (!count)
    return std::nullopt;
  t.end = count.getLhs();
  t.begin = count.getRhs();
  // A tile of queries without keys will multiply a tile of them.
  why = "the first scores are not masked by the mask of the range of keys: a "
        "tile that sees none would see some";
  auto mask = t.firstSoftmax.getScores().getDefiningOp<MaskOp>();
  if (!mask || !isOfRange(t.end, mask))
    return std::nullopt;
  return t;
}

/// Makes a loop of straight tiles of the program, says in which order its ops
/// stand, and lets the pipeliner join the tiles.
class Joiner {
public:
  Joiner(ImplicitLocOpBuilder &b, ItemLoop &t) : b(b), t(t) {}

  /// False, with a reason, if a value that is no scalar would have to outlive
  /// its tile.
  bool canJoin(StringRef &why);
  LogicalResult join(IRRewriter &rewriter);

private:
  /// Clones what `op` needs of the tile's program, then `op`.
  Operation *emit(Operation *op, IRMapping &env);
  Value emit(Value value, IRMapping &env);
  /// Clones all ops of a block but its end that `env` does not have yet, those
  /// of the branches on rows and on keys in place of the branches.
  void emitAll(Block *block, IRMapping &env);
  /// Whether a value belongs to one tile, and has to be computed for each.
  bool ofTile(Value value);
  /// Whether a value depends on the tile's number; and whether nothing but
  /// arithmetic is between them, which is harmless for numbers past the last.
  bool dependsOnTile(Value value);
  bool isArithmetic(Value value);
  /// The first tile from `start` on (static order) or of those that the counter
  /// gives (dynamic) that has rows, with the values of `found`; a number past
  /// the last if there is none.
  SmallVector<Value> seek(Value start);
  Value total();
  /// Writes a loop over the tiles that have rows, each of which has keys, so
  /// that its body has no branches; `env` receives what became of the program.
  scf::WhileOp straighten(IRMapping &env);
  /// The order of the ops of that loop's body, with their stages.
  PipelineOrder orderOf(scf::WhileOp loop, const IRMapping &env);
  /// Ops after the loop over keys, and after the branch on keys.
  SmallVector<Operation *> opsAfter(Operation *op) {
    SmallVector<Operation *> ops;
    for (op = op->getNextNode(); !op->hasTrait<OpTrait::IsTerminator>();
         op = op->getNextNode())
      ops.push_back(op);
    return ops;
  }

  ImplicitLocOpBuilder &b;
  ItemLoop &t;
  /// Scalars that follow from a tile's number alone: where it is.
  llvm::SetVector<Value> found;
};

bool Joiner::ofTile(Value value) {
  Operation *owner = isa<BlockArgument>(value)
                         ? cast<BlockArgument>(value).getOwner()->getParentOp()
                         : value.getDefiningOp();
  return owner == t.outer || t.outer->isProperAncestor(owner);
}

bool Joiner::dependsOnTile(Value value) {
  if (value == t.tile)
    return true;
  Operation *op = value.getDefiningOp();
  return op && ofTile(value) &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return dependsOnTile(operand); });
}

bool Joiner::isArithmetic(Value value) {
  Operation *op = value.getDefiningOp();
  // A number past the last finds a tile without rows.
  return !op || !ofTile(value) ||
         ((isMemoryEffectFree(op) || isa<FindTileOp>(op)) &&
          llvm::all_of(op->getOperands(),
                       [&](Value operand) { return isArithmetic(operand); }));
}

bool Joiner::canJoin(StringRef &why) {
  t.active.getThenRegion().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp())
        if (def->getBlock() == t.active->getBlock() && dependsOnTile(operand) &&
            isArithmetic(operand))
          found.insert(operand);
  });
  llvm::SetVector<Value> carried;
  llvm::SmallPtrSet<Operation *, 32> later;
  for (Operation *from : {t.inner.getOperation(), t.guard.getOperation()})
    for (Operation *op : opsAfter(from))
      later.insert(op);
  for (Operation *op : later)
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *def = operand.getDefiningOp();
        if (!ofTile(operand) || def == t.inner || def == t.guard ||
            (def && (later.contains(def) || op->isAncestor(def) ||
                     matchPattern(def, m_Constant()))))
          continue;
        if (auto arg = dyn_cast<BlockArgument>(operand))
          if (op->isAncestor(arg.getOwner()->getParentOp()))
            continue;
        carried.insert(operand);
      }
    });
  why = "a tile's end needs more of its beginning than scalars";
  auto isScalar = [](Value value) {
    return value.getType().isIntOrIndexOrFloat();
  };
  return llvm::all_of(carried, isScalar) && llvm::all_of(found, isScalar);
}

Value Joiner::emit(Value value, IRMapping &env) {
  if (!ofTile(value) || env.contains(value))
    return env.lookupOrDefault(value);
  emit(value.getDefiningOp(), env);
  return env.lookup(value);
}

Operation *Joiner::emit(Operation *op, IRMapping &env) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && !op->isAncestor(def) && ofTile(operand) &&
          !env.contains(operand))
        emit(def, env);
    }
  });
  return b.clone(*op, env);
}

Value Joiner::total() {
  if (auto loop = dyn_cast<scf::ForOp>(t.outer))
    return loop.getUpperBound();
  return t.next.getTotal();
}

SmallVector<Value> Joiner::seek(Value start) {
  Type index = b.getIndexType(), flag = b.getI1Type();
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> inits;
  if (!t.next)
    inits.push_back(start);
  SmallVector<Type> results{index};
  for (Value value : found)
    results.push_back(value.getType());
  auto loop = scf::WhileOp::create(b, results, inits);
  SmallVector<Type> types(inits.size(), index);
  SmallVector<Location> locs(inits.size(), b.getLoc());
  Block *before = b.createBlock(&loop.getBefore(), {}, types, locs);
  IRMapping env;
  Value tile;
  if (t.next)
    tile = NextTileOp::create(b, index, total());
  else
    tile = before->getArgument(0);
  env.map(t.tile, tile);
  SmallVector<Value> where{tile};
  for (Value value : found)
    where.push_back(emit(value, env));
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, tile, total());
  // Goes on where a tile exists and has no rows.
  auto goOn = scf::IfOp::create(b, TypeRange{flag}, exists, true, true);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(goOn.thenBlock());
    Value rows = emit(t.active.getCondition(), env);
    Value yes = arith::ConstantIntOp::create(b, flag, 1);
    scf::YieldOp::create(b, arith::XOrIOp::create(b, rows, yes).getResult());
    b.setInsertionPointToStart(goOn.elseBlock());
    scf::YieldOp::create(b,
                         arith::ConstantIntOp::create(b, flag, 0).getResult());
  }
  scf::ConditionOp::create(b, goOn.getResult(0), where);
  Block *after =
      b.createBlock(&loop.getAfter(), {}, results,
                    SmallVector<Location>(results.size(), b.getLoc()));
  if (t.next)
    scf::YieldOp::create(b);
  else
    scf::YieldOp::create(
        b, arith::AddIOp::create(b, after->getArgument(0),
                                 cast<scf::ForOp>(t.outer).getStep())
               .getResult());
  return llvm::to_vector_of<Value>(loop.getResults());
}

void Joiner::emitAll(Block *block, IRMapping &env) {
  for (Operation &op : block->without_terminator()) {
    // Asking for the next tile is `seek`'s.
    bool asks = isa<NextTileOp>(op) &&
                llvm::is_contained(op.getUsers(), block->getTerminator());
    bool known =
        op.getNumResults() && llvm::all_of(op.getResults(), [&](Value result) {
          return env.contains(result);
        });
    if (asks || known)
      continue;
    if (&op != t.active.getOperation() && &op != t.guard.getOperation()) {
      b.clone(op, env);
      continue;
    }
    auto branch = cast<scf::IfOp>(op);
    emitAll(branch.thenBlock(), env);
    for (auto [result, value] :
         llvm::zip_equal(branch.getResults(), branch.thenYield().getOperands()))
      env.map(result, env.lookupOrDefault(value));
  }
}

scf::WhileOp Joiner::straighten(IRMapping &env) {
  auto loop = dyn_cast<scf::ForOp>(t.outer);
  b.setInsertionPoint(t.outer);
  SmallVector<Value> first = seek(loop ? loop.getLowerBound() : Value());
  SmallVector<Type> types = llvm::to_vector(ValueRange(first).getTypes());
  SmallVector<Location> locs(types.size(), b.getLoc());
  auto tiles = scf::WhileOp::create(b, types, first);
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&tiles.getBefore(), {}, types, locs);
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                       before->getArgument(0), total());
  scf::ConditionOp::create(b, exists, before->getArguments());

  Block *after = b.createBlock(&tiles.getAfter(), {}, types, locs);
  Value tile = after->getArgument(0);
  env.map(t.tile, tile);
  for (auto [value, at] :
       llvm::zip_equal(found, after->getArguments().drop_front()))
    env.map(value, at);
  Value start;
  if (loop)
    start = arith::AddIOp::create(b, tile, loop.getStep());
  SmallVector<Value> next = seek(start);
  // A tile of queries that sees no key multiplies one tile of keys, all of
  // them masked: rarer than a branch around it is dear.
  Value begin = emit(t.begin, env), end = emit(t.end, env);
  Value least =
      arith::AddIOp::create(b, begin, arith::ConstantIndexOp::create(b, 1));
  env.map(t.end, arith::MaxSIOp::create(b, end, least).getResult());
  emitAll(t.active->getBlock(), env);
  scf::YieldOp::create(b, next);
  return tiles;
}

PipelineOrder Joiner::orderOf(scf::WhileOp loop, const IRMapping &env) {
  constexpr unsigned next = 0, now = 1;
  Block *body = loop.getAfterBody();
  Operation *scores = env.lookupOrNull(t.firstScores.getOperation()),
            *softmax = env.lookupOrNull(t.firstSoftmax.getOperation()),
            *keys = env.lookupOrNull(t.inner.getOperation()),
            *product = env.lookupOrNull(t.lastProduct.getOperation());
  // The search for a tile has computed what only the branches needed.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
    if (&op != scores && &op != softmax && &op != keys && &op != product &&
        isOpTriviallyDead(&op))
      op.erase();

  PipelineOrder order;
  llvm::SmallPtrSet<Operation *, 32> placed;
  // Places an op of the next tile after all that it needs.
  std::function<void(Operation *)> place = [&](Operation *op) {
    if (!op || op->getBlock() != body || placed.contains(op))
      return;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        place(operand.getDefiningOp());
    });
    if (placed.insert(op).second)
      order.push_back({op, next});
  };
  // Places ops of this tile up to the one before `end`.
  auto placeNow = [&](Operation *from, Operation *end) {
    for (; from != end; from = from->getNextNode())
      if (placed.insert(from).second)
        order.push_back({from, now});
  };
  place(env.lookup(t.end).getDefiningOp());
  place(scores);
  placeNow(keys->getNextNode(), product->getNextNode());
  place(softmax);
  placeNow(product->getNextNode(), body->getTerminator());
  // The next number is asked for ahead of the loop over keys, which hides the
  // counter's latency and lets the next tile's first loads follow the last ones
  // of this tile.
  place(*body->getOps<scf::WhileOp>().begin());
  for (Operation *op = &body->front(); op != keys; op = op->getNextNode())
    place(op);
  place(keys);
  return order;
}

LogicalResult Joiner::join(IRRewriter &rewriter) {
  IRMapping env;
  scf::WhileOp tiles = straighten(env);
  rewriter.eraseOp(t.outer);
  if (t.next)
    rewriter.eraseOp(t.next);
  return pipelineWhile(rewriter, tiles, orderOf(tiles, env),
                       "of which tiles begin ahead");
}

struct JoinTilesPass : kvbuf::impl::JoinTilesBase<JoinTilesPass> {
  using Base::Base;

  void runOnOperation() override {
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (!schedule || !schedule.getStructure().joinsTiles())
      return;
    SmallVector<Operation *> loops;
    for (Operation &op : getOperation().getBody().front())
      if (isa<scf::ForOp, scf::WhileOp>(op))
        loops.push_back(&op);
    IRRewriter rewriter(&getContext());
    StringRef why = "there is no loop over tiles";
    bool joined = false;
    for (Operation *loop : loops) {
      std::optional<ItemLoop> program = matchProgram(loop, why);
      if (!program)
        continue;
      ImplicitLocOpBuilder b(program->guard.getLoc(), loop);
      Joiner joiner(b, *program);
      if (!joiner.canJoin(why))
        continue;
      Location loc = loop->getLoc();
      if (failed(joiner.join(rewriter)))
        return signalPassFailure();
      joined = true;
      remark::passed(loc, remark::RemarkOpts::name("join").category(DEBUG_TYPE))
          << "a tile's first scores overlap the last product of the tile "
             "before";
    }
    if (!joined)
      warnLost(getOperation(), DEBUG_TYPE, "join", "not joined: " + why);
  }
};
} // namespace
