//===- ChooseSchedule.cpp - Choose a schedule for each problem --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {
#define GEN_PASS_DEF_CHOOSESCHEDULE
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-choose-schedule"

/// Replaces parameters of `choice` by those of a text such as
/// "BM=64,warps=2,mma_shape=16x8x16".
static LogicalResult applyOverrides(StringRef text, ScheduleChoice &choice,
                                    Location loc) {
  SmallVector<StringRef> items;
  text.split(items, ',', -1, /*KeepEmpty=*/false);
  for (StringRef item : items) {
    auto [name, value] = item.split('=');
    name = name.trim();
    value = value.trim();
    auto bad = [&](StringRef expected) {
      return emitError(loc) << "schedule parameter '" << item.trim()
                            << "': expected " << expected;
    };
    if (name == "mma_shape") {
      SmallVector<StringRef> sizes;
      value.split(sizes, 'x');
      if (sizes.size() != 3)
        return bad("mma_shape=MxNxK");
      for (auto [i, size] : llvm::enumerate(sizes))
        if (size.getAsInteger(10, choice.mma[i]))
          return bad("mma_shape=MxNxK");
      continue;
    }
    bool *flag = llvm::StringSwitch<bool *>(name)
                     .Case("swap_a_b", &choice.swapAB)
                     .Case("q_in_regs", &choice.qInRegs)
                     .Case("overlap", &choice.overlap)
                     .Case("split_masks", &choice.splitMasks)
                     .Case("sums_in_lds", &choice.sumsInLds)
                     .Case("overlap_products", &choice.overlapProducts)
                     .Case("ping_pong", &choice.pingPong)
                     .Case("stage_output", &choice.stageOutput)
                     .Case("lazy_rescale", &choice.lazyRescale)
                     .Default(nullptr);
    if (flag) {
      if (value != "true" && value != "false")
        return bad("true or false");
      *flag = value == "true";
      continue;
    }
    if (name == "tiles") {
      if (!symbolizeTileOrder(value))
        return bad("grid, static or dynamic");
      choice.tiles = value;
      continue;
    }
    if (name == "k_path" || name == "v_path") {
      if (!symbolizePath(value))
        return bad("direct or registers");
      (name == "k_path" ? choice.kPath : choice.vPath) = value;
      continue;
    }
    int64_t *number = llvm::StringSwitch<int64_t *>(name)
                          .Case("BM", &choice.BM)
                          .Case("BN", &choice.BN)
                          .Case("BK", &choice.BK)
                          .Case("stages", &choice.stages)
                          .Case("warps", &choice.warps)
                          .Case("producers", &choice.producers)
                          .Case("producer_registers", &choice.producerRegisters)
                          .Case("consumer_registers", &choice.consumerRegisters)
                          .Case("xcds", &choice.xcds)
                          .Default(nullptr);
    if (!number)
      return bad("BM, BN, BK, stages, warps, mma_shape, swap_a_b, q_in_regs, "
                 "overlap, split_masks, sums_in_lds, producers, "
                 "producer_registers, consumer_registers, overlap_products, "
                 "ping_pong, tiles, stage_output, lazy_rescale, k_path, v_path "
                 "or xcds");
    if (value.getAsInteger(10, *number))
      return bad("a number");
  }
  return success();
}

/// Checks that a schedule can be built on a chip; says at the op what does not
/// fit and what the limit is.
static LogicalResult checkFits(AttentionOp op, ScheduleAttr schedule,
                               const TargetInfo &target) {
  const MatrixInstruction *mma = target.findMatrix(schedule.getMmaShape());
  if (!mma) {
    InFlightDiagnostic diag = op.emitOpError()
                              << target.chip << " has no matrix instruction of "
                              << "shape " << schedule.getMmaM() << "x"
                              << schedule.getMmaN() << "x" << schedule.getMmaK()
                              << "; it has ";
    llvm::interleaveComma(target.matrixInstructions, diag,
                          [&](const MatrixInstruction &m) {
                            diag << m.m << "x" << m.n << "x" << m.k;
                          });
    return diag;
  }
  if (schedule.getSwapAB() && !target.swapsOperands)
    return op.emitOpError() << "swap_a_b does not fit " << target.chip
                            << ": transposed scores of its matrix instructions "
                               "lie across other lanes than operands; expected "
                               "swap_a_b = false";
  int64_t depth = llvm::alignTo(op.getHeadSize(), schedule.getBK());
  // Rows of S are BM, its columns BN; with swapped operands they change places.
  int64_t rowUnit = schedule.getSwapAB() ? mma->n : mma->m;
  int64_t colUnit = schedule.getSwapAB() ? mma->m : mma->n;
  auto divides = [&](int64_t unit, int64_t size,
                     const Twine &what) -> LogicalResult {
    if (size % unit == 0)
      return success();
    return op.emitOpError() << "no " << mma->m << "x" << mma->n << "x" << mma->k
                            << " instruction divides " << what << " = " << size
                            << "; expected a multiple of " << unit;
  };
  if (failed(divides(rowUnit, schedule.getWM(),
                     "the rows of a warp, BM / warps")) ||
      failed(divides(colUnit, schedule.getBN(), "BN")) ||
      failed(divides(mma->k, schedule.getBN(), "BN")) ||
      failed(divides(colUnit, depth, "the padded head size")) ||
      failed(divides(mma->k, schedule.getBK(), "BK")))
    return failure();
  int64_t threads = schedule.getWarps() * target.waveSize;
  if (threads > target.maxThreads)
    return op.emitOpError()
           << "a schedule of " << threads << " threads does not fit "
           << target.chip << ", which has at most " << target.maxThreads
           << " in a block";
  int64_t elementBytes = op.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t lds =
      elementBytes * depth *
      (schedule.getBM() + 2 * schedule.getStages() * schedule.getBN());
  // A slot of row sums for each thread: at most one f32 for each row of a warp.
  if (schedule.getSumsInLds())
    lds += 4 * schedule.getWarps() * target.waveSize *
           std::max<int64_t>(1, schedule.getWM() / 8);
  if (lds > target.ldsBytes)
    return op.emitOpError()
           << "the schedule needs " << lds << " bytes of shared memory, "
           << target.chip << " has " << target.ldsBytes << " for a block";
  // Accumulators and P are the registers that no compiler can save; two tiles
  // of scores where they overlap.
  int64_t tilesOfScores = schedule.getOverlap() ? 2 : 1;
  int64_t registers = (schedule.getWM() * depth +
                       tilesOfScores * schedule.getWM() * schedule.getBN() +
                       schedule.getWM() * schedule.getBN() / 2) /
                      target.waveSize;
  if (registers > target.registersPerLane)
    return op.emitOpError() << "the schedule needs at least " << registers
                            << " registers in a lane, " << target.chip
                            << " has " << target.registersPerLane;
  int64_t share = target.registersPerBlock / threads;
  if (registers > share)
    return op.emitOpError()
           << "the schedule needs at least " << registers
           << " registers in a lane, " << target.chip << " has " << share
           << " for each of " << threads << " threads";
  return success();
}

namespace {
struct ChooseSchedulePass
    : kvbuf::impl::ChooseScheduleBase<ChooseSchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    std::optional<TargetInfo> target = lookupTarget(chip);
    if (!target) {
      getOperation().emitError()
          << "unknown chip '" << chip << "', expected one of "
          << llvm::join(knownTargets(), ", ");
      return signalPassFailure();
    }
    MLIRContext *context = &getContext();
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      ScheduleAttr attr = op.getScheduleAttr();
      if (!attr) {
        ScheduleRequest request;
        request.headSize = op.getHeadSize();
        request.pageSize = op.getK().getType().getPageSize();
        MaskAttr mask = op.getMaskValue();
        request.masked = mask.boundsLeft() || mask.boundsRight();
        ScheduleChoice choice = target->chooseSchedule(request);
        if (failed(applyOverrides(schedule, choice, op.getLoc())))
          return WalkResult::interrupt();
        attr = ScheduleAttr::getChecked(
            [&] { return op.emitOpError(); }, context, choice.BM, choice.BN,
            choice.BK, choice.stages, choice.warps,
            ArrayRef<int64_t>(choice.mma), choice.swapAB, choice.qInRegs,
            choice.overlap, choice.splitMasks, choice.sumsInLds,
            choice.producers, choice.producerRegisters,
            choice.consumerRegisters, choice.overlapProducts, choice.pingPong,
            *symbolizeTileOrder(choice.tiles), choice.stageOutput,
            choice.lazyRescale, *symbolizePath(choice.kPath),
            *symbolizePath(choice.vPath), choice.xcds);
        if (!attr)
          return WalkResult::interrupt();
      } else if (!schedule.empty()) {
        op.emitOpError() << "has a schedule already; the option schedule='"
                         << schedule << "' cannot replace parts of it";
        return WalkResult::interrupt();
      }
      if (failed(checkFits(op, attr, *target)))
        return WalkResult::interrupt();
      op.setScheduleAttr(attr);
      std::string text;
      llvm::raw_string_ostream(text) << attr;
      remark::passed(op.getLoc(),
                     remark::RemarkOpts::name("schedule").category(DEBUG_TYPE))
          << "chose " << text << " for " << chip;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    getOperation()->setAttr(KVBufferDialect::kTargetAttr,
                            StringAttr::get(context, chip));
  }
};
} // namespace
