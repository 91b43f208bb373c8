//===- MachineHopperPacked.cpp - Packed rows into rings on sm_90a ---------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One warp fills a slot with columns of rows that are packed. Bytes are copied
/// into the slot's second half, which needs no registers for what is on its
/// way, and widened from there in place: of the rows of a step all bytes are
/// read before any element is written. What is stored as it is multiplied is
/// copied to where it belongs.
///
/// Of a ring that the blocks of a cluster share each widens a part of the rows,
/// and sends them to the others' slots as well, whose barriers count the bytes.
///
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/PackedRows.h"
#include "PackedFill.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::hopper;

BoxMachine::PackedFill::PackedFill(LaneLowering &lower, const TileView &tile,
                                   KVBufferAttr params, RowAttr row, Value slot,
                                   Value ldsAddress)
    : lower(lower), b(lower.b), tile(tile), params(params), row(row),
      slot(slot), ldsAddress(ldsAddress) {
  segments = segmentsOf(row, params.getHeadDimOffset(), params.getSmemCols());
  part = segments.front().part;
  first = segments.front().inPart;
  place = arith::AndIOp::create(b, lower.lane, lower.i32(kRowLanes - 1));
  group = arith::ShRUIOp::create(b, lower.lane,
                                 lower.i32(llvm::Log2_64(kRowLanes)));
}

void BoxMachine::PackedFill::share(Value full) {
  blocks = lower.cluster();
  this->full = full;
  firstRow = mul(lower.rings.rank, params.getBN() / blocks);
}

Value BoxMachine::PackedFill::ask(Value word, Value from) {
  int64_t lanes = lower.target.waveSize, segment = lanes - kRowLanes;
  return NVVM::ShflOp::create(
      b, b.getI32Type(), lower.i32(-1), word, from,
      lower.i32(segment << 8 | (lanes - 1)),
      NVVM::ShflKindAttr::get(b.getContext(), NVVM::ShflKind::idx), UnitAttr());
}

Values BoxMachine::PackedFill::known(Value row, bool scales, Value entry) {
  Value line, source = lower.flat(tile.data), listed;
  if (entry) {
    Value page = entry, last = tile.lastPage;
    if (!page.getType().isInteger(32))
      page = arith::TruncIOp::create(b, b.getI32Type(), page);
    if (last) {
      page = arith::MinUIOp::create(b, page, last);
      if (entry.getType() != last.getType())
        last = arith::ExtUIOp::create(b, entry.getType(), last);
      listed = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, entry, last);
    }
    line = tile.lineInPage(lower, row, page);
  } else {
    line = tile.lineOf(lower, row);
    if (tile.lastPage)
      listed = tile.isListed(lower, row);
  }
  int64_t width = part.getElement().getIntOrFloatBitWidth() / 8;
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  Value begin = arith::IndexCastOp::create(
      b, i64, memref::ExtractAlignedPointerAsIndexOp::create(b, source));
  Value byte = arith::IndexCastOp::create(b, i64, line);
  Value at = arith::AddIOp::create(
      b, arith::AddIOp::create(b, begin, byte).getResult(),
      arith::ConstantIntOp::create(b, part.getAt() + first * width, 64)
          .getResult());
  Value high = arith::ShRUIOp::create(
      b, at, arith::ConstantIntOp::create(b, 32, 64).getResult());
  Values words{arith::TruncIOp::create(b, i32, at),
               arith::TruncIOp::create(b, i32, high)};
  if (listed)
    words[0] = arith::SelectOp::create(
        b, listed, words[0],
        arith::OrIOp::create(b, words[0], lower.i32(kAbsent)).getResult());
  if (!scales) {
    // How far behind the row's first column its tail is: within a block.
    if (this->words() > 2)
      words.push_back(arith::TruncIOp::create(
          b, i32,
          arith::IndexCastOp::create(
              b, i64,
              arith::SubIOp::create(
                  b, placeInRow(lower, this->row, line, this->row.getBytes()),
                  add(line, lower.index(part.getAt() + first * width)))
                  .getResult())
              .getResult()));
    return words;
  }
  if (!isWidened())
    return words;
  Type stored = cast<MemRefType>(source.getType()).getElementType();
  for (int64_t chunk = 0; chunk < chunks(); ++chunk) {
    int64_t number = (first + chunk * 128) / part.getGranularity();
    Value loaded = vector::LoadOp::create(
        b, VectorType::get({4}, stored), source,
        ValueRange{add(line, lower.index(part.getScaleAt() + number * 4))},
        /*nontemporal=*/false, llvm::Align(4));
    auto bytes = VectorType::get({4}, b.getI8Type());
    if (loaded.getType() != bytes)
      loaded = arith::BitcastOp::create(b, bytes, loaded);
    loaded = vector::BitCastOp::create(b, VectorType::get({1}, i32), loaded);
    Value scale = vector::ExtractOp::create(b, loaded, ArrayRef<int64_t>{0});
    if (listed)
      scale = arith::SelectOp::create(b, listed, scale, lower.i32(0));
    words.push_back(scale);
  }
  return words;
}

Value BoxMachine::PackedFill::isThere(Value row, Value absent) {
  Value there =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, tile.hi);
  if (!matchPattern(tile.lo, m_Zero()))
    there = arith::AndIOp::create(
        b, there,
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, row, tile.lo)
            .getResult());
  if (absent)
    there =
        arith::AndIOp::create(b, there,
                              arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                                    absent, lower.i32(0)));
  return there;
}

Value BoxMachine::PackedFill::inBlock(Value row, Value vector) {
  Value swizzled = arith::XOrIOp::create(
      b, vector,
      arith::AndIOp::create(b, row, lower.i32(kSwizzleRows - 1)).getResult());
  return add(mul(row, rowBytes(params)), mul(swizzled, kTensorAlignment));
}

Value BoxMachine::PackedFill::inCopy(Value row, Value vector) {
  Value flip =
      mul(arith::AndIOp::create(b, group, lower.i32(1)), kRowLanes / 2);
  return add(mul(row, rowBytes(params)),
             mul(arith::XOrIOp::create(b, vector, flip), kTensorAlignment));
}

void BoxMachine::PackedFill::copy(int64_t batch, ArrayRef<Value> known) {
  Type i64 = b.getI64Type();
  auto wide = [&](Value word) -> Value {
    return arith::ExtUIOp::create(b, i64, word);
  };
  auto pointerTo = [&](Value address, NVVM::NVVMMemorySpace space) -> Value {
    return LLVM::IntToPtrOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), unsigned(space)),
        address);
  };
  Value placeBytes = wide(mul(place, kTensorAlignment));
  Value start = add(ldsAddress, slot);
  for (int64_t step = 0; step < kBatchRows / kStepRows; ++step) {
    Value row = rowOf(batch, lower.i32(step));
    Value high = arith::ShLIOp::create(
        b, wide(ask(known[1], lower.i32(step))),
        arith::ConstantIntOp::create(b, 32, 64).getResult());
    Value low = ask(known[0], lower.i32(step)), absent;
    if (tile.lastPage) {
      absent = arith::AndIOp::create(b, low, lower.i32(kAbsent));
      low = arith::XOrIOp::create(b, low, absent);
    }
    Value from = arith::OrIOp::create(b, high, wide(low));
    from = arith::AddIOp::create(b, from, placeBytes);
    // Rows that are not there are zeros: copies of no bytes.
    Value there = isThere(row, absent);
    Value bytes = arith::SelectOp::create(b, there, lower.i32(kTensorAlignment),
                                          lower.i32(0));
    Value to =
        add(start, isWidened() ? inCopy(row, place) : inBlock(row, place));
    int64_t blocks = isWidened() ? chunks() : params.getSmemCols() / 64;
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t into = isWidened() ? blocks + block : block;
      Value source = arith::AddIOp::create(
          b, from,
          arith::ConstantIntOp::create(b, block * rowBytes(params), 64)
              .getResult());
      NVVM::CpAsyncOp::create(
          b,
          pointerTo(wide(add(to, lower.i32(into * blockBytes(params)))),
                    NVVM::NVVMMemorySpace::Shared),
          pointerTo(source, NVVM::NVVMMemorySpace::Global), kTensorAlignment,
          NVVM::LoadCacheModifierKind::CG, bytes);
    }
  }
}

scf::ForOp BoxMachine::PackedFill::widen(int64_t batch, ArrayRef<Value> known) {
  OpBuilder::InsertionGuard guard(b);
  // Two steps at a time are rows that a swizzle repeats after.
  auto loop = scf::ForOp::create(
      b, lower.i32(0), lower.i32(kBatchRows / kSwizzleRows), lower.i32(1));
  b.setInsertionPointToStart(loop.getBody());
  Value before = mul(loop.getInductionVar(), kSwizzleRows * rowBytes(params));
  if (firstRow)
    before = add(before, mul(firstRow, rowBytes(params)));
  for (int64_t parity : {0, 1})
    widenStep(known, add(mul(loop.getInductionVar(), 2), lower.i32(parity)),
              add(group, lower.i32(parity * kStepRows)),
              add(add(slot, before),
                  lower.i32(batch * kBatchRows * rowBytes(params))));
  return loop;
}

void BoxMachine::PackedFill::widenStep(ArrayRef<Value> known, Value step,
                                       Value row, Value begin) {
  // A lane has 8 elements of each block: neighbouring lanes store all of a row.
  constexpr int64_t piece = 8;
  auto bytes = VectorType::get({piece}, b.getI8Type());
  Value shared = lower.shared(b.getI8Type()),
        wide = lower.shared(params.getElementType());
  Value odd = arith::AndIOp::create(b, place, lower.i32(1));
  Value half = arith::ShRUIOp::create(b, place, lower.i32(1));
  SmallVector<Value> pieces;
  for (int64_t block = 0; block < 2 * chunks(); ++block) {
    Value vector = add(half, lower.i32(block % 2 * kRowLanes / 2));
    Value at = add(add(begin, inCopy(row, vector)),
                   add(mul(odd, piece),
                       lower.i32((chunks() + block / 2) * blockBytes(params))));
    pieces.push_back(
        vector::LoadOp::create(b, bytes, shared, ValueRange{lower.toIndex(at)},
                               /*nontemporal=*/false, llvm::Align(piece)));
  }
  // Elements go where bytes are, of these rows alone.
  NVVM::SyncWarpOp::create(b, lower.i32(-1));
  Value to = add(begin, inBlock(row, place));
  auto f32 = VectorType::get({piece}, b.getF32Type());
  Value factors;
  for (auto [block, data] : llvm::enumerate(pieces)) {
    if (block % 2 == 0) {
      Value scale = arith::BitcastOp::create(b, b.getF32Type(),
                                             ask(known[2 + block / 2], step));
      factors = vector::BroadcastOp::create(b, f32, scale);
    }
    Value x = widenElements(
        b, arith::BitcastOp::create(
               b, VectorType::get({piece}, part.getElement()), data));
    x = arith::MulFOp::create(b, x, factors);
    x = arith::TruncFOp::create(
        b, VectorType::get({piece}, params.getElementType()), x);
    Value at = add(to, lower.i32(int64_t(block) * blockBytes(params)));
    for (int64_t other = 1; other < blocks; ++other)
      lower.phases().emitClusterStore(
          lower,
          vector::BitCastOp::create(b, VectorType::get({4}, b.getI32Type()), x),
          at, full,
          arith::XOrIOp::create(b, lower.rings.rank, lower.i32(other)));
    at = arith::ShRUIOp::create(b, at, lower.i32(1));
    vector::StoreOp::create(b, x, wide, ValueRange{lower.toIndex(at)},
                            /*nontemporal=*/false,
                            llvm::Align(kTensorAlignment));
  }
}

void BoxMachine::PackedFill::arrive(Value barrier) {
  // Each lane makes its own writes visible; then all of them have.
  fenceWrites(lower);
  NVVM::SyncWarpOp::create(b, lower.i32(-1));
  if (sends)
    send();
  // The barrier awaits what comes from others, too.
  NVVM::MBarrierArriveExpectTxOp::create(
      b, TypeRange(), barrier, lower.i32(bytesOfOthers() / warps),
      NVVM::MemScopeKind::CTA, /*relaxed=*/false,
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lower.lane,
                            lower.i32(0)));
}

void BoxMachine::emitPackedRows(LaneLowering &lower, RingLoadOp op,
                                const TileView &tile, Value slot, Value full,
                                Value empty, Value emptyParity) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getRing().getType().getParams();
  PackedFill fill(lower, tile, params, packedRowOf(op.getTile()), slot,
                  ldsAddress);
  if (isShared(op))
    fill.share(full);
  if (op.isAhead()) {
    emitPackedAhead(lower, op, fill, full, empty, emptyParity);
    return;
  }
  int64_t batches = fill.batches();
  // Look-ups and scales are on their way while the warp waits for the slot.
  SmallVector<Values> known;
  for (int64_t batch = 0; batch < batches; ++batch) {
    int64_t count = 2 + (fill.isWidened() ? fill.chunks() : 0);
    known.push_back(ifAnyRow(lower, tile, count, [&]() -> Values {
      Value row = nearestRow(lower, tile, fill.rowOf(batch, fill.place));
      return fill.known(row);
    }));
  }
  emitBarrierWait(lower, empty, emptyParity);
  for (int64_t batch = 0; batch < batches; ++batch)
    fill.copy(batch, known[batch]);
  NVVM::CpAsyncCommitGroupOp::create(b);
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  // Each lane has waited for its own.
  if (fill.isWidened())
    NVVM::SyncWarpOp::create(b, lower.i32(-1));
  for (int64_t batch = 0; fill.isWidened() && batch < batches; ++batch)
    keepLoop(fill.widen(batch, known[batch]));
  fill.arrive(pointer(lower, full));
}
