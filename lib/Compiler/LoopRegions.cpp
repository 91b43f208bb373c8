//===- LoopRegions.cpp - Control flow around large loops ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopRegions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/CycleAnalysis.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;
using namespace kvbuf;

/// Instructions from which on a loop is large: fewer do not need the registers.
static constexpr size_t kLargeLoop = 100;

LoopRegions::LoopRegions(Function &kernel) : tree(kernel) {
  loops.analyze(tree);
  for (Loop *loop : loops.getLoopsInPreorder()) {
    size_t size = 0;
    for (BasicBlock *block : loop->blocks())
      size += block->size();
    if (loop->isInnermost() && size >= kLargeLoop)
      largeLoops.push_back(loop);
  }
}

Loop *LoopRegions::largeLoopOf(const BasicBlock *block) const {
  auto it =
      find_if(largeLoops, [&](Loop *loop) { return loop->contains(block); });
  return it == largeLoops.end() ? nullptr : *it;
}

/// Whether there is a way from `from` to `to` that does not enter `without`.
static bool reaches(BasicBlock *from, BasicBlock *to, BasicBlock *without) {
  SmallPtrSet<BasicBlock *, 32> seen;
  SmallVector<BasicBlock *> todo{from};
  while (!todo.empty()) {
    BasicBlock *block = todo.pop_back_val();
    if (block == without || !seen.insert(block).second)
      continue;
    if (block == to)
      return true;
    append_range(todo, successors(block));
  }
  return false;
}

BasicBlock *LoopRegions::regionOf(BasicBlock *block) {
  if (BasicBlock *known = regions.lookup(block))
    return known;
  auto *node = tree.getNode(block)->getIDom();
  BasicBlock *before = node ? node->getBlock() : nullptr;
  bool begins = !before || any_of(largeLoops, [&](Loop *loop) {
    return loop->contains(before) ||
           (tree.dominates(before, loop->getHeader()) &&
            reaches(loop->getHeader(), block, before));
  });
  for (Loop *loop = loops.getLoopFor(block); loop && !begins;
       loop = loop->getParentLoop())
    begins = !loop->contains(before) && any_of(largeLoops, [&](Loop *other) {
      return loop->contains(other);
    });
  return regions[block] = begins ? block : regionOf(before);
}

bool LoopRegions::isWithinLoop(BasicBlock *region) const {
  for (Loop *loop = loops.getLoopFor(region); loop;
       loop = loop->getParentLoop())
    if (any_of(largeLoops, [&](Loop *other) {
          return loop != other && loop->contains(other);
        }))
      return true;
  return false;
}

BasicBlock *LoopRegions::blockOf(const Use &use) {
  auto *user = cast<Instruction>(use.getUser());
  auto *phi = dyn_cast<PHINode>(user);
  return phi ? phi->getIncomingBlock(use) : user->getParent();
}

LanesInCommon::LanesInCommon(Function &kernel, TargetMachine &machine) {
  analyses.registerPass([] { return PassInstrumentationAnalysis(); });
  analyses.registerPass([] { return DominatorTreeAnalysis(); });
  analyses.registerPass([] { return CycleAnalysis(); });
  analyses.registerPass([&] { return machine.getTargetIRAnalysis(); });
  analyses.registerPass([] { return UniformityInfoAnalysis(); });
  info = &analyses.getResult<UniformityInfoAnalysis>(kernel);
}
