//===- MachineHopperRings.cpp - Rings and clusters of boxes -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Kernel parameters, mbarriers and loads of BoxMachine.
///
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/CachePlaces.h"
#include "KVBufferToGPU/PackedRows.h"
#include "KVBufferToGPU/Pages.h"
#include "MachineHopper.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ReadOnce.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::hopper;

/// Rows of a box of a tile of which not all rows are valid, at most. A box
/// takes about as long to ask for as a step of copies, whose rows are fewer.
static constexpr int64_t kCutRows = 32;
/// Steps of a warp's copies that stand beside each other, so that they overlap.
static constexpr int64_t kStepsAtOnce = 1;

int64_t hopper::rowBytes(KVBufferAttr params) {
  return params.getBK() * params.getElementType().getIntOrFloatBitWidth() / 8;
}

int64_t hopper::blockBytes(KVBufferAttr params) {
  return params.getBN() * rowBytes(params);
}

LogicalResult hopper::checkSwizzle(Operation *op, KVBufferAttr params) {
  int64_t bytes = rowBytes(params);
  if (bytes != 32 && bytes != 64 && bytes != 128)
    return op->emitOpError()
           << "cannot move or multiply LDS blocks with rows of " << bytes
           << " bytes; expected BK to give 32, 64 or 128";
  // 128 bytes hold 8 vectors, whose index has 3 bits; bank conflicts of shorter
  // rows are solved by bits of later rows.
  int64_t bits = llvm::Log2_64(bytes / 16);
  SmallVector<int64_t> expected{bits, 0, 3};
  if (params.getSwizzle() == ArrayRef<int64_t>(expected))
    return success();
  InFlightDiagnostic diag =
      op->emitOpError() << "expected a buffer with swizzle = [" << bits
                        << ", 0, 3], which the copy engine uses for rows of "
                        << bytes << " bytes, got [";
  llvm::interleaveComma(params.getSwizzle(), diag);
  diag << "]";
  return diag;
}

//===----------------------------------------------------------------------===//
// Kernel parameters and barriers
//===----------------------------------------------------------------------===//

Value hopper::tensorOf(Value tile) {
  if (auto op = tile.getDefiningOp<DramTileOp>())
    return op.getTensor();
  if (auto op = tile.getDefiningOp<CacheTileOp>())
    return op.getCache();
  return nullptr;
}

bool hopper::isShared(RingLoadOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  return ring && ring.getShared();
}

ClusterParts hopper::clusterParts(Lanes &lower, RingLoadOp op) {
  if (!isShared(op))
    return {1, 1};
  KVBufferAttr params = op.getRing().getType().getParams();
  int64_t columns =
      std::gcd(lower.cluster(), params.getSmemCols() / params.getBK());
  return {columns, lower.cluster() / columns};
}

int64_t hopper::boxRows(Lanes &lower, RingLoadOp op) {
  if (packedRowOf(op.getTile()))
    return 0;
  int64_t rows =
      op.getRing().getType().getParams().getBN() / clusterParts(lower, op).rows;
  int64_t page = op.getTile().getType().getPageSize();
  // No table says where boxes are.
  if (page && (hasPlaces(op.getTile()) || isInGroups(op.getTile())))
    return 0;
  if (page) {
    int64_t common = std::gcd(rows, page);
    // A box of a tile that starts within one would reach into the next page.
    while (common % 2 == 0 && !startsAtMultiple(op.getTile(), common))
      common /= 2;
    return common % kSwizzleRows ? 0 : common;
  }
  return rows;
}

TensorMapRequest hopper::boxesOf(RingLoadOp op, int64_t rows) {
  KVBufferAttr params = op.getRing().getType().getParams();
  int64_t first = op.firstColumn() - columnInBoxes(op);
  int64_t columns = params.getDepth();
  if (auto made = op.getTile().getDefiningOp<CacheTileOp>();
      made && made.getCol())
    columns = params.getCacheDepth() - first;
  return {tensorOf(op.getTile()),
          TileView::edgesOf(op.getTile()).rowDimension,
          rows,
          params.getBK(),
          first,
          columns};
}

int64_t hopper::columnInBoxes(RingLoadOp op) {
  bool whole = op.getRing().getType().getParams().getFullKv();
  return whole ? 0 : int64_t(op.getFirstCol());
}

Movers BoxMachine::moversOf(Lanes &lower, RingLoadOp op) {
  // The lanes of a warp look up a page each, or copy.
  bool paged = op.getTile().getType().getPageSize();
  return paged || needsCopies(op) || packedRowOf(op.getTile()) ? Movers::Warp
                                                               : Movers::Lane;
}

int64_t BoxMachine::cutRows(Lanes &lower, RingLoadOp op) {
  TileEdges edges = TileView::edgesOf(op.getTile());
  TileType type = op.getTile().getType();
  // Where the first rows may be missing, too, what that takes would leave the
  // producers without registers.
  if (isShared(op) || edges.colsBehind || edges.rowsBefore ||
      type.getPageSize() || !needsCopies(op))
    return 0;
  KVBufferAttr params = op.getRing().getType().getParams();
  Copy copy{type, params, lower.target.waveSize};
  int64_t least = std::max(kSwizzleRows, copy.rowsPerStep(sharedTile(params)));
  for (int64_t rows = kCutRows; rows >= least; rows /= 2)
    if (params.getBN() % rows == 0)
      return rows;
  return 0;
}

SmallVector<TensorMapRequest> BoxMachine::tensorMapsFor(Lanes &lower,
                                                        Operation *op) {
  if (auto load = dyn_cast<RingLoadOp>(op)) {
    Value tensor = tensorOf(load.getTile());
    if (!tensor)
      return {};
    std::optional<PageBoxes> pages = pageBoxes(lower, load);
    int64_t boxed = pages ? pages->rows : boxRows(lower, load);
    if (!boxed)
      return {};
    TensorMapRequest whole = boxesOf(load, boxed);
    SmallVector<TensorMapRequest> requests{whole};
    int64_t rows = cutRows(lower, load);
    if (pages && pages->single)
      rows = 1;
    if (rows) {
      TensorMapRequest few = whole;
      few.boxRows = rows;
      requests.push_back(few);
    }
    return requests;
  }
  return {};
}

Type BoxMachine::tensorMapType(MLIRContext *context) {
  return LLVM::LLVMPointerType::get(context);
}

void BoxMachine::emitPrologue(Lanes &lower) {
  ImplicitLocOpBuilder &b = lower.b;
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(
      b, lower.shared(b.getI8Type()));
  ldsAddress = lower.toI32(address);
}

Value BoxMachine::pointer(Lanes &lower, Value offset, bool cluster) const {
  ImplicitLocOpBuilder &b = lower.b;
  Value address = arith::AddIOp::create(b, ldsAddress, offset);
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(), unsigned(cluster ? NVVM::NVVMMemorySpace::SharedCluster
                                       : NVVM::NVVMMemorySpace::Shared));
  return LLVM::IntToPtrOp::create(b, type, address);
}

void BoxMachine::emitBarrierInit(Lanes &lower, ArrayRef<LdsBarrier> barriers) {
  ImplicitLocOpBuilder &b = lower.b;
  for (const LdsBarrier &barrier : barriers)
    NVVM::MBarrierInitOp::create(b, pointer(lower, lower.i32(barrier.offset)),
                                 lower.i32(barrier.arrivals), Value());
  NVVM::FenceMbarrierInitOp::create(b);
}

Value BoxMachine::emitElect(Lanes &lower) {
  // After it the assembler knows that one lane runs, and keeps the coordinates
  // of boxes in uniform registers without asking whether lanes agree.
  return NVVM::ElectSyncOp::create(lower.b, lower.b.getI1Type(), Value());
}

void BoxMachine::emitBarrierWait(Lanes &lower, Value barrier, Value parity) {
  // How long one try may sleep, ns; the op tries again.
  constexpr int64_t ticks = 10'000'000;
  NVVM::MBarrierTryWaitParityOp::create(lower.b, pointer(lower, barrier),
                                        parity, lower.i32(ticks));
}

Value BoxMachine::uniform(Lanes &lower, Value value) {
  // The first lane's: ptxas then knows that the lanes agree.
  return gpu::ShuffleOp::create(lower.b, value, lower.i32(0),
                                lower.i32(lower.target.waveSize),
                                gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

void BoxMachine::emitBarrierArrive(Lanes &lower, Value barrier,
                                   Value predicate) {
  ImplicitLocOpBuilder &b = lower.b;
  // An arrival that expects no bytes: the form that takes a predicate, where a
  // branch would part the code that the assembler schedules.
  NVVM::MBarrierArriveExpectTxOp::create(
      b, TypeRange(), pointer(lower, barrier), lower.i32(0),
      NVVM::MemScopeKind::CTA, /*relaxed=*/false, predicate);
}

void BoxMachine::emitClusterArrive(Lanes &lower, Value barrier, Value rank,
                                   Value predicate) {
  ClusterArriveOp::create(lower.b, pointer(lower, barrier), rank, predicate);
}

void BoxMachine::emitWarpMeet(Lanes &lower) {
  NVVM::SyncWarpOp::create(lower.b, lower.i32(-1));
}

void BoxMachine::emitPublish(Lanes &lower) { fenceWrites(lower); }

void BoxMachine::emitExpectBytes(Lanes &lower, Value barrier, int64_t bytes) {
  NVVM::MBarrierArriveExpectTxOp::create(
      lower.b, TypeRange(), pointer(lower, barrier), lower.i32(bytes),
      NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
}

void BoxMachine::emitClusterStore(Lanes &lower, Value value, Value word,
                                  Value barrier, Value rank) {
  ClusterStoreOp::create(lower.b, value, pointer(lower, word),
                         pointer(lower, barrier), rank);
}

void BoxMachine::emitClusterEnter(Lanes &lower) {
  // The fence behind the barriers' making releases these. An arrival that
  // releases, too, waits for all of the thread's accesses to memory.
  NVVM::ClusterArriveRelaxedOp::create(lower.b, UnitAttr());
}

void BoxMachine::emitClusterMeet(Lanes &lower) {
  NVVM::ClusterWaitOp::create(lower.b, UnitAttr());
}

void BoxMachine::emitSetRegisters(Lanes &lower, int64_t count, int64_t before) {
  NVVM::SetMaxRegisterOp::create(lower.b, count,
                                 count > before
                                     ? NVVM::SetMaxRegisterAction::increase
                                     : NVVM::SetMaxRegisterAction::decrease);
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

void hopper::fenceWrites(Lanes &lower) {
  MLIRContext *context = lower.b.getContext();
  NVVM::FenceProxyOp::create(
      lower.b, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(context, NVVM::SharedSpace::shared_cta));
}

Value BoxMachine::emitBlocksOfBoxes(Lanes &lower, RingLoadOp op,
                                    const TileView &tile) {
  ImplicitLocOpBuilder &b = lower.b;
  TileType type = op.getTile().getType();
  int64_t rows = boxRows(lower, op), boxes = type.getRows() / rows;
  Value box = arith::MinUIOp::create(b, lower.lane, lower.i32(boxes - 1));
  Value row = arith::MulIOp::create(b, box, lower.i32(rows));
  if (op.getWhole())
    return tile.lookUpPage(lower, row);
  return ifAnyRow(lower, tile, 1,
                  [&]() -> Values {
                    return {
                        tile.lookUpPage(lower, nearestRow(lower, tile, row))};
                  })
      .front();
}

Value hopper::ofLane(Lanes &lower, Value value, Value lane) {
  return gpu::ShuffleOp::create(lower.b, value, lane,
                                lower.i32(lower.target.waveSize),
                                gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

void BoxMachine::emitBox(Lanes &lower, Value map, ValueRange position, Value to,
                         Value barrier, Value mask, Value there, Value hint) {
  bool cluster = mask || !lower.target.copiesBoxesIntoBlock;
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      lower.b, pointer(lower, to, cluster), map, position, barrier,
      /*im2colOffsets=*/ValueRange(), mask, hint, NVVM::TMALoadMode::TILE,
      /*isCTAOnly=*/!cluster,
      /*group=*/NVVM::CTAGroupKindAttr(), there);
}

void BoxMachine::emitBoxes(LaneLowering &lower, RingLoadOp op,
                           const TileView &tile, Value slot, Value full,
                           Value blocks) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getRing().getType().getParams();
  TileType type = op.getTile().getType();
  int64_t rows = boxRows(lower, op);
  ClusterParts parts = clusterParts(lower, op);
  int64_t boxes = params.getBN() / parts.rows / rows;
  // The number of box `box` of this block's rows among the tile's.
  auto ofPart = [&](int64_t box) -> Value {
    if (parts.rows == 1)
      return lower.i32(box);
    Value part = arith::DivUIOp::create(b, lower.rings.rank,
                                        lower.i32(int64_t(parts.columns)));
    return arith::AddIOp::create(
        b, arith::MulIOp::create(b, part, lower.i32(boxes)).getResult(),
        lower.i32(box));
  };
  // A shuffle takes the whole warp, boxes one lane of it.
  Values blockOf;
  for (int64_t box = 0; blocks && box < boxes; ++box)
    blockOf.push_back(ofLane(lower, blocks, ofPart(box)));
  OpBuilder::InsertionGuard guard(b);
  if (lower.rings.movers != Movers::Lane)
    lower.enter(emitElect(lower));
  // Bytes outside of the tensor are filled in and count; so do those that other
  // blocks of the cluster send.
  emitExpectBytes(lower, full, params.getStageBytes());
  Value map = lower.signature.tensorMap(boxesOf(op, rows));
  Value barrier = pointer(lower, full), mask, hint;
  // What createpolicy.fractional.L2::evict_first makes for all of an access.
  if (op->hasAttr(kReadOnceAttr))
    hint = arith::ConstantIntOp::create(b, 0x12f0000000000000, 64);
  Values rest = tile.box.position;
  Value firstColumn = tile.box.column;
  int64_t columns = params.getSmemCols() / params.getBK() / parts.columns;
  if (isShared(op)) {
    // This block's part, to the same place in every block.
    auto move = [&](Value at, Value part, int64_t by) -> Value {
      return arith::AddIOp::create(
          b, at, arith::MulIOp::create(b, part, lower.i32(by)).getResult());
    };
    Value part = lower.rings.rank;
    if (parts.columns > 1) {
      Value ofColumns =
          arith::RemUIOp::create(b, part, lower.i32(parts.columns));
      part = arith::DivUIOp::create(b, part, lower.i32(parts.columns));
      firstColumn = move(tile.box.column ? tile.box.column : lower.i32(0),
                         ofColumns, columns * params.getBK());
      slot = move(slot, ofColumns, columns * blockBytes(params));
    }
    if (parts.rows > 1) {
      if (!blocks)
        rest.front() = move(rest.front(), part, rows);
      slot = move(slot, part, boxes * rows * rowBytes(params));
    }
    mask = arith::ConstantIntOp::create(b, (1 << lower.cluster()) - 1, 16);
  }
  for (int64_t box = 0; box < boxes; ++box) {
    if (blocks) {
      rest.back() = blockOf[box];
      // Tiles begin at multiples of their rows.
      if (rows < type.getPageSize())
        rest.front() = tile.rowInPage(
            lower,
            arith::MulIOp::create(b, ofPart(box), lower.i32(rows)).getResult());
    }
    for (int64_t column = 0; column < columns; ++column) {
      int64_t offset =
          column * blockBytes(params) + box * rows * rowBytes(params);
      Value to = arith::AddIOp::create(b, slot, lower.i32(offset));
      Value first = lower.i32(columnInBoxes(op) + column * params.getBK());
      if (firstColumn)
        first = arith::AddIOp::create(b, firstColumn, first);
      Values position{first};
      llvm::append_range(position, rest);
      emitBox(lower, map, position, to, barrier, mask, /*there=*/Value(), hint);
    }
  }
}

void BoxMachine::emitWarpCopies(Lanes &lower, RingLoadOp op,
                                const TileView &tile, Value slot, Value full,
                                Value blocks) {
  ImplicitLocOpBuilder &b = lower.b;
  TileType type = op.getTile().getType();
  auto lineOf = [&](Value row) {
    Value box = arith::DivUIOp::create(b, row, lower.i32(boxRows(lower, op)));
    return tile.lineInPage(lower, row, ofLane(lower, blocks, box));
  };
  Copy copy{type, op.getRing().getType().getParams(), lower.target.waveSize};
  // Tiles that are cut are few: a loop of little code.
  copy.stepsAtOnce = kStepsAtOnce;
  copy.checkCols = bool(tile.cols);
  if (blocks)
    copy.lineOf = lineOf;
  // What follows from the lane's number stays in this branch: a shuffle is not
  // moved, and outside no register is left for it.
  Value outside = lower.thread;
  lower.thread = ofLane(lower, lower.lane, lower.lane);
  emitCopies(lower, copy, tile, slot, /*checkRows=*/true);
  Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.thread,
                                      lower.i32(0));
  lower.thread = outside;
  NVVM::CpAsyncCommitGroupOp::create(b);
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  // Each lane makes its own writes visible; then all of them have.
  fenceWrites(lower);
  NVVM::SyncWarpOp::create(b, lower.i32(-1));
  emitBarrierArrive(lower, full, first);
}

void BoxMachine::emitCutTile(LaneLowering &lower, RingLoadOp op,
                             const TileView &tile, Value slot, Value full) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getRing().getType().getParams();
  int64_t rows = cutRows(lower, op), groups = params.getBN() / rows;
  int64_t columns = params.getSmemCols() / params.getBK();
  int64_t groupBytes = rows * rowBytes(params);
  Value zero = lower.i32(0), size = lower.i32(rows);
  // Rows from 0 to `hi` are valid; `cut` is the group that this end divides, if
  // it divides one.
  Value hi = arith::MaxSIOp::create(b, tile.hi, zero);
  Value cut = arith::DivUIOp::create(b, hi, size);
  Value isCut = arith::CmpIOp::create(
      b, arith::CmpIPredicate::ne,
      arith::RemUIOp::create(b, hi, size).getResult(), zero);

  // Its copies are on their way while boxes are asked for. What follows from
  // the lane's number stays in this branch: a shuffle is not moved, and outside
  // no register is left for it.
  Value outside = lower.thread;
  lower.thread = ofLane(lower, lower.lane, lower.lane);
  {
    OpBuilder::InsertionGuard guard(b);
    auto ifCut = scf::IfOp::create(b, isCut, /*withElseRegion=*/false);
    b.setInsertionPointToStart(ifCut.thenBlock());
    TileView valid = tile;
    valid.lo = zero;
    Copy copy{op.getTile().getType(), params, lower.target.waveSize};
    copy.group = cut;
    copy.groupRows = rows;
    emitCopies(lower, copy, valid, slot, /*checkRows=*/true);
  }
  Value first =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.thread, zero);
  lower.thread = outside;
  NVVM::CpAsyncCommitGroupOp::create(b);
  {
    OpBuilder::InsertionGuard guard(b);
    lower.enter(emitElect(lower));
    Value barrier = pointer(lower, full);
    Value bytes = arith::SelectOp::create(
        b, isCut, lower.i32(params.getStageBytes() - columns * groupBytes),
        lower.i32(params.getStageBytes()));
    NVVM::MBarrierExpectTxOp::create(b, barrier, bytes,
                                     NVVM::MemScopeKind::CTA);
    Value map = lower.signature.tensorMap(boxesOf(op, rows));
    auto loop = scf::ForOp::create(b, zero, lower.i32(groups), lower.i32(1));
    keepLoop(loop);
    b.setInsertionPointToStart(loop.getBody());
    Value group = loop.getInductionVar();
    Value from = arith::MulIOp::create(b, group, size);
    Value left = arith::SubIOp::create(b, hi, from);
    Value whole =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, left, size);
    Value none =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sle, left, zero);
    lower.enter(arith::OrIOp::create(b, whole, none));
    Values rest = tile.box.position;
    // Before the tensor lie zeros.
    rest.front() = arith::SelectOp::create(
        b, whole, arith::AddIOp::create(b, rest.front(), from).getResult(),
        lower.i32(-rows));
    Value to = arith::AddIOp::create(
        b, slot,
        arith::MulIOp::create(b, group, lower.i32(groupBytes)).getResult());
    for (int64_t column = 0; column < columns; ++column) {
      Value place =
          arith::AddIOp::create(b, to, lower.i32(column * blockBytes(params)));
      Value firstOfBox = lower.i32(columnInBoxes(op) + column * params.getBK());
      if (tile.box.column)
        firstOfBox = arith::AddIOp::create(b, tile.box.column, firstOfBox);
      Values position{firstOfBox};
      llvm::append_range(position, rest);
      emitBox(lower, map, position, place, barrier);
    }
  }
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  // Each lane makes its own writes visible; then all of them have.
  fenceWrites(lower);
  NVVM::SyncWarpOp::create(b, lower.i32(-1));
  emitBarrierArrive(lower, full, first);
}

LogicalResult BoxMachine::emitRingLoad(LaneLowering &lower, RingLoadOp op,
                                       const TileView &tile, Value slot,
                                       Value full, Value empty,
                                       Value emptyParity) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getRing().getType().getParams();
  TileType type = op.getTile().getType();
  // What lies as it is lanes read, and no unit.
  if (llvm::isPowerOf2_64(params.getBK()) && failed(checkSwizzle(op, params)))
    return failure();
  if (int64_t parts = clusterParts(lower, op).rows;
      params.getBN() % (kSwizzleRows * parts))
    return op.emitOpError()
           << "cannot divide " << params.getBN() << " rows among " << parts
           << " blocks; expected a multiple of " << kSwizzleRows * parts;
  if (tile.box.column && params.getSmemCols() != params.getDepth())
    return op.emitOpError() << "loads a window of " << params.getDepth()
                            << " columns into blocks of " << params.getBK()
                            << ", whose rest a box would fill with what lies "
                               "beside it; expected "
                               "columns in multiples of BK";
  if (params.getBN() > 256)
    return op.emitOpError() << "loads " << params.getBN()
                            << " rows, the copy engine at most 256";

  if (tile.map == RowMap::Places && isShared(op))
    return op.emitOpError()
           << "shares rows, each of which the type of their cache finds, among "
              "the blocks of a cluster; expected a ring without shared";
  if (tile.map == RowMap::Groups && isShared(op))
    return op.emitOpError() << "shares rows in groups of " << type.getPageSize()
                            << " among the blocks of a cluster; expected a "
                               "ring without shared";
  if (tile.isPaged() && tile.map != RowMap::Groups && tile.edges.colsBehind)
    return op.emitOpError() << "loads rows that are looked up one by one, of a "
                               "window whose columns may be cut; expected "
                            << type.getCols() << " valid columns, a constant";

  OpBuilder::InsertionGuard guard(b);
  if (tile.map == RowMap::Places || tile.map == RowMap::Groups) {
    emitBarrierWait(lower, empty, emptyParity);
    emitWarpCopies(lower, op, tile, slot, full, /*blocks=*/Value());
    return success();
  }
  if (!boxRows(lower, op)) {
    TileView rows = tile;
    if (!tile.edges.rowsBefore)
      rows.lo = lower.i32(0);
    if (packedRowOf(op.getTile())) {
      if (op.getFirstCol())
        return op.emitOpError()
               << "loads columns of packed rows from the ring's "
               << int64_t(op.getFirstCol())
               << " on; expected a ring for each part of them";
      emitPackedRows(lower, op, rows, slot, full, empty, emptyParity);
      return success();
    }
    emitSmallPages(lower, op, rows, slot, full, empty, emptyParity);
    return success();
  }
  if (op.isAhead())
    return op.emitOpError() << "runs ahead of its end, but comes as boxes, "
                               "which nobody waits for";
  // Look-ups are on their way while the warp waits for the slot.
  Value blocks;
  if (type.getPageSize())
    blocks = emitBlocksOfBoxes(lower, op, tile);
  emitBarrierWait(lower, empty, emptyParity);
  if (!needsCopies(op)) {
    emitBoxes(lower, op, tile, slot, full, blocks);
    return success();
  }
  Value whole;
  auto require = [&](Value condition) {
    whole = whole ? arith::AndIOp::create(b, whole, condition) : condition;
  };
  if (tile.edges.rowsBefore)
    require(arith::CmpIOp::create(b, arith::CmpIPredicate::sle, tile.lo,
                                  lower.i32(0)));
  if (tile.edges.rowsBehind)
    require(arith::CmpIOp::create(b, arith::CmpIPredicate::sge, tile.hi,
                                  lower.i32(type.getRows())));
  if (tile.edges.colsBehind)
    require(arith::CmpIOp::create(b, arith::CmpIPredicate::sge, tile.cols,
                                  lower.i32(type.getCols())));
  auto ifWhole = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
  b.setInsertionPointToStart(ifWhole.thenBlock());
  emitBoxes(lower, op, tile, slot, full, blocks);
  b.setInsertionPointToStart(ifWhole.elseBlock());
  if (cutRows(lower, op))
    emitCutTile(lower, op, tile, slot, full);
  else
    emitWarpCopies(lower, op, tile, slot, full, blocks);
  return success();
}
