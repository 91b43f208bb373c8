//===- ChooseTarget.cpp - Which chip a module is lowered for --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace kvbuf {
#define GEN_PASS_DEF_CHOOSETARGET
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

StringAttr kvbuf::namedTarget(ModuleOp module) {
  if (auto chip =
          module->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr))
    return chip;
  for (auto kernels : module.getOps<gpu::GPUModuleOp>())
    if (auto chip =
            kernels->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr))
      return chip;
  return nullptr;
}

std::optional<TargetInfo> kvbuf::targetOf(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto chip =
      module ? module->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr)
             : StringAttr();
  return chip ? lookupTarget(chip.getValue()) : std::nullopt;
}

/// A kernel of the module that is lowered for its chip already; null if there
/// is none.
static Operation *findKernel(ModuleOp module) {
  Operation *kernel = nullptr;
  module.walk([&](Operation *op) {
    if (!op->hasAttr(KVBufferDialect::kPhaseAttr))
      return WalkResult::advance();
    kernel = op;
    return WalkResult::interrupt();
  });
  return kernel;
}

FailureOr<TargetInfo> kvbuf::chooseTarget(ModuleOp module, StringRef option,
                                          StringRef byDefault) {
  StringAttr named = namedTarget(module);
  StringRef chip = !option.empty() ? option
                   : named         ? named.getValue()
                                   : byDefault;
  std::optional<TargetInfo> target = lookupTarget(chip);
  // A chip may have several names.
  auto isNamed = [&] {
    std::optional<TargetInfo> other = lookupTarget(named.getValue());
    return named.getValue() == chip ||
           (other && target && other->chip == target->chip);
  };
  bool overrules = named && !isNamed();
  if (overrules && findKernel(module))
    return module.emitError()
               << "was lowered for " << named << " already; it cannot be "
               << "compiled for \"" << chip << "\"",
           failure();
  if (!target)
    return module.emitError()
               << "unknown target '" << chip << "'; expected one of "
               << llvm::join(knownTargets(), ", "),
           failure();
  if (overrules)
    module.emitRemark() << "is lowered for \"" << chip
                        << "\", which an option names; its '"
                        << KVBufferDialect::kTargetAttr << "' is " << named;
  return *target;
}

namespace {
struct ChooseTargetPass : kvbuf::impl::ChooseTargetBase<ChooseTargetPass> {
  using Base::Base;

  void runOnOperation() override {
    StringRef byDefault =
        vendor == vendorName(Vendor::AMD) ? kDefaultAMDChip : kDefaultChip;
    FailureOr<TargetInfo> target =
        chooseTarget(getOperation(), chip, byDefault);
    if (failed(target))
      return signalPassFailure();
    StringRef of = vendorName(target->vendor);
    if (!vendor.empty() && vendor != of) {
      auto pipeline = [](StringRef vendor) {
        return vendor == vendorName(Vendor::AMD) ? "kvbuf-lower-to-rocdl"
                                                 : "kvbuf-lower-to-nvvm";
      };
      getOperation().emitError()
          << "the module is to be lowered for " << target->chip
          << ", a chip of " << of << ", but " << pipeline(vendor)
          << " is for chips of " << vendor << "; expected " << pipeline(of)
          << ", or kvbuf-to-target for any";
      return signalPassFailure();
    }
    getOperation()->setAttr(KVBufferDialect::kTargetAttr,
                            StringAttr::get(&getContext(), target->chip));
  }
};
} // namespace
