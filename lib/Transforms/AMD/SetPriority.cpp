//===- SetPriority.cpp - Let waves with MFMAs go first --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where two waves share a SIMD and one computes while the other one moves data,
// an instruction of the mover that takes the issue slot of an MFMA delays all
// MFMAs after it. Between barriers that enclose MFMAs a wave has a higher
// priority.
//
//===----------------------------------------------------------------------===//

#include "AMDStages.h"
#include "kvbuffer/Transforms/AMD/Passes.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/Builders.h"

namespace kvbuf {
#define GEN_PASS_DEF_SETPRIORITY
#include "kvbuffer/Transforms/AMD/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

namespace {
struct SetPriorityPass : kvbuf::impl::SetPriorityBase<SetPriorityPass> {
  using Base::Base;

  void runOnOperation() override {
    LLVM::LLVMFuncOp kernel = getOperation();
    bool has = false;
    kernel.walk([&](ROCDL::SetPrioOp) { has = true; });
    if (has)
      return;
    constexpr uint16_t high = 1, normal = 0;
    OpBuilder b(kernel);
    forLoopStages(kernel, [&](const StagePiece &piece, const auto &) {
      // A stage may go on in other blocks; only what a barrier bounds changes
      // the priority.
      Operation *first = piece.ops.front(), *last = piece.ops.back();
      if (piece.behindBarrier) {
        b.setInsertionPoint(first);
        ROCDL::SetPrioOp::create(b, first->getLoc(), TypeRange(), high);
      }
      if (piece.beforeBarrier) {
        b.setInsertionPointAfter(last);
        ROCDL::SetPrioOp::create(b, last->getLoc(), TypeRange(), normal);
      }
    });
  }
};
} // namespace
