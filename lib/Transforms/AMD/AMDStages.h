//===- AMDStages.h - Stages of AMD kernels at the target stage --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the passes that schedule AMD kernels share: the pieces of code between
/// barriers, and an estimate of the instructions that an op becomes.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_TARGET_AMD_TRANSFORMS_AMDSTAGES_H
#define KVBUFFER_LIB_TARGET_AMD_TRANSFORMS_AMDSTAGES_H

#include "kvbuffer/Target/IssueModel.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace kvbuf {

/// Ops of one block with no barrier among them. LLVM schedules at most within
/// such a piece.
struct StagePiece {
  /// In program order, without the barriers at the ends; the last one may be
  /// the block's terminator.
  llvm::SmallVector<mlir::Operation *> ops;
  /// Whether a barrier stands right before, or after, the piece; else it
  /// begins or ends with its block.
  bool behindBarrier = false, beforeBarrier = false;
  /// Matrix instructions in it.
  unsigned mfmas = 0;
};

/// Whether an op is an MFMA.
bool isMfma(mlir::Operation *op);
/// Cycles that an MFMA of 16-bit operands takes; 0 for other ops.
unsigned mfmaCycles(mlir::Operation *op, const IssueModel &model);

/// Whether control can come back to a block.
bool isInLoop(mlir::Block *block);

/// Vector instructions that an op becomes. Halves stand for ops of which LLVM
/// makes one instruction of two.
struct VectorCost {
  double plain = 0, transcendental = 0;
  /// On pairs of f32, beside which no MFMA runs.
  double pairs = 0;

  /// Cycles that those take to issue which MFMAs can hide.
  double cycles(const IssueModel &model) const {
    return plain * model.vector + transcendental * model.transcendental;
  }
};

/// Estimates instructions of one kernel. Scalar units compute integers that all
/// lanes agree on, for which the estimate follows values from their sources.
class VectorCostModel {
public:
  VectorCostModel(mlir::LLVM::LLVMFuncOp kernel, const IssueModel &model);

  VectorCost cost(mlir::Operation *op) const;
  /// Whether LLVM makes a product a part of the sum that takes it.
  static bool isFusedProduct(mlir::Operation *op);
  /// How the kernel's chip issues instructions.
  const IssueModel &issueModel() const { return model; }
  /// Whether lanes of a wave may differ in a value.
  bool isDivergent(mlir::Value value) const {
    return divergent.contains(value);
  }

private:
  void findDivergence(mlir::LLVM::LLVMFuncOp kernel);
  /// Whether a maximum becomes a part of the three-operand one of its user.
  bool isFusedMaximum(mlir::Operation *op) const;

  const IssueModel model;
  llvm::DenseSet<mlir::Value> divergent;
};

/// Calls `fn` for the pieces of `kernel` with MFMAs, or `withoutMfmas` for all,
/// that are in loops, in order: outside of loops there is little to gain, and
/// registers to lose. `rocdl.sched.barrier 0`s at their ends are taken to
/// belong to the barriers. The pieces, and what their ops cost, are found
/// before the first call. None where the kernel has no body, or where the chip
/// that encloses it, by `kvbuffer.target`, has no issue model, as other
/// vendors' chips.
void forLoopStages(mlir::LLVM::LLVMFuncOp kernel,
                   llvm::function_ref<void(const StagePiece &piece,
                                           const VectorCostModel &costs)>
                       fn,
                   bool withoutMfmas = false);

} // namespace kvbuf

#endif // KVBUFFER_LIB_TARGET_AMD_TRANSFORMS_AMDSTAGES_H
