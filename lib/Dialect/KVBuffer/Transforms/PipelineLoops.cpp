//===- PipelineLoops.cpp - Make loops of what their ops say -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipelineLoop.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"

namespace kvbuf {
#define GEN_PASS_DEF_PIPELINELOOPS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

namespace {
struct PipelineLoopsPass : kvbuf::impl::PipelineLoopsBase<PipelineLoopsPass> {
  using Base::Base;

  /// A loop that is made anew brings ops that have no place in the one around.
  LogicalResult verifyAlone(scf::ForOp loop) {
    for (auto around = loop->getParentOfType<scf::ForOp>(); around;
         around = around->getParentOfType<scf::ForOp>())
      if (around->hasAttr(KVBufferDialect::kPipelineAttr)) {
        InFlightDiagnostic diag =
            loop.emitOpError("is to be made of its ops' stages, and so is a "
                             "loop around it; expected one of them at a time");
        diag.attachNote(around.getLoc()) << "the loop around is here";
        return diag;
      }
    return success();
  }

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr(KVBufferDialect::kPipelineAttr))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      if (failed(verifyAlone(loop)))
        return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (scf::ForOp loop : loops)
      if (failed(pipelineLoop(rewriter, loop, "by the stages of its ops")))
        return signalPassFailure();
  }
};
} // namespace
