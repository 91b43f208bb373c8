//===- Schedule.cpp - Schedules of products, and what launches choose
//---------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/AskedSchedule.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Schedules/ScheduleLimits.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-choose-schedule"

/// What a product's schedule may be asked for; the rest is attention's.
static constexpr llvm::StringLiteral kParameters[] = {"BM",
                                                      "BN",
                                                      "stages",
                                                      "warps",
                                                      "tiles",
                                                      "producers",
                                                      "producer_registers",
                                                      "consumer_registers"};

/// Whether products read LDS by groups of warps, which a team of warps fills.
static bool hasMovingTeam(const TargetInfo &target) {
  return target.warpsPerMatrixGroup() != 0;
}

/// The schedule of large products, and of those with few tiles of that size
/// (`small`). What is not said, kvbuf-complete-program chooses.
static ScheduleParameters proposal(const TargetInfo &target, bool team,
                                   bool small) {
  ScheduleParameters list;
  list.BM = small ? 64 : 128;
  list.BN = small ? 64 : team ? 256 : 128;
  list.stages = team ? 4 : 3;
  list.warps = 0;
  if (team) {
    list.BK = gemm::kStep;
    list.warps = list.BM / 16;
    list.mma = target.groupInstruction("bf16")->shape();
    list.producers = target.warpsPerMatrixGroup();
    list.producerRegisters = 24;
    list.consumerRegisters = 240;
    // H200, 4096 x 4096 x 4096: 204 us, 211 us with a block a tile.
    if (!small)
      list.tiles = TileOrder::Static;
  }
  return list;
}

/// Tiles of the product, counted by a launch.
static int64_t countTiles(GemmOp op, const ScheduleParameters &list) {
  auto [m, n, k] = op.getSizes();
  return llvm::divideCeil(m, list.BM) * llvm::divideCeil(n, list.BN);
}

/// Checks that a chip's lanes hold the accumulators of a tile.
static LogicalResult verifyFits(GemmOp op, const ScheduleParameters &list,
                                const TargetInfo &target) {
  // Without a number of warps there are at most as many as have rows of an
  // instruction each.
  int64_t warps = list.warps ? list.warps : std::max<int64_t>(1, list.BM / 16);
  int64_t each = list.BM * list.BN / (warps * int64_t(target.waveSize));
  if (each <= int64_t(target.registersPerLane))
    return success();
  return op.emitOpError() << "has a schedule whose tiles of " << list.BM
                          << " x " << list.BN << " take " << each
                          << " registers in a lane of " << warps
                          << " warps for sums alone; " << target.chip << " has "
                          << target.registersPerLane
                          << "; expected smaller tiles or more warps";
}

LogicalResult gemm::chooseSchedule(GemmOp op, const ScheduleQuery &query) {
  const TargetInfo &target = query.target;
  Type element = cast<MemRefType>(op.getA().getType()).getElementType();
  if (failed(verifyElements(op, element, target)))
    return failure();
  ScheduleAttr attr = op.getScheduleAttr();
  if (attr && !query.asked.empty())
    return op.emitOpError() << "has a schedule already; the option schedule='"
                            << query.asked << "' cannot replace parts of it";
  if (!attr) {
    FailureOr<AskedSchedule> asked =
        AskedSchedule::parse(query.asked, op.getLoc());
    if (failed(asked))
      return failure();
    if (StringRef other = asked->nameBeside(kParameters); !other.empty())
      return op.emitOpError()
             << "has no schedule with '" << other << "'; expected one of "
             << llvm::join(ArrayRef(kParameters), ", ");
    if (asked->names("warps") && asked->values().warps < 1)
      return op.emitOpError()
             << "warps must be at least 1, got " << asked->values().warps;
    bool team = hasMovingTeam(target) &&
                !(asked->names("producers") && !asked->values().producers);
    ScheduleParameters list = proposal(target, team, /*small=*/false);
    auto [m, n, k] = op.getSizes();
    bool counted = !ShapedType::isDynamic(m) && !ShapedType::isDynamic(n);
    if (query.asked.empty() && counted &&
        countTiles(op, list) < int64_t(target.multiprocessors))
      list = proposal(target, team, /*small=*/true);
    asked->applyTo(list);
    // Groups of warps have so many rows each.
    if (team && asked->names("BM") && !asked->names("warps"))
      list.warps = std::max<int64_t>(list.BM / 16, 1);
    if (std::optional<std::string> why =
            ScheduleLimits::whyNoMovingTeam(list.producers, target))
      return op.emitOpError() << *why;
    if (std::optional<std::string> why = whyNone(list))
      return op.emitOpError() << *why;
    attr = ScheduleAttr::get(op.getContext(), Schedule::of(list));
  }
  if (failed(verifyFits(op, attr.getStructure().list(), target)))
    return failure();
  op.setScheduleAttr(attr);
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  remark::passed(op.getLoc(),
                 remark::RemarkOpts::name("schedule").category(DEBUG_TYPE))
      << "chose " << text << " for " << target.chip;
  return success();
}

SmallVector<std::string> gemm::candidates(const TargetInfo &target) {
  if (hasMovingTeam(target))
    return {"BM=128;BN=128,192,256;stages=3,4;tiles=grid,static",
            "BM=64;BN=64,128,256;stages=4", "producers=0;BM=64,128;BN=64,128"};
  return {"BM=64,128,256;BN=64,128;stages=2,3,4"};
}

KernelVariants gemm::variants(GemmOp op, const VariantQuery &query) {
  KernelVariants variants;
  auto [m, n, k] = op.getSizes();
  // Whoever asks for a schedule gets its kernel.
  if (op.getScheduleAttr() || !query.asked.empty() ||
      (!ShapedType::isDynamic(m) && !ShapedType::isDynamic(n)))
    return variants;
  const TargetInfo &target = query.target;
  ScheduleParameters large = proposal(target, hasMovingTeam(target), false),
                     small = proposal(target, hasMovingTeam(target), true);
  Builder b(op.getContext());
  auto expr = [&](StringRef name, ArrayRef<Attribute> operands) -> Attribute {
    return SizeAttr::of(b.getContext(), name, operands);
  };
  auto tiles = [&](int64_t size, StringRef name, int64_t step) {
    Attribute extent = ShapedType::isDynamic(size)
                           ? Attribute(b.getStringAttr(name))
                           : b.getI64IntegerAttr(size);
    return expr("ceildiv", {extent, b.getI64IntegerAttr(step)});
  };
  // As many tiles as multiprocessors, or more.
  KernelAlternative &few = variants.list.emplace_back();
  LLVM::LLVMFuncOp kernel = query.kernel;
  few.name = (kernel.getName() + "_of_small_tiles").str();
  few.schedule = "BM=" + std::to_string(small.BM) +
                 ",BN=" + std::to_string(small.BN) +
                 (small.producers ? ",tiles=grid" : "");
  few.launchIf =
      expr("sum", {expr("product", {tiles(m, kSizeNames[0], large.BM),
                                    tiles(n, kSizeNames[1], large.BN)}),
                   expr("product", {b.getI64IntegerAttr(-1),
                                    b.getStringAttr(kMultiprocessorsSize)}),
                   b.getI64IntegerAttr(1)});
  few.when = "which runs where large tiles would leave multiprocessors idle";
  return variants;
}
