//===- KVBufferDialect.cpp - The kvbuffer dialect and its phases *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownAttributes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace kvbuf;

#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferDialect.cpp.inc"

namespace {
/// Prints the long parameters of buffers and schedules once, in front.
struct KVBufferAliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    if (auto buffer = dyn_cast<KVBufferAttr>(attr)) {
      os << buffer.getLabel() << "buf";
      return AliasResult::FinalAlias;
    }
    if (isa<ScheduleAttr>(attr)) {
      os << "schedule";
      return AliasResult::FinalAlias;
    }
    if (auto layout = dyn_cast<MmaLayoutAttr>(attr)) {
      os << "mma_" << stringifyRole(layout.getOperand());
      return AliasResult::FinalAlias;
    }
    if (isa<BlockedLayoutAttr>(attr)) {
      os << "blocked";
      return AliasResult::FinalAlias;
    }
    if (auto slice = dyn_cast<SliceLayoutAttr>(attr)) {
      os << (isa<BlockedLayoutAttr>(slice.getParent()) ? "blocked_row"
                                                       : "mma_row");
      return AliasResult::FinalAlias;
    }
    return AliasResult::NoAlias;
  }
};
} // namespace

void KVBufferDialect::initialize() {
  addInterfaces<KVBufferAliases>();
  registerAttributes();
  registerTypes();
  [this]<typename... Ops>() { addOperations<WithKnownProperties<Ops>...>(); }
      .operator()<
#define GET_OP_LIST
#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOps.cpp.inc"
          >();
}

/// Whether an op belongs to the lane level: it must not appear where values are
/// tiles. What makes a cache of memrefs belongs to either.
static bool isLaneLevel(Operation *op) {
  if (isa<gpu::ThreadIdOp, gpu::LaneIdOp, gpu::SubgroupIdOp, gpu::ShuffleOp,
          gpu::BarrierOp, gpu::SubgroupBroadcastOp>(op) ||
      (op->hasTrait<LaneLevel>() && !isa<MakeCacheOp>(op)))
    return true;
  return isa_and_nonnull<vector::VectorDialect, LLVM::LLVMDialect>(
      op->getDialect());
}

/// Whether an op of this dialect acts on tensors, tiles or fragments.
static bool isBlockLevel(Operation *op) {
  return op->hasTrait<TileLevel>() || op->hasTrait<ProblemLevel>();
}

/// Whether an op is of a dialect that the target stage consists of.
static bool isTargetDialect(Operation *op) {
  return llvm::is_contained({"llvm", "nvvm", "rocdl"},
                            op->getName().getDialectNamespace());
}

/// Whether an op names an instruction that has no form above its vendor's
/// dialect: barriers in LDS, copy engines, registers of a role. Their operands
/// are pointers, made from numbers.
static bool isVendorInstruction(Operation *op) {
  return isa<LLVM::IntToPtrOp>(op) ||
         llvm::is_contained({"nvvm", "rocdl"},
                            op->getName().getDialectNamespace());
}

/// Verifies the phase contract (PhaseAttr) on a kernel.
static LogicalResult verifyPhase(Operation *kernel, Phase phase) {
  StringRef vendor;
  WalkResult result = kernel->walk([&](Operation *op) {
    if (op == kernel)
      return WalkResult::advance();
    auto fail = [&](StringRef why) {
      InFlightDiagnostic diag = op->emitOpError()
                                << "is not allowed in phase '"
                                << stringifyPhase(phase) << "': " << why;
      diag.attachNote(kernel->getLoc()) << "the kernel is here";
      return WalkResult::interrupt();
    };
    switch (phase) {
    case Phase::Tile:
    case Phase::Scheduled:
      if (isLaneLevel(op))
        return fail("values are tiles, not lanes");
      if (op->hasTrait<ProblemLevel>())
        return fail("a problem stands in a func.func");
      if (op->getNumSuccessors())
        return fail("its control flow is scf.for, scf.while and scf.if");
      if (auto stage = dyn_cast<LdsStageOp>(op))
        if (phase == Phase::Scheduled && !stage.getYounger())
          return fail("the number of younger loads is not counted");
      if (auto load = dyn_cast<DramLoadOp>(op))
        if (phase == Phase::Scheduled && !load.getSlot() &&
            load.getBuffer().getType().getParams().getStages() > 1)
          return fail("the slot that it fills is not assigned");
      if (auto team = dyn_cast<TeamOp>(op))
        if (phase == Phase::Scheduled && !int64_t(team.getWarps()))
          return fail("the number of its warps is not chosen");
      if (auto alloc = dyn_cast<AllocOp>(op))
        if (phase == Phase::Scheduled && alloc.getType().getParams().getOpen())
          return fail("what its buffer leaves open is not chosen");
      break;
    case Phase::Thread:
      if (isBlockLevel(op))
        return fail("values are lanes, not tiles");
      if (isTargetDialect(op) && !isVendorInstruction(op))
        return fail("llvm comes later");
      break;
    case Phase::Target:
      if (op->hasTrait<UntilTranslation>())
        break;
      if (!isTargetDialect(op))
        return fail("only llvm and one vendor's dialect remain");
      if (StringRef name = op->getName().getDialectNamespace();
          name != "llvm") {
        if (!vendor.empty() && vendor != name)
          return fail("the kernel is for another vendor");
        vendor = name;
      }
      break;
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult KVBufferDialect::verifyOperationAttribute(Operation *op,
                                                        NamedAttribute attr) {
  if (failed(verifyDialectAttribute(op, attr)))
    return failure();
  if (auto phase = dyn_cast<PhaseAttr>(attr.getValue());
      phase && attr.getName() == kPhaseAttr)
    return verifyPhase(op, phase.getValue());
  return success();
}

LogicalResult KVBufferDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                        unsigned argument,
                                                        NamedAttribute attr) {
  return verifyArgumentAttribute(op, argument, attr);
}
