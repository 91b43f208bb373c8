//===- BlockRun.cpp - Executes a kernel for one block -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockRun.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

BlockRun::BlockRun(gpu::GPUFuncOp kernel, ArrayRef<RuntimeValue> arguments,
                   std::array<int64_t, 3> block, std::array<int64_t, 3> grid,
                   const llvm::StringMap<int64_t> &sizes, TileReport &report)
    : kernel(kernel), block(block), grid(grid), report(report), sizes(sizes) {
  for (auto [argument, value] :
       llvm::zip_equal(kernel.getArguments(), arguments))
    set(argument, value);
}

InFlightDiagnostic BlockRun::error(Operation *op) {
  InFlightDiagnostic diag = op->emitOpError()
                            << "in block (" << block[0] << ", " << block[1]
                            << ", " << block[2] << ")";
  if (team) {
    diag << ", team @" << team.getSymName();
    if (team.getCopies() > 1)
      diag << " " << copy;
  }
  for (int64_t i : iterations)
    diag << ", iteration " << i;
  diag << ": ";
  return diag;
}

int64_t BlockRun::integer(Value value) {
  APInt number = cast<IntegerAttr>(get<Attribute>(value)).getValue();
  return number.getBitWidth() == 1 ? number.getZExtValue()
                                   : number.getSExtValue();
}

SmallVector<int64_t> BlockRun::integers(ValueRange range) {
  return llvm::map_to_vector(range, [&](Value v) { return integer(v); });
}

void BlockRun::set(Value value, int64_t integer) {
  values[value] = IntegerAttr::get(value.getType(), integer);
}

LogicalResult BlockRun::run() {
  auto fail = [&](Operation *op) { return error(op); };
  if (failed(runBlock(kernel.getBody().front())) || failed(rings.finish(fail)))
    return failure();
  return lds.finish(fail);
}

//===----------------------------------------------------------------------===//
// Control flow and scalars
//===----------------------------------------------------------------------===//

LogicalResult BlockRun::runBlock(Block &body) {
  for (Operation &op : body)
    if (failed(runAny(&op)))
      return failure();
  return success();
}

LogicalResult BlockRun::runFor(scf::ForOp op) {
  int64_t lower = integer(op.getLowerBound()),
          upper = integer(op.getUpperBound()), step = integer(op.getStep());
  if (step <= 0)
    return error(op) << "expected a positive step, got " << step;
  auto pass = [&](ValueRange from, ValueRange to) {
    SmallVector<RuntimeValue> moved =
        llvm::map_to_vector(from, [&](Value v) { return values[v]; });
    for (auto [value, runtime] : llvm::zip_equal(to, moved))
      set(value, runtime);
  };
  pass(op.getInitArgs(), op.getRegionIterArgs());
  for (int64_t i = lower; i < upper; i += step) {
    set(op.getInductionVar(), i);
    iterations.push_back(i);
    if (failed(runBlock(*op.getBody())))
      return failure();
    iterations.pop_back();
    pass(op.getYieldedValues(), op.getRegionIterArgs());
  }
  pass(op.getRegionIterArgs(), op.getResults());
  return success();
}

LogicalResult BlockRun::runWhile(scf::WhileOp op) {
  auto pass = [&](ValueRange from, ValueRange to) {
    SmallVector<RuntimeValue> moved =
        llvm::map_to_vector(from, [&](Value v) { return values[v]; });
    for (auto [value, runtime] : llvm::zip_equal(to, moved))
      set(value, runtime);
  };
  pass(op.getInits(), op.getBeforeArguments());
  for (int64_t i = 0;; ++i) {
    iterations.push_back(i);
    if (failed(runBlock(*op.getBeforeBody())))
      return failure();
    scf::ConditionOp condition = op.getConditionOp();
    if (!integer(condition.getCondition())) {
      pass(condition.getArgs(), op.getResults());
      iterations.pop_back();
      return success();
    }
    pass(condition.getArgs(), op.getAfterArguments());
    if (failed(runBlock(*op.getAfterBody())))
      return failure();
    pass(op.getYieldOp().getOperands(), op.getBeforeArguments());
    iterations.pop_back();
  }
}

LogicalResult BlockRun::runIf(scf::IfOp op) {
  Region &side =
      integer(op.getCondition()) ? op.getThenRegion() : op.getElseRegion();
  if (side.empty())
    return success();
  if (failed(runBlock(side.front())))
    return failure();
  for (auto [result, yielded] : llvm::zip_equal(
           op.getResults(), side.front().getTerminator()->getOperands()))
    set(result, values[yielded]);
  return success();
}

/// Scalars are computed by the op's own folder.
LogicalResult BlockRun::runDefault(Operation *op) {
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    const Attribute *attr = std::get_if<Attribute>(&values[operand]);
    if (!attr)
      return error(op) << "cannot be executed on whole tiles";
    operands.push_back(*attr);
  }
  SmallVector<OpFoldResult> results;
  if (!isMemoryEffectFree(op) || op->getNumRegions() ||
      failed(op->fold(operands, results)) ||
      results.size() != op->getNumResults()) {
    InFlightDiagnostic diag = error(op) << "cannot be computed from (";
    llvm::interleaveComma(operands, diag);
    return diag << ")";
  }
  for (auto [value, folded] : llvm::zip_equal(op->getResults(), results)) {
    if (auto attr = dyn_cast<Attribute>(folded))
      set(value, attr);
    else
      set(value, values[cast<Value>(folded)]);
  }
  return success();
}

LogicalResult BlockRun::runAny(Operation *op) {
  if (!isa<scf::YieldOp, scf::ConditionOp, scf::ForOp, scf::WhileOp>(op))
    for (Value operand : op->getOperands())
      if (std::holds_alternative<std::monostate>(values[operand])) {
        InFlightDiagnostic diag = error(op) << "uses an undefined value";
        diag.attachNote(operand.getLoc()) << "the value comes from here";
        return diag;
      }
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<scf::YieldOp, scf::ConditionOp, gpu::ReturnOp, YieldOp>(
          [](auto) { return success(); })
      .Case([&](scf::ForOp op) { return runFor(op); })
      .Case([&](scf::WhileOp op) { return runWhile(op); })
      .Case([&](scf::IfOp op) { return runIf(op); })
      .Case([&](ub::PoisonOp op) {
        set(op.getResult(), RuntimeValue());
        return success();
      })
      .Case([&](gpu::BlockIdOp op) {
        set(op.getResult(), block[unsigned(op.getDimension())]);
        return success();
      })
      .Case([&](gpu::GridDimOp op) {
        set(op.getResult(), grid[unsigned(op.getDimension())]);
        return success();
      })
      .Case([&](gpu::ClusterBlockIdOp op) {
        set(op.getResult(), op.getDimension() == gpu::Dimension::x
                                ? block[0] % cluster(op)
                                : int64_t(0));
        return success();
      })
      .Case([&](gpu::ClusterIdOp op) {
        set(op.getResult(),
            block[unsigned(op.getDimension())] /
                (op.getDimension() == gpu::Dimension::x ? cluster(op) : 1));
        return success();
      })
      .Case([&](gpu::ClusterDimOp op) {
        set(op.getResult(),
            grid[unsigned(op.getDimension())] /
                (op.getDimension() == gpu::Dimension::x ? cluster(op) : 1));
        return success();
      })
      .Case<TileExecutionInterface>(
          [&](auto op) { return op.executeTile(*this); })
      .Default([&](Operation *op) { return runDefault(op); });
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

LogicalResult BlockRun::runOp(MeetOp) {
  own->meet();
  ++report.barriers;
  return success();
}

LogicalResult BlockRun::runOp(StaggerOp op) {
  return own->stagger(op, [&] { return error(op); });
}

LogicalResult BlockRun::runOp(StagedViewOp op) {
  set(op.getView(), values[op.getSource()]);
  return success();
}

LogicalResult BlockRun::runOp(AllocOp op) {
  set(op.getBuffer(), BufferRef{own->allocate(op), own});
  return success();
}

//===----------------------------------------------------------------------===//
// DRAM
//===----------------------------------------------------------------------===//

LogicalResult BlockRun::runOp(memref::DimOp op) {
  Tensor *tensor = get<Tensor *>(op.getSource());
  int64_t dim = integer(op.getIndex());
  if (dim < 0 || dim >= int64_t(tensor->shape.size()))
    return error(op) << "asks for dimension " << dim << " of " << tensor->name
                     << ", which has " << tensor->shape.size();
  set(op.getResult(), tensor->shape[dim]);
  return success();
}

LogicalResult BlockRun::runOp(memref::LoadOp op) {
  Tensor *tensor = get<Tensor *>(op.getMemRef());
  auto fail = [&] { return error(op); };
  FailureOr<int64_t> offset = tensor->offset(integers(op.getIndices()), fail);
  if (failed(offset) || failed(tensor->checkReadable(fail)))
    return failure();
  if (isa<FloatType>(op.getType()))
    set(op.getResult(),
        Attribute(FloatAttr::get(op.getType(), tensor->loadFloat(*offset))));
  else
    set(op.getResult(), int64_t(tensor->loadInt(*offset)));
  return success();
}

LogicalResult BlockRun::runOp(MakeCacheOp op) {
  auto cache =
      std::make_unique<Cache>(cast<CacheLayout>(op.getCache().getType()));
  cache->data = get<Tensor *>(op.getData());
  for (Value tensor : op.getIndices())
    cache->indices.push_back(get<Tensor *>(tensor));
  if (op.getScales())
    cache->scales = get<Tensor *>(op.getScales());
  set(op.getCache(), static_cast<const Cache *>(cache.get()));
  made.push_back(std::move(cache));
  return success();
}

FailureOr<SmallVector<int64_t>>
BlockRun::runEmitted(const Cache &cache, Block &code, ArrayRef<Value> yields,
                     ArrayRef<int64_t> numbers) {
  unsigned next = 0;
  set(code.getArgument(next++), cache.data);
  for (Tensor *tensor : cache.indices)
    set(code.getArgument(next++), tensor);
  for (int64_t number : numbers)
    set(code.getArgument(next++), number);
  if (failed(runBlock(code)))
    return failure();
  return llvm::map_to_vector(
      yields, [&](Value value) { return value ? integer(value) : 1; });
}

FailureOr<SmallVector<int64_t>> BlockRun::placeToken(Operation *op,
                                                     const Cache &cache,
                                                     int64_t batch,
                                                     int64_t token) {
  if (!cache.rows.byPlace)
    return rowOf(cache, batch, token, [&] { return error(op); });
  FailureOr<SmallVector<int64_t>> found =
      runEmitted(cache, *cache.place, cache.placed, {batch, token});
  if (failed(found))
    return failure();
  if (!found->pop_back_val())
    return error(op) << "asks for token " << token << " of sequence " << batch
                     << ", for which " << cache.data->name << " has no row";
  return found;
}

LogicalResult BlockRun::findRows(Operation *op, Tile &tile) {
  auto place = [&](const Cache &cache, int64_t token) {
    return placeToken(op, cache, tile.batch, token);
  };
  return lookUpRows(tile, report, place, [&] { return error(op); });
}

LogicalResult BlockRun::runOp(CacheNumKeysOp op) {
  const Cache &cache = *get<const Cache *>(op.getCache());
  int64_t batch = integer(op.getBatch()), added = integer(op.getNewTokens());
  if (cache.rows.byPlace) {
    FailureOr<SmallVector<int64_t>> sizes =
        runEmitted(cache, *cache.size, cache.sizes, {batch, 0});
    if (failed(sizes))
      return failure();
    set(op.getKeys(), std::min((*sizes)[0] + added, (*sizes)[1]));
    return success();
  }
  FailureOr<int64_t> keys =
      numKeys(cache, batch, added, [&] { return error(op); });
  if (failed(keys))
    return failure();
  set(op.getKeys(), *keys);
  return success();
}

LogicalResult BlockRun::runOp(CacheTileOp op) {
  auto tile = std::make_shared<Tile>();
  tile->type = op.getTile().getType();
  tile->op = op;
  if (enabled(op.getPred())) {
    tile->cache = get<const Cache *>(op.getCache());
    tile->tensor = tile->cache->data;
    tile->batch = integer(op.getBatch());
    tile->head = integer(op.getHead());
    tile->start = integer(op.getStart());
    tile->from = integer(op.getFrom());
    tile->upto = integer(op.getUpto());
    int64_t rows = tile->type.getRows();
    // The first tile of a range without keys has no valid row and looks up
    // nothing; no other tile may be without one.
    int64_t first = std::max<int64_t>(tile->from, 0);
    if (std::max(tile->start, tile->from) >=
            std::min(tile->start + rows, tile->upto) &&
        (first < tile->start || first >= tile->start + rows))
      return error(op) << "looks up a tile without a valid row: keys "
                       << tile->start << " to " << tile->start + rows << " of ["
                       << tile->from << ", " << tile->upto << ")";
    if (!tile->type.getPageSize() && failed(findRows(op, *tile)))
      return failure();
  }
  set(op.getTile(), RuntimeValue(std::shared_ptr<const Tile>(tile)));
  return success();
}

LogicalResult BlockRun::runOp(CacheScaleOp op) {
  const Cache &cache = *get<const Cache *>(op.getCache());
  SmallVector<int64_t> row;
  if (cache.layout.getGranularity() > 0) {
    FailureOr<SmallVector<int64_t>> found =
        placeToken(op, cache, integer(op.getBatch()), integer(op.getToken()));
    if (failed(found))
      return failure();
    row = std::move(*found);
  }
  FailureOr<float> scale =
      scaleOf(cache, row, integer(op.getHead()), integer(op.getHeadDim()),
              [&] { return error(op); });
  if (failed(scale))
    return failure();
  set(op.getScale(),
      Attribute(FloatAttr::get(op.getScale().getType(), double(*scale))));
  return success();
}

LogicalResult BlockRun::runOp(DramTileOp op) {
  auto tile = std::make_shared<Tile>();
  tile->type = op.getTile().getType();
  tile->op = op;
  tile->tensor = get<Tensor *>(op.getTensor());
  tile->rows.assign(tile->type.getRows(), Tile::kInvalid);
  SmallVector<int64_t> index = integers(op.getIndices());
  if (!op.isWindow() && tile->type.getCols() > tile->tensor->shape.back())
    return error(op) << "makes a tile of " << tile->type.getCols()
                     << " columns of " << tile->tensor->name
                     << ", whose rows have " << tile->tensor->shape.back();
  if (op.isWindow()) {
    int64_t cols = std::clamp<int64_t>(integer(op.getValidCols()), 0,
                                       tile->type.getCols());
    tile->cols = cols;
    // No row of a window without columns is looked at.
    if (cols == 0) {
      set(op.getTile(), RuntimeValue(std::shared_ptr<const Tile>(tile)));
      return success();
    }
    int64_t end = index.back() + cols;
    if (index.back() < 0 || end > tile->tensor->shape.back())
      return error(op) << "has columns " << index.back() << " to " << end
                       << " of " << tile->tensor->name << ", whose rows have "
                       << tile->tensor->shape.back();
  } else {
    index.push_back(0);
  }
  int64_t &row = index[op.getRowDimension()];
  int64_t group = op.getGroup();
  int64_t &head = index[index.size() - 2];
  int64_t first = row, firstHead = head;
  const Tensor *numbers =
      op.getNumbers() ? get<Tensor *>(op.getNumbers()) : nullptr;
  if (numbers && failed(numbers->checkReadable([&] { return error(op); })))
    return failure();
  for (int64_t i = 0,
               e = std::min(tile->type.getRows(), integer(op.getValid()));
       i < e; ++i) {
    row = first + i / group;
    if (numbers) {
      FailureOr<int64_t> at = numbers->offset(integer(op.getFirst()) + i,
                                              [&] { return error(op); });
      if (failed(at))
        return failure();
      row = first + numbers->loadInt(*at);
    }
    // A window's rows may run along the heads.
    if (group > 1)
      head = firstHead + i % group;
    FailureOr<int64_t> offset =
        tile->tensor->offset(index, [&] { return error(op); });
    if (failed(offset))
      return failure();
    tile->rows[i] = *offset;
  }
  set(op.getTile(), RuntimeValue(std::shared_ptr<const Tile>(tile)));
  return success();
}

LogicalResult BlockRun::setTileRows(Operation *op, Value result, Value tensor,
                                    ArrayRef<std::vector<int64_t>> rows) {
  auto tile = std::make_shared<Tile>();
  tile->type = cast<TileType>(result.getType());
  tile->op = op;
  tile->tensor = get<Tensor *>(tensor);
  tile->rows.assign(tile->type.getRows(), Tile::kInvalid);
  if (tile->type.getCols() > tile->tensor->shape.back())
    return error(op) << "makes a tile of " << tile->type.getCols()
                     << " columns of " << tile->tensor->name
                     << ", whose rows have " << tile->tensor->shape.back();
  for (auto [offset, row] : llvm::zip(tile->rows, rows)) {
    SmallVector<int64_t> index(row.begin(), row.end());
    index.push_back(0);
    FailureOr<int64_t> found =
        tile->tensor->offset(index, [&] { return error(op); });
    if (failed(found))
      return failure();
    offset = *found;
  }
  set(result, RuntimeValue(std::shared_ptr<const Tile>(tile)));
  return success();
}

FailureOr<int64_t> BlockRun::elementOf(Operation *op, Value value,
                                       ArrayRef<int64_t> index) {
  const Tensor &tensor = *get<Tensor *>(value);
  auto fail = [&] { return error(op); };
  if (failed(tensor.checkReadable(fail)))
    return failure();
  FailureOr<int64_t> offset = tensor.offset(index, fail);
  if (failed(offset))
    return failure();
  return tensor.loadInt(*offset);
}

LogicalResult BlockRun::runOp(KeyRangeOp op) {
  KeyRange range =
      keyRange(integer(op.getRow()), integer(op.getQueries()),
               integer(op.getKeys()), op.getQueriesOfRows(), op.getMask());
  set(op.getLo(), range.lo);
  set(op.getHi(), range.hi);
  set(op.getFullLo(), range.fullLo);
  set(op.getFullHi(), range.fullHi);
  return success();
}

LogicalResult BlockRun::runOp(FragmentStoreOp op) {
  auto fail = [&] { return error(op); };
  const Tile &tile = *get<std::shared_ptr<const Tile>>(op.getTile());
  const Matrix &m = matrix(op.getFragment());
  if (!tile.tensor || tile.rows.empty())
    return error(op) << "stores into a tile of a cache";
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
      ++report.stored;
    }
  }
  return success();
}

LogicalResult BlockRun::runOp(RowStoreOp op) {
  auto fail = [&] { return error(op); };
  Tensor *tensor = get<Tensor *>(op.getTensor());
  const Matrix &m = matrix(op.getFragment());
  if (failed(tensor->checkWritable(fail)))
    return failure();
  SmallVector<int64_t> first = integers(op.getIndices());
  for (int64_t r = 0, e = std::min(m.rows, integer(op.getValid())); r < e;
       ++r) {
    SmallVector<int64_t> index(first);
    int64_t group = op.getGroup();
    index.back() += r / group;
    if (group > 1)
      index.end()[-2] += r % group;
    FailureOr<int64_t> offset = tensor->offset(index, fail);
    if (failed(offset) ||
        failed(tensor->storeFloat(*offset, m.at(r, 0), op, fail)))
      return failure();
    ++report.stored;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// LDS
//===----------------------------------------------------------------------===//

FailureOr<Tile> BlockRun::resolve(Operation *op, Value value, int64_t cols,
                                  bool whole) {
  auto fail = [&] { return error(op); };
  const Tile &made = *get<std::shared_ptr<const Tile>>(value);
  Tile tile = made;
  if (!tile.tensor) {
    InFlightDiagnostic diag = error(op)
                              << "loads a tile that was predicated off";
    diag.attachNote(made.op->getLoc()) << "the tile is made here";
    return failure();
  }
  if (failed(tile.tensor->checkReadable(fail)) ||
      (tile.rows.empty() && failed(findRows(op, tile))))
    return failure();
  auto invalid = llvm::find(tile.rows, Tile::kInvalid);
  if (whole && invalid != tile.rows.end()) {
    InFlightDiagnostic diag = error(op)
                              << "is 'whole', but row "
                              << std::distance(tile.rows.begin(), invalid)
                              << " of its tile is not valid";
    diag.attachNote(made.op->getLoc()) << "the tile is made here";
    return failure();
  }
  ++report.loads;
  report.bytesLoaded +=
      std::min(cols, tile.validCols()) * tile.tensor->elementBytes() *
      llvm::count_if(tile.rows, [](int64_t r) { return r != Tile::kInvalid; });
  return tile;
}

LogicalResult BlockRun::runOp(DramLoadOp op) {
  std::optional<Tile> tile;
  if (enabled(op.getPred())) {
    FailureOr<Tile> resolved = resolve(
        op, op.getTile(),
        op.getBuffer().getType().getParams().getColumnsOf(op.getBlock()),
        op.getWhole());
    if (failed(resolved))
      return failure();
    tile = std::move(*resolved);
  }
  std::optional<int64_t> slot;
  if (op.getSlot())
    slot = integer(op.getSlot());
  FailureOr<unsigned> load =
      own->load(op, get<BufferRef>(op.getBuffer()).number, slot,
                tile ? &*tile : nullptr, [&] { return error(op); });
  if (failed(load))
    return failure();
  set(op.getToken(), LoadRef{*load, own});
  return success();
}

LogicalResult BlockRun::runOp(LdsStageOp op) {
  SmallVector<unsigned> tokens = llvm::map_to_vector(
      op.getTokens(), [&](Value v) { return get<LoadRef>(v).number; });
  if (failed(own->stage(op, tokens, [&] { return error(op); })))
    return failure();
  for (auto [staged, token] : llvm::zip_equal(op.getStaged(), tokens))
    set(staged, LoadRef{token, own});
  ++report.barriers;
  return success();
}

FailureOr<const Matrix *> BlockRun::slotBy(Operation *op, Value staged) {
  auto fail = [&] { return error(op); };
  if (auto *filling = std::get_if<FillRef>(&values[staged]))
    return rings.read(filling->channel, filling->fill, filling->taker, fail);
  const LoadRef &load = get<LoadRef>(staged);
  return load.lds->read(op, load.number, fail);
}

FailureOr<Matrix> BlockRun::stagedBy(Operation *op, Value staged) {
  FailureOr<const Matrix *> slot = slotBy(op, staged);
  if (failed(slot))
    return failure();
  auto type = cast<StagedType>(staged.getType());
  return slice(**slot, type.getRow(), type.getCol(), type.getRows(),
               type.getCols());
}

LogicalResult BlockRun::runOp(FragmentLoadOp op) {
  FailureOr<const Matrix *> slot = slotBy(op, op.getStaged());
  if (failed(slot))
    return failure();
  FragmentType type = op.getFragment().getType();
  if (!op.isCrossed()) {
    set(op.getFragment(), slice(**slot, op.getSlotRow(), op.getSlotCol(),
                                type.getRows(), type.getCols()));
    return success();
  }
  Matrix turned(type.getRows(), type.getCols());
  for (int64_t r = 0; r < turned.rows; ++r)
    for (int64_t c = 0; c < turned.cols; ++c)
      turned.at(r, c) = (*slot)->at(op.getSlotRow() + c, op.getSlotCol() + r);
  set(op.getFragment(), std::move(turned));
  return success();
}

FailureOr<Matrix> BlockRun::tileBy(Operation *op, Value value) {
  auto fail = [&] { return error(op); };
  Tile tile = *get<std::shared_ptr<const Tile>>(value);
  if (!tile.tensor) {
    InFlightDiagnostic diag = error(op)
                              << "reads a tile that was predicated off";
    diag.attachNote(tile.op->getLoc()) << "the tile is made here";
    return failure();
  }
  if (failed(tile.tensor->checkReadable(fail)) ||
      (tile.rows.empty() && failed(findRows(op, tile))))
    return failure();
  TileType type = cast<TileType>(value.getType());
  Matrix result(type.getRows(), type.getCols());
  loadTile(tile, result, 0, type.getCols());
  return result;
}
