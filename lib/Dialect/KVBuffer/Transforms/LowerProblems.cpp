//===- LowerProblems.cpp - Turn problems into tile programs ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemInterface.h"

namespace kvbuf {
#define GEN_PASS_DEF_LOWERPROBLEMS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemInterface.cpp.inc"

/// The first problem of a function that has a tile program; null without one.
static ProblemInterface problemOf(func::FuncOp func) {
  if (!func.isExternal())
    for (auto op : func.getOps<ProblemInterface>())
      if (!op.isByLanes())
        return op;
  return nullptr;
}

namespace {
struct LowerProblemsPass : kvbuf::impl::LowerProblemsBase<LowerProblemsPass> {
  using Base::Base;

  /// Refuses problems where this pass does not look: they would stay problems,
  /// and the kernels beside them would be taken for all there is.
  LogicalResult checkPlaces(ModuleOp module) {
    WalkResult result = module.walk([&](ProblemInterface op) -> WalkResult {
      Operation *parent = op->getParentOp();
      auto func = dyn_cast<func::FuncOp>(parent);
      if (op.isByLanes() || (func && func->getParentOp() == module))
        return WalkResult::advance();
      InFlightDiagnostic diag = op->emitOpError();
      if (func)
        diag << "stands in a function of a nested '"
             << func->getParentOp()->getName() << "'";
      else
        diag << "stands in a '" << parent->getName() << "'";
      diag << ", where it is not lowered; expected a function of one "
           << op->getName() << " and a return, at the top of the module";
      diag.attachNote(module.getLoc()) << "the module is here";
      return diag;
    });
    return failure(result.wasInterrupted());
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkPlaces(module)))
      return signalPassFailure();
    SmallVector<std::pair<func::FuncOp, ProblemInterface>> problems;
    for (auto func : module.getOps<func::FuncOp>())
      if (ProblemInterface op = problemOf(func))
        problems.emplace_back(func, op);
    if (problems.empty())
      return;
    std::optional<TargetInfo> target = targetOf(module);
    if (!target) {
      module.emitError() << "has no known '" << KVBufferDialect::kTargetAttr
                         << "'; run kvbuf-choose-schedule first";
      return signalPassFailure();
    }
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    UnitAttr::get(&getContext()));
    for (auto [func, op] : problems)
      if (failed(op.buildTile(func, *target)))
        return signalPassFailure();
  }
};
} // namespace
