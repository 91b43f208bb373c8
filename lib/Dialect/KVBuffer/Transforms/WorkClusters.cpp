//===- WorkClusters.cpp - Items that a cluster's blocks take together -----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AssignWork.h"
#include "LostRequest.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-assign-work"

/// Whether numbers along coordinate `i` may count neighbouring rows together:
/// those over sequences where the program only finds its sequence by them.
static bool countsRows(WorkItems &items, unsigned i) {
  CoordinateAttr coordinate = items.coordinate(i);
  if (!coordinate.getStep() || !coordinate.getSequences())
    return coordinate.getStep() != 0;
  return llvm::all_of(items.op.getResult(i).getUses(), [](OpOperand &use) {
    auto find = dyn_cast<FindTileOp>(use.getOwner());
    return find && use.get() == find.getNumber();
  });
}

bool kvbuf::chooseClusters(WorkItems &items, int64_t blocks) {
  std::optional<unsigned> chosen;
  // Items that read the same whatever the mask; a sequence's last one has a
  // partner.
  for (unsigned i = 0; i < items.size() && !chosen; ++i) {
    CoordinateAttr coordinate = items.coordinate(i);
    std::optional<int64_t> count = coordinate.getFixedCount();
    if (coordinate.getSharing() > 1 && coordinate.getSharing() % blocks == 0 &&
        count && *count % blocks == 0)
      chosen = i;
  }
  bool neighbours = !chosen;
  for (unsigned i = 0; i < items.size() && !chosen; ++i)
    if (items.coordinate(i).isShared() && countsRows(items, i))
      chosen = i;
  if (!chosen) {
    warnLost(items.op, DEBUG_TYPE, "cluster",
             "no clusters of " + Twine(blocks) + ": along no coordinate " +
                 Twine(blocks) +
                 " neighbouring items read the same, or all that are counted "
                 "in rows");
    return false;
  }
  items.cluster = blocks;
  items.clustered = *chosen;
  items.kernel.setKnownClusterSizeAttr(DenseI32ArrayAttr::get(
      items.kernel.getContext(), {int32_t(blocks), 1, 1}));
  remark::passed(items.kernel.getLoc(),
                 remark::RemarkOpts::name("cluster").category(DEBUG_TYPE))
      << "clusters of " << std::to_string(blocks)
      << (neighbours ? " blocks take neighbouring tiles"
                     : " blocks take items that read the same");
  return true;
}

Value kvbuf::rankInCluster(ImplicitLocOpBuilder &b, const WorkItems &items,
                           Value number) {
  auto x = gpu::Dimension::x;
  Value rank = gpu::ClusterBlockIdOp::create(b, x);
  if (!number)
    return rank;
  Value clusters = gpu::ClusterDimOp::create(b, x);
  Value round = arith::DivUIOp::create(b, number, clusters);
  Value sum = arith::AddIOp::create(b, rank, round);
  return arith::RemUIOp::create(b, sum, constantIndex(b, items.cluster));
}

/// All that may be computed from `value`, also through branches and what loops
/// carry.
static llvm::DenseSet<Value> dependentsOf(Value value) {
  llvm::DenseSet<Value> seen{value};
  SmallVector<Value> work{value};
  auto add = [&](ValueRange values) {
    for (Value other : values)
      if (seen.insert(other).second)
        work.push_back(other);
  };
  auto addAllOf = [&](Operation *op) {
    add(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        add(block.getArguments());
  };
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      addAllOf(user);
      if (user->hasTrait<OpTrait::IsTerminator>())
        addAllOf(user->getParentOp());
    }
  return seen;
}

/// Whether a range of keys begins at a row: of several heads that are rows of a
/// tile, at the query that the row is of.
static bool beginsAt(KeyRangeOp range, Value row) {
  if (range.getRow() == row)
    return true;
  auto query = range.getRow().getDefiningOp<arith::DivUIOp>();
  return query && query.getLhs() == row && range.getGroup() > 1 &&
         getConstantIntValue(query.getRhs()) == int64_t(range.getGroup());
}

/// Rows from item `op` on, of number `value`: those of the cluster and of the
/// block.
static LogicalResult replaceRows(WorkItems &items, ItemRowsOp op,
                                 Value number) {
  int64_t rows = op.getRows();
  // Keys are those that the rows of any block see.
  llvm::DenseSet<Value> dependents = dependentsOf(op.getFirst());
  SmallVector<KeyRangeOp> ranges;
  WalkResult result = items.kernel.walk([&](KeyRangeOp range) -> WalkResult {
    if (beginsAt(range, op.getFirst())) {
      ranges.push_back(range);
      return WalkResult::advance();
    }
    if (llvm::none_of(range->getOperands(), [&](Value operand) {
          return dependents.contains(operand);
        }))
      return WalkResult::advance();
    InFlightDiagnostic diag =
        range.emitOpError()
        << "begins at a row that is computed from the first row of a cluster's "
           "blocks; expected that row itself, or the block's own";
    diag.attachNote(op.getLoc()) << "the rows are here";
    return diag;
  });
  if (result.wasInterrupted())
    return failure();
  for (KeyRangeOp range : ranges)
    range.setBM(int64_t(range.getBM()) * items.cluster);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value first = arith::MulIOp::create(b, op.getItem(),
                                      constantIndex(b, rows * items.cluster));
  Value rank = rankInCluster(b, items, number);
  Value part = arith::MulIOp::create(b, rank, constantIndex(b, rows));
  Value own = arith::AddIOp::create(b, first, part);
  op.getFirst().replaceAllUsesWith(first);
  op.getRow().replaceAllUsesWith(own);
  op.erase();
  return success();
}

/// Gives what uses `value`, a number of items taken together, the block's own
/// item; ops of rows get both, and `keeps` says what needs the number itself.
static LogicalResult replaceOwn(
    WorkItems &items, Value value, Value number,
    function_ref<bool(OpOperand &)> keeps = [](OpOperand &) { return false; }) {
  SmallVector<ItemRowsOp> rows;
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses()) {
    if (auto op = dyn_cast<ItemRowsOp>(use.getOwner()))
      rows.push_back(op);
    else if (!keeps(use))
      uses.push_back(&use);
  }
  for (ItemRowsOp op : rows)
    if (failed(replaceRows(items, op, number)))
      return failure();
  if (uses.empty())
    return success();
  ImplicitLocOpBuilder b(value.getLoc(), value.getContext());
  b.setInsertionPointAfterValue(value);
  Value first =
      arith::MulIOp::create(b, value, constantIndex(b, items.cluster));
  Value rank = rankInCluster(b, items, number);
  Value own = arith::AddIOp::create(b, first, rank);
  for (OpOperand *use : uses)
    use->set(own);
  return success();
}

/// Whether a use of an item divides it by a multiple of the cluster's blocks.
/// All of them have the same quotient, which no rank changes:
/// (n * cluster + rank) / (m * cluster) = n / m.
static bool divideNumber(const WorkItems &items, OpOperand &use) {
  auto division = dyn_cast<arith::DivUIOp>(use.getOwner());
  if (!division || use.getOperandNumber() != 0)
    return false;
  std::optional<int64_t> divisor = getConstantIntValue(division.getRhs());
  if (!divisor || *divisor <= 0 || *divisor % items.cluster != 0)
    return false;
  OpBuilder b(division);
  division.getRhsMutable().assign(arith::ConstantIndexOp::create(
      b, division.getLoc(), *divisor / items.cluster));
  return true;
}

LogicalResult kvbuf::replaceClustered(WorkItems &items, Value number) {
  SmallVector<FindTileOp> finds;
  bool rows = items.clustersRows();
  auto keeps = [&](OpOperand &use) {
    // Numbers over sequences are of all the cluster's rows, too.
    auto find = dyn_cast<FindTileOp>(use.getOwner());
    if (find && rows && use.get() == find.getNumber()) {
      finds.push_back(find);
      return true;
    }
    return divideNumber(items, use);
  };
  if (failed(replaceOwn(items, items.op.getResult(items.clustered), number,
                        keeps)))
    return failure();
  for (FindTileOp find : finds) {
    find.setBM(int64_t(find.getBM()) * items.cluster);
    if (failed(replaceOwn(items, find.getTile(), number)))
      return failure();
  }
  return success();
}
