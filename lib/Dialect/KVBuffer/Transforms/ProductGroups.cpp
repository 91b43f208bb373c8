//===- ProductGroups.cpp - Products whose operands are read together ------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductGroups.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/ReadGroups.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;

bool kvbuf::isNarrowInLds(Value b) {
  return b && llvm::any_of(fragmentSources(b), [](Value source) {
           auto load = source.getDefiningOp<FragmentLoadOp>();
           return load && load.getStaged()
                                  .getType()
                                  .getParams()
                                  .getElementType()
                                  .getIntOrFloatBitWidth() <
                              load.getFragment()
                                  .getType()
                                  .getElementType()
                                  .getIntOrFloatBitWidth();
         });
}

int64_t kvbuf::groupOfProduct(const TargetInfo &target,
                              const MatrixInstruction &mma, Value b,
                              bool transposeB, int64_t contracted) {
  if (!transposeB || !isNarrowInLds(b))
    return mma.group;
  // What a lane reads at once lies in one block of a slot, of all sources.
  int64_t widest = 0, columns = contracted, together = kWidestRead;
  for (Value source : fragmentSources(b)) {
    auto load = source.getDefiningOp<FragmentLoadOp>();
    if (!load)
      return mma.group;
    KVBufferAttr params = load.getStaged().getType().getParams();
    widest = std::max(
        widest, int64_t(params.getElementType().getIntOrFloatBitWidth() / 8));
    together = std::min<int64_t>(together, params.getSwizzleOfBlocks().unit);
    columns = std::gcd(columns, params.getBK());
    columns = std::gcd(columns, load.getSlotCol());
    // No more of the operand than a chunk is in registers.
    if (params.getRegChunkDepth() < params.getDepth())
      columns = std::gcd(columns, params.getRegChunkDepth());
  }
  return instructionsPerRead(target, mma, together / widest, columns);
}
