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
#include "LaneLowering.h"
#include "LaneWork.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/AppendTokens.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <limits>

using namespace mlir;
using namespace kvbuf;

/// A memref over the memory of `data` (of rank 0), whose sizes are static in
/// `shape` or those of `sizes` (null: any), and whose strides are `strides` and
/// 1.
static Value viewOf(ImplicitLocOpBuilder &b, Value data,
                    ArrayRef<int64_t> shape, ArrayRef<Value> sizes,
                    ArrayRef<Value> strides) {
  SmallVector<OpFoldResult> extents, steps;
  SmallVector<int64_t> layout(shape.size(), ShapedType::kDynamic);
  layout.back() = 1;
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(size))
      extents.push_back(b.getIndexAttr(size));
    else if (d < sizes.size() && sizes[d])
      extents.push_back(sizes[d]);
    else
      extents.push_back(
          arith::ConstantIndexOp::create(b, std::numeric_limits<int32_t>::max())
              .getResult());
    if (d + 1 < shape.size())
      steps.push_back(strides[d]);
  }
  steps.push_back(b.getIndexAttr(1));
  auto source = cast<MemRefType>(data.getType());
  auto type = MemRefType::get(shape, source.getElementType(),
                              StridedLayoutAttr::get(b.getContext(), 0, layout),
                              source.getMemorySpace());
  return memref::ReinterpretCastOp::create(b, type, data, b.getIndexAttr(0),
                                           extents, steps);
}

/// What its type says of an argument's shape.
static ArrayRef<int64_t> shapeOfTensor(Value argument) {
  return cast<MemRefType>(argument.getType()).getShape();
}

/// A cache among the arguments as ops on caches by lanes take it.
static Value cacheByLanes(LaneLowering &lower, Value argument) {
  ImplicitLocOpBuilder &b = lower.b;
  auto type = cast<CacheType>(argument.getType());
  const TensorArg &cache = lower.signature.tensor(argument);
  constexpr int64_t any = ShapedType::kDynamic;
  bool paged = type.getKind() == CacheKind::Paged;
  Value blocks = lower.signature.launchSize(sizeOfCache(argument, kBlocksSize));
  Value room = lower.signature.launchSize(
      sizeOfCache(argument, paged ? kTableRowSize : kSlotRowsSize));
  SmallVector<int64_t> shape{any, paged ? type.getPageSize() : any,
                             type.getHeads(), type.getCacheDepth()};
  Value data = viewOf(b, cache.data, shape, {blocks, paged ? Value() : room},
                      cache.strides);
  SmallVector<Value> indices{paged
                                 ? viewOf(b, cache.table, {any, any},
                                          {Value(), room}, {cache.tableStride})
                                 : viewOf(b, cache.table, {any}, {}, {}),
                             viewOf(b, cache.lengths, {any}, {}, {})};
  Value scales;
  if (type.getScaleType()) {
    SmallVector<int64_t> of;
    if (type.getGranularity() > 0)
      of = {
          any, paged ? type.getPageSize() : any, type.getHeads(),
          int64_t(llvm::divideCeil(type.getHeadSize(), type.getGranularity()))};
    else
      of = {type.getGranularity() == kPerTensor ? 1 : type.getHeads()};
    scales = viewOf(b, cache.scales, of, {}, cache.scaleStrides);
  }
  return MakeCacheOp::create(b, type, data, indices, scales,
                             /*max_prompt=*/Value(), /*max_context=*/Value());
}

LogicalResult kvbuf::lowerOp(LaneLowering &lower, AppendTokensOp op) {
  ImplicitLocOpBuilder &b = lower.b;
  for (Value cache : {Value(op.getKCache()), Value(op.getVCache())})
    if (cache && !isa<BlockArgument>(cache))
      return op.emitOpError() << "stores into a cache that the program makes; "
                                 "expected one of the kernel's arguments";
  auto tokens = [&](Value argument) {
    const TensorArg &tensor = lower.signature.tensor(argument);
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
      dealHeads(op, operands, lower.target, lower.target.waveSize);
  if (failed(shares))
    return failure();

  AppendEmitter emitter(b, operands, *shares);
  emitter.batch = lower.single(op.getBatch());
  emitter.head = lower.single(op.getHead());
  int64_t lanes = shares->lanes, atOnce = threadsTogether(lower) / lanes;
  Value tid = lower.toIndex(lower.team ? lower.thread : lower.blockThread);
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
                    ? lower.signature.tensor(op.getK()).sizes[1]
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
  meetToRead(lower);
  return success();
}
