//===- CarryValues.cpp - Carry what the next iteration computes again -----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop that carries x and computes f(x) at the start of an iteration and
// f(x') of the next x at its end computes the same twice: this iteration's
// f(x') is the next one's f(x). LLVM's GVN knows such redundancies, but leaves
// those along the back edge of a loop alone.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace kvbuf {
#define GEN_PASS_DEF_CARRYVALUES
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

namespace {
/// An op on a carried value and the same op on its next value.
struct Repeated {
  BlockArgument arg;
  Operation *here, *next;
};
} // namespace

/// Whether an op may be computed once, before the loop, and be carried from
/// then on: only floating-point numbers, because what addresses are made of is
/// cheaper to compute again than to keep in a register.
static bool isCarriable(Operation *op, scf::ForOp loop, Value arg) {
  return op->getBlock() == loop.getBody() && op->getNumResults() == 1 &&
         op->getNumRegions() == 0 && isPure(op) &&
         isa<FloatType>(op->getResult(0).getType()) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return operand == arg || loop.isDefinedOutsideOfLoop(operand);
         });
}

/// Whether `b` is what `a` is, with `y` in place of `x`.
static bool isSameOn(Operation *a, Value x, Operation *b, Value y) {
  if (a->getName() != b->getName() || a->getBlock() != b->getBlock() ||
      a->getAttrDictionary() != b->getAttrDictionary() ||
      a->getResultTypes() != b->getResultTypes() ||
      a->getNumOperands() != b->getNumOperands())
    return false;
  return llvm::all_of(llvm::zip(a->getOperands(), b->getOperands()),
                      [&](auto pair) {
                        auto [p, q] = pair;
                        return p == x ? q == y : p == q;
                      });
}

static std::optional<Repeated> findRepeated(scf::ForOp loop) {
  for (BlockArgument arg : loop.getRegionIterArgs()) {
    Value next = loop.getTiedLoopYieldedValue(arg)->get();
    if (next == arg || loop.isDefinedOutsideOfLoop(next))
      continue;
    for (Operation *here : arg.getUsers()) {
      if (!isCarriable(here, loop, arg))
        continue;
      for (Operation *user : next.getUsers())
        if (isSameOn(here, arg, user, next))
          return Repeated{arg, here, user};
    }
  }
  return std::nullopt;
}

/// Returns the loop that carries the value.
static scf::ForOp carry(IRRewriter &b, scf::ForOp loop, const Repeated &found) {
  b.setInsertionPoint(loop);
  IRMapping first;
  first.map(found.arg, loop.getTiedLoopInit(found.arg)->get());
  Value init = b.clone(*found.here, first)->getResult(0);
  Value next = found.next->getResult(0);
  auto carrying = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, init, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
        return SmallVector<Value>{next};
      }));
  b.replaceOp(found.here, carrying.getRegionIterArgs().back());
  return carrying;
}

namespace {
struct CarryValuesPass : kvbuf::impl::CarryValuesBase<CarryValuesPass> {
  using Base::Base;

  void runOnOperation() override {
    // Where the same warps load and multiply, lanes have no register to spare:
    // at head size 128 on sm_90 one more spills.
    auto schedule = getOperation()->getAttrOfType<ScheduleAttr>(
        KVBufferDialect::kScheduleAttr);
    if (schedule && !schedule.getMovingTeam())
      return;
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    IRRewriter b(&getContext());
    // Each time one op fewer is left in the loop.
    for (scf::ForOp loop : loops)
      while (std::optional<Repeated> found = findRepeated(loop))
        loop = carry(b, loop, *found);
  }
};
} // namespace
