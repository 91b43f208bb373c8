//===- Dram.cpp - Tensors, caches and tiles, on whole tiles ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"
#include "Math.h"
#include "OwnOps.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

LogicalResult tile::execute(TileContext &context, memref::DimOp op) {
  const Tensor *tensor = &context.tensorOf(op.getSource());
  int64_t dim = context.integerOf(op.getIndex());
  if (dim < 0 || dim >= int64_t(tensor->shape.size()))
    return context.errorAt(op)
           << "asks for dimension " << dim << " of " << tensor->name
           << ", which has " << tensor->shape.size();
  context.setInteger(op.getResult(), tensor->shape[dim]);
  return success();
}

LogicalResult tile::execute(TileContext &context, memref::LoadOp op) {
  Tensor *tensor = &context.tensorOf(op.getMemRef());
  auto fail = [&] { return context.errorAt(op); };
  FailureOr<int64_t> offset =
      tensor->offset(context.integersOf(op.getIndices()), fail);
  if (failed(offset) || failed(tensor->checkReadable(fail)))
    return failure();
  if (isa<FloatType>(op.getType()))
    context.setFloat(op.getResult(), tensor->loadFloat(*offset));
  else
    context.setInteger(op.getResult(), tensor->loadInt(*offset));
  return success();
}

LogicalResult tile::execute(TileContext &context, MakeCacheOp op) {
  Cache cache(cast<CacheLayout>(op.getCache().getType()));
  cache.data = &context.tensorOf(op.getData());
  for (Value tensor : op.getIndices())
    cache.indices.push_back(&context.tensorOf(tensor));
  if (op.getScales())
    cache.scales = &context.tensorOf(op.getScales());
  context.setObject(op.getCache(), std::move(cache));
  return success();
}

/// Executes code that a cache's type has emitted (`Cache::place`, `size`);
/// what it yields, null as 1.
static FailureOr<SmallVector<int64_t>>
runEmitted(TileContext &context, const Cache &cache, Block &code,
           ArrayRef<Value> yields, ArrayRef<int64_t> numbers) {
  unsigned next = 0;
  context.setTensor(code.getArgument(next++), *cache.data);
  for (Tensor *tensor : cache.indices)
    context.setTensor(code.getArgument(next++), *tensor);
  for (int64_t number : numbers)
    context.setInteger(code.getArgument(next++), number);
  if (failed(context.runBody(code)))
    return failure();
  return llvm::map_to_vector(yields, [&](Value value) {
    return value ? context.integerOf(value) : 1;
  });
}

/// The indices of a token's row in the leading dimensions of a cache's data.
static FailureOr<SmallVector<int64_t>>
placeToken(TileContext &context, Operation *op, const Cache &cache,
           int64_t batch, int64_t token) {
  if (!cache.rows.byPlace)
    return rowOf(cache, batch, token, [&] { return context.errorAt(op); });
  FailureOr<SmallVector<int64_t>> found =
      runEmitted(context, cache, *cache.place, cache.placed, {batch, token});
  if (failed(found))
    return failure();
  if (!found->pop_back_val())
    return context.errorAt(op)
           << "asks for token " << token << " of sequence " << batch
           << ", for which " << cache.data->name << " has no row";
  return found;
}

LogicalResult tile::findRows(TileContext &context, Operation *op, Tile &tile) {
  auto place = [&](const Cache &cache, int64_t token) {
    return placeToken(context, op, cache, tile.batch, token);
  };
  return lookUpRows(tile, context.counts(), place,
                    [&] { return context.errorAt(op); });
}

LogicalResult tile::execute(TileContext &context, CacheNumKeysOp op) {
  const Cache &cache = context.objectOf<Cache>(op.getCache());
  int64_t batch = context.integerOf(op.getBatch()),
          added = context.integerOf(op.getNewTokens());
  if (cache.rows.byPlace) {
    FailureOr<SmallVector<int64_t>> sizes =
        runEmitted(context, cache, *cache.size, cache.sizes, {batch, 0});
    if (failed(sizes))
      return failure();
    context.setInteger(op.getKeys(),
                       std::min((*sizes)[0] + added, (*sizes)[1]));
    return success();
  }
  FailureOr<int64_t> keys =
      numKeys(cache, batch, added, [&] { return context.errorAt(op); });
  if (failed(keys))
    return failure();
  context.setInteger(op.getKeys(), *keys);
  return success();
}

LogicalResult tile::execute(TileContext &context, CacheTileOp op) {
  Tile tile;
  tile.type = op.getTile().getType();
  tile.op = op;
  if (isEnabled(context, op.getPred())) {
    tile.cache = context.shareObject<Cache>(op.getCache());
    tile.tensor = tile.cache->data;
    tile.batch = context.integerOf(op.getBatch());
    tile.head = context.integerOf(op.getHead());
    tile.start = context.integerOf(op.getStart());
    tile.from = context.integerOf(op.getFrom());
    tile.upto = context.integerOf(op.getUpto());
    if (op.getCol())
      tile.col = context.integerOf(op.getCol());
    if (tile.col < 0 || tile.col >= tile.type.getCols())
      return context.errorAt(op) << "begins at column " << tile.col << " of "
                                 << tile.type.getCols();
    int64_t rows = tile.type.getRows();
    // The first tile of a range without keys has no valid row and looks up
    // nothing; no other tile may be without one.
    int64_t first = std::max<int64_t>(tile.from, 0);
    if (std::max(tile.start, tile.from) >=
            std::min(tile.start + rows, tile.upto) &&
        (first < tile.start || first >= tile.start + rows))
      return context.errorAt(op)
             << "looks up a tile without a valid row: keys " << tile.start
             << " to " << tile.start + rows << " of [" << tile.from << ", "
             << tile.upto << ")";
    if (!tile.type.getPageSize() && failed(findRows(context, op, tile)))
      return failure();
  }
  context.setTile(op.getTile(), std::move(tile));
  return success();
}

LogicalResult tile::execute(TileContext &context, CacheScaleOp op) {
  const Cache &cache = context.objectOf<Cache>(op.getCache());
  SmallVector<int64_t> row;
  if (cache.layout.getGranularity() > 0) {
    FailureOr<SmallVector<int64_t>> found =
        placeToken(context, op, cache, context.integerOf(op.getBatch()),
                   context.integerOf(op.getToken()));
    if (failed(found))
      return failure();
    row = std::move(*found);
  }
  FailureOr<float> scale = scaleOf(cache, row, context.integerOf(op.getHead()),
                                   context.integerOf(op.getHeadDim()),
                                   [&] { return context.errorAt(op); });
  if (failed(scale))
    return failure();
  context.setFloat(op.getScale(), *scale);
  return success();
}

LogicalResult tile::execute(TileContext &context, DramTileOp op) {
  Tile tile;
  tile.type = op.getTile().getType();
  tile.op = op;
  tile.tensor = &context.tensorOf(op.getTensor());
  tile.rows.assign(tile.type.getRows(), Tile::kInvalid);
  SmallVector<int64_t> index = context.integersOf(op.getIndices());
  if (!op.isWindow() && tile.type.getCols() > tile.tensor->shape.back())
    return context.errorAt(op)
           << "makes a tile of " << tile.type.getCols() << " columns of "
           << tile.tensor->name << ", whose rows have "
           << tile.tensor->shape.back();
  if (op.isWindow()) {
    int64_t cols = std::clamp<int64_t>(context.integerOf(op.getValidCols()), 0,
                                       tile.type.getCols());
    tile.cols = cols;
    // No row of a window without columns is looked at.
    if (cols == 0) {
      context.setTile(op.getTile(), std::move(tile));
      return success();
    }
    int64_t end = index.back() + cols;
    if (index.back() < 0 || end > tile.tensor->shape.back())
      return context.errorAt(op)
             << "has columns " << index.back() << " to " << end << " of "
             << tile.tensor->name << ", whose rows have "
             << tile.tensor->shape.back();
  } else {
    index.push_back(0);
  }
  int64_t &row = index[op.getRowDimension()];
  int64_t group = op.getGroup();
  int64_t &head = index[index.size() - 2];
  int64_t first = row, firstHead = head;
  const Tensor *numbers =
      op.getNumbers() ? &context.tensorOf(op.getNumbers()) : nullptr;
  if (numbers &&
      failed(numbers->checkReadable([&] { return context.errorAt(op); })))
    return failure();
  for (int64_t i = 0, e = std::min(tile.type.getRows(),
                                   context.integerOf(op.getValid()));
       i < e; ++i) {
    row = first + i / group;
    if (numbers) {
      FailureOr<int64_t> at =
          numbers->offset(context.integerOf(op.getFirst()) + i,
                          [&] { return context.errorAt(op); });
      if (failed(at))
        return failure();
      row = first + numbers->loadInt(*at);
    }
    // A window's rows may run along the heads.
    if (group > 1)
      head = firstHead + i % group;
    FailureOr<int64_t> offset =
        tile.tensor->offset(index, [&] { return context.errorAt(op); });
    if (failed(offset))
      return failure();
    tile.rows[i] = *offset;
  }
  context.setTile(op.getTile(), std::move(tile));
  return success();
}

LogicalResult tile::execute(TileContext &context, KeyRangeOp op) {
  KeyRange range = keyRange(
      context.integerOf(op.getRow()), context.integerOf(op.getQueries()),
      context.integerOf(op.getKeys()), op.getQueriesOfRows(), op.getMask());
  if (op.getFrom())
    range.lo = std::max(range.lo, context.integerOf(op.getFrom()));
  context.setInteger(op.getLo(), range.lo);
  context.setInteger(op.getHi(), range.hi);
  context.setInteger(op.getFullLo(), range.fullLo);
  context.setInteger(op.getFullHi(), range.fullHi);
  return success();
}

LogicalResult tile::execute(TileContext &context, FragmentStoreOp op) {
  auto fail = [&] { return context.errorAt(op); };
  const Tile &tile = context.tileOf(op.getTile());
  const Matrix &m = context.matrixOf(op.getFragment());
  if (!tile.tensor || tile.rows.empty())
    return context.errorAt(op) << "stores into a tile of a cache";
  if (failed(tile.tensor->checkWritable(fail)))
    return failure();
  for (int64_t r = 0, e = std::min<int64_t>(m.rows, tile.rows.size()); r < e;
       ++r) {
    if (tile.rows[r] == Tile::kInvalid)
      continue;
    for (int64_t c = 0; c < std::min(m.cols, tile.validCols()); ++c) {
      if (failed(
              tile.tensor->storeFloat(tile.rows[r] + c, m.at(r, c), op, fail)))
        return failure();
      ++context.counts().stored;
    }
  }
  return success();
}

LogicalResult tile::execute(TileContext &context, RowStoreOp op) {
  auto fail = [&] { return context.errorAt(op); };
  Tensor *tensor = &context.tensorOf(op.getTensor());
  const Matrix &m = context.matrixOf(op.getFragment());
  if (failed(tensor->checkWritable(fail)))
    return failure();
  SmallVector<int64_t> first = context.integersOf(op.getIndices());
  for (int64_t r = 0, e = std::min(m.rows, context.integerOf(op.getValid()));
       r < e; ++r) {
    SmallVector<int64_t> index(first);
    int64_t group = op.getGroup();
    index.back() += r / group;
    if (group > 1)
      index.end()[-2] += r % group;
    FailureOr<int64_t> offset = tensor->offset(index, fail);
    if (failed(offset) ||
        failed(tensor->storeFloat(*offset, m.at(r, 0), op, fail)))
      return failure();
    ++context.counts().stored;
  }
  return success();
}

FailureOr<Tile> tile::resolve(TileContext &context, Operation *op, Value value,
                              int64_t cols, bool whole) {
  auto fail = [&] { return context.errorAt(op); };
  const Tile &made = context.tileOf(value);
  Tile tile = made;
  if (!tile.tensor) {
    InFlightDiagnostic diag = context.errorAt(op)
                              << "loads a tile that was predicated off";
    diag.attachNote(made.op->getLoc()) << "the tile is made here";
    return failure();
  }
  if (failed(tile.tensor->checkReadable(fail)) ||
      (tile.rows.empty() && failed(findRows(context, op, tile))))
    return failure();
  auto invalid = llvm::find(tile.rows, Tile::kInvalid);
  if (whole && invalid != tile.rows.end()) {
    InFlightDiagnostic diag = context.errorAt(op)
                              << "is 'whole', but row "
                              << std::distance(tile.rows.begin(), invalid)
                              << " of its tile is not valid";
    diag.attachNote(made.op->getLoc()) << "the tile is made here";
    return failure();
  }
  ++context.counts().loads;
  context.counts().bytesLoaded +=
      std::min(cols, tile.validCols()) * tile.tensor->elementBytes() *
      llvm::count_if(tile.rows, [](int64_t r) { return r != Tile::kInvalid; });
  return tile;
}
