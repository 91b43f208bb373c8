//===- PersistentTiles.cpp - Order tiles and loop over them -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_PERSISTENTTILES
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-persistent-tiles"

namespace {

/// Where a tile of queries is: what the block's ids say in a kernel of one tile
/// a block.
struct TileIndex {
  Value x, head, batch;
};

/// The order of tiles. Of `rowTiles` tiles of each of `heads` heads, number t
/// has
///
///   group = t / (rowTiles * G)      x    = t % (rowTiles * G) / G
///                                   head = group * G + t % G
///
/// with heads counted through all sequences: the groups one after the other,
/// their tiles by x, the heads of a group side by side. Heads that share K and
/// V are neighbours. A kernel whose tiles shrink with x starts with the longest
/// of each group.
TileIndex orderTiles(ImplicitLocOpBuilder &b, Value t, Value rowTiles,
                     int64_t heads, int64_t group, bool withBatch) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value g = constant(group);
  Value size = b.createOrFold<arith::MulIOp>(rowTiles, g);
  Value number = arith::DivUIOp::create(b, t, size);
  Value inside = arith::RemUIOp::create(b, t, size);
  TileIndex index;
  index.x = b.createOrFold<arith::DivUIOp>(inside, g);
  index.head =
      b.createOrFold<arith::AddIOp>(b.createOrFold<arith::MulIOp>(number, g),
                                    b.createOrFold<arith::RemUIOp>(inside, g));
  if (withBatch) {
    index.batch = b.createOrFold<arith::DivUIOp>(index.head, constant(heads));
    index.head = b.createOrFold<arith::RemUIOp>(index.head, constant(heads));
  }
  return index;
}

struct PersistentTilesPass
    : kvbuf::impl::PersistentTilesBase<PersistentTilesPass> {
  using Base::Base;

  /// Heads side by side in the order: the largest of 4, 3, 2 and 1 that divides
  /// the heads, where tiles differ in length; 1 where they do not, so that a
  /// head's K and V are read by as many blocks as can be. (Groups of 2 to 4
  /// were equally good on an H200, one head or all heads at a time worse.)
  static int64_t groupSize(int64_t heads, bool unequal) {
    for (int64_t size = unequal ? 4 : 1;; --size)
      if (heads % size == 0)
        return size;
  }

  /// Replaces the ids of blocks in `region` by the index of a tile.
  static void replaceIds(Region &region, const TileIndex &index,
                         Value rowTiles) {
    region.walk([&](Operation *op) {
      Value value;
      if (auto id = dyn_cast<gpu::BlockIdOp>(op))
        value = id.getDimension() == gpu::Dimension::x   ? index.x
                : id.getDimension() == gpu::Dimension::y ? index.head
                                                         : index.batch;
      else if (auto dim = dyn_cast<gpu::GridDimOp>(op))
        value = dim.getDimension() == gpu::Dimension::x ? rowTiles : Value();
      if (!value)
        return;
      op->replaceAllUsesWith(ValueRange{value});
      op->erase();
    });
  }

  /// One tile a block, in the order above within each sequence.
  void orderGrid(int64_t heads, int64_t group) {
    if (group == 1)
      return;
    Block &body = getOperation().getBody().front();
    ImplicitLocOpBuilder b(getOperation().getLoc(), getOperation());
    b.setInsertionPointToStart(&body);
    Value rowTiles = gpu::GridDimOp::create(b, gpu::Dimension::x);
    Value x = gpu::BlockIdOp::create(b, gpu::Dimension::x),
          y = gpu::BlockIdOp::create(b, gpu::Dimension::y),
          z = gpu::BlockIdOp::create(b, gpu::Dimension::z);
    Value linear = arith::AddIOp::create(
        b, arith::MulIOp::create(b, y, rowTiles).getResult(), x);
    TileIndex index = orderTiles(b, linear, rowTiles, heads, group,
                                 /*withBatch=*/false);
    // The program's own ids; these stay.
    llvm::SmallPtrSet<Operation *, 4> mine{rowTiles.getDefiningOp(),
                                           x.getDefiningOp(), y.getDefiningOp(),
                                           z.getDefiningOp()};
    SmallVector<Operation *> ids;
    getOperation().walk([&](Operation *op) {
      if (isa<gpu::BlockIdOp, gpu::GridDimOp>(op) && !mine.contains(op))
        ids.push_back(op);
    });
    for (Operation *op : ids) {
      if (auto id = dyn_cast<gpu::BlockIdOp>(op))
        op->replaceAllUsesWith(
            ValueRange{id.getDimension() == gpu::Dimension::x   ? index.x
                       : id.getDimension() == gpu::Dimension::y ? index.head
                                                                : z});
      else if (cast<gpu::GridDimOp>(op).getDimension() == gpu::Dimension::x)
        op->replaceAllUsesWith(ValueRange{rowTiles});
      else
        continue;
      op->erase();
    }
  }

  /// How many blocks to launch: one for each multiprocessor, which a block of
  /// producers and consumers fills, and no more than there are tiles.
  ArrayAttr launchGrid(Builder &b, Attribute seqQ, Attribute batch,
                       int64_t heads, int64_t BM) {
    auto expr = [&](StringRef name, ArrayRef<Attribute> operands) -> Attribute {
      return b.getDictionaryAttr(
          b.getNamedAttr(name, b.getArrayAttr(operands)));
    };
    Attribute one = b.getI64IntegerAttr(1);
    Attribute rowTiles = expr("ceildiv", {seqQ, b.getI64IntegerAttr(BM)});
    Attribute tiles =
        expr("product", {rowTiles, b.getI64IntegerAttr(heads), batch});
    Attribute resident = expr("product", {b.getStringAttr("sms"), one});
    return b.getArrayAttr({expr("min", {resident, tiles}), one, one});
  }

  void loopOverTiles(ScheduleAttr schedule, int64_t heads, int64_t group) {
    gpu::GPUFuncOp kernel = getOperation();
    Block &body = kernel.getBody().front();
    ImplicitLocOpBuilder b(kernel.getLoc(), kernel);

    // The program of one tile, to become the loop's body.
    Operation *end = body.getTerminator();
    Block *program = body.splitBlock(body.begin());
    end->moveBefore(&body, body.end());
    b.setInsertionPoint(end);

    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, value);
    };
    // Sizes that the types fix are numbers.
    Type q = kernel.getArgument(0).getType();
    for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
      if (auto name = kernel.getArgAttrOfType<StringAttr>(i, "kvbuffer.name"))
        if (name.getValue() == "q")
          q = kernel.getArgument(i).getType();
    auto memref = dyn_cast<MemRefType>(q);
    auto sizeOf = [&](StringRef name, unsigned dim) -> Attribute {
      if (memref && memref.getRank() == 4 && !memref.isDynamicDim(dim))
        return b.getI64IntegerAttr(memref.getDimSize(dim));
      return b.getStringAttr(name);
    };
    auto materialize = [&](Attribute size) -> Value {
      if (auto number = dyn_cast<IntegerAttr>(size))
        return constant(number.getInt());
      return LaunchSizeOp::create(b, cast<StringAttr>(size));
    };
    Attribute seqQ = sizeOf("seq_q", 1), batch = sizeOf("batch", 0);
    Value rowTiles = b.createOrFold<arith::CeilDivUIOp>(
        materialize(seqQ), constant(schedule.getBM()));
    Value total = b.createOrFold<arith::MulIOp>(
        rowTiles,
        b.createOrFold<arith::MulIOp>(materialize(batch), constant(heads)));
    kernel->setAttr(KVBufferDialect::kGridAttr,
                    launchGrid(b, seqQ, batch, heads, schedule.getBM()));

    auto fill = [&](Block *target, Value tile) {
      b.setInsertionPointToStart(target);
      TileIndex index = orderTiles(b, tile, rowTiles, heads, group,
                                   /*withBatch=*/true);
      target->getOperations().splice(b.getInsertionPoint(),
                                     program->getOperations());
      replaceIds(*target->getParent(), index, rowTiles);
    };
    if (schedule.getTiles() == TileOrder::Static) {
      Value first = gpu::BlockIdOp::create(b, gpu::Dimension::x);
      Value blocks = gpu::GridDimOp::create(b, gpu::Dimension::x);
      auto loop = scf::ForOp::create(b, first, total, blocks);
      fill(loop.getBody(), loop.getInductionVar());
    } else {
      Type type = b.getIndexType();
      auto loop = scf::WhileOp::create(b, TypeRange{type}, ValueRange{});
      b.createBlock(&loop.getBefore());
      Value tile = NextTileOp::create(b, type, total);
      Value more =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, tile, total);
      scf::ConditionOp::create(b, more, tile);
      Block *after =
          b.createBlock(&loop.getAfter(), {}, {type}, {kernel.getLoc()});
      scf::YieldOp::create(b);
      fill(after, after->getArgument(0));
    }
    program->erase();
    // Buffers live as long as the block.
    SmallVector<AllocOp> allocs;
    kernel.walk([&](AllocOp op) { allocs.push_back(op); });
    for (AllocOp op : llvm::reverse(allocs))
      op->moveBefore(&body, body.begin());
    remark::passed(kernel.getLoc(),
                   remark::RemarkOpts::name("tiles").category(DEBUG_TYPE))
        << "blocks take tiles "
        << (schedule.getTiles() == TileOrder::Static ? "in turn"
                                                     : "from a counter")
        << ", heads in groups of " << std::to_string(group);
  }

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    auto schedule =
        kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
    // Kernels without producers keep the order in which they were measured.
    if (!schedule || !schedule.getProducers())
      return;
    auto problem =
        kernel->getAttrOfType<DictionaryAttr>(KVBufferDialect::kProblemAttr);
    auto heads = problem ? problem.getAs<IntegerAttr>("heads") : IntegerAttr();
    if (!heads) {
      kernel.emitError() << "expected '" << KVBufferDialect::kProblemAttr
                         << "' with the number of 'heads'";
      return signalPassFailure();
    }
    auto causal = problem.getAs<BoolAttr>("causal");
    auto right = problem.getAs<IntegerAttr>("window_right");
    bool unequal =
        (causal && causal.getValue()) || (right && right.getInt() >= 0);
    int64_t group = groupSize(heads.getInt(), unequal);
    if (schedule.getTiles() == TileOrder::Grid)
      return orderGrid(heads.getInt(), group);
    loopOverTiles(schedule, heads.getInt(), group);
  }
};
} // namespace
