//===- LoopRegions.h - Control flow around large loops -------- -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_LOOPREGIONS_H
#define KVBUFFER_LIB_COMPILER_LOOPREGIONS_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace kvbuf {

/// The large loops of a kernel, and the regions that they cut its control flow
/// into.
class LoopRegions {
public:
  explicit LoopRegions(llvm::Function &kernel);

  /// Innermost loops that need most registers.
  llvm::ArrayRef<llvm::Loop *> large() const { return largeLoops; }
  /// The large loop that a block is in; null if it is in none.
  llvm::Loop *largeLoopOf(const llvm::BasicBlock *block) const;
  /// The first block of the region of `block`: what dominates it without a
  /// large loop in between, and within a loop around such a one.
  llvm::BasicBlock *regionOf(llvm::BasicBlock *block);
  /// Whether a region is passed in each iteration of a loop around a large one.
  bool isWithinLoop(llvm::BasicBlock *region) const;
  /// The block in which an operand is used: a phi takes it from where it comes.
  static llvm::BasicBlock *blockOf(const llvm::Use &use);

  llvm::DominatorTree tree;
  llvm::LoopInfo loops;

private:
  llvm::SmallVector<llvm::Loop *> largeLoops;
  llvm::DenseMap<llvm::BasicBlock *, llvm::BasicBlock *> regions;
};

/// Which values of a kernel, as it is now, all lanes of a wave have in common.
class LanesInCommon {
public:
  LanesInCommon(llvm::Function &kernel, llvm::TargetMachine &machine);
  /// Whether lanes may differ in a value, or in what a use sees of it.
  bool differ(const llvm::Value *value) const {
    return info->isDivergent(value);
  }
  bool differ(const llvm::Use &use) const { return info->isDivergentUse(use); }

private:
  llvm::FunctionAnalysisManager analyses;
  llvm::UniformityInfo *info;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_LOOPREGIONS_H
