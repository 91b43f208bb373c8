//===- Append.cpp - New tokens into caches, on whole tiles ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OwnOps.h"
#include "Tensors.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

/// A token's head in f32.
using Row = std::vector<float>;

/// Element offsets of the row of a token, and of its scales: -1 where it has
/// none.
struct TokenPlace {
  int64_t row = -1, scales = -1;
};

static FailureOr<TokenPlace> placeOf(const Cache &cache, int64_t batch,
                                     int64_t head, int64_t position,
                                     ErrorFn error) {
  int64_t run = cache.layout.getRun();
  bool paged = run != 0;
  if (!paged)
    run = cache.data->shape[1];
  if (position < 0 || (paged && position / run >= cache.table().shape[1]) ||
      (!paged && position >= run))
    return TokenPlace();
  SmallVector<int64_t> entry{batch};
  if (paged)
    entry.push_back(position / run);
  FailureOr<int64_t> at = cache.table().offset(entry, error);
  if (failed(at))
    return failure();
  int64_t block = cache.table().loadInt(*at);
  if (block < 0 || block >= cache.data->shape[0])
    return TokenPlace();
  TokenPlace place;
  FailureOr<int64_t> row = cache.data->offset(
      {block, position % run, head, cache.layout.getHeadDimOffset()}, error);
  if (failed(row))
    return failure();
  place.row = *row;
  if (cache.layout.getGranularity() > 0 && cache.scales) {
    FailureOr<int64_t> scales =
        cache.scales->offset({block, position % run, head, 0}, error);
    if (failed(scales))
      return failure();
    place.scales = *scales;
  }
  return place;
}

/// Rotates the first elements of a head by the angles of its position.
static void rotate(Row &x, const Tensor &cos, const Tensor &sin,
                   int64_t position, bool interleaved) {
  int64_t pairs = cos.shape[1];
  if (!cos.shape[0] || !sin.shape[0])
    return;
  auto angle = [&](const Tensor &table, int64_t pair) {
    int64_t row = std::min(position, table.shape[0] - 1);
    return table.loadFloat(row * table.strides[0] + pair);
  };
  for (int64_t i = 0; i < pairs; ++i) {
    float &a = x[interleaved ? 2 * i : i];
    float &b = x[interleaved ? 2 * i + 1 : i + pairs];
    float c = angle(cos, i), s = angle(sin, i);
    float first = std::fma(-b, s, a * c);
    b = std::fma(a, s, b * c);
    a = first;
  }
}

/// The largest finite element of a type.
static float largestOf(Type element) {
  return llvm::APFloat::getLargest(cast<FloatType>(element).getFloatSemantics())
      .convertToFloat();
}

LogicalResult tile::execute(TileContext &context, AppendTokensOp op) {
  auto fail = [&] { return context.errorAt(op); };
  int64_t batch = context.integerOf(op.getBatch()),
          head = context.integerOf(op.getHead());
  int64_t from = context.integerOf(op.getFrom()),
          upto = context.integerOf(op.getUpto());
  const Cache &keys = context.objectOf<Cache>(op.getKCache());
  FailureOr<int64_t> length = numKeys(keys, batch, /*newTokens=*/0, fail);
  if (failed(length))
    return failure();
  auto store = [&](Tensor &tokens, const Cache &cache, int64_t i,
                   bool isRotated) -> LogicalResult {
    int64_t position = *length + i;
    FailureOr<TokenPlace> place = placeOf(cache, batch, head, position, fail);
    FailureOr<int64_t> first = tokens.offset({batch, i, head, 0}, fail);
    if (failed(place) || failed(first) || failed(tokens.checkReadable(fail)) ||
        failed(cache.data->checkWritable(fail)))
      return failure();
    if (place->row < 0)
      return success();
    int64_t size = cache.layout.getHeadSize(), group = size;
    Row x(size);
    for (int64_t d = 0; d < size; ++d)
      x[d] = tokens.loadFloat(*first + d);
    if (isRotated)
      rotate(x, context.tensorOf(op.getCos()), context.tensorOf(op.getSin()),
             position, op.getInterleaved());
    Type scaleType = cache.layout.getScaleType(),
         element = cache.layout.getElementType();
    bool makes = scaleType && cache.layout.getGranularity() > 0;
    if (makes)
      group = std::min(cache.layout.getGranularity(), size);
    for (int64_t begin = 0; begin < size; begin += group) {
      int64_t end = std::min(begin + group, size);
      float scale = 1;
      if (makes) {
        for (int64_t d = begin; d < end; ++d)
          scale =
              d == begin ? std::fabs(x[d]) : std::fmax(scale, std::fabs(x[d]));
        scale = roundTo(scaleType, scale / largestOf(element));
        if (scale == 0)
          scale = 1;
        if (failed(cache.scales->storeFloat(place->scales + begin / group,
                                            scale, op, fail)))
          return failure();
      } else if (scaleType) {
        FailureOr<float> given =
            scaleOf(cache, /*row=*/{}, head, /*headDim=*/0, fail);
        if (failed(given))
          return failure();
        scale = *given;
      }
      for (int64_t d = begin; d < end; ++d)
        if (failed(cache.data->storeFloat(place->row + d,
                                          scaleType ? x[d] * (1 / scale) : x[d],
                                          op, fail)))
          return failure();
    }
    context.counts().stored += size;
    return success();
  };
  Tensor &k = context.tensorOf(op.getK());
  for (int64_t i = std::max<int64_t>(from - *length, 0),
               e = std::min(upto - *length, k.shape[1]);
       i < e; ++i) {
    if (failed(store(k, keys, i, /*isRotated=*/bool(op.getCos()))))
      return failure();
    if (op.getV() && failed(store(context.tensorOf(op.getV()),
                                  context.objectOf<Cache>(op.getVCache()), i,
                                  /*isRotated=*/false)))
      return failure();
  }
  return success();
}
