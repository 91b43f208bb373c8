//===- RingOps.cpp - Rings and products in flight ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of BlockRun that executes KVBufferRoleOps.td.
//
//===----------------------------------------------------------------------===//

#include "BlockRun.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

FailureOr<FillRef> BlockRun::takenBy(Operation *op, Value channel,
                                     int64_t fill) {
  unsigned number = get<ChannelRef>(channel).number;
  TeamChannelInterface made = rings.channel(number);
  int64_t taker = team ? made.getTaker(team.getSymName()) : -1;
  if (taker >= 0)
    return FillRef{number, fill, unsigned(taker)};
  error(op) << "takes " << rings.name(number, fill) << ", which is for "
            << made.getTo();
  return failure();
}

LogicalResult BlockRun::finishProducts() {
  for (Product &product : llvm::drop_begin(products, finished))
    return error(product.op) << "is in flight when the team ends";
  if (turn)
    return error(turn) << "takes a turn that is never passed on";
  return success();
}

LogicalResult BlockRun::runOp(RingOp op) {
  int64_t slots = op.getRing().getType().getParams().getStages();
  set(op.getRing(), ChannelRef{rings.add(op, slots)});
  return success();
}

LogicalResult BlockRun::runOp(RingLoadOp op) {
  auto fail = [&] { return error(op); };
  KVBufferAttr params = op.getRing().getType().getParams();
  FailureOr<Tile> tile =
      resolve(op, op.getTile(), params.getDepth(), op.getWhole());
  if (failed(tile))
    return failure();
  Matrix data(params.getBN(), params.getSmemCols());
  loadTile(*tile, data, op.firstColumn(), params.getDepth());
  return rings.fill(op, get<ChannelRef>(op.getRing()).number,
                    integer(op.getFill()), std::move(data), 0, fail);
}

LogicalResult BlockRun::runOp(RingPutOp op) {
  const Matrix &source = matrix(op.getFragment());
  Matrix data = source;
  if (op.getTranspose()) {
    data = Matrix(source.cols, source.rows);
    for (int64_t row = 0; row < source.rows; ++row)
      for (int64_t col = 0; col < source.cols; ++col)
        data.at(col, row) = source.at(row, col);
  }
  return rings.fill(op, get<ChannelRef>(op.getRing()).number,
                    integer(op.getFill()), std::move(data), 0,
                    [&] { return error(op); });
}

LogicalResult BlockRun::runOp(RingWaitOp op) {
  FailureOr<FillRef> slot = takenBy(op, op.getRing(), integer(op.getFill()));
  if (failed(slot) ||
      failed(rings.wait(op, slot->channel, slot->fill, slot->taker,
                        [&] { return error(op); })))
    return failure();
  set(op.getStaged(), *slot);
  return success();
}

LogicalResult BlockRun::runOp(RingReleaseOp op) {
  FailureOr<FillRef> slot = takenBy(op, op.getRing(), integer(op.getFill()));
  if (failed(slot))
    return failure();
  for (Product &product : llvm::drop_begin(products, finished))
    for (const Operand &operand : {product.a, product.b})
      if (auto *read = std::get_if<FillRef>(&operand); read && *read == *slot) {
        InFlightDiagnostic diag =
            error(op) << "releases " << rings.name(slot->channel, slot->fill)
                      << " while a product in flight reads it";
        diag.attachNote(product.op.getLoc()) << "the product starts here";
        return diag;
      }
  return rings.release(op, slot->channel, slot->fill, slot->taker,
                       [&] { return error(op); });
}

LogicalResult BlockRun::runOp(MailboxOp op) {
  set(op.getBox(), ChannelRef{rings.add(op, op.getSlots())});
  return success();
}

LogicalResult BlockRun::runOp(MailboxPostOp op) {
  return rings.fill(op, get<ChannelRef>(op.getBox()).number,
                    integer(op.getNumber()), Matrix(), integer(op.getValue()),
                    [&] { return error(op); });
}

LogicalResult BlockRun::runOp(MailboxTakeOp op) {
  auto fail = [&] { return error(op); };
  unsigned box = get<ChannelRef>(op.getBox()).number;
  int64_t number = integer(op.getNumber());
  // The team that posts reads it in a cluster's block; the release of the
  // others is the one that counts here, where one runs after the other.
  if (team && rings.channel(box).getFrom() == team.getSymName()) {
    FailureOr<int64_t> value = rings.posted(box, number, fail);
    if (failed(value))
      return failure();
    set(op.getValue(), *value);
    return success();
  }
  FailureOr<FillRef> slot = takenBy(op, op.getBox(), number);
  if (failed(slot) || failed(rings.wait(op, box, number, slot->taker, fail)) ||
      failed(rings.release(op, box, number, slot->taker, fail)))
    return failure();
  set(op.getValue(), rings.number(box, number));
  return success();
}

int64_t BlockRun::cluster(Operation *op) {
  auto size = op->getParentOfType<gpu::GPUFuncOp>().getKnownClusterSize();
  return size ? size->front() : 1;
}

/// As if all blocks, or the first ones of all clusters, called in turn: each
/// order of the calls is a legal one. Each block runs by itself and loads all
/// that its cluster's blocks load for each other; what they learn from their
/// first one is what it takes.
LogicalResult BlockRun::runOp(NextTileOp op) {
  if (tilesTaken < 0)
    return error(op) << "takes another tile after the last one";
  int64_t blocks = grid[0] * grid[1] * grid[2];
  int64_t me = (block[2] * grid[1] + block[1]) * grid[0] + block[0];
  blocks /= cluster(op);
  me /= cluster(op);
  int64_t tile = tilesTaken++ * blocks + me;
  if (tile >= integer(op.getTotal()))
    tilesTaken = -1;
  set(op.getTile(), tile);
  return success();
}

LogicalResult BlockRun::runOp(LaunchSizeOp op) {
  auto it = sizes.find(op.getName());
  if (it == sizes.end())
    return error(op) << "asks for the size '" << op.getName()
                     << "', which is not bound";
  set(op.getSize(), it->second);
  return success();
}

namespace {
/// The rows of a ragged batch's sequences.
struct RaggedRows {
  const Tensor &offsets;
  int64_t sequences, rows;

  /// Entry i of the offsets: the nearest number from `least` to `rows`.
  int64_t offset(int64_t i, int64_t least = 0) const {
    int64_t row = offsets.loadInt(i * offsets.strides[0]);
    return std::min(std::max(row, least), rows);
  }
  /// The tiles of `BM` rows of a sequence of more than `over`.
  int64_t tiles(int64_t i, int64_t BM, int64_t over) const {
    int64_t first = offset(i), length = offset(i + 1, first) - first;
    return length > over ? llvm::divideCeil(length, BM) : 0;
  }
  LogicalResult check(ErrorFn error) const {
    if (failed(offsets.checkReadable(error)))
      return failure();
    if (sequences >= 1 && sequences < offsets.shape[0])
      return success();
    return error() << "looks for a tile in " << sequences
                   << " sequences; expected 1 to " << offsets.shape[0] - 1
                   << ", as " << offsets.name << " has one entry more";
  }
};
} // namespace

/// Sequence by sequence, not by bisection as lanes do.
LogicalResult BlockRun::runOp(FindTileOp op) {
  auto fail = [&] { return error(op); };
  RaggedRows ragged{*get<Tensor *>(op.getOffsets()), integer(op.getSequences()),
                    integer(op.getRows())};
  Tensor *numbers = op.getNumbers() ? get<Tensor *>(op.getNumbers()) : nullptr;
  if (failed(ragged.check(fail)))
    return failure();
  // The number of each sequence's first tile.
  SmallVector<int64_t> first;
  for (int64_t i = 0; i < ragged.sequences; ++i) {
    first.push_back(ragged.offset(i) / int64_t(op.getBM()) + i);
    if (!numbers)
      continue;
    FailureOr<int64_t> at = numbers->offset({integer(op.getBlock()), i}, fail);
    if (failed(at) || failed(numbers->checkWritten(*at, fail)))
      return failure();
    first.back() = numbers->loadInt(*at);
  }
  int64_t number = integer(op.getNumber()), sequence = 0;
  for (int64_t i = 1; i < ragged.sequences; ++i)
    if (first[i] <= number)
      sequence = i;
  int64_t tiles = ragged.tiles(sequence, op.getBM(), op.getOver());
  int64_t tile = number - first[sequence];
  if (op.getFromEnd() && tile < tiles)
    tile = tiles - 1 - tile;
  set(op.getSequence(), sequence);
  set(op.getTile(), tile);
  return success();
}

LogicalResult BlockRun::runOp(NumberTilesOp op) {
  auto fail = [&] { return error(op); };
  RaggedRows ragged{*get<Tensor *>(op.getOffsets()), integer(op.getSequences()),
                    integer(op.getRows())};
  Tensor *numbers = get<Tensor *>(op.getNumbers());
  if (failed(ragged.check(fail)) || failed(numbers->checkWritable(fail)))
    return failure();
  int64_t sofar = 0;
  for (int64_t i = 0; i < ragged.sequences; ++i) {
    FailureOr<int64_t> at = numbers->offset({integer(op.getBlock()), i}, fail);
    if (failed(at))
      return failure();
    numbers->storeInt(*at, sofar, op);
    sofar += ragged.tiles(i, op.getBM(), op.getOver());
  }
  set(op.getTiles(), sofar);
  return success();
}

LogicalResult BlockRun::runOp(MmaStartOp op) {
  Product &product = products.emplace_back();
  product.op = op;
  auto operand = [&](Value value) -> Operand {
    if (isa<StagedType>(value.getType()))
      return get<FillRef>(value);
    return get<MatrixRef>(value);
  };
  product.a = operand(op.getA());
  product.b = operand(op.getB());
  if (op.getAcc() && isa<PendingType>(op.getAcc().getType()))
    product.before = get<LoadRef>(op.getAcc()).number;
  else if (op.getAcc())
    product.acc = get<MatrixRef>(op.getAcc());
  else
    product.acc = std::make_shared<const Matrix>(
        op.getResult().getType().getRows(), op.getResult().getType().getCols());
  set(op.getResult(), LoadRef{unsigned(products.size() - 1)});
  return success();
}

/// Products end at the last moment that the waits allow, in order.
LogicalResult BlockRun::runOp(MmaWaitOp op) {
  auto fail = [&] { return error(op); };
  unsigned number = get<LoadRef>(op.getPending()).number;
  Product &awaited = products[number];
  if (awaited.wait) {
    InFlightDiagnostic diag = fail() << "awaits a product that is awaited "
                                        "already";
    diag.attachNote(awaited.op.getLoc()) << "the product starts here";
    return diag;
  }
  awaited.wait = op;
  size_t younger = std::min<size_t>(op.getYounger(), products.size());
  if (products.size() - younger <= number) {
    InFlightDiagnostic diag =
        fail() << "leaves the product that it awaits in flight: younger = "
               << op.getYounger() << ", but only "
               << products.size() - 1 - number << " were started behind it";
    diag.attachNote(awaited.op.getLoc()) << "the product starts here";
    return diag;
  }
  for (; finished < products.size() - younger; ++finished) {
    Product &product = products[finished];
    const Matrix *operands[2];
    Matrix views[2];
    Value staged[] = {product.op.getA(), product.op.getB()};
    for (auto [target, operand, value, view] : llvm::zip_equal(
             operands, std::array{product.a, product.b}, staged, views)) {
      if (auto *slot = std::get_if<FillRef>(&operand)) {
        FailureOr<const Matrix *> data =
            rings.read(slot->channel, slot->fill, slot->taker, fail);
        if (failed(data))
          return failure();
        auto type = cast<StagedType>(value.getType());
        target = *data;
        if (!type.isWhole()) {
          view = slice(**data, type.getRow(), type.getCol(), type.getRows(),
                       type.getCols());
          target = &view;
        }
      } else {
        target = std::get<MatrixRef>(operand).get();
      }
    }
    if (product.before)
      product.acc = products[*product.before].acc;
    report.multiplyAdds +=
        operands[0]->rows * operands[0]->cols * product.acc->cols;
    product.acc = std::make_shared<const Matrix>(multiply(
        *operands[0], *operands[1], *product.acc, product.op.getTransposeB()));
  }
  set(op.getAcc(), awaited.acc);
  return success();
}

LogicalResult BlockRun::runOp(TurnWaitOp op) {
  if (turn) {
    InFlightDiagnostic diag = error(op)
                              << "waits for a turn that it has already";
    diag.attachNote(turn.getLoc()) << "the turn began here";
    return diag;
  }
  turn = op;
  return success();
}

LogicalResult BlockRun::runOp(TurnPassOp op) {
  if (!turn)
    return error(op) << "passes on a turn that it does not have";
  turn = nullptr;
  return success();
}
