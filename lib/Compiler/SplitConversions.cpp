//===- SplitConversions.cpp - Conversions of odd vectors --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitConversions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

/// The most elements of a part, and the fewest above it that the backend has a
/// type for: what lies between is split.
static constexpr int kPart = 4, kWhole = 8;

void kvbuf::splitConversions(Function &function) {
  for (Instruction &instruction :
       make_early_inc_range(instructions(function))) {
    auto *cast = dyn_cast<CastInst>(&instruction);
    if (!cast || (!isa<FPExtInst>(cast) && !isa<FPTruncInst>(cast)))
      continue;
    auto *type = dyn_cast<FixedVectorType>(cast->getType());
    if (!type || !(cast->getSrcTy()->getScalarType()->isHalfTy() ||
                   type->getElementType()->isHalfTy()))
      continue;
    int count = type->getNumElements();
    if (count <= kPart || count >= kWhole)
      continue;
    IRBuilder<> b(cast);
    auto part = [&](int first) {
      SmallVector<int> which;
      for (int i = first; i < first + kPart; ++i)
        which.push_back(i < count ? i : -1);
      return b.CreateCast(cast->getOpcode(),
                          b.CreateShuffleVector(cast->getOperand(0), which),
                          FixedVectorType::get(type->getElementType(), kPart));
    };
    SmallVector<int> all(count);
    for (int i = 0; i < count; ++i)
      all[i] = i;
    Value *low = part(0), *high = part(kPart);
    cast->replaceAllUsesWith(b.CreateShuffleVector(low, high, all));
    cast->eraseFromParent();
  }
}
