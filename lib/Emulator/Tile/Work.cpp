//===- Work.cpp - Work that blocks share, on whole tiles --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockRun.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();

LogicalResult BlockRun::runOp(LaunchValueOp op) {
  FailureOr<int64_t> value =
      evaluateSize(op.getExpression(), sizes, [&] { return error(op); });
  if (failed(value))
    return failure();
  set(op.getValue(), *value);
  return success();
}

LogicalResult BlockRun::runOp(ArriveLastOp op) {
  Tensor *counters = get<Tensor *>(op.getCounters());
  FailureOr<int64_t> offset =
      counters->offset(integers(op.getIndices()), [&] { return error(op); });
  if (failed(offset))
    return failure();
  if (counters->access != TileAccess::Counter)
    return error(op) << "arrives at " << counters->name << ", which has no "
                     << KVBufferDialect::kAccessAttr << " = \"counter\"";
  int64_t count = integer(op.getCount());
  int32_t &counter = static_cast<int32_t *>(counters->data)[*offset];
  if (count < 1 || counter >= count)
    return error(op) << "is arrival " << counter + 1 << " of " << count;
  bool last = ++counter == count;
  if (last)
    counter = 0;
  set(op.getLast(), int64_t(last));
  return success();
}

/// The offset of the matrix at `indices` of a tensor of partial results.
static FailureOr<int64_t>
matrixAt(const Tensor &tensor, SmallVector<int64_t> indices, ErrorFn error) {
  indices.append({0, 0});
  return tensor.offset(indices, error);
}

LogicalResult BlockRun::runOp(PartialStoreOp op) {
  auto fail = [&] { return error(op); };
  Tensor *parts = get<Tensor *>(op.getParts());
  FailureOr<int64_t> offset = matrixAt(*parts, integers(op.getIndices()), fail);
  if (failed(offset) || failed(parts->checkWritable(fail)))
    return failure();
  const Matrix &acc = matrix(op.getAcc());
  int64_t width = parts->shape.back();
  int64_t rows = std::min(integer(op.getValid()), parts->shape.end()[-2]);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t line = *offset + r * width;
    for (int64_t c = 0; c < acc.cols; ++c)
      if (failed(parts->storeFloat(line + c, acc.at(r, c), op, fail)))
        return failure();
    if (failed(parts->storeFloat(line + acc.cols, matrix(op.getMax()).at(r, 0),
                                 op, fail)) ||
        failed(parts->storeFloat(line + acc.cols + 1,
                                 matrix(op.getSum()).at(r, 0), op, fail)))
      return failure();
    report.stored += acc.cols + 2;
  }
  return success();
}

LogicalResult BlockRun::runOp(PartialLoadOp op) {
  auto fail = [&] { return error(op); };
  Tensor *parts = get<Tensor *>(op.getParts());
  FailureOr<int64_t> offset = matrixAt(*parts, integers(op.getIndices()), fail);
  if (failed(offset) || failed(parts->checkReadable(fail)))
    return failure();
  FragmentType type = op.getAcc().getType();
  Matrix acc(type.getRows(), type.getCols()),
      max(type.getRows(), 1, -kInfinity), sum(type.getRows(), 1);
  int64_t width = parts->shape.back();
  int64_t rows = std::min(integer(op.getValid()), parts->shape.end()[-2]);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t line = *offset + r * width;
    for (int64_t c = 0; c < acc.cols + 2; ++c)
      if (failed(parts->checkWritten(line + c, fail)))
        return failure();
    for (int64_t c = 0; c < acc.cols; ++c)
      acc.at(r, c) = parts->loadFloat(line + c);
    max.at(r, 0) = parts->loadFloat(line + acc.cols);
    sum.at(r, 0) = parts->loadFloat(line + acc.cols + 1);
  }
  set(op.getAcc(), std::move(acc));
  set(op.getMax(), std::move(max));
  set(op.getSum(), std::move(sum));
  return success();
}

LogicalResult BlockRun::runOp(SoftmaxMergeOp op) {
  SoftmaxPart part = mergeSoftmax(
      {matrix(op.getAcc()), matrix(op.getMax()), matrix(op.getSum())},
      {matrix(op.getOtherAcc()), matrix(op.getOtherMax()),
       matrix(op.getOtherSum())},
      op.getScale().convertToFloat());
  set(op.getNewAcc(), std::move(part.acc));
  set(op.getNewMax(), std::move(part.max));
  set(op.getNewSum(), std::move(part.sum));
  return success();
}

LogicalResult BlockRun::runOp(SoftmaxSinkOp op) {
  auto fail = [&] { return error(op); };
  Tensor *sinks = get<Tensor *>(op.getSinks());
  if (failed(sinks->checkReadable(fail)))
    return failure();
  SmallVector<int64_t> indices = integers(op.getIndices());
  int64_t first = indices.back();
  float scale = op.getScale().convertToFloat();
  const Matrix &acc = matrix(op.getAcc());
  SoftmaxPart sink{Matrix(acc.rows, acc.cols), Matrix(acc.rows, 1),
                   Matrix(acc.rows, 1, 1)};
  for (int64_t r = 0; r < acc.rows; ++r) {
    indices.back() = first + r % int64_t(op.getGroup());
    FailureOr<int64_t> offset = sinks->offset(indices, fail);
    if (failed(offset))
      return failure();
    sink.max.at(r, 0) = sinks->loadFloat(*offset) * (1 / scale);
  }
  SoftmaxPart part = mergeSoftmax(
      {acc, matrix(op.getMax()), matrix(op.getSum())}, sink, scale);
  set(op.getNewAcc(), std::move(part.acc));
  set(op.getNewMax(), std::move(part.max));
  set(op.getNewSum(), std::move(part.sum));
  return success();
}
