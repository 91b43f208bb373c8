//===- Work.cpp - Work that blocks share, on whole tiles --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockRun.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A block has the item of its own number; all coordinates from the third on
/// stand along z, the third fastest.
LogicalResult BlockRun::runOp(WorkItemOp op) {
  int64_t left = block[2];
  for (unsigned i = 0, e = op.getNumResults(); i < e; ++i) {
    if (i < 2 || i + 1 == e) {
      set(op.getResult(i), i < 2 ? block[i] : left);
      continue;
    }
    FailureOr<int64_t> count = evaluateSize(op.getCoordinate(i).getCount(),
                                            sizes, [&] { return error(op); });
    if (failed(count))
      return failure();
    set(op.getResult(i), left % *count);
    left /= *count;
  }
  return success();
}

LogicalResult BlockRun::runOp(ItemRowsOp op) {
  int64_t row = integer(op.getItem()) * int64_t(op.getRows());
  set(op.getFirst(), row);
  set(op.getRow(), row);
  return success();
}

LogicalResult BlockRun::runOp(LaunchValueOp op) {
  FailureOr<int64_t> value =
      evaluateSize(op.getExpression(), sizes, [&] { return error(op); });
  if (failed(value))
    return failure();
  set(op.getValue(), *value);
  return success();
}

/// Counts an arrival at one of some counters, of `count` there; whether it is
/// the last, which sets the counter back.
static FailureOr<bool> arriveAt(const Tensor &counters,
                                ArrayRef<int64_t> indices, int64_t count,
                                ErrorFn fail) {
  FailureOr<int64_t> offset = counters.offset(indices, fail);
  if (failed(offset))
    return failure();
  if (counters.access != TileAccess::Counter)
    return fail() << "arrives at " << counters.name << ", which has no "
                  << KVBufferDialect::kAccessAttr << " = \"counter\"";
  int32_t &counter = static_cast<int32_t *>(counters.data)[*offset];
  if (count < 1 || counter >= count)
    return fail() << "is arrival " << counter + 1 << " of " << count;
  bool last = ++counter == count;
  if (last)
    counter = 0;
  return last;
}

LogicalResult BlockRun::runOp(ArriveLastOp op) {
  FailureOr<bool> last =
      arriveAt(*get<Tensor *>(op.getCounters()), integers(op.getIndices()),
               integer(op.getCount()), [&] { return error(op); });
  if (failed(last))
    return failure();
  set(op.getLast(), int64_t(*last));
  return success();
}

LogicalResult BlockRun::runOp(AfterAllOp op) {
  // Nobody waits for long: the last one has all shares.
  SmallVector<int64_t> indices = integers(op.getIndices());
  indices.push_back(0);
  FailureOr<bool> last =
      arriveAt(*get<Tensor *>(op.getCounters()), indices,
               integer(op.getCount()), [&] { return error(op); });
  if (failed(last))
    return failure();
  Block &body = op.getBody().front();
  for (int64_t i = 0, e = *last ? integer(op.getShares()) : 0; i < e; ++i) {
    set(body.getArgument(0), i);
    if (failed(runBlock(body)))
      return failure();
  }
  return success();
}

LogicalResult BlockRun::runOp(ShareWorkOp op) {
  Block &body = op.getBody().front();
  Value yielded = cast<YieldOp>(body.getTerminator()).getValue();
  int64_t workers = integer(op.getWorkers()), least = integer(op.getLeast());
  int64_t worker = integer(op.getWorker());
  if (workers < 1 || least < 1 || worker < 0 || worker >= workers)
    return error(op) << "deals to worker " << worker << " of " << workers
                     << " at least " << least
                     << "; expected 1 worker and 1 unit or more";
  // Units before each item, and of all.
  SmallVector<int64_t> before{0};
  for (int64_t i = 0, e = integer(op.getItems()); i < e; ++i) {
    set(body.getArgument(0), i);
    if (failed(runBlock(body)))
      return failure();
    int64_t units = integer(yielded);
    if (units < 0)
      return error(op) << "has an item, " << i << ", of " << units << " units";
    before.push_back(before.back() + units);
  }
  int64_t size =
      std::max<int64_t>(llvm::divideCeil(before.back(), workers), least);
  int64_t from = worker * size, to = std::min(from + size, before.back());
  int64_t items = before.size() - 1, first = 0;
  while (first < items && before[first + 1] <= from)
    ++first;
  int64_t end = first;
  while (end < items && before[end] < to)
    ++end;
  set(op.getSize(), size);
  set(op.getFirst(), first);
  set(op.getStart(), before[first]);
  set(op.getEnd(), end);
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

/// The partial result at `offset` of a tensor, in a fragment of a type: its
/// rows from row `from` on.
static FailureOr<SoftmaxPart> loadPart(const Tensor &parts, int64_t offset,
                                       FragmentType type, int64_t valid,
                                       ErrorFn fail, int64_t from = 0) {
  SoftmaxPart part{Matrix(type.getRows(), type.getCols()),
                   Matrix(type.getRows(), 1, -kInfinity),
                   Matrix(type.getRows(), 1)};
  int64_t width = parts.shape.back();
  int64_t rows = std::min(valid, parts.shape.end()[-2]) - from;
  for (int64_t r = 0; r < std::min(rows, type.getRows()); ++r) {
    int64_t line = offset + (from + r) * width, cols = type.getCols();
    for (int64_t c = 0; c < cols + 2; ++c)
      if (failed(parts.checkWritten(line + c, fail)))
        return failure();
    for (int64_t c = 0; c < cols; ++c)
      part.acc.at(r, c) = parts.loadFloat(line + c);
    part.max.at(r, 0) = parts.loadFloat(line + cols);
    part.sum.at(r, 0) = parts.loadFloat(line + cols + 1);
  }
  return part;
}

LogicalResult BlockRun::runOp(PartialLoadOp op) {
  auto fail = [&] { return error(op); };
  Tensor *parts = get<Tensor *>(op.getParts());
  FailureOr<int64_t> offset = matrixAt(*parts, integers(op.getIndices()), fail);
  if (failed(offset) || failed(parts->checkReadable(fail)))
    return failure();
  FailureOr<SoftmaxPart> part = loadPart(*parts, *offset, op.getAcc().getType(),
                                         integer(op.getValid()), fail);
  if (failed(part))
    return failure();
  set(op.getAcc(), std::move(part->acc));
  set(op.getMax(), std::move(part->max));
  set(op.getSum(), std::move(part->sum));
  return success();
}

LogicalResult BlockRun::runOp(PartialJoinOp op) {
  auto fail = [&] { return error(op); };
  Tensor *parts = get<Tensor *>(op.getParts());
  if (failed(parts->checkReadable(fail)))
    return failure();
  int64_t count = integer(op.getCount());
  if (count < 1)
    return fail() << "joins " << count
                  << " partial results; expected 1 or more";
  SmallVector<int64_t> indices = integers(op.getIndices());
  std::optional<SoftmaxPart> joined;
  for (int64_t n = 0; n < count; ++n) {
    FailureOr<int64_t> offset = matrixAt(*parts, indices, fail);
    if (failed(offset))
      return failure();
    FailureOr<SoftmaxPart> part =
        loadPart(*parts, *offset, op.getAcc().getType(), integer(op.getValid()),
                 fail, op.getFrom() ? integer(op.getFrom()) : 0);
    if (failed(part))
      return failure();
    joined = joined
                 ? mergeSoftmax(*joined, *part, op.getScale().convertToFloat(),
                                op.getUnbounded())
                 : std::move(*part);
    indices.back() += int64_t(op.getStep());
  }
  set(op.getAcc(), std::move(joined->acc));
  set(op.getMax(), std::move(joined->max));
  set(op.getSum(), std::move(joined->sum));
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
  SoftmaxPart part =
      mergeSoftmax({acc, matrix(op.getMax()), matrix(op.getSum())}, sink, scale,
                   op.getUnbounded());
  set(op.getNewAcc(), std::move(part.acc));
  set(op.getNewMax(), std::move(part.max));
  set(op.getNewSum(), std::move(part.sum));
  return success();
}
