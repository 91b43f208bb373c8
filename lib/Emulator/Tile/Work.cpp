//===- Work.cpp - Work that blocks share, on whole tiles --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Math.h"
#include "OwnOps.h"
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
LogicalResult tile::execute(TileContext &context, WorkItemOp op) {
  std::array<int64_t, 3> block = context.place().block;
  int64_t left = block[2];
  for (unsigned i = 0, e = op.getNumResults(); i < e; ++i) {
    if (i < 2 || i + 1 == e) {
      context.setInteger(op.getResult(i), i < 2 ? block[i] : left);
      continue;
    }
    FailureOr<int64_t> count =
        context.sizeOf(op, op.getCoordinate(i).getCount());
    if (failed(count))
      return failure();
    context.setInteger(op.getResult(i), left % *count);
    left /= *count;
  }
  return success();
}

LogicalResult tile::execute(TileContext &context, ItemRowsOp op) {
  int64_t row = context.integerOf(op.getItem()) * int64_t(op.getRows());
  context.setInteger(op.getFirst(), row);
  context.setInteger(op.getRow(), row);
  return success();
}

LogicalResult tile::execute(TileContext &context, LaunchValueOp op) {
  FailureOr<int64_t> value = context.sizeOf(op, op.getExpression());
  if (failed(value))
    return failure();
  context.setInteger(op.getValue(), *value);
  return success();
}

/// Counts an arrival at one of some counters, of `count` there; whether it is
/// the last, which sets the counter back. `ifLast`: counts no other one.
static FailureOr<bool> arriveAt(const Tensor &counters,
                                ArrayRef<int64_t> indices, int64_t count,
                                ErrorFn fail, bool ifLast = false) {
  FailureOr<int64_t> offset = counters.offset(indices, fail);
  if (failed(offset))
    return failure();
  if (counters.access != TileAccess::Counter)
    return fail() << "arrives at " << counters.name << ", which has no "
                  << KVBufferDialect::kAccessAttr << " = \"counter\"";
  int32_t &counter = static_cast<int32_t *>(counters.data)[*offset];
  if (count < 1 || counter >= count)
    return fail() << "is arrival " << counter + 1 << " of " << count;
  bool last = counter + 1 == count;
  if (last)
    counter = 0;
  else if (!ifLast)
    ++counter;
  return last;
}

LogicalResult tile::execute(TileContext &context, ArriveLastOp op) {
  FailureOr<bool> last = arriveAt(
      context.tensorOf(op.getCounters()), context.integersOf(op.getIndices()),
      context.integerOf(op.getCount()), [&] { return context.errorAt(op); },
      op.getIfLast());
  if (failed(last))
    return failure();
  context.setInteger(op.getLast(), int64_t(*last));
  return success();
}

LogicalResult tile::execute(TileContext &context, AfterAllOp op) {
  // Nobody waits for long: the last one has all shares.
  SmallVector<int64_t> indices = context.integersOf(op.getIndices());
  indices.push_back(0);
  FailureOr<bool> last = arriveAt(context.tensorOf(op.getCounters()), indices,
                                  context.integerOf(op.getCount()),
                                  [&] { return context.errorAt(op); });
  if (failed(last))
    return failure();
  Block &body = op.getBody().front();
  for (int64_t i = 0, e = *last ? context.integerOf(op.getShares()) : 0; i < e;
       ++i) {
    context.setInteger(body.getArgument(0), i);
    if (failed(context.runBody(body)))
      return failure();
  }
  return success();
}

/// As many workers as items of one length share without a rest, if no more than
/// a tenth of all is missing, or of several items a worker a tenth of an item
/// each; else all.
static int64_t evenWorkers(int64_t workers, int64_t items) {
  items = std::max<int64_t>(items, 1);
  int64_t whole = llvm::divideCeil(items, workers);
  int64_t even = std::max<int64_t>(items * (workers / items),
                                   llvm::divideCeil(items, whole));
  return 10 * whole * even >= (10 * whole - 1) * workers ? even : workers;
}

namespace {
/// How units are dealt: units before each item, and of all; those of a share;
/// workers that have some.
struct Dealt {
  SmallVector<int64_t> before{0};
  int64_t size = 0, workers = 0;
  int64_t items() const { return before.size() - 1; }
  /// Those of an item; of a worker without one, none.
  int64_t unitsOf(int64_t i) const {
    return i < items() ? before[i + 1] - before[i] : 0;
  }
};
} // namespace

/// Deals the units of an op's items, and sets the worker's results as those of
/// `kvbuffer.share_work`.
template <typename OpT>
static FailureOr<Dealt> deal(TileContext &context, OpT op) {
  Block &body = op.getBody().front();
  Value yielded = cast<YieldOp>(body.getTerminator()).getValue();
  int64_t workers = context.integerOf(op.getWorkers()),
          least = context.integerOf(op.getLeast());
  int64_t worker = context.integerOf(op.getWorker());
  if (workers < 1 || least < 1 || worker < 0 || worker >= workers)
    return context.errorAt(op)
           << "deals to worker " << worker << " of " << workers << " at least "
           << least << "; expected 1 worker and 1 unit or more";
  Dealt dealt;
  SmallVector<int64_t> &before = dealt.before;
  int64_t some = 0;
  for (int64_t i = 0, e = context.integerOf(op.getItems()); i < e; ++i) {
    context.setInteger(body.getArgument(0), i);
    if (failed(context.runBody(body)))
      return failure();
    int64_t units = context.integerOf(yielded);
    if (units < 0)
      return context.errorAt(op)
             << "has an item, " << i << ", of " << units << " units";
    some += units > 0;
    before.push_back(before.back() + units);
  }
  dealt.workers = evenWorkers(workers, some);
  int64_t size = dealt.size =
      std::max<int64_t>(llvm::divideCeil(before.back(), dealt.workers), least);
  int64_t from = worker * size, to = std::min(from + size, before.back());
  int64_t items = dealt.items(), first = 0;
  while (first < items && before[first + 1] <= from)
    ++first;
  int64_t end = first;
  while (end < items && before[end] < to)
    ++end;
  context.setInteger(op.getSize(), size);
  context.setInteger(op.getFirst(), first);
  context.setInteger(op.getStart(), before[first]);
  context.setInteger(op.getEnd(), end);
  return dealt;
}

LogicalResult tile::execute(TileContext &context, ShareWorkOp op) {
  return deal(context, op);
}

/// Units, as pairs count them.
static int64_t atMost(int64_t units) {
  return std::min(units, SharePairsOp::kMostUnits);
}

/// Whether pairs of items even each other out; `order`: those of the workers,
/// the most units first.
static bool makesPairs(const Dealt &dealt, int64_t pause,
                       SmallVectorImpl<int64_t> &order) {
  int64_t many = dealt.workers;
  if (many < dealt.items() || many >= 2 * dealt.items() ||
      many > SharePairsOp::kMostWorkers)
    return false;
  bool differs = false;
  for (int64_t i = 0; i < many; ++i) {
    differs |= dealt.unitsOf(i) != dealt.size;
    order.push_back(i);
  }
  if (!differs)
    return false;
  auto counted = [&](int64_t i) { return atMost(dealt.unitsOf(i)); };
  llvm::sort(order, [&](int64_t x, int64_t y) {
    return std::pair(-counted(x), x) < std::pair(-counted(y), y);
  });
  int64_t bound = 2 * (atMost(dealt.size) + atMost(pause));
  for (int64_t i = 0; i < many; ++i)
    if (counted(order[i]) + counted(order[many - 1 - i]) > bound)
      return false;
  return true;
}

LogicalResult tile::execute(TileContext &context, SharePairsOp op) {
  FailureOr<Dealt> dealt = deal(context, op);
  if (failed(dealt))
    return failure();
  int64_t pause = context.integerOf(op.getPause()),
          worker = context.integerOf(op.getWorker());
  if (pause < 0)
    return context.errorAt(op)
           << "has a pause of " << pause << " units; expected 0 or more";
  context.setInteger(op.getOther(), 0);
  context.setInteger(op.getKeep(), 0);
  SmallVector<int64_t> order;
  if (!makesPairs(*dealt, pause, order))
    return success();
  int64_t many = dealt->workers, pieces = 0;
  int64_t keep = SharePairsOp::kNone, rest = SharePairsOp::kNone;
  if (worker < many) {
    int64_t rank = llvm::find(order, worker) - order.begin();
    int64_t other = order[many - 1 - rank];
    bool isLarger = rank < many - 1 - rank;
    int64_t large = atMost(dealt->unitsOf(isLarger ? worker : other)),
            small = atMost(dealt->unitsOf(isLarger ? other : worker));
    pieces = dealt->unitsOf(worker) > 0;
    if (large - small > 2 * atMost(pause)) {
      keep = int64_t(llvm::divideCeil(large + small, 2)) - atMost(pause) / 4;
      if (!isLarger) {
        rest = other;
        ++pieces;
      }
    }
  }
  context.setInteger(op.getOther(), rest);
  context.setInteger(op.getKeep(), keep);
  context.setInteger(op.getFirst(), worker);
  context.setInteger(op.getStart(), 0);
  context.setInteger(op.getEnd(), worker + pieces);
  return success();
}

/// The offset of the matrix at `indices` of a tensor of partial results.
static FailureOr<int64_t>
matrixAt(const Tensor &tensor, SmallVector<int64_t> indices, ErrorFn error) {
  indices.append({0, 0});
  return tensor.offset(indices, error);
}

LogicalResult tile::execute(TileContext &context, PartialStoreOp op) {
  auto fail = [&] { return context.errorAt(op); };
  Tensor *parts = &context.tensorOf(op.getParts());
  FailureOr<int64_t> offset =
      matrixAt(*parts, context.integersOf(op.getIndices()), fail);
  if (failed(offset) || failed(parts->checkWritable(fail)))
    return failure();
  const Matrix &acc = context.matrixOf(op.getAcc());
  int64_t width = parts->shape.back();
  int64_t rows =
      std::min(context.integerOf(op.getValid()), parts->shape.end()[-2]);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t line = *offset + r * width;
    for (int64_t c = 0; c < acc.cols; ++c)
      if (failed(parts->storeFloat(line + c, acc.at(r, c), op, fail)))
        return failure();
    if (failed(parts->storeFloat(line + acc.cols,
                                 context.matrixOf(op.getMax()).at(r, 0), op,
                                 fail)) ||
        failed(parts->storeFloat(line + acc.cols + 1,
                                 context.matrixOf(op.getSum()).at(r, 0), op,
                                 fail)))
      return failure();
    context.counts().stored += acc.cols + 2;
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

LogicalResult tile::execute(TileContext &context, PartialLoadOp op) {
  auto fail = [&] { return context.errorAt(op); };
  Tensor *parts = &context.tensorOf(op.getParts());
  FailureOr<int64_t> offset =
      matrixAt(*parts, context.integersOf(op.getIndices()), fail);
  if (failed(offset) || failed(parts->checkReadable(fail)))
    return failure();
  FailureOr<SoftmaxPart> part =
      loadPart(*parts, *offset, op.getAcc().getType(),
               context.integerOf(op.getValid()), fail);
  if (failed(part))
    return failure();
  context.setMatrix(op.getAcc(), std::move(part->acc));
  context.setMatrix(op.getMax(), std::move(part->max));
  context.setMatrix(op.getSum(), std::move(part->sum));
  return success();
}

LogicalResult tile::execute(TileContext &context, PartialJoinOp op) {
  auto fail = [&] { return context.errorAt(op); };
  Tensor *parts = &context.tensorOf(op.getParts());
  if (failed(parts->checkReadable(fail)))
    return failure();
  int64_t count = context.integerOf(op.getCount());
  if (count < 1)
    return fail() << "joins " << count
                  << " partial results; expected 1 or more";
  SmallVector<int64_t> indices = context.integersOf(op.getIndices());
  std::optional<SoftmaxPart> joined;
  for (int64_t n = 0; n < count; ++n) {
    FailureOr<int64_t> offset = matrixAt(*parts, indices, fail);
    if (failed(offset))
      return failure();
    FailureOr<SoftmaxPart> part =
        loadPart(*parts, *offset, op.getAcc().getType(),
                 context.integerOf(op.getValid()), fail,
                 op.getFrom() ? context.integerOf(op.getFrom()) : 0);
    if (failed(part))
      return failure();
    joined = joined
                 ? mergeSoftmax(*joined, *part, op.getScale().convertToFloat(),
                                op.getUnbounded())
                 : std::move(*part);
    indices.back() += int64_t(op.getStep());
  }
  context.setMatrix(op.getAcc(), std::move(joined->acc));
  context.setMatrix(op.getMax(), std::move(joined->max));
  context.setMatrix(op.getSum(), std::move(joined->sum));
  return success();
}

LogicalResult tile::execute(TileContext &context, SoftmaxSinkOp op) {
  auto fail = [&] { return context.errorAt(op); };
  Tensor *sinks = &context.tensorOf(op.getSinks());
  if (failed(sinks->checkReadable(fail)))
    return failure();
  SmallVector<int64_t> indices = context.integersOf(op.getIndices());
  int64_t first = indices.back();
  float scale = op.getScale().convertToFloat();
  const Matrix &acc = context.matrixOf(op.getAcc());
  SoftmaxPart sink{Matrix(acc.rows, acc.cols), Matrix(acc.rows, 1),
                   Matrix(acc.rows, 1, 1)};
  SmallVector<bool> isAll;
  for (int64_t r = 0; r < acc.rows; ++r) {
    indices.back() = first + r % int64_t(op.getGroup());
    FailureOr<int64_t> offset = sinks->offset(indices, fail);
    if (failed(offset))
      return failure();
    float max = sinks->loadFloat(*offset) * (1 / scale),
          most = mostOfMaxima(scale, op.getUnbounded());
    isAll.push_back(max > most);
    sink.max.at(r, 0) = isAll.back() ? most : max;
  }
  SoftmaxPart part = mergeSoftmax(
      {acc, context.matrixOf(op.getMax()), context.matrixOf(op.getSum())}, sink,
      scale, op.getUnbounded());
  // What tells such a row from one of the largest score.
  for (int64_t r = 0; r < acc.rows; ++r)
    if (isAll[r])
      part.max.at(r, 0) = std::numeric_limits<float>::infinity();
  context.setMatrix(op.getNewAcc(), std::move(part.acc));
  context.setMatrix(op.getNewMax(), std::move(part.max));
  context.setMatrix(op.getNewSum(), std::move(part.sum));
  return success();
}
