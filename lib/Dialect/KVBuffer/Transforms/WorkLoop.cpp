//===- WorkLoop.cpp - Blocks that take several items of work --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AssignWork.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-assign-work"

namespace {

class ItemLoop {
public:
  ItemLoop(WorkItems &items)
      : items(items), kernel(items.kernel), b(kernel.getLoc(), kernel),
        several(std::get<SeveralTiles>(items.work)),
        inner(items.growing().value_or(0)) {}

  LogicalResult build();

private:
  /// How many blocks to launch: one for each multiprocessor, which a block of
  /// producers and consumers fills, and no more than there are items; of
  /// clusters likewise.
  ArrayAttr launchGrid();
  /// Whether one numbering of the items that there are, instead of one with
  /// gaps, serves all of the program that looks for its sequence; and all that
  /// uses the number does that.
  bool canNumber();
  /// Numbers the items over all sequences in each of `blocks` blocks, and lets
  /// the program find its own by these numbers. Returns how many there are.
  Value numberItems(Attribute blocks);
  /// The loop, with `program` in its body.
  LogicalResult loop(WorkOrder &order, ArrayRef<Value> counts, Block *program);

  WorkItems &items;
  gpu::GPUFuncOp kernel;
  ImplicitLocOpBuilder b;
  const SeveralTiles &several;
  /// The coordinate along which items follow each other.
  unsigned inner;
  /// The ops that find a sequence by the number along it.
  SmallVector<FindTileOp> finds;
};

} // namespace

ArrayAttr ItemLoop::launchGrid() {
  SmallVector<Attribute> counts;
  for (unsigned i = 0; i < items.size(); ++i)
    counts.push_back(items.count(i));
  Attribute one = b.getI64IntegerAttr(1);
  Attribute all = sizeExpression(b, "product", counts);
  Attribute resident = sizeExpression(
      b, "product", {b.getStringAttr(kMultiprocessorsSize), one});
  int64_t cluster = items.cluster;
  if (cluster == 1)
    return b.getArrayAttr(
        {sizeExpression(b, "min", {resident, all}), one, one});
  Attribute size = b.getI64IntegerAttr(cluster);
  // As many whole clusters as there are multiprocessors for.
  Attribute spare = sizeExpression(b, "sum",
                                   {b.getStringAttr(kMultiprocessorsSize),
                                    b.getI64IntegerAttr(1 - cluster)});
  resident = sizeExpression(b, "ceildiv", {spare, size});
  return b.getArrayAttr(
      {sizeExpression(b, "product",
                      {sizeExpression(b, "min", {resident, all}), size}),
       one, one});
}

/// Whether a value is the same for all items, and a copy of what computes it
/// may stand before their loop.
static bool isOfKernel(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return isa<gpu::GPUFuncOp>(value.getParentRegion()->getParentOp());
  return isMemoryEffectFree(op) && !op->getNumRegions() &&
         llvm::all_of(op->getOperands(), isOfKernel);
}

static Value copy(ImplicitLocOpBuilder &b, Value value, IRMapping &map) {
  Operation *op = value.getDefiningOp();
  if (!op || map.contains(value))
    return map.lookupOrDefault(value);
  for (Value operand : op->getOperands())
    (void)copy(b, operand, map);
  b.clone(*op, map);
  return map.lookup(value);
}

bool ItemLoop::canNumber() {
  if (!items.coordinate(inner).getSequences())
    return false;
  Value number = items.op.getResult(inner);
  for (OpOperand &use : number.getUses()) {
    auto find = dyn_cast<FindTileOp>(use.getOwner());
    if (!find || use.get() != find.getNumber() || find.getNumbers())
      return false;
    finds.push_back(find);
  }
  return !finds.empty() && llvm::all_of(finds, [&](FindTileOp op) {
    FindTileOp first = finds.front();
    return op.getOffsets() == first.getOffsets() &&
           op.getBM() == first.getBM() && op.getOver() == first.getOver() &&
           isOfKernel(op.getOffsets()) && isOfKernel(op.getSequences()) &&
           isOfKernel(op.getRows());
  });
}

Value ItemLoop::numberItems(Attribute blocks) {
  constexpr int64_t any = ShapedType::kDynamic;
  NamedAttrList attrs;
  attrs.append(KVBufferDialect::kNameAttr, b.getStringAttr("tile_numbers"));
  attrs.append(KVBufferDialect::kAccessAttr, b.getStringAttr("workspace"));
  attrs.append(
      KVBufferDialect::kShapeAttr,
      b.getArrayAttr({blocks, items.coordinate(inner).getSequences()}));
  unsigned argument = kernel.getNumArguments();
  (void)kernel.insertArgument(
      argument, MemRefType::get({any, any}, b.getI32Type()),
      attrs.getDictionary(b.getContext()), kernel.getLoc());
  Value numbers = kernel.getArgument(argument);
  Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  FindTileOp find = finds.front();
  IRMapping map;
  Value offsets = copy(b, find.getOffsets(), map);
  Value sequences = copy(b, find.getSequences(), map);
  Value rows = copy(b, find.getRows(), map);
  for (FindTileOp op : finds) {
    op.getNumbersMutable().assign(numbers);
    op.getBlockMutable().assign(block);
  }
  return NumberTilesOp::create(b, offsets, sequences, rows, numbers, block,
                               int64_t(find.getBM()) * items.together(inner),
                               find.getOver());
}

LogicalResult ItemLoop::loop(WorkOrder &order, ArrayRef<Value> counts,
                             Block *program) {
  Value total = order.total(b);
  auto fill = [&](Block *target, Value number) {
    b.setInsertionPointToStart(target);
    SmallVector<Value> item = order.itemAt(b, number);
    target->getOperations().splice(b.getInsertionPoint(),
                                   program->getOperations());
    program->erase();
    return replaceItem(
        items, item, [&](unsigned i) { return counts[i]; }, number);
  };
  if (several.order == TileOrder::Static) {
    // The blocks of a cluster take the same numbers.
    bool clusters = items.cluster > 1;
    auto x = gpu::Dimension::x;
    Value first = clusters ? gpu::ClusterIdOp::create(b, x).getResult()
                           : gpu::BlockIdOp::create(b, x).getResult();
    Value step = clusters ? gpu::ClusterDimOp::create(b, x).getResult()
                          : gpu::GridDimOp::create(b, x).getResult();
    auto loop = scf::ForOp::create(b, first, total, step);
    return fill(loop.getBody(), loop.getInductionVar());
  }
  // The next number is asked for after the item's last load: who takes it
  // earlier holds it while others have nothing left, and the loads in flight
  // hide how late a counter answers that all blocks share.
  Type type = b.getIndexType();
  Value first = NextTileOp::create(b, type, total);
  auto loop = scf::WhileOp::create(b, TypeRange{type}, ValueRange{first});
  Block *before =
      b.createBlock(&loop.getBefore(), {}, {type}, {kernel.getLoc()});
  Value number = before->getArgument(0);
  Value more =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, number, total);
  scf::ConditionOp::create(b, more, number);
  Block *after = b.createBlock(&loop.getAfter(), {}, {type}, {kernel.getLoc()});
  Value next = NextTileOp::create(b, type, total);
  scf::YieldOp::create(b, next);
  LogicalResult result = fill(after, after->getArgument(0));
  return result;
}

LogicalResult ItemLoop::build() {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitOpError("branches between blocks, where it is to loop "
                              "over items; expected scf.for, scf.if and "
                              "scf.while");
  // The program of one item, to become the loop's body.
  Block &body = kernel.getBody().front();
  Operation *end = body.getTerminator();
  Block *program = body.splitBlock(body.begin());
  end->moveBefore(&body, body.end());
  b.setInsertionPoint(end);

  ArrayAttr blocks = launchGrid();
  kernel->setAttr(KVBufferDialect::kGridAttr, blocks);
  SmallVector<Value> counts(items.size());
  auto countOf = [&](unsigned i) { return sizeInKernel(b, items.count(i)); };
  counts[inner] = canNumber() ? numberItems(blocks[0]) : countOf(inner);
  for (unsigned i = items.size(); i-- > 0;)
    if (i != inner)
      counts[i] = countOf(i);
  WorkOrder order(b, items, counts);
  if (items.growing())
    order.group(b, items.target.tilesAtOnce / items.cluster);
  if (failed(loop(order, counts, program)))
    return failure();
  // Buffers live as long as the block.
  SmallVector<AllocOp> allocs;
  kernel.walk([&](AllocOp op) { allocs.push_back(op); });
  for (AllocOp op : llvm::reverse(allocs))
    op->moveBefore(&body, body.begin());
  remark::passed(kernel.getLoc(),
                 remark::RemarkOpts::name("tiles").category(DEBUG_TYPE))
      << "blocks take tiles "
      << (several.order == TileOrder::Static ? "in turn" : "from a counter");
  return success();
}

LogicalResult kvbuf::loopOverItems(WorkItems &items) {
  return ItemLoop(items).build();
}
