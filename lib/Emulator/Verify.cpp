//===- Verify.cpp - MLIR's verifier on modules of unknown origin ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some verifiers of LLVM 22 end the process instead of refusing an operation.
// What they cannot take is refused before they see it; each case here was found
// by kvbuf-emu-fuzz.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Emulator/Emulator.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

// nvvm.mma.sync's asks for the multiplicands' types and infers the others
// whether they are there or not.
static LogicalResult takesMma(NVVM::MmaOp op) {
  auto known = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return type.isF32() || type.isF64() || type.isInteger(32) ||
           (vector && vector.getRank() == 1 && vector.getNumElements() == 2 &&
            vector.getElementType().isF16());
  };
  auto record = op->getNumResults() == 1
                    ? dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType())
                    : LLVM::LLVMStructType();
  bool good = record && !record.getBody().empty() &&
              llvm::all_of(record.getBody(), known) &&
              llvm::all_of(op->getOperandTypes(), known) &&
              op.getMultiplicandAPtxType() && op.getMultiplicandBPtxType();
  if (good)
    return success();
  return op.emitError("'nvvm.mma.sync' with multiplicands or a result of no "
                      "known type");
}

// llvm.extractvalue's and llvm.insertvalue's follow a position into what is no
// aggregate.
static LogicalResult hasPosition(Operation *op, ArrayRef<int64_t> position) {
  if (op->getNumOperands() == 0)
    return success(); // refused by the verifier
  Type type = op->getOperand(0).getType();
  for (int64_t i : position) {
    if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
      type = array.getElementType();
      continue;
    }
    auto record = dyn_cast<LLVM::LLVMStructType>(type);
    if (!record || i < 0 || i >= static_cast<int64_t>(record.getBody().size()))
      return op->emitError("'")
             << op->getName() << "' with a position that its operand does not "
             << "have";
    type = record.getBody()[i];
  }
  return success();
}

// Those of atomic operations ask of all but numbers and addresses whether it is
// a scalable vector.
static LogicalResult isAtomic(Operation *op) {
  auto good = [](Type type) {
    return type.isIntOrFloat() || isa<LLVM::LLVMPointerType>(type);
  };
  if (llvm::all_of(op->getOperandTypes(), good) &&
      (isa<LLVM::AtomicCmpXchgOp>(op) ||
       llvm::all_of(op->getResultTypes(), good)))
    return success();
  return op->emitError("'") << op->getName() << "' on other than numbers";
}

LogicalResult kvbuf::emu::verifyForeign(ModuleOp module) {
  WalkResult taken = module.walk([](Operation *op) -> WalkResult {
    if (auto x = dyn_cast<NVVM::MmaOp>(op))
      return takesMma(x);
    if (isa<LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp>(op))
      return isAtomic(op);
    if (auto x = dyn_cast<LLVM::ExtractValueOp>(op))
      return hasPosition(op, x.getPosition());
    if (auto x = dyn_cast<LLVM::InsertValueOp>(op))
      return hasPosition(op, x.getPosition());
    return WalkResult::advance();
  });
  if (taken.wasInterrupted())
    return failure();
  return verify(module);
}
