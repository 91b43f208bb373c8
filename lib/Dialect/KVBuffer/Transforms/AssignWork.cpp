//===- AssignWork.cpp - Give blocks their items of work -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AssignWork.h"
#include "LostRequest.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/PassNumbers.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace kvbuf {
#define GEN_PASS_DEF_ASSIGNWORK
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-assign-work"

//===----------------------------------------------------------------------===//
// Items and sizes
//===----------------------------------------------------------------------===//

Attribute kvbuf::sizeExpression(Builder &b, StringRef kind,
                                ArrayRef<Attribute> operands) {
  return SizeAttr::of(b.getContext(), kind, operands);
}

Value kvbuf::sizeInKernel(ImplicitLocOpBuilder &b, Attribute size) {
  return emitSizeExpression(b, b.getLoc(), size, [&](StringAttr name) {
    return LaunchSizeOp::create(b, name).getResult();
  });
}

Attribute WorkItems::count(unsigned i) {
  std::optional<int64_t> fixed = coordinate(i).getFixedCount();
  if (fixed)
    return Builder(kernel).getI64IntegerAttr(*fixed / together(i));
  return coordinate(i).getCount(together(i));
}

std::optional<unsigned> WorkItems::growing() {
  for (unsigned i = 0; i < size(); ++i)
    if (coordinate(i).getGrowing())
      return i;
  return std::nullopt;
}

std::optional<std::array<unsigned, 2>> WorkItems::strips() {
  SmallVector<unsigned> shared;
  for (unsigned i = 0; i < size(); ++i)
    if (coordinate(i).isShared())
      shared.push_back(i);
  if (shared.size() < 2 || growing())
    return std::nullopt;
  return std::array<unsigned, 2>{shared[0], shared[1]};
}

LogicalResult kvbuf::replaceItem(WorkItems &items, ArrayRef<Value> numbers,
                                 function_ref<Value(unsigned)> count,
                                 Value number) {
  WorkItemOp op = items.op;
  SmallVector<Value> values(numbers);
  std::optional<unsigned> growing = items.growing();
  if (growing && items.coordinate(*growing).getSequences()) {
    // Each sequence's own last items come first.
    for (Operation *user : op.getResult(*growing).getUsers())
      if (auto find = dyn_cast<FindTileOp>(user))
        find.setFromEnd(true);
  } else if (growing) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    // After the items that a cluster takes, where these are along another
    // coordinate.
    if (items.cluster > 1 && items.clustered != *growing)
      b.setInsertionPointAfter(op);
    Value last = arith::SubIOp::create(b, count(*growing), constantIndex(b, 1));
    values[*growing] = arith::SubIOp::create(b, last, values[*growing]);
  }
  if (items.cluster > 1) {
    bool turns = items.clustersRows() && growing == items.clustered;
    if (failed(replaceClustered(items, turns ? number : Value())))
      return failure();
  }
  op->replaceAllUsesWith(values);
  op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// An item for each block
//===----------------------------------------------------------------------===//

namespace {

/// A launch with a block for each item.
class BlockOfItem {
public:
  /// With `order`, blocks do not take items as they stand in the grid where
  /// another order is better.
  BlockOfItem(WorkItems &items, bool order)
      : items(items), order(order), b(items.op.getLoc(), items.op),
        numbers(items.size()) {}

  LogicalResult assign();

private:
  /// Chooses the coordinate whose items read the same, and stay on one die;
  /// none where there is one die.
  void chooseDies();
  /// Gives blocks their items where there are dies.
  LogicalResult assignOnDies();
  /// The same of a kernel that splits keys.
  LogicalResult assignRuns();
  /// Says which coordinates stand along which dimension.
  void place();
  /// The numbers along coordinate `i`.
  Value count(unsigned i);
  /// A size; where the program asks a tensor for it, the tensor's.
  Value sizeOf(StringAttr name);
  /// The number of the block's item along coordinate `i`, read off its ids.
  Value number(unsigned i);
  ArrayAttr grid();

  WorkItems &items;
  bool order;
  ImplicitLocOpBuilder b;
  /// The coordinates along each dimension, the first fastest.
  std::array<SmallVector<unsigned>, 3> along;
  /// Dies that items are dealt to.
  int64_t dies = 1;
  /// The numbers that have been read.
  SmallVector<Value> numbers;
};

void BlockOfItem::chooseDies() {
  if (const auto *split = std::get_if<SplitKeys>(&items.work)) {
    dies = split->dies;
    return;
  }
  if (const auto *one = std::get_if<OneTile>(&items.work))
    dies = one->dies;
  if (dies == 1 || hasPlacesForDies(items))
    return;
  warnLost(items.op, DEBUG_TYPE, "dies",
           "items are not dealt to " + Twine(dies) +
               " dies: expected a first coordinate along which all read the "
               "same (sharing = all), or two, and one more");
  dies = 1;
}

void BlockOfItem::place() {
  if (dies > 1) {
    for (unsigned i = 0; i < items.size(); ++i)
      along[0].push_back(i);
    return;
  }
  SmallVector<SmallVector<unsigned>> units;
  std::optional<std::array<unsigned, 2>> strips = items.strips();
  for (unsigned i = 0; i < items.size(); ++i) {
    if (strips && i == (*strips)[1])
      continue;
    units.push_back({i});
    if (strips && i == (*strips)[0])
      units.back().push_back((*strips)[1]);
  }
  for (auto [i, unit] : llvm::enumerate(units))
    along[std::min<size_t>(i, 2)].append(unit);
}

ArrayAttr BlockOfItem::grid() {
  SmallVector<Attribute> blocks;
  for (ArrayRef<unsigned> dimension : along) {
    SmallVector<Attribute> counts;
    for (unsigned i : dimension)
      // Numbers count what a cluster's blocks take together.
      counts.push_back(
          items.together(i) > 1
              ? b.getI64IntegerAttr(*items.coordinate(i).getFixedCount())
              : items.count(i));
    blocks.push_back(counts.empty() ? b.getI64IntegerAttr(1)
                     : counts.size() == 1
                         ? counts.front()
                         : sizeExpression(b, "product", counts));
  }
  return b.getArrayAttr(blocks);
}

Value BlockOfItem::sizeOf(StringAttr name) {
  for (BlockArgument argument : items.kernel.getArguments()) {
    auto shape = items.kernel.getArgAttrOfType<ArrayAttr>(
        argument.getArgNumber(), KVBufferDialect::kShapeAttr);
    if (!shape)
      continue;
    for (Operation *user : argument.getUsers()) {
      auto dim = dyn_cast<memref::DimOp>(user);
      std::optional<int64_t> index =
          dim ? dim.getConstantIndex() : std::nullopt;
      if (index && *index < int64_t(shape.size()) && shape[*index] == name)
        return memref::DimOp::create(b, argument, *index);
    }
  }
  return LaunchSizeOp::create(b, name);
}

Value BlockOfItem::count(unsigned i) {
  if (std::optional<int64_t> fixed = items.coordinate(i).getFixedCount())
    return constantIndex(b, *fixed);
  if (items.target.readsGridSize)
    for (auto [d, dimension] : llvm::enumerate(along))
      if (dimension.size() == 1 && dimension.front() == i)
        return gpu::GridDimOp::create(b, gpu::Dimension(d));
  return emitSizeExpression(b, b.getLoc(), items.count(i),
                            [&](StringAttr name) { return sizeOf(name); });
}

Value BlockOfItem::number(unsigned i) {
  if (numbers[i])
    return numbers[i];
  const auto *dimension =
      llvm::find_if(along, [&](ArrayRef<unsigned> coordinates) {
        return llvm::is_contained(coordinates, i);
      });
  auto d = gpu::Dimension(dimension - along.begin());
  // Numbers count what a cluster's blocks take together.
  Value id = items.cluster > 1 && d == gpu::Dimension::x
                 ? gpu::ClusterIdOp::create(b, d).getResult()
                 : gpu::BlockIdOp::create(b, d).getResult();
  std::optional<std::array<unsigned, 2>> strips = items.strips();
  ArrayRef<unsigned> left = *dimension;
  while (!left.empty()) {
    bool inStrips = strips && left.front() == (*strips)[0];
    ArrayRef<unsigned> own = left.take_front(inStrips ? 2 : 1);
    left = left.drop_front(own.size());
    SmallVector<Value> counts;
    if (inStrips || !left.empty())
      for (unsigned c : own)
        counts.push_back(count(c));
    Value inside = id;
    if (!left.empty()) {
      Value all = counts.front();
      if (inStrips)
        all = arith::MulIOp::create(b, counts[0], counts[1]);
      inside = arith::RemUIOp::create(b, id, all);
      id = arith::DivUIOp::create(b, id, all);
    }
    if (inStrips) {
      std::array<Value, 2> two = itemInStrips(b, inside, counts[0], counts[1]);
      numbers[own[0]] = two[0];
      numbers[own[1]] = two[1];
    } else {
      numbers[own[0]] = inside;
    }
  }
  return numbers[i];
}

LogicalResult BlockOfItem::assignOnDies() {
  SmallVector<Value> counts;
  for (unsigned i = 0; i < items.size(); ++i)
    counts.push_back(count(i));
  Value id = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  return replaceItem(
      items, itemOnDie(b, items, counts, id, dies),
      [&](unsigned i) { return counts[i]; }, /*number=*/Value());
}

LogicalResult BlockOfItem::assignRuns() {
  SmallVector<Value> counts;
  for (unsigned i = 0; i < items.size(); ++i) {
    // The host computes what it can: the program asks for most of it anyway.
    Attribute count = items.count(i);
    if (auto number = dyn_cast<IntegerAttr>(count))
      counts.push_back(constantIndex(b, number.getInt()));
    else if (auto name = dyn_cast<StringAttr>(count))
      counts.push_back(sizeOf(name));
    else
      counts.push_back(LaunchValueOp::create(b, count));
  }
  Value id = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  return replaceItem(
      items, itemInRuns(b, counts, id, dies),
      [&](unsigned i) { return counts[i]; }, /*number=*/Value());
}

LogicalResult BlockOfItem::assign() {
  chooseDies();
  place();
  items.kernel->setAttr(KVBufferDialect::kGridAttr, grid());
  if (dies > 1)
    return std::holds_alternative<SplitKeys>(items.work) ? assignRuns()
                                                         : assignOnDies();
  std::optional<unsigned> growing = items.growing();
  if (!order || !growing) {
    for (unsigned i = 0; i < items.size(); ++i)
      (void)number(i);
    return replaceItem(
        items, numbers, [&](unsigned i) { return count(i); },
        /*number=*/Value());
  }

  // The blocks' numbers in the grid are those of another order.
  SmallVector<unsigned> coordinates{*growing};
  for (unsigned i = 0; i < items.size(); ++i)
    if (i != *growing)
      coordinates.push_back(i);
  SmallVector<Value> counts(items.size());
  counts[*growing] = count(*growing);
  for (unsigned i : llvm::reverse(ArrayRef(coordinates).drop_front()))
    counts[i] = count(i);
  WorkOrder numbering(b, items, counts);
  numbering.group(b, items.target.tilesAtOnce);
  Value inGrid;
  for (unsigned i : llvm::reverse(coordinates)) {
    if (!inGrid) {
      inGrid = number(i);
      continue;
    }
    Value before = arith::MulIOp::create(b, inGrid, counts[i]);
    inGrid = arith::AddIOp::create(b, before, number(i));
  }
  return replaceItem(
      items, numbering.itemAt(b, inGrid), [&](unsigned i) { return counts[i]; },
      /*number=*/Value());
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct AssignWorkPass : kvbuf::impl::AssignWorkBase<AssignWorkPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    // A launch takes no more along z.
    if (failed(checkPassNumber(kernel, "blocks", blocks, 1, 65535)))
      return signalPassFailure();
    auto schedule =
        kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
    // A loop over items rests on rings, whose slots know when they are free.
    bool moves = schedule && schedule.getMovingTeam();
    Work work = schedule ? schedule.getWork() : OneTile();
    if (const auto *several = std::get_if<SeveralTiles>(&work);
        several && !severalItems) {
      warnLost(kernel, DEBUG_TYPE, "tiles",
               "blocks take one item each: several-items = false leaves out "
               "tiles = " +
                   stringifyEnum(several->order) +
                   (several->cluster > 1
                        ? " and cluster = " + Twine(several->cluster)
                        : Twine("")) +
                   " of the schedule");
      work = OneTile();
    }
    if (WorkItemOp op = WorkItemOp::of(kernel)) {
      if (failed(assign(op, work, /*order=*/moves && severalItems)))
        return signalPassFailure();
    } else if (const auto *several = std::get_if<SeveralTiles>(&work)) {
      kernel.emitOpError()
          << "has no kvbuffer.work_item, whose items blocks take one after the "
             "other by tiles = "
          << stringifyEnum(several->order) << "; expected one, or tiles = grid";
      return signalPassFailure();
    }
    kernel.walk([](ItemRowsOp op) {
      OpBuilder b(op);
      Value row = arith::MulIOp::create(
          b, op.getLoc(), op.getItem(),
          arith::ConstantIndexOp::create(b, op.getLoc(), op.getRows()));
      op->replaceAllUsesWith(ValueRange{row, row});
      op->erase();
    });
    foldGrid(kernel, blocks);
  }

private:
  /// Where each block has an item, those of a cluster are neighbours along the
  /// grid's x, the first coordinate.
  static void chooseClustersAlongX(WorkItems &items, int64_t blocks) {
    CoordinateAttr first = items.coordinate(0);
    std::optional<int64_t> count = first.getFixedCount();
    if (first.getSharing() > 1 && first.getSharing() % blocks == 0 && count &&
        *count % blocks == 0 && !items.strips() && !items.growing())
      (void)chooseClusters(items, blocks);
    else
      warnLost(items.op, DEBUG_TYPE, "cluster",
               "no clusters of " + Twine(blocks) +
                   ": along the first coordinate no " + Twine(blocks) +
                   " neighbouring items read the same");
  }

  /// Whether all count the rows of an item as its coordinate does.
  LogicalResult checkRows(WorkItemOp op) {
    auto check = [&](Operation *user, StringRef what, int64_t rows,
                     int64_t expected, Operation *counted) -> LogicalResult {
      if (rows == expected)
        return success();
      InFlightDiagnostic diag = user->emitOpError();
      diag << "has " << what << " = " << rows;
      if (expected)
        diag << " for items of " << expected << " rows; expected "
             << std::to_string(expected);
      else
        diag
            << " for items that are not counted in rows; expected a coordinate "
               "with 'by'";
      diag.attachNote(counted->getLoc()) << "the items are here";
      return diag;
    };
    WalkResult result = getOperation().walk([&](Operation *user) -> WalkResult {
      auto rows = dyn_cast<ItemRowsOp>(user);
      auto find = dyn_cast<FindTileOp>(user);
      if (!rows && !find)
        return WalkResult::advance();
      Value number = rows ? rows.getItem() : find.getNumber();
      StringRef what = rows ? "rows" : "BM";
      int64_t own = rows ? int64_t(rows.getRows()) : int64_t(find.getBM());
      if (auto item = dyn_cast<OpResult>(number); item && item.getOwner() == op)
        return check(user, what, own,
                     op.getCoordinate(item.getResultNumber()).getStep(), op);
      if (auto tile = number.getDefiningOp<FindTileOp>(); rows && tile)
        return check(user, what, own, tile.getBM(), tile);
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Replaces the op of a kernel; `order`: of one item a block, growing ones
  /// have an order of their own.
  LogicalResult assign(WorkItemOp op, const Work &work, bool order) {
    gpu::GPUFuncOp kernel = getOperation();
    // What is numbered by ids would not be where the block's item is.
    WalkResult ids = kernel.walk([&](Operation *other) -> WalkResult {
      if (!isa<gpu::BlockIdOp, gpu::GridDimOp, gpu::GlobalIdOp,
               gpu::ClusterIdOp, gpu::ClusterDimOp, gpu::ClusterDimBlocksOp,
               gpu::ClusterBlockIdOp>(other))
        return WalkResult::advance();
      InFlightDiagnostic diag =
          other->emitOpError()
          << "stands in a kernel with a kvbuffer.work_item, which does not say "
             "where in the grid blocks are; expected results of that op";
      diag.attachNote(op.getLoc()) << "it is here";
      return diag;
    });
    if (ids.wasInterrupted() || failed(checkRows(op)))
      return failure();
    WorkItems items{kernel, op, work, targetOf(kernel).value_or(TargetInfo())};
    const auto *several = std::get_if<SeveralTiles>(&work);
    if (!several) {
      if (const auto *split = std::get_if<SplitKeys>(&work);
          split && split->cluster > 1 && !kernel.getKnownClusterSize())
        chooseClustersAlongX(items, split->cluster);
      return BlockOfItem(items, order).assign();
    }
    if (several->cluster > 1)
      (void)chooseClusters(items, several->cluster);
    return loopOverItems(items);
  }
};
} // namespace
