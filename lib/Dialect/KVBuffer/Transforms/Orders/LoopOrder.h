//===- LoopOrder.h - In which order a loop's ops run ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The orders of `kvbuf-run-ahead`: each is an entry of `loopOrders`, which
/// says which loops it is for and puts the ops of one of them in their places
/// (`Placement`). All else is the pass's: who asks, what is said of a loop that
/// stays, the attributes, and the loop that is made of them.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_ORDERS_LOOPORDER_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_ORDERS_LOOPORDER_H

#include "../LoopParts.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/PatternMatch.h"
#include <string>

namespace kvbuf {

/// What orders ask of a kernel.
struct OrderedKernel {
  mlir::Operation *op;
  /// Null in a kernel that has none.
  ScheduleAttr schedule;
  /// Nothing where the module names no chip.
  std::optional<TargetInfo> target;
};

/// Something that an order does not do, and why; at the loop where no op is
/// named.
struct Refusal {
  mlir::Operation *at = nullptr;
  llvm::StringRef why;
};

/// A loop that an order is for.
struct OrderedLoop {
  mlir::scf::ForOp loop;
  /// Whether the program asks for it: if not, a loop that stays is no warning.
  bool asks = true;
};

/// The loops of a kernel that an order is for, and what else there is to say.
struct FoundLoops {
  llvm::SmallVector<OrderedLoop> loops;
  llvm::SmallVector<Refusal> refused;

  /// Adds a loop that is not among them yet.
  void add(mlir::scf::ForOp loop, bool asks = true);
};

/// The places of the ops of a loop's body, in the order in which they will
/// stand, and how many iterations ahead of its own each runs.
class Placement {
public:
  explicit Placement(mlir::scf::ForOp loop) : loop(loop) {}

  /// Places an op behind all others; one that has a place keeps it.
  void place(mlir::Operation *op, int64_t ahead = 0);
  void place(llvm::ArrayRef<mlir::Operation *> ops, int64_t ahead = 0);
  /// Places the ops of the body for which `which` holds, in their order.
  void placeIf(llvm::function_ref<bool(mlir::Operation *)> which,
               int64_t ahead = 0);
  /// Places an op of the body behind what it needs of it, in this iteration.
  void placeWithOperands(mlir::Operation *op);
  /// Places what is left of the body, each op after copies of those of `ahead`
  /// that it reads besides what is `handed` to it: index arithmetic of what
  /// runs ahead may serve the rest, too.
  void placeRest(mlir::RewriterBase &rewriter, const OpSlice &ahead,
                 mlir::ArrayRef<mlir::Value> handed);
  /// Moves the ops for which `which` holds behind all others.
  void moveLast(llvm::function_ref<bool(mlir::Operation *)> which);

  /// Says it at the ops, and at the loop how it is made.
  void annotate();

  Pipeline how = Pipeline::Predicated;
  PipelineStart start = PipelineStart::AtLoop;
  /// What a remark says of it once the loop is made.
  std::string gain;

private:
  mlir::scf::ForOp loop;
  llvm::SmallVector<std::pair<mlir::Operation *, int64_t>> order;
  llvm::DenseSet<mlir::Operation *> placed;
};

/// What an order makes of a loop.
enum class Placed {
  /// All ops of the body have a place.
  Yes,
  /// The loop stays, and a refusal says why.
  No,
  /// It is no loop for it after all.
  NotMine
};

/// An order.
struct LoopOrder {
  /// Its name in the pass's option.
  llvm::StringLiteral name;
  /// Its remarks' name.
  llvm::StringLiteral remark;
  /// What begins what is said of a loop that stays.
  llvm::StringLiteral refusal;
  /// What is said of a kernel that asks and has no loop for it; empty where
  /// nothing is.
  llvm::StringLiteral none;
  /// Which loop it is, for errors: "that loads tiles".
  llvm::StringLiteral what;
  /// Whether a kernel asks for it.
  bool (*asks)(const OrderedKernel &kernel);
  /// The loops that it is for.
  void (*find)(const OrderedKernel &kernel, FoundLoops &found);
  /// Places the ops of such a loop, which may cut or copy some of them first.
  Placed (*place)(const OrderedKernel &kernel, mlir::scf::ForOp loop,
                  mlir::IRRewriter &rewriter, Placement &placement,
                  Refusal &refusal);
};

/// The next tile's scores run beside a tile's softmax.
extern const LoopOrder scoresOrder;
/// Halves of a block take turns at moving and multiplying.
extern const LoopOrder turnsOrder;
/// The next tile's scores and softmax run beside the last product.
extern const LoopOrder softmaxOrder;
/// Loads of blocks run blocks ahead.
extern const LoopOrder blocksOrder;
/// Loads of tiles run iterations ahead.
extern const LoopOrder loadsOrder;

/// All of them, in the order in which a kernel takes them.
llvm::ArrayRef<const LoopOrder *> loopOrders();

//===----------------------------------------------------------------------===//
// What orders share
//===----------------------------------------------------------------------===//

/// Says for which iterations an op runs ahead, before its loop is pipelined
/// (`#kvbuffer.stage`). What nothing is said of, loads, of numbers too, and
/// look-ups, runs for the loop's own.
void setSpan(mlir::Operation *op, StageSpan span);

/// Whether `op` loads one number of an argument that its kernel only reads.
bool loadsNumber(mlir::Operation *op);

/// Whether an op looks up where a tile lies, for all its rows at once; of a
/// tile over smaller pages, by lanes, where `warps` warps copy it.
bool isLookUp(mlir::Operation *op, const std::optional<TargetInfo> &target,
              int64_t warps);

/// The first op of those that loads of a loop's body need which cannot run
/// ahead of its iteration; null if all can. Index arithmetic, loads and
/// look-ups of tiles can, and so can a load of one number (`memref.load`) of an
/// argument that its kernel only reads: a list of tiles, say.
mlir::Operation *findBound(const OpSlice &slice);
/// What to say at such an op.
constexpr llvm::StringLiteral kNotAhead =
    "a tile's place depends on this op, which cannot run ahead of its "
    "iteration; expected a memref.load of an argument that the kernel only "
    "reads";

/// Whether what is left of an iteration reads nothing of `ahead` but `handed`
/// and what can be computed twice: no products, and no loads but of numbers
/// that tell where tiles are.
bool canTakeApart(mlir::scf::ForOp loop, const OpSlice &ahead,
                  mlir::ArrayRef<mlir::Value> handed);

/// Whether one of the ops loads into a buffer of a single slot.
bool loadsIntoOneSlot(const OpSlice &slice);
/// What to say then.
constexpr llvm::StringLiteral kOneSlot =
    "a buffer of one slot cannot be loaded while it is read";

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_ORDERS_LOOPORDER_H
