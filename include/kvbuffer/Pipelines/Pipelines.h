//===- Pipelines.h - The lowering, as pass pipelines ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Builds the pass pipelines from one stage to the next, for tools and for
/// other compilers.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PIPELINES_PIPELINES_H
#define KVBUFFER_PIPELINES_PIPELINES_H

#include "kvbuffer/Pipelines/Passes.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include <optional>
#include <string>

namespace kvbuf {

/// Options of the lowering; also those of the registered pipelines.
struct LoweringOptions : mlir::PassPipelineOptions<LoweringOptions> {
  Option<std::string> chip{
      *this, "chip",
      llvm::cl::desc("Chip to lower for, e.g. sm_80; by default the one that "
                     "the module names (kvbuf-choose-target)"),
      llvm::cl::init("")};
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("Replaces parameters of the schedule: 'BM=64,warps=2'; "
                     "see #kvbuffer.schedule"),
      llvm::cl::init("")};
  Option<bool> otherByLaunch{
      *this, "other-by-launch",
      llvm::cl::desc("Choose schedules for many query rows where types leave "
                     "their number open (kvbuf-choose-schedule)"),
      llvm::cl::init(false)};
  Option<int64_t> alignment{
      *this, "alignment",
      llvm::cl::desc("Bytes that addresses and strides of 16-bit tensors are "
                     "multiples of: 2, 4, 8 or 16 (convert-kvbuffer-to-gpu)"),
      llvm::cl::init(16)};
  Option<bool> overlap{
      *this, "overlap",
      llvm::cl::desc("Overlap products and softmax where the schedule says so "
                     "(scores of kvbuf-run-ahead)"),
      llvm::cl::init(true)};
  Option<bool> overlapProducts{
      *this, "overlap-products",
      llvm::cl::desc("Overlap the second product where the schedule says so "
                     "(softmax of kvbuf-run-ahead)"),
      llvm::cl::init(true)};
  Option<bool> persistent{
      *this, "persistent",
      llvm::cl::desc(
          "Order tiles and loop over them where the schedule says so "
          "(kvbuf-assign-work)"),
      llvm::cl::init(true)};
  Option<bool> roles{
      *this, "roles",
      llvm::cl::desc("Split kernels between warps that move and warps that "
                     "multiply where the schedule says so (kvbuf-assign-teams "
                     "and what builds on it)"),
      llvm::cl::init(true)};
  Option<bool> shareLoads{
      *this, "share-loads",
      llvm::cl::desc("Let the blocks of a cluster load tiles for each other "
                     "(kvbuf-share-loads)"),
      llvm::cl::init(true)};
  Option<bool> asyncProducts{
      *this, "async-products",
      llvm::cl::desc("Start products of such kernels on operands in shared "
                     "memory (kvbuf-async-products)"),
      llvm::cl::init(true)};
  Option<bool> lazyRescale{
      *this, "lazy-rescale",
      llvm::cl::desc("Rescale accumulators only where needed, where the "
                     "schedule says so (kvbuf-lazy-rescale)"),
      llvm::cl::init(true)};
  Option<bool> pingPong{
      *this, "ping-pong",
      llvm::cl::desc("Let halves of a block take turns where the schedule says "
                     "so (turns of kvbuf-run-ahead)"),
      llvm::cl::init(true)};
  Option<bool> prefetch{
      *this, "prefetch",
      llvm::cl::desc("Issue loads ahead of their use (kvbuf-run-ahead)"),
      llvm::cl::init(true)};
  Option<bool> splitLoops{
      *this, "split-loops",
      llvm::cl::desc("Give tiles that need no mask a loop without it "
                     "(kvbuf-split-masked-loops)"),
      llvm::cl::init(true)};
  Option<bool> integerMaxima{
      *this, "integer-maxima",
      llvm::cl::desc("Compare maxima as integers in a loop of their own, where "
                     "the chip is faster so (kvbuf-integer-maxima)"),
      llvm::cl::init(true)};
  Option<bool> guardSinking{
      *this, "guard-sinking",
      llvm::cl::desc("Keep vector instructions beside their MFMAs, on AMD "
                     "(kvbuf-guard-sinking)"),
      llvm::cl::init(true)};
  Option<bool> scheduleGroups{
      *this, "schedule-groups",
      llvm::cl::desc("Interleave MFMAs with other instructions, on AMD "
                     "(kvbuf-schedule-groups)"),
      llvm::cl::init(true)};
  Option<bool> setPriority{
      *this, "set-priority",
      llvm::cl::desc("Raise the priority of waves with MFMAs, on AMD "
                     "(kvbuf-set-priority)"),
      llvm::cl::init(true)};
};

/// problem -> tile: choose a schedule, build the tile program.
void buildTilePipeline(mlir::OpPassManager &pm, const LoweringOptions &options);
/// tile -> scheduled: move loads ahead, split loops, count waits.
void buildScheduledPipeline(mlir::OpPassManager &pm,
                            const LoweringOptions &options);
/// scheduled -> thread: per-lane code.
void buildThreadPipeline(mlir::OpPassManager &pm,
                         const LoweringOptions &options);
/// thread -> target: llvm + nvvm or rocdl, by the vendor of the options' chip;
/// if they name none, of the chip that the module names when the passes run.
void buildTargetPipeline(mlir::OpPassManager &pm,
                         const LoweringOptions &options);
/// The same for chips of one vendor.
void buildTargetPipeline(mlir::OpPassManager &pm, Vendor vendor,
                         const LoweringOptions &options);
/// All four, from the problem to the target stage.
void buildLoweringPipeline(mlir::OpPassManager &pm,
                           const LoweringOptions &options);

/// Tensors to launches: one-shot bufferization, with identity layouts at the
/// boundaries of functions, `kvbuf-outline-kernels`, and asynchronous launches.
/// The context has to know the bufferization of the module's other dialects.
void buildLaunchPipeline(mlir::OpPassManager &pm,
                         const OutlineKernelsOptions &options);

/// Registers `kvbuf-lower-to-nvvm` and `kvbuf-lower-to-rocdl`, which refuse
/// chips of the other vendor, and one pipeline for each step (`kvbuf-to-tile`,
/// `kvbuf-to-scheduled`, `kvbuf-to-thread`, `kvbuf-to-target`).
void registerPipelines();

/// Registers the dialect, what it lowers to, and the translations out of MLIR.
void registerAllDialects(mlir::DialectRegistry &registry);
/// Registers every pass of this project.
void registerAllPasses();

} // namespace kvbuf

#endif // KVBUFFER_PIPELINES_PIPELINES_H
