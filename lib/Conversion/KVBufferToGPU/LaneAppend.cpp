//===- LaneAppend.cpp - New tokens that the block reads ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lowers `kvbuffer.append_tokens`: the block's lanes deal the heads of the new
/// tokens among themselves, as many at a time as there is room for, and meet
/// once all are stored. What a lane does is that of a kernel of its own
/// (AppendTokens.h): the parameters of the kernel become memrefs and caches for
/// it.
///
//===----------------------------------------------------------------------===//

#include "LaneAppend.h"
#include "CachePlaces.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/AppendTokens.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace kvbuf;

/// What its type says of an argument's shape.
static ArrayRef<int64_t> shapeOfTensor(Value argument) {
  return cast<MemRefType>(argument.getType()).getShape();
}

/// A cache among the arguments as ops on caches by lanes take it.
static Value cacheByLanes(LaneContext &lower, Value argument) {
  CacheParts parts = partsOf(lower, argument);
  return MakeCacheOp::create(lower.builder(), argument.getType(), parts.data,
                             parts.indices, parts.scales,
                             /*max_prompt=*/Value(), /*max_context=*/Value());
}

LogicalResult kvbuf::lowerOp(LaneContext &lower, AppendTokensOp op) {
  ImplicitLocOpBuilder &b = lower.builder();
  for (Value cache : {Value(op.getKCache()), Value(op.getVCache())})
    if (cache && !isa<BlockArgument>(cache))
      return op.emitOpError() << "stores into a cache that the program makes; "
                                 "expected one of the kernel's arguments";
  auto tokens = [&](Value argument) {
    const TensorArg &tensor = lower.tensorOf(argument);
    return viewOf(b, tensor.data, shapeOfTensor(argument), tensor.sizes,
                  tensor.strides);
  };
  AppendOperands operands;
  operands.k = tokens(op.getK());
  operands.kCache = cacheByLanes(lower, op.getKCache());
  if (op.getV()) {
    operands.v = tokens(op.getV());
    operands.vCache = cacheByLanes(lower, op.getVCache());
  }
  if (op.getCos()) {
    operands.cos = tokens(op.getCos());
    operands.sin = tokens(op.getSin());
    operands.interleaved = op.getInterleaved();
  }
  // A head lies within a wave.
  FailureOr<AppendShares> shares =
      dealHeads(op, operands, lower.chip(), lower.chip().waveSize);
  if (failed(shares))
    return failure();

  AppendEmitter emitter(b, operands, *shares);
  emitter.batch = lower.single(op.getBatch());
  emitter.head = lower.single(op.getHead());
  int64_t lanes = shares->lanes, atOnce = lower.ownThreads() / lanes;
  Value tid = lower.toIndex(lower.ownThread());
  Value slot = arith::DivUIOp::create(b, tid, lower.index(lanes));
  Value place = arith::RemUIOp::create(b, tid, lower.index(lanes));
  Value dim = arith::MulIOp::create(b, place, lower.index(shares->piece()));
  // Lanes past a head, and past the last head that there is room for.
  Value hasRoom = emitter.isLess(slot, lower.index(atOnce));
  Value works = emitter.both(
      hasRoom,
      emitter.isLess(place, lower.index(operands.keysLayout().getHeadSize() /
                                        shares->width)));
  emitter.dim = arith::SelectOp::create(b, works, dim, lower.index(0));

  Value length = CacheLengthOp::create(b, operands.kCache, emitter.batch);
  auto within = [&](Value position, Value least) -> Value {
    Value token = arith::SubIOp::create(b, lower.single(position), length);
    return arith::MaxSIOp::create(b, token, least);
  };
  Value first = within(op.getFrom(), lower.index(0));
  Value count = shapeOfTensor(op.getK())[1] == ShapedType::kDynamic
                    ? lower.tensorOf(op.getK()).sizes[1]
                    : lower.index(shapeOfTensor(op.getK())[1]);
  Value last = arith::MinSIOp::create(b, within(op.getUpto(), first), count);
  // All lanes go as often.
  auto loop = scf::ForOp::create(b, first, last, lower.index(atOnce));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value token = arith::AddIOp::create(b, loop.getInductionVar(), slot);
    Value isNew = emitter.isLess(token, last);
    Value exists = emitter.active = emitter.both(works, isNew);
    if (emitter.hasValuesApart()) {
      exists = emitter.both(hasRoom, isNew);
      emitter.dealValues(place, exists);
    }
    token = arith::SelectOp::create(b, exists, token, lower.index(0));
    emitter.lead = {emitter.batch, token};
    emitter.emit([&] {
      emitter.position = arith::SelectOp::create(
          b, exists, emitter.add(length, token), lower.index(-1));
    });
  }
  // What all lanes have stored, all loads of the block see from here on, or
  // those of its team of one warp.
  lower.meetToRead();
  return success();
}
