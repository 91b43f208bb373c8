//===- Pipelines.cpp - The lowering, as pass pipelines ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LowerForChip.h"
#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/PassNumbers.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Transforms/AMD/Passes.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace kvbuf;

/// The canonicalizer, from an op's uses to what it uses. The other way round it
/// puts constants at a block's begin one by one, and orders the block's ops
/// anew after each: nine times as long on a kernel of 10000 ops, for the same
/// code.
static std::unique_ptr<Pass> createCanonicalizer() {
  GreedyRewriteConfig config;
  config.setUseTopDownTraversal(false);
  return createCanonicalizerPass(config);
}

/// Passes on kernels are nested: they run on one kernel at a time.
static OpPassManager &kernels(OpPassManager &pm) {
  return pm.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
}

void kvbuf::buildTilePipeline(OpPassManager &pm,
                              const LoweringOptions &options) {
  pm.addPass(createChooseTarget({options.chip, /*vendor=*/""}));
  pm.addPass(createChooseSchedule(
      {/*chip=*/"", options.schedule, options.otherByLaunch}));
  pm.addPass(createLowerProblems());
  kernels(pm).addPass(createCompleteProgram());
  pm.addPass(createCanonicalizer());
}

void kvbuf::buildScheduledPipeline(OpPassManager &pm,
                                   const LoweringOptions &options) {
  OpPassManager &kernel = kernels(pm);
  // What a program says of its own loops; what passes say below, they make.
  kernel.addPass(createPipelineLoops());
  if (options.lazyRescale)
    kernel.addPass(createLazyRescale());
  RunAheadOptions products, loads;
  if (options.overlap)
    products.orders.push_back("scores");
  // Turns load ahead, too.
  if (options.pingPong && options.prefetch)
    products.orders.push_back("turns");
  if (options.overlapProducts)
    products.orders.push_back("softmax");
  if (!products.orders.empty())
    kernel.addPass(createRunAhead(products));
  // A loop over items rests on rings: their slots know when they are free.
  AssignWorkOptions work;
  work.severalItems = options.roles && options.persistent;
  kernel.addPass(createAssignWork(work));
  if (options.roles) {
    kernel.addPass(createAssignTeams());
    if (options.shareLoads)
      kernel.addPass(createShareLoads());
    if (options.asyncProducts)
      kernel.addPass(createAsyncProducts());
  }
  // These find no load and no product in a kernel with rings.
  if (options.prefetch) {
    loads.orders = {"blocks", "loads"};
    kernel.addPass(createRunAhead(loads));
    kernel.addPass(createDeferReads());
  }
  kernel.addPass(createAssignSlots());
  kernel.addPass(createCanonicalizer());
  kernel.addPass(createCountWaits());
  if (options.splitLoops)
    kernel.addPass(createSplitMaskedLoops());
  kernel.addPass(createTileFragments());
  kernel.addPass(createCanonicalizer());
  kernel.addPass(createCSEPass());
  // Which softmax sees every score, the canonicalizer has found.
  if (options.integerMaxima)
    kernel.addPass(createIntegerMaxima());
  kernel.addPass(createAllocateLds());
  kernel.addPass(createDistributeFragments());
}

void kvbuf::buildThreadPipeline(OpPassManager &pm,
                                const LoweringOptions &options) {
  // There are no tiles in it: it stays a problem until here.
  pm.addPass(createLowerAppend({options.alignment}));
  OpPassManager &module = pm.nest<gpu::GPUModuleOp>();
  module.addPass(createConvertKVBufferToGPU({options.alignment}));
  module.addPass(createCanonicalizer());
  module.addPass(createCSEPass());
  module.addNestedPass<gpu::GPUFuncOp>(createCarryValues());
}

void kvbuf::buildTargetPipeline(OpPassManager &pm,
                                const LoweringOptions &options) {
  std::optional<TargetInfo> target = lookupTarget(options.chip);
  // Without a chip the module names it; one that is not known is reported by
  // the first pass that asks for it.
  if (target || !options.chip.empty())
    buildTargetPipeline(pm, target ? target->vendor : Vendor::NVIDIA, options);
  else
    pm.addPass(createLowerForChip(options));
}

void kvbuf::buildTargetPipeline(OpPassManager &pm, Vendor vendor,
                                const LoweringOptions &options) {
  OpPassManager &module = pm.nest<gpu::GPUModuleOp>();
  bool amd = vendor == Vendor::AMD;
  // Kernels that are written by lanes.
  module.addPass(createExpandArguments());
  module.addPass(createExpandCacheOps());
  module.addPass(createExpandFloat8());
  module.addPass(createExpandMath());
  if (amd) {
    module.addNestedPass<gpu::GPUFuncOp>(createRotateLoops());
    module.addNestedPass<gpu::GPUFuncOp>(createHoistReads());
  }
  module.addPass(memref::createExpandStridedMetadataPass());
  module.addPass(createLowerAffinePass());
  module.addPass(createSCFToControlFlowPass());
  if (amd)
    module.addPass(createConvertKVBufferToROCDL());
  else
    module.addPass(createConvertKVBufferToNVVM());
  module.addPass(createReconcileUnrealizedCastsPass());
  module.addPass(createCanonicalizer());
  module.addPass(createCSEPass());
  // In the order of instructions these have the last word.
  OpPassManager &kernel = module.nest<LLVM::LLVMFuncOp>();
  if (options.scheduleGroups)
    kernel.addPass(createBalanceProducts());
  // Without it the order of sums would be LLVM's.
  if (amd)
    kernel.addPass(createPairArithmetic());
  if (options.guardSinking)
    kernel.addPass(createGuardSinking());
  if (options.scheduleGroups)
    kernel.addPass(createScheduleGroups());
  if (options.setPriority)
    kernel.addPass(createSetPriority());
}

void kvbuf::buildLoweringPipeline(OpPassManager &pm,
                                  const LoweringOptions &options) {
  buildTilePipeline(pm, options);
  buildScheduledPipeline(pm, options);
  buildThreadPipeline(pm, options);
  buildTargetPipeline(pm, options);
}

void kvbuf::buildLaunchPipeline(OpPassManager &pm,
                                const OutlineKernelsOptions &options) {
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  pm.addPass(createOutlineKernels(options));
  pm.addPass(createCanonicalizer());
  pm.addNestedPass<func::FuncOp>(createGpuAsyncRegionPass());
}

namespace {
/// A pipeline by its name. Of an alignment that it is given no pass may know:
/// it is looked at here.
struct Registration {
  using Build = std::function<void(OpPassManager &, const LoweringOptions &)>;

  Registration(StringRef name, StringRef description, Build build) {
    auto parse = [build = std::move(build)](
                     OpPassManager &pm, StringRef text,
                     function_ref<LogicalResult(const Twine &)> refuse) {
      LoweringOptions options;
      if (failed(options.parseFromString(text)))
        return failure();
      if (!isAlignment(options.alignment))
        return refuse("alignment = " + Twine(int64_t(options.alignment)) +
                      "; expected 2, 4, 8 or 16");
      build(pm, options);
      return LogicalResult(success());
    };
    registerPassPipeline(
        name, description, parse,
        [](function_ref<void(const mlir::detail::PassOptions &)> say) {
          say(LoweringOptions());
        });
  }
};
} // namespace

void kvbuf::registerPipelines() {
  static Registration tile("kvbuf-to-tile",
                           "Problem to tile: choose a schedule, build the tile "
                           "program",
                           buildTilePipeline);
  static Registration scheduled(
      "kvbuf-to-scheduled",
      "Problem to scheduled: loads ahead, loops split, waits counted",
      [](OpPassManager &pm, const LoweringOptions &options) {
        buildTilePipeline(pm, options);
        buildScheduledPipeline(pm, options);
      });
  static Registration thread(
      "kvbuf-to-thread", "Problem to thread: per-lane code",
      [](OpPassManager &pm, const LoweringOptions &options) {
        buildTilePipeline(pm, options);
        buildScheduledPipeline(pm, options);
        buildThreadPipeline(pm, options);
      });
  static Registration target("kvbuf-to-target",
                             "Problem to target: llvm and the dialect of the "
                             "chip's vendor",
                             buildLoweringPipeline);
  // What these are for, the first pass checks; the chip may be the module's.
  auto forVendor = [](Vendor vendor) {
    return [vendor](OpPassManager &pm, const LoweringOptions &options) {
      pm.addPass(createChooseTarget({options.chip, vendorName(vendor).str()}));
      LoweringOptions rest;
      rest.copyOptionValuesFrom(options);
      rest.chip = "";
      buildTilePipeline(pm, rest);
      buildScheduledPipeline(pm, rest);
      buildThreadPipeline(pm, rest);
      buildTargetPipeline(pm, vendor, rest);
    };
  };
  static Registration nvvm("kvbuf-lower-to-nvvm",
                           "Problem to llvm + nvvm, for NVIDIA chips",
                           forVendor(Vendor::NVIDIA));
  static Registration rocdl("kvbuf-lower-to-rocdl",
                            "Problem to llvm + rocdl, for AMD chips",
                            forVendor(Vendor::AMD));
  registerLowerForChip();
}
