//===- ReportBuffers.cpp - Report the derived members of buffers *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
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

  /// What a buffer's slots are to the products that read them: what the long
  /// form names, and of the short one the reads say. `any` if none does.
  static Operand operandOf(AllocOp op) {
    Operand named = op.getBuffer().getType().getParams().getOperand();
    if (named != Operand::Any)
      return named;
    SmallVector<Value> left{op.getBuffer()};
    llvm::SmallPtrSet<Value, 8> seen;
    bool ofRows = false, byRows = false, byCols = false;
    while (!left.empty()) {
      Value value = left.pop_back_val();
      if (!seen.insert(value).second)
        continue;
      for (OpOperand &use : value.getUses()) {
        Operation *user = use.getOwner();
        if (auto load = dyn_cast<FragmentLoadOp>(user))
          (load.getFragment().getType().getRole() == Role::A ? ofRows
           : load.contractsRows()                            ? byRows
                                                             : byCols) = true;
        else if (auto stage = dyn_cast<LdsStageOp>(user))
          left.push_back(stage.getStaged()[use.getOperandNumber()]);
        else if (isa<DramLoadOp, RingOp, RingWaitOp, StagedViewOp, StagedFitOp>(
                     user))
          llvm::append_range(left, user->getResults());
      }
    }
    // What is read both ways is K, whose rows are values, too.
    return byCols   ? Operand::K
           : byRows ? Operand::V
           : ofRows ? Operand::Q
                    : Operand::Any;
  }

  /// The buffer with what the kernel's schedule and chip say of its readers;
  /// null if they are not known. The seed has it among the buffer's parameters.
  static KVBufferAttr withReaders(AllocOp op) {
    KVBufferAttr params = op.getBuffer().getType().getParams();
    if (!params.getMmaShape().empty())
      return params;
    auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
    auto schedule = kernel ? kernel->getAttrOfType<ScheduleAttr>(
                                 KVBufferDialect::kScheduleAttr)
                           : ScheduleAttr();
    std::optional<TargetInfo> target = targetOf(op);
    Operand operand = operandOf(op);
    if (operand == Operand::Any || !schedule || !target)
      return nullptr;
    // What chooses the instruction and the warps has not run yet.
    if (schedule.isOpen() || !schedule.getWarps())
      return nullptr;
    // Warps share the rows of what is the product's, and read all of a cache's.
    bool ofProduct = operand == Operand::Q || operand == Operand::O;
    int64_t rows = ofProduct ? schedule.getWM() : params.getBN();
    ProductKind product = operand == Operand::K || operand == Operand::Q
                              ? ProductKind::Scores
                              : ProductKind::Values;
    return KVBufferAttr::get(
        op.getContext(), operand, params.getElementType(), params.getPolicy(),
        schedule.getMmaShape(product), params.getSwizzle(), params.getBN(),
        rows, params.getBK(), schedule.getWarps() * target->waveSize,
        params.getDepth(), params.getKvNumHeads(), params.getFullKv(),
        params.getCacheDepth(), params.getHeadDimOffset(),
        params.getRegChunkDepth(), params.getSmemDepth(), params.getStages(),
        target->waveSize, params.getOrder(), params.getOpen());
  }

  static void report(AllocOp op) {
    using remark::metric;
    KVBufferAttr b = withReaders(op);
    // Of a neutral buffer the schedule and its reads say the rest.
    if (!b) {
      b = op.getBuffer().getType().getParams();
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
