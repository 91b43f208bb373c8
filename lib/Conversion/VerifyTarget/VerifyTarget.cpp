//===- VerifyTarget.cpp - Check target code against the chip --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/CheckKernel.h"
#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/SystemFunctions.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace kvbuf {
#define GEN_PASS_DEF_VERIFYTARGET
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// The address space of shared memory, on both vendors' LLVM targets.
static constexpr unsigned kSharedSpace = 3;

/// A copy from DRAM into LDS of `bytes` a lane, with an immediate offset.
static LogicalResult verifyLdsCopy(Operation *op, std::optional<int64_t> bytes,
                                   std::optional<int64_t> offset,
                                   const TargetInfo &target) {
  if (!bytes || !offset)
    return op->emitOpError("needs a width and an offset that are constants");
  if (failed(checkLdsCopy(op, bytes, target)))
    return failure();
  // The backend drops the bits that the instruction has no room for.
  constexpr int64_t maxOffset = 4095;
  if (*offset < 0 || *offset > maxOffset)
    return op->emitOpError()
           << "has offset " << *offset << "; the instruction has room for 0 to "
           << maxOffset;
  return success();
}

static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.trySExtValue();
  return std::nullopt;
}

/// Where an intrinsic of AMD's that copies into LDS has its width and its
/// offset, by the beginning of its name.
static constexpr struct {
  StringLiteral prefix;
  unsigned width, offset;
} kLdsCopies[] = {{"raw.ptr.buffer.load.lds", 2, 5},
                  {"raw.buffer.load.lds", 2, 5},
                  {"struct.ptr.buffer.load.lds", 2, 6},
                  {"struct.buffer.load.lds", 2, 6},
                  {"global.load.lds", 2, 3},
                  {"load.to.lds", 2, 3}};

/// A call of an intrinsic, against the chip: AMD's have the names of the ops of
/// LLVM's dialect.
static LogicalResult verifyIntrinsic(LLVM::CallIntrinsicOp op,
                                     const TargetInfo &target) {
  StringRef name = op.getIntrin();
  bool amd = target.vendor == Vendor::AMD;
  if (name.starts_with(amd ? "llvm.nvvm." : "llvm.amdgcn."))
    return op.emitOpError()
           << "calls '" << name << "', which is another vendor's than "
           << target.chip;
  if (!name.consume_front("llvm.amdgcn."))
    return success();
  if (std::optional<std::string> reason =
          target.whyNot(("rocdl." + name).str()))
    return op.emitOpError()
           << "calls '" << op.getIntrin() << "', no instruction of "
           << target.chip << ": " << *reason;
  for (const auto &copy : kLdsCopies)
    if (name.starts_with(copy.prefix) && copy.offset < op.getArgs().size())
      return verifyLdsCopy(op, constantOf(op.getArgs()[copy.width]),
                           constantOf(op.getArgs()[copy.offset]), target);
  return success();
}

/// A symbol that an op names, which has to be there: nothing links a kernel
/// with a library, and a driver does not load one that lacks a symbol.
static LogicalResult verifySymbol(Operation *op, const TargetInfo &target) {
  FlatSymbolRefAttr name;
  if (auto call = dyn_cast<LLVM::CallOp>(op))
    name = call.getCalleeAttr();
  else if (auto address = dyn_cast<LLVM::AddressOfOp>(op))
    name = address.getGlobalNameAttr();
  if (!name)
    return success();
  Operation *symbol = SymbolTable::lookupNearestSymbolFrom(op, name);
  if (auto function = dyn_cast_or_null<LLVM::LLVMFuncOp>(symbol)) {
    StringRef known = function.getName();
    if (!function.isExternal() || known.starts_with("llvm.") ||
        llvm::is_contained(systemFunctions(target.vendor), known))
      return success();
  } else if (auto global = dyn_cast_or_null<LLVM::GlobalOp>(symbol)) {
    // Shared memory has no contents, and its size may be the launch's.
    if (global.getAddrSpace() == kSharedSpace || global.getValueAttr() ||
        global.getInitializerBlock() ||
        global.getLinkage() != LLVM::Linkage::External)
      return success();
  } else {
    return success();
  }
  return op->emitOpError() << "names '" << name.getValue()
                           << "', which its module only declares; kernels are "
                              "linked with no library: expected its definition";
}

/// One op against the chip.
static LogicalResult verifyOp(Operation *op, const TargetInfo &target) {
  bool amd = target.vendor == Vendor::AMD;
  // Of this project's ops, those of NVIDIA's matrix unit come this far.
  if (amd ? isa_and_nonnull<NVVM::NVVMDialect, KVBufferDialect>(
                op->getDialect())
          : isa_and_nonnull<ROCDL::ROCDLDialect>(op->getDialect()))
    return op->emitOpError()
           << "is of another vendor's dialect than " << target.chip;
  if (std::optional<std::string> reason =
          target.whyNot(op->getName().getStringRef()))
    return op->emitOpError()
           << "is no instruction of " << target.chip << ": " << *reason;
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return verifyIntrinsic(call, target);
  if (isa<LLVM::CallOp, LLVM::AddressOfOp>(op))
    return verifySymbol(op, target);
  if (auto copy = dyn_cast<ROCDL::RawPtrBufferLoadLdsOp>(op))
    return verifyLdsCopy(op, constantOf(copy.getSize()),
                         constantOf(copy.getOffset()), target);
  if (auto copy = dyn_cast<ROCDL::GlobalLoadLDSOp>(op))
    return verifyLdsCopy(op, copy.getSize(), copy.getOffset(), target);
  if (auto copy = dyn_cast<ROCDL::LoadToLDSOp>(op))
    return verifyLdsCopy(op, copy.getSize(), copy.getOffset(), target);
  return success();
}

/// What one block takes, against what the chip has.
static LogicalResult verifyKernel(LLVM::LLVMFuncOp kernel,
                                  const TargetInfo &target) {
  LaunchAttr launch = LaunchAttr::of(kernel);
  int64_t threads = launch ? launch.getThreads() : 1;
  if (threads > target.maxThreads)
    return kernel.emitOpError()
           << "has blocks of " << threads << " threads; " << target.chip
           << " has at most " << target.maxThreads;

  llvm::SmallSetVector<LLVM::GlobalOp, 4> shared;
  kernel.walk([&](LLVM::AddressOfOp op) {
    auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
        op, op.getGlobalNameAttr());
    if (global && global.getAddrSpace() == kSharedSpace)
      shared.insert(global);
  });
  DataLayout layout = DataLayout::closest(kernel);
  int64_t fixed = 0, dynamic = launch ? launch.getDynamicSharedBytes() : 0;
  for (LLVM::GlobalOp global : shared)
    fixed += layout.getTypeSize(global.getGlobalType()).getFixedValue();
  if (fixed + dynamic > target.ldsBytes)
    return kernel.emitOpError()
           << "needs " << fixed + dynamic << " bytes of shared memory ("
           << fixed << " fixed, " << dynamic << " at launch); " << target.chip
           << " has " << target.ldsBytes;
  return success();
}

namespace {
struct VerifyTargetPass : kvbuf::impl::VerifyTargetBase<VerifyTargetPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    StringAttr chip;
    for (Operation *op = module; op && !chip; op = op->getParentOp())
      chip = op->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr);
    if (!chip) {
      module.emitOpError() << "names no chip to verify for: expected '"
                           << KVBufferDialect::kTargetAttr << "'";
      return signalPassFailure();
    }
    std::optional<TargetInfo> target = lookupTarget(chip.getValue());
    if (!target) {
      module.emitOpError() << "is for an unknown chip '" << chip.getValue()
                           << "', expected one of "
                           << llvm::join(knownTargets(), ", ");
      return signalPassFailure();
    }
    // All of what does not fit is said at once.
    bool good = true;
    module.walk([&](LLVM::LLVMFuncOp function) {
      // What kernels call is code, too.
      if (!function->hasAttr(KVBufferDialect::kPhaseAttr)) {
        function.walk([&](Operation *op) {
          good &= succeeded(verifySymbol(op, *target));
        });
        return;
      }
      good &= succeeded(verifyKernel(function, *target));
      function.walk(
          [&](Operation *op) { good &= succeeded(verifyOp(op, *target)); });
    });
    if (!good)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
