//===- Chip.cpp - What the emulator asks of a chip ------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chip.h"

#include "kvbuffer/Target/TargetInfo.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace kvbuf;
using namespace kvbuf::emu;

// The chip that a `gpu.module` or the project's own attribute names.
static std::optional<TargetInfo> targetOf(mlir::Operation *op) {
  if (auto name = op->getAttrOfType<mlir::StringAttr>("kvbuffer.target"))
    return lookupTarget(name.getValue());
  auto module = mlir::dyn_cast<mlir::gpu::GPUModuleOp>(op);
  if (!module || !module.getTargetsAttr() || module.getTargetsAttr().empty())
    return std::nullopt;
  mlir::Attribute target = module.getTargetsAttr()[0];
  if (auto rocdl = mlir::dyn_cast<mlir::ROCDL::ROCDLTargetAttr>(target))
    return lookupTarget(rocdl.getChip());
  if (auto nvvm = mlir::dyn_cast<mlir::NVVM::NVVMTargetAttr>(target))
    return lookupTarget(nvvm.getChip());
  return std::nullopt;
}

/// Chips that the compiler makes no code for, and programs from elsewhere may
/// be for: waves of 32 lanes from gfx10 on.
static std::optional<Chip> namedChip(llvm::StringRef name) {
  llvm::StringRef number = name;
  Chip chip;
  chip.name = name.str();
  if (number.consume_front("gfx")) {
    chip.isAMD = true;
    chip.lanes = number.starts_with("1") ? 32 : 64;
    chip.maxShared = 64 * 1024;
    chip.hasMatrixGroups = chip.hasTransposeReads = false;
    return chip;
  }
  if (number.consume_front("sm_")) {
    unsigned n = 0;
    number.consumeInteger(10, n);
    chip.hasMatrixGroups = n == 90;
    chip.gathersRows = n >= 100;
    return chip;
  }
  return std::nullopt;
}

bool kvbuf::emu::isChipName(llvm::StringRef name) {
  if (name.consume_front("gfx")) {
    // HIP names settings behind the chip, clang families of chips.
    name = name.split(':').first;
    if (name.consume_back("-generic"))
      return !name.empty() && llvm::isDigit(name.front()) &&
             llvm::all_of(name,
                          [](char c) { return llvm::isDigit(c) || c == '-'; });
    return name.size() >= 3 && name.size() <= 4 &&
           llvm::all_of(name, llvm::isHexDigit);
  }
  if (!name.consume_front("sm_"))
    return false;
  llvm::StringRef number = name.take_while(llvm::isDigit);
  llvm::StringRef kind = name.drop_front(number.size());
  return number.size() >= 2 && number.size() <= 3 &&
         (kind.empty() || kind == "a" || kind == "f");
}

/// What clang and others say of an AMD kernel they compiled: its waves differ
/// from chip to chip. NVIDIA's are all alike, and code for an older one may run
/// on a newer.
static llvm::StringRef namedByCompiler(mlir::Operation *kernel) {
  auto function = mlir::dyn_cast<mlir::LLVM::LLVMFuncOp>(kernel);
  if (!function ||
      !function->hasAttr(mlir::ROCDL::ROCDLDialect::getKernelFuncAttrName()))
    return "";
  return function.getTargetCpu().value_or("");
}

static Chip describeChip(mlir::Operation *kernel, llvm::StringRef name) {
  std::optional<TargetInfo> target;
  name = name.split(':').first;
  if (!name.empty())
    target = lookupTarget(name);
  for (mlir::Operation *op = kernel; op && !target; op = op->getParentOp())
    target = targetOf(op);
  Chip chip;
  if (!target) {
    if (std::optional<Chip> other = namedChip(name))
      return *other;
    if (kernel->hasAttr(mlir::ROCDL::ROCDLDialect::getKernelFuncAttrName())) {
      // Of the chips that TargetInfo knows, the most that any of them has.
      chip.isAMD = true;
      chip.lanes = 64;
      for (mlir::Operation *op = kernel; op; op = op->getParentOp())
        if (op->hasAttr("emulator.wave32"))
          chip.lanes = 32;
      chip.maxShared = 160 * 1024;
      chip.hasMatrixGroups = false;
    }
    return chip;
  }
  chip.name = target->chip;
  chip.isAMD = target->vendor == Vendor::AMD;
  chip.lanes = target->waveSize;
  chip.banks = target->banks;
  chip.maxShared = target->ldsBytes;
  chip.maxThreads = target->maxThreads;
  chip.multiprocessors = target->multiprocessors;
  chip.residentThreads = target->residentThreads;
  chip.ldsCopyBytes.assign(target->asyncCopyBytes.begin(),
                           target->asyncCopyBytes.end());
  for (const MatrixInstruction &mma : target->warpInstructions("bf16"))
    chip.matrixShapes.push_back({mma.m, mma.n, mma.k});
  if (llvm::is_contained(target->float8Formats, "f8E4M3FNUZ"))
    chip.float8 = Float8::FNUZ;
  else if (!target->float8Formats.empty())
    chip.float8 = Float8::OCP;
  chip.hasMatrixGroups = target->warpsPerMatrixGroup() != 0;
  chip.gathersRows = target->has(CopyEngine::Rows);
  chip.hasTransposeReads = chip.isAMD && target->readsTransposed;
  return chip;
}

Chip kvbuf::emu::chipOf(mlir::Operation *kernel, llvm::StringRef name) {
  llvm::StringRef compiledFor = namedByCompiler(kernel);
  Chip chip = describeChip(kernel, name.empty() ? compiledFor : name);
  // Chips with waves of 32 lanes have such of 64, too.
  if (compiledFor.empty() || !chip.isAMD)
    return chip;
  auto features =
      mlir::cast<mlir::LLVM::LLVMFuncOp>(kernel).getTargetFeaturesAttr();
  if (features && features.contains("+wavefrontsize64"))
    chip.lanes = 64;
  else if (features && features.contains("+wavefrontsize32"))
    chip.lanes = 32;
  return chip;
}
