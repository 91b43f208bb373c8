//===- ReportBuffers.cpp - Report the derived members of buffers *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_REPORTBUFFERS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-report-buffers"

namespace {
struct ReportBuffersPass : kvbuf::impl::ReportBuffersBase<ReportBuffersPass> {
  using Base::Base;

  static void report(AllocOp op) {
    using remark::metric;
    KVBufferAttr b = op.getBuffer().getType().getParams();
    // Of a neutral buffer the schedule and its reads say the rest.
    if (b.isNeutral()) {
      remark::analysis(op.getLoc(),
                       remark::RemarkOpts::name("buffer").category(DEBUG_TYPE))
          << metric("num_repeats", b.getNumRepeats())
          << metric("smem_cols", b.getSmemCols())
          << metric("smem_stage_size", b.getSmemStageSize())
          << metric("stage_bytes", b.getStageBytes())
          << metric("bytes", b.getBytes())
          << metric("simd_width", b.getSimdWidth());
      return;
    }
    remark::analysis(op.getLoc(),
                     remark::RemarkOpts::name("buffer").category(DEBUG_TYPE))
        << metric("operand", stringifyOperand(b.getOperand()))
        << metric("num_mmas", b.getNumMmas())
        << metric("num_k_mmas2", b.getNumKMmas2())
        << metric("num_k_tiles", b.getNumKTiles())
        << metric("reg_k_tiles", b.getRegKTiles())
        << metric("num_repeats", b.getNumRepeats())
        << metric("smem_cols", b.getSmemCols())
        << metric("smem_stage_size", b.getSmemStageSize())
        << metric("stage_bytes", b.getStageBytes())
        << metric("bytes", b.getBytes())
        << metric("input_frag_size", b.getInputFragSize())
        << metric("simd_width", b.getSimdWidth())
        << metric("warp_tile_rows", b.getWarpTileRows())
        << metric("dma_units", b.getDmaUnits())
        << metric("vm_instrs_per_load", b.getVmInstrsPerLoad())
        << metric("wtile_dim0", b.getWtileDim0())
        << metric("wtile_dim1", b.getWtileDim1())
        << metric("reg_tile_size", b.getRegTileSize());
  }

  void runOnOperation() override {
    getOperation()->walk(report);
    markAllAnalysesPreserved();
  }
};
} // namespace
