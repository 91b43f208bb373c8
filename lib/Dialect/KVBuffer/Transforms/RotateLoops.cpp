//===- RotateLoops.cpp - Test loops at their end ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {
#define GEN_PASS_DEF_ROTATELOOPS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

namespace {
struct RotateLoopsPass : kvbuf::impl::RotateLoopsBase<RotateLoopsPass> {
  using Base::Base;

  static void rotate(scf::ForOp loop) {
    ImplicitLocOpBuilder b(loop.getLoc(), loop);
    Value enters =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                              loop.getLowerBound(), loop.getUpperBound());
    auto guard = scf::IfOp::create(b, loop.getResultTypes(), enters,
                                   /*addThenBlock=*/true,
                                   /*addElseBlock=*/true);
    b.setInsertionPointToStart(guard.elseBlock());
    scf::YieldOp::create(b, loop.getInitArgs());

    b.setInsertionPointToStart(guard.thenBlock());
    SmallVector<Value> inits{loop.getLowerBound()};
    llvm::append_range(inits, loop.getInitArgs());
    SmallVector<Type> types = llvm::to_vector(ValueRange(inits).getTypes());
    auto rotated = scf::WhileOp::create(b, types, inits);
    scf::YieldOp::create(b, rotated.getResults().drop_front());

    SmallVector<Location> locs(types.size(), loop.getLoc());
    Block *body = b.createBlock(&rotated.getBefore(), {}, types, locs);
    IRMapping map;
    map.map(loop.getBody()->getArguments(), body->getArguments());
    for (Operation &op : loop.getBody()->without_terminator())
      b.clone(op, map);
    SmallVector<Value> next{
        arith::AddIOp::create(b, body->getArgument(0), loop.getStep())};
    for (Value value : loop.getYieldedValues())
      next.push_back(map.lookupOrDefault(value));
    Value again = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                        next.front(), loop.getUpperBound());
    scf::ConditionOp::create(b, again, next);
    Block *after = b.createBlock(&rotated.getAfter(), {}, types, locs);
    scf::YieldOp::create(b, after->getArguments());

    loop.replaceAllUsesWith(guard.getResults());
    loop.erase();
  }

  void runOnOperation() override {
    // Inner loops first: an outer one clones what is in it.
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    llvm::for_each(loops, rotate);
  }
};
} // namespace
