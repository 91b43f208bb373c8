//===- LowerForChip.cpp - The target stage of the module's chip -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Pipelines are built before there is a module. Where only the module says
/// which chip it is lowered for, the passes of that chip's vendor are chosen
/// when this pass runs.
///
//===----------------------------------------------------------------------===//

#include "LowerForChip.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Target/DefaultChips.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace kvbuf;

namespace {
struct LowerForChip : PassWrapper<LowerForChip, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerForChip)

  LowerForChip() = default;
  LowerForChip(const LowerForChip &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "kvbuf-lower-for-chip"; }
  StringRef getDescription() const final {
    return "Thread to target: the passes for the vendor of the module's chip";
  }

  void getDependentDialects(DialectRegistry &registry) const final {
    for (Vendor vendor : {Vendor::NVIDIA, Vendor::AMD}) {
      OpPassManager pm(ModuleOp::getOperationName());
      build(pm, vendor);
      pm.getDependentDialects(registry);
    }
  }

  void runOnOperation() final {
    FailureOr<TargetInfo> target =
        chooseTarget(getOperation(), /*option=*/"", kDefaultChip);
    if (failed(target))
      return signalPassFailure();
    OpPassManager pm(ModuleOp::getOperationName());
    build(pm, target->vendor);
    if (failed(runPipeline(pm, getOperation())))
      signalPassFailure();
  }

  void build(OpPassManager &pm, Vendor vendor) const {
    LoweringOptions options;
    options.guardSinking = guardSinking.getValue();
    options.scheduleGroups = scheduleGroups.getValue();
    options.setPriority = setPriority.getValue();
    buildTargetPipeline(pm, vendor, options);
  }

  Option<bool> guardSinking{*this, "guard-sinking",
                            llvm::cl::desc("See kvbuf-guard-sinking"),
                            llvm::cl::init(true)};
  Option<bool> scheduleGroups{*this, "schedule-groups",
                              llvm::cl::desc("See kvbuf-schedule-groups"),
                              llvm::cl::init(true)};
  Option<bool> setPriority{*this, "set-priority",
                           llvm::cl::desc("See kvbuf-set-priority"),
                           llvm::cl::init(true)};
};
} // namespace

std::unique_ptr<Pass>
kvbuf::createLowerForChip(const LoweringOptions &options) {
  auto pass = std::make_unique<LowerForChip>();
  pass->guardSinking = options.guardSinking.getValue();
  pass->scheduleGroups = options.scheduleGroups.getValue();
  pass->setPriority = options.setPriority.getValue();
  return pass;
}

void kvbuf::registerLowerForChip() { PassRegistration<LowerForChip>(); }
