//===- TiledReads.cpp - Tensors that scores read by rows and keys ---------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TiledReads.h"
#include "ProblemLimits.h"
#include "RegionValues.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Schedules/ScheduleLimits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;

namespace {
/// The arguments of a region of scores; captures come behind them.
struct ScoreArguments {
  enum : unsigned { Score, Batch, Head, Row, Position, Key, Captures };
};
} // namespace

/// Dimensions that a copy engine's boxes have room for, with some to spare.
static constexpr int64_t kMostDimensions = 4;

static bool isScoreArgument(Value value, unsigned number) {
  auto argument = dyn_cast<BlockArgument>(stripCasts(value));
  return argument && argument.getArgNumber() == number;
}

bool kvbuf::isOfHeadAlone(Value value) {
  if (isScoreArgument(value, ScoreArguments::Batch) ||
      isScoreArgument(value, ScoreArguments::Head))
    return true;
  Operation *op = value.getDefiningOp();
  return op && !op->getNumRegions() && isPure(op) &&
         llvm::all_of(op->getOperands(), isOfHeadAlone);
}

/// Whether a problem has so few rows that tiles may be of several heads.
static bool hasFewRows(AttentionOp op) {
  auto q = cast<MemRefType>(op.getQ().getType());
  return !op.isRagged() && !q.isDynamicDim(1) &&
         q.getDimSize(1) <= kMostTreeQueries;
}

memref::LoadOp kvbuf::tiledReadOf(AttentionOp op) {
  if (op.getScore().empty())
    return nullptr;
  for (auto load : op.getScore().front().getOps<memref::LoadOp>()) {
    auto capture = dyn_cast<BlockArgument>(load.getMemRef());
    MemRefType type = load.getMemRefType();
    int64_t rank = type.getRank();
    // Of few rows tiles are those of several heads, which no box has.
    Type element = type.getElementType();
    bool isWord = element.isF32() && !hasFewRows(op);
    if (!capture || capture.getArgNumber() < ScoreArguments::Captures ||
        rank < 2 || rank > kMostDimensions ||
        (element.getIntOrFloatBitWidth() != 16 && !isWord))
      continue;
    ValueRange indices = load.getIndices();
    if (isScoreArgument(indices[rank - 2], ScoreArguments::Row) &&
        isScoreArgument(indices[rank - 1], ScoreArguments::Key) &&
        llvm::all_of(indices.drop_back(2), isOfHeadAlone))
      return load;
  }
  return nullptr;
}

bool kvbuf::readsSameForAll(memref::LoadOp load) {
  SmallVector<Value> left(load.getIndices().drop_back(2));
  while (!left.empty()) {
    Value value = left.pop_back_val();
    if (isScoreArgument(value, ScoreArguments::Batch))
      return false;
    if (Operation *op = value.getDefiningOp())
      llvm::append_range(left, op->getOperands());
  }
  return true;
}

/// A buffer of tiles of words, rows one after the other. A lane reads two words
/// of a row and half a warp eight of each of four rows at a time: these are in
/// different banks where rows are 8 words wider than multiples of 16.
static TypedValue<BufferType> allocWords(ImplicitLocOpBuilder &b, Type element,
                                         int64_t rows, int64_t keys) {
  int64_t cols = keys + ScheduleLimits::kReadPadding;
  auto params = KVBufferAttr::get(
      b.getContext(), Operand::Any, element, Policy::DoubleBuffered,
      /*mma_shape=*/ArrayRef<int64_t>(), /*swizzle=*/ArrayRef<int64_t>(), rows,
      /*WN=*/rows, /*BK=*/cols, /*num_threads=*/0, /*depth=*/cols,
      /*kv_num_heads=*/1, /*full_kv=*/true, /*cache_depth=*/cols,
      /*head_dim_offset=*/0, /*reg_chunk_depth=*/cols, /*smem_depth=*/cols,
      ScheduleLimits::kScoreStages, /*warp_size=*/0, Dimension::Rows,
      /*open=*/0);
  return AllocOp::create(b, BufferType::get(b.getContext(), params))
      .getBuffer();
}

/// A buffer of tiles as operands that products contract the columns of lie:
/// lanes read those as they hold scores.
static TypedValue<BufferType> allocTiles(ImplicitLocOpBuilder &b,
                                         AttentionOp op, Type element,
                                         int64_t rows, int64_t keys,
                                         const TargetInfo &target) {
  if (element.isF32())
    return allocWords(b, element, rows, keys);
  ScheduleAttr schedule = *op.getSchedule();
  int64_t BK = std::gcd(keys, schedule.getBK()),
          bytes = element.getIntOrFloatBitWidth() / 8;
  Swizzle swizzle = target.swizzle(
      *target.instructionFor(schedule.getMmaShape(ProductKind::Scores),
                             elementName(element)),
      BK * bytes, bytes, /*transposed=*/true, /*direct=*/true);
  auto params = KVBufferAttr::get(
      b.getContext(), Operand::Any, element, Policy::DoubleBuffered,
      ArrayRef<int64_t>(),
      swizzle.movesVectors() ? swizzleList(swizzle) : SmallVector<int64_t>(),
      rows, /*WN=*/rows, BK, /*num_threads=*/0, /*depth=*/keys,
      /*kv_num_heads=*/1, /*full_kv=*/true, /*cache_depth=*/keys,
      /*head_dim_offset=*/0, /*reg_chunk_depth=*/keys, /*smem_depth=*/keys,
      ScheduleLimits::kScoreStages, /*warp_size=*/0, Dimension::Rows,
      /*open=*/0);
  return AllocOp::create(b, BufferType::get(b.getContext(), params))
      .getBuffer();
}

TiledRead::TiledRead(ImplicitLocOpBuilder &b, AttentionOp op,
                     memref::LoadOp load, const IRMapping &args,
                     const ScoreTile &at, int64_t rows, int64_t keys,
                     const TargetInfo &target)
    : row(at.query), rows(rows), keys(keys) {
  Region &region = op.getScore();
  unsigned number = cast<BlockArgument>(load.getMemRef()).getArgNumber();
  tensor = args.lookup(op.getCaptures()[number - ScoreArguments::Captures]);
  IRMapping known;
  known.map(region.getArgument(ScoreArguments::Batch), at.batch);
  known.map(region.getArgument(ScoreArguments::Head), at.head);
  for (Value index : load.getIndices().drop_back(2))
    outer.push_back(copyValue(b, index, known));
  // What the tensor has no rows or keys for reads as zero: the tile ends where
  // the tensor does, so that the copy engine alone has to know.
  Value size = memref::DimOp::create(b, tensor, int64_t(outer.size()));
  validRows = arith::SubIOp::create(b, size, row);
  buffer = allocTiles(b, op, load.getMemRefType().getElementType(), rows, keys,
                      target);
}

Value TiledRead::fragmentAt(ImplicitLocOpBuilder &b, Value key) const {
  Type element = buffer.getType().getParams().getElementType();
  SmallVector<Value> indices(outer);
  indices.append({row, key});
  Value size = memref::DimOp::create(b, tensor, int64_t(outer.size()) + 1);
  Value validKeys = arith::SubIOp::create(b, size, key);
  int64_t cols = buffer.getType().getParams().getDepth();
  Value tile = DramTileOp::create(
      b, TileType::get(b.getContext(), rows, cols, element, /*page_size=*/0),
      tensor, indices, validRows, validKeys);
  Value token = DramLoadOp::create(b, tile, buffer, /*slot=*/Value(),
                                   /*pred=*/Value(), /*whole=*/false);
  Value staged =
      LdsStageOp::create(b, ValueRange{token}, IntegerAttr()).getStaged()[0];
  return FragmentLoadOp::create(
      b,
      FragmentType::get(b.getContext(), rows, keys, element,
                        element.isF32() ? Role::Acc : Role::A),
      staged, 0, 0);
}
