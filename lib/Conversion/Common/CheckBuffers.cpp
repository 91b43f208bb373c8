//===- CheckBuffers.cpp - Buffers of a kernel against the chip
//-------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckKernel.h"
#include "KVBufferToGPU/LaneLayouts.h"
#include "KVBufferToGPU/Machine.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Schedules/ScheduleLimits.h"
#include "kvbuffer/Target/ReadGroups.h"

using namespace mlir;
using namespace kvbuf;

/// A buffer whose rows have a width that is no power of two: an engine copies
/// their tile as one box, and lanes read accumulators of it.
static LogicalResult checkPlainRows(Operation *op, KVBufferAttr params,
                                    const TargetInfo &target) {
  // Elements of a row of a box.
  constexpr int64_t most = 256;
  auto fault = [&](Operation *at) -> InFlightDiagnostic {
    return at->emitOpError() << "has a buffer with BK = " << params.getBK()
                             << ", no power of two, of which ";
  };
  if (!target.has(CopyEngine::Boxes) ||
      params.getPolicy() != Policy::DoubleBuffered ||
      params.getOrder() != Dimension::Rows || params.getBK() > most)
    return fault(op) << "the copy engine of a chip takes at most " << most
                     << " columns, side by side, and " << target.chip
                     << (target.has(CopyEngine::Boxes) ? " no others"
                                                       : " has none");
  for (Operation *user : op->getUsers()) {
    if (!isa<RingOp, RingLoadOp, RingReleaseOp, RingWaitOp>(user))
      return fault(user) << "rings are made, which kvbuffer.ring_load fills";
    auto load = dyn_cast<RingLoadOp>(user);
    if (load && (load.getTile().getType().getPageSize() ||
                 !load.getTile().getDefiningOp<DramTileOp>()))
      return fault(user) << "boxes of a tensor are filled; expected a tile of "
                            "kvbuffer.dram_tile without gather";
    auto wait = dyn_cast<RingWaitOp>(user);
    for (Operation *reader :
         wait ? SmallVector<Operation *>(wait.getStaged().getUsers())
              : SmallVector<Operation *>()) {
      auto fragment = dyn_cast<FragmentLoadOp>(reader);
      if (!fragment || fragment.getFragment().getType().getRole() != Role::Acc)
        return fault(reader) << "lanes read accumulators; expected "
                                "kvbuffer.fragment_load of role acc";
    }
  }
  return success();
}

LogicalResult kvbuf::checkBuffer(Operation *op, KVBufferAttr params,
                                 ScheduleAttr schedule,
                                 const TargetInfo &target) {
  // What is narrower is widened on its way to registers.
  Type element = params.getElementType();
  bool isFloat8 =
      isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
  // Words that no unit multiplies, lanes read.
  bool isWord = params.isNeutral() && element.isF32();
  if (!isFloat8 && !isWord && failed(verifyElements(op, element, target)))
    return failure();
  if (!llvm::isPowerOf2_64(params.getBK()) &&
      failed(checkPlainRows(op, params, target)))
    return failure();
  if (target.has(CopyEngine::WaveBoxes) &&
      params.getPolicy() == Policy::DoubleBuffered &&
      params.getSwizzleOfBlocks().movesVectors())
    return op->emitOpError()
           << "has a buffer with a swizzle, which the engine that copies rows "
              "on "
           << target.chip
           << " has none of; expected none, or policy = register_staged";
  // Copies and reads take what the swizzle keeps together, at most.
  if (int64_t unit = params.getSwizzleOfBlocks().unit;
      !target.asyncCopyBytes.empty() && target.asyncCopyBytes.back() > unit)
    return op->emitOpError()
           << "has a buffer whose swizzle moves vectors of " << unit
           << " bytes; " << target.chip << " copies "
           << target.asyncCopyBytes.back()
           << " at a time into shared memory, which have to stay together";
  int64_t threads = schedule.getWarps() * int64_t(target.waveSize);
  int64_t bytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  // A row of a block is copied at once, 16 bytes a thread.
  int64_t most = threads * 16 / bytes;
  auto checkBlock = [&]() -> LogicalResult {
    if (params.getBK() <= most)
      return success();
    return op->emitOpError()
           << "has a buffer with BK = " << params.getBK()
           << ", more columns than " << threads
           << " threads copy at a time; expected at most " << most;
  };
  if (params.isNeutral()) {
    // What reads ask for is checked with them.
    if (params.getBK() * bytes % 16)
      return op->emitOpError()
             << "has a buffer with BK = " << params.getBK() << ", rows of "
             << params.getBK() * bytes << " bytes; expected a multiple of 16";
    return checkBlock();
  }
  // What it does not state is the schedule's.
  bool states = !params.getMmaShape().empty();
  ProductKind product = productOf(params);
  ArrayRef<int64_t> shape = schedule.getMmaShape(product);
  if (states && params.getMmaShape() != shape)
    return op->emitOpError()
           << "has a buffer with mma_shape = " << shapeOf(params.getMmaShape())
           << " in " << placeOf(op) << " " << shapeOf(shape);
  if (states && params.getWarpSize() != target.waveSize)
    return op->emitOpError()
           << "has a buffer with warp_size = " << params.getWarpSize() << "; "
           << target.chip << " has waves of " << target.waveSize
           << " lanes; expected warp_size = " << target.waveSize;
  if (states && params.getNumThreads() != threads)
    return op->emitOpError()
           << "has a buffer with num_threads = " << params.getNumThreads()
           << " in " << placeOf(op) << " " << schedule.getWarps()
           << " warps of " << target.waveSize
           << "; expected num_threads = " << threads;
  // Instructions divide rows and columns as they do the schedule's tiles
  // (kvbuf-choose-schedule).
  const MatrixInstruction &mma = instructionOf(op, schedule, target, product);
  int64_t contracted = mma.k * mma.group;
  int64_t rowUnit = schedule.getSwapAB() ? mma.n : mma.rowsOfWarp(),
          colUnit = schedule.getSwapAB() ? mma.m : mma.n;
  auto divides = [&](int64_t unit, int64_t size,
                     const Twine &what) -> LogicalResult {
    if (size % unit == 0)
      return success();
    return op->emitOpError()
           << "has a buffer with " << what << " = " << size << ", which no "
           << shapeOf(shape) << " instruction divides; expected a multiple of "
           << unit;
  };
  int64_t unit = params.hasRowsOfProduct() ? rowUnit
                 : params.contractsRows()  ? contracted
                                           : colUnit;
  if (failed(divides(unit, params.getBN(), "BN")) ||
      failed(divides(contractedPerRow(target, mma), params.getBK(), "BK")) ||
      (params.contractsRows() &&
       failed(divides(colUnit, params.getSmemCols(), "columns"))))
    return failure();
  return checkBlock();
}

LogicalResult kvbuf::checkPolicy(Operation *op, KVBufferAttr params,
                                 const TargetInfo &target) {
  bool fillsItself = target.slotSignal == SlotSignal::PolledCounters &&
                     params.getPolicy() == Policy::RegisterStaged;
  if (isa<RingOp>(op) && params.getPolicy() != Policy::DoubleBuffered &&
      !fillsItself)
    return op->emitOpError()
           << "has the policy " << stringifyPolicy(params.getPolicy())
           << ", but its slots are filled by warps of their own; expected "
              "double_buffered";
  // What a matrix unit reads of bytes a team turns.
  if (params.getOrder() == Dimension::Cols && target.turnsBytesForGroups() &&
      params.getElementType().getIntOrFloatBitWidth() == 8) {
    for (Operation *user : op->getResult(0).getUsers())
      if (isa<RingLoadOp, DramLoadOp>(user)) {
        InFlightDiagnostic diag =
            op->emitOpError() << "has a buffer with order = cols, which copies "
                                 "cannot turn; expected kvbuffer.ring_put";
        diag.attachNote(user->getLoc()) << "it is filled here";
        return diag;
      }
    return success();
  }
  if (!target.has(CopyEngine::Waves))
    for (Operation *user : op->getResult(0).getUsers())
      if (auto load = dyn_cast<DramLoadOp>(user))
        if (Type element = load.getTile().getType().getElementType();
            element != params.getElementType()) {
          InFlightDiagnostic diag =
              op->emitOpError()
              << "has a buffer of " << params.getElementType()
              << " for tiles of " << element << ", which lanes of "
              << target.chip
              << " do not widen on their way; expected a buffer of " << element;
          diag.attachNote(user->getLoc()) << "it is filled here";
          return diag;
        }
  if (params.getOrder() == Dimension::Cols && !target.has(CopyEngine::Waves))
    return op->emitOpError()
           << "has a buffer with order = cols, which " << target.chip
           << " needs not, as it reads shared memory transposed; expected "
              "order = rows";
  if (isTurnedInLds(target, params) &&
      params.getPolicy() == Policy::DoubleBuffered)
    return op->emitOpError()
           << "has the policy double_buffered, whose copies cannot turn "
              "columns, which "
           << target.chip
           << " does not read transposed; expected register_staged or "
              "streaming";
  return success();
}
