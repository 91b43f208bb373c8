//===- MachineHopperPackedAhead.cpp - Packed rows ahead of slots ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All warps of a team fill each slot, and ask for the bytes of their rows
/// ahead of it, into memory of their own, from which they widen them: the next
/// tile's are on their way meanwhile, and a slot is filled in a fraction of the
/// time that one warp takes.
///
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/PackedRows.h"
#include "PackedFill.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::hopper;

void BoxMachine::PackedFill::divide(int64_t warps, Value bytes) {
  this->warps = warps;
  Value share = arith::RemUIOp::create(b, lower.warp, lower.i32(warps));
  this->bytes = add(bytes, mul(share, bytesOfWarp()));
  Value first = mul(share, rows());
  firstRow = firstRow ? add(firstRow, first) : first;
}

Value BoxMachine::PackedFill::ownKnown() {
  // Places beyond the steps know what others do.
  Value step =
      arith::AndIOp::create(b, place, lower.i32(rows() / kStepRows - 1));
  return add(mul(step, kStepRows), group);
}

void BoxMachine::PackedFill::copyAhead(ArrayRef<Value> known) {
  Type i64 = b.getI64Type();
  auto wide = [&](Value word) -> Value {
    return arith::ExtUIOp::create(b, i64, word);
  };
  auto pointerTo = [&](Value address, NVVM::NVVMMemorySpace space) -> Value {
    return LLVM::IntToPtrOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), unsigned(space)),
        address);
  };
  auto c64 = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 64);
  };
  bool widened = isWidened();
  Value start = add(ldsAddress, widened ? bytes : slot);
  Value placeBytes = wide(mul(place, kTensorAlignment));
  auto copyOne = [&](Value to, Value from, int64_t size, Value there) {
    Value count =
        arith::SelectOp::create(b, there, lower.i32(size), lower.i32(0));
    NVVM::CpAsyncOp::create(
        b, pointerTo(wide(to), NVVM::NVVMMemorySpace::Shared),
        pointerTo(from, NVVM::NVVMMemorySpace::Global), size,
        size == kTensorAlignment ? NVVM::LoadCacheModifierKind::CG
                                 : NVVM::LoadCacheModifierKind::CA,
        count);
  };
  auto split = [&](Value low) -> std::pair<Value, Value> {
    if (!tile.lastPage)
      return {low, Value()};
    Value absent = arith::AndIOp::create(b, low, lower.i32(kAbsent));
    return {arith::XOrIOp::create(b, low, absent).getResult(), absent};
  };
  if (widened) {
    // Scales: of the row that this lane knows.
    Value own = ownKnown();
    auto [low, absent] = split(known[0]);
    Value from = arith::OrIOp::create(
        b, arith::ShLIOp::create(b, wide(known[1]), c64(32)).getResult(),
        wide(low));
    Value to = add(add(start, lower.i32(rows() * chunks() * 128)),
                   mul(own, 4 * chunks()));
    OpBuilder::InsertionGuard guard(b);
    auto mine = scf::IfOp::create(
        b,
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place,
                              lower.i32(rows() / kStepRows)),
        /*withElseRegion=*/false);
    b.setInsertionPointToStart(mine.thenBlock());
    Value there = isThere(add(firstRow, own), absent);
    for (int64_t chunk = 0; chunk < chunks(); ++chunk) {
      int64_t number = (first + chunk * 128) / part.getGranularity();
      int64_t behind = part.getScaleAt() + number * 4 - part.getAt() - first;
      copyOne(add(to, lower.i32(chunk * 4)),
              arith::AddIOp::create(b, from, c64(behind)), 4, there);
    }
  }
  for (int64_t step = 0; step < rows() / kStepRows; ++step) {
    Value own = add(lower.i32(step * kStepRows), group);
    Value row = add(firstRow, own);
    Value high =
        arith::ShLIOp::create(b, wide(ask(known[1], lower.i32(step))), c64(32));
    auto [low, absent] = split(ask(known[0], lower.i32(step)));
    Value from = arith::OrIOp::create(b, high, wide(low));
    from = arith::AddIOp::create(b, from, placeBytes);
    Value there = isThere(row, absent);
    Value to = add(start, widened ? inCopy(own, place) : inBlock(row, place));
    int64_t count = widened ? chunks() : params.getSmemCols() / 64;
    for (int64_t block = 0; block < count; ++block)
      copyOne(add(to, lower.i32(block *
                                (widened ? rows() * 128 : blockBytes(params)))),
              arith::AddIOp::create(b, from, c64(block * 128)),
              kTensorAlignment, there);
  }
}

void BoxMachine::PackedFill::storeWide(Value data, Value factors, Value at) {
  constexpr int64_t piece = 8;
  Value x = widenElements(
      b, arith::BitcastOp::create(
             b, VectorType::get({piece}, part.getElement()), data));
  x = arith::MulFOp::create(b, x, factors);
  x = arith::TruncFOp::create(
      b, VectorType::get({piece}, params.getElementType()), x);
  for (int64_t other = 1; other < blocks; ++other)
    lower.phases().emitClusterStore(
        lower,
        vector::BitCastOp::create(b, VectorType::get({4}, b.getI32Type()), x),
        at, full, arith::XOrIOp::create(b, lower.rings.rank, lower.i32(other)));
  at = arith::ShRUIOp::create(b, at, lower.i32(1));
  vector::StoreOp::create(b, x, lower.shared(params.getElementType()),
                          ValueRange{lower.toIndex(at)},
                          /*nontemporal=*/false, llvm::Align(kTensorAlignment));
}

void BoxMachine::PackedFill::widenAhead() {
  constexpr int64_t piece = 8;
  auto type = VectorType::get({piece}, b.getI8Type());
  auto f32 = VectorType::get({piece}, b.getF32Type());
  Value shared = lower.shared(b.getI8Type());
  Value scales = lower.shared(b.getF32Type());
  Value odd = arith::AndIOp::create(b, place, lower.i32(1));
  Value half = arith::ShRUIOp::create(b, place, lower.i32(1));
  for (int64_t step = 0; step < rows() / kStepRows; ++step) {
    Value own = add(lower.i32(step * kStepRows), group);
    Value to = add(slot, inBlock(add(firstRow, own), place));
    for (int64_t chunk = 0; chunk < chunks(); ++chunk) {
      Value ofScale = add(add(bytes, mul(own, 4 * chunks())),
                          lower.i32(rows() * chunks() * 128 + chunk * 4));
      Value scale = memref::LoadOp::create(
          b, scales,
          ValueRange{
              lower.toIndex(arith::ShRUIOp::create(b, ofScale, lower.i32(2)))});
      Value factors = vector::BroadcastOp::create(b, f32, scale);
      for (int64_t side : {0, 1}) {
        Value vector = add(half, lower.i32(side * kRowLanes / 2));
        Value at = add(add(bytes, inCopy(own, vector)),
                       add(mul(odd, piece), lower.i32(chunk * rows() * 128)));
        Value data = vector::LoadOp::create(
            b, type, shared, ValueRange{lower.toIndex(at)},
            /*nontemporal=*/false, llvm::Align(piece));
        storeWide(data, factors,
                  add(to, lower.i32((2 * chunk + side) * blockBytes(params))));
      }
    }
  }
}

/// Whether a load that runs ahead stands before this one in its block.
static bool followsAnother(RingLoadOp op) {
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode())
    if (auto load = dyn_cast<RingLoadOp>(before); load && load.isAhead())
      return true;
  return false;
}

void BoxMachine::emitPackedAhead(LaneLowering &lower, RingLoadOp op,
                                 PackedFill &fill, Value full, Value empty,
                                 Value emptyParity) {
  ImplicitLocOpBuilder &b = lower.b;
  int64_t warps = warpsOfSlot(lower, op), bytes = 0;
  if (fill.isWidened()) {
    fill.warps = warps;
    auto [own, isNew] = bytesAhead.try_emplace(op.getRing());
    if (isNew)
      own->second = lower.takeLds(warps * fill.bytesOfWarp());
    bytes = own->second;
  }
  fill.divide(warps, lower.i32(bytes));
  if (op.getBegin()) {
    Values known = ifAnyRow(lower, fill.tile, 2, [&]() -> Values {
      Value row = fill.add(fill.firstRow, fill.ownKnown());
      return fill.known(nearestRow(lower, fill.tile, row), /*scales=*/false);
    });
    // What was begun for a tile behind the last one, of the same filling, may
    // be on its way.
    if (!followsAnother(op))
      NVVM::CpAsyncWaitGroupOp::create(b, 0);
    // What is not widened goes to its place.
    if (!fill.isWidened())
      emitBarrierWait(lower, empty, emptyParity);
    fill.copyAhead(known);
    NVVM::CpAsyncCommitGroupOp::create(b);
    return;
  }
  NVVM::CpAsyncWaitGroupOp::create(b, int64_t(op.getYounger()));
  if (fill.isWidened()) {
    // Each lane has waited for its own.
    NVVM::SyncWarpOp::create(b, lower.i32(-1));
    emitBarrierWait(lower, empty, emptyParity);
    fill.widenAhead();
  }
  fill.arrive(pointer(lower, full));
}
