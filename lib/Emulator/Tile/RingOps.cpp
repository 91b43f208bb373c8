//===- RingOps.cpp - Rings and products in flight ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// KVBufferRingOps.td: rings, mailboxes, the queue of tiles, products in flight
// and turns.
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"
#include "Math.h"
#include "OwnOps.h"
#include "kvbuffer/Dialect/KVBuffer/IR/PackedRow.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ScaledSlots.h"
#include <variant>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

namespace {
/// Products in flight of a team.
struct Products : TileState {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Products)

  /// An operand of one.
  using Operand = std::variant<std::shared_ptr<const Matrix>, FillRef>;
  struct Product {
    MmaStartOp op;
    Operand a, b;
    /// What it starts from; its result once it has finished.
    std::shared_ptr<const Matrix> acc;
    MmaWaitOp wait;
    /// The number of the product in flight that it goes on with.
    std::optional<unsigned> before;
  };
  /// What a pending value stands for: a product's number.
  struct Pending {
    MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Pending)
    unsigned number;
  };

  LogicalResult finish(TileContext &context, StringRef owner) override {
    for (Product &product : llvm::drop_begin(products, finished))
      return context.errorAt(product.op)
             << "is in flight when the " << owner << " ends";
    return success();
  }

  /// In the order of their starts; those before `finished` are done.
  std::vector<Product> products;
  size_t finished = 0;
};

/// Whether a team has its turn.
struct Turn : TileState {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Turn)

  LogicalResult finish(TileContext &context, StringRef) override {
    if (wait)
      return context.errorAt(wait) << "takes a turn that is never passed on";
    return success();
  }

  /// The wait for the turn that the team has, or null.
  TurnWaitOp wait;
};

/// Of a block: how many loads have begun ahead of their ends, and the number
/// among all of those that have not ended, by ring and filling; the filling of
/// each ring that began last, and about whose rows a load has asked that began
/// last, and that ended last.
struct LoadsBegun : TileState {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LoadsBegun)
  int64_t count = 0;
  llvm::DenseMap<std::pair<unsigned, int64_t>, int64_t> numbers;
  llvm::DenseMap<unsigned, int64_t> last, asking, asked;
};

/// Of a block: calls of next_tile; -1 once one of them has found no more.
struct TilesTaken : TileState {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TilesTaken)
  int64_t count = 0;
};
} // namespace

/// A filling that the team whose code runs takes, if it is one of those that
/// the ring or mailbox names.
static FailureOr<FillRef> takenBy(TileContext &context, Operation *op,
                                  Value channel, int64_t fill) {
  Rings &rings = context.ofBlock<Rings>();
  unsigned number = context.objectOf<ChannelRef>(channel).number;
  TeamChannelInterface made = rings.channel(number);
  TilePlace place = context.place();
  int64_t taker = place.team ? made.getTaker(place.teamName) : -1;
  if (taker >= 0)
    return FillRef{number, fill, unsigned(taker)};
  context.errorAt(op) << "takes " << rings.name(number, fill)
                      << ", which is for " << made.getTo();
  return failure();
}

LogicalResult tile::execute(TileContext &context, RingOp op) {
  int64_t slots = op.getRing().getType().getParams().getStages();
  context.setObject(op.getRing(),
                    ChannelRef{context.ofBlock<Rings>().add(op, slots)});
  return success();
}

LogicalResult tile::execute(TileContext &context, RingLoadOp op) {
  auto fail = [&] { return context.errorAt(op); };
  KVBufferAttr params = op.getRing().getType().getParams();
  unsigned ring = context.objectOf<ChannelRef>(op.getRing()).number;
  int64_t filling = context.integerOf(op.getFill());
  auto &begun = context.ofBlock<LoadsBegun>();
  if (op.getBegin()) {
    if (auto own = begun.asked.find(ring);
        op.getAsked() && (own == begun.asked.end() || own->second != filling))
      return fail() << "has asked about the rows of filling " << filling
                    << ", about which no load has that has ended";
    if (int64_t(op.getNextRows()))
      begun.asking[ring] = filling + 1;
    begun.last[ring] = filling;
    begun.numbers[{ring, filling}] = begun.count++;
    return success();
  }
  if (op.ends()) {
    int64_t younger = op.getYounger();
    auto own = begun.numbers.find({ring, filling});
    // Bytes of packed rows have one place for all fillings of a ring.
    auto made = op.getTile().getDefiningOp<CacheTileOp>();
    bool packed = made && packedRowOf(made.getCache().getType());
    if (own == begun.numbers.end() ||
        (packed && begun.last.lookup(ring) != filling))
      return fail() << "ends the load of filling " << filling
                    << ", which has not begun";
    if (auto asking = begun.asking.find(ring); asking != begun.asking.end())
      begun.asked[ring] = asking->second;
    int64_t since = begun.count - 1 - own->second;
    begun.numbers.erase(own);
    if (since < younger)
      return fail() << "ends a load, behind which " << since
                    << " have begun; expected younger of as many at most, got "
                    << younger;
  }
  int64_t cols =
      params.getColumnsOf(int64_t(op.getFirstCol()) / params.getBK());
  FailureOr<Tile> tile =
      resolve(context, op, op.getTile(), cols, op.getWhole());
  if (failed(tile))
    return failure();
  Matrix data(params.getBN(), params.getSmemCols());
  loadTile(*tile, data, op.firstColumn(), cols);
  return context.ofBlock<Rings>().fill(op, ring, filling, std::move(data), 0,
                                       fail);
}

LogicalResult tile::execute(TileContext &context, RingPutOp op) {
  const Matrix &source = context.matrixOf(op.getFragment());
  Matrix data = source;
  if (op.getTranspose()) {
    data = Matrix(source.cols, source.rows);
    for (int64_t row = 0; row < source.rows; ++row)
      for (int64_t col = 0; col < source.cols; ++col)
        data.at(col, row) = source.at(row, col);
  }
  return context.ofBlock<Rings>().fill(
      op, context.objectOf<ChannelRef>(op.getRing()).number,
      context.integerOf(op.getFill()), std::move(data), 0,
      [&] { return context.errorAt(op); });
}

LogicalResult tile::execute(TileContext &context, RingWaitOp op) {
  Rings &rings = context.ofBlock<Rings>();
  FailureOr<FillRef> slot =
      takenBy(context, op, op.getRing(), context.integerOf(op.getFill()));
  if (failed(slot) ||
      failed(rings.wait(op, slot->channel, slot->fill, slot->taker,
                        [&] { return context.errorAt(op); })))
    return failure();
  context.setObject(op.getStaged(), *slot);
  if (!op->hasAttr(kScaledByAttr))
    return success();
  return scaleSlot(context, op,
                   rings.rewrite(slot->channel, slot->fill, slot->taker,
                                 [&] { return context.errorAt(op); }));
}

LogicalResult tile::execute(TileContext &context, RingReleaseOp op) {
  Rings &rings = context.ofBlock<Rings>();
  FailureOr<FillRef> slot =
      takenBy(context, op, op.getRing(), context.integerOf(op.getFill()));
  if (failed(slot))
    return failure();
  Products &its = context.ofTeam<Products>();
  for (Products::Product &product :
       llvm::drop_begin(its.products, its.finished))
    for (const Products::Operand &operand : {product.a, product.b})
      if (auto *read = std::get_if<FillRef>(&operand); read && *read == *slot) {
        InFlightDiagnostic diag = context.errorAt(op)
                                  << "releases "
                                  << rings.name(slot->channel, slot->fill)
                                  << " while a product in flight reads it";
        diag.attachNote(product.op.getLoc()) << "the product starts here";
        return diag;
      }
  return rings.release(op, slot->channel, slot->fill, slot->taker,
                       [&] { return context.errorAt(op); });
}

LogicalResult tile::execute(TileContext &context, MailboxOp op) {
  context.setObject(
      op.getBox(), ChannelRef{context.ofBlock<Rings>().add(op, op.getSlots())});
  return success();
}

LogicalResult tile::execute(TileContext &context, MailboxPostOp op) {
  return context.ofBlock<Rings>().fill(
      op, context.objectOf<ChannelRef>(op.getBox()).number,
      context.integerOf(op.getNumber()), Matrix(),
      context.integerOf(op.getValue()), [&] { return context.errorAt(op); });
}

LogicalResult tile::execute(TileContext &context, MailboxTakeOp op) {
  Rings &rings = context.ofBlock<Rings>();
  auto fail = [&] { return context.errorAt(op); };
  unsigned box = context.objectOf<ChannelRef>(op.getBox()).number;
  int64_t number = context.integerOf(op.getNumber());
  // The team that posts reads it in a cluster's block; the release of the
  // others is the one that counts here, where one runs after the other.
  TilePlace place = context.place();
  if (place.team && rings.channel(box).getFrom() == place.teamName) {
    FailureOr<int64_t> value = rings.posted(box, number, fail);
    if (failed(value))
      return failure();
    context.setInteger(op.getValue(), *value);
    return success();
  }
  FailureOr<FillRef> slot = takenBy(context, op, op.getBox(), number);
  if (failed(slot) || failed(rings.wait(op, box, number, slot->taker, fail)) ||
      failed(rings.release(op, box, number, slot->taker, fail)))
    return failure();
  context.setInteger(op.getValue(), rings.number(box, number));
  return success();
}

/// As if all blocks, or the first ones of all clusters, called in turn: each
/// order of the calls is a legal one. Each block runs by itself and loads all
/// that its cluster's blocks load for each other; what they learn from their
/// first one is what it takes.
LogicalResult tile::execute(TileContext &context, NextTileOp op) {
  int64_t &taken = context.ofBlock<TilesTaken>().count;
  if (taken < 0)
    return context.errorAt(op) << "takes another tile after the last one";
  auto [block, grid, cluster, team, name, copy] = context.place();
  int64_t blocks = grid[0] * grid[1] * grid[2];
  int64_t me = (block[2] * grid[1] + block[1]) * grid[0] + block[0];
  blocks /= cluster;
  me /= cluster;
  int64_t tile = taken++ * blocks + me;
  if (tile >= context.integerOf(op.getTotal()))
    taken = -1;
  context.setInteger(op.getTile(), tile);
  return success();
}

LogicalResult tile::execute(TileContext &context, LaunchSizeOp op) {
  std::optional<int64_t> size = context.findSize(op.getName());
  if (!size)
    return context.errorAt(op)
           << "asks for the size '" << op.getName() << "', which is not bound";
  context.setInteger(op.getSize(), *size);
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
LogicalResult tile::execute(TileContext &context, FindTileOp op) {
  auto fail = [&] { return context.errorAt(op); };
  RaggedRows ragged{context.tensorOf(op.getOffsets()),
                    context.integerOf(op.getSequences()),
                    context.integerOf(op.getRows())};
  Tensor *numbers =
      op.getNumbers() ? &context.tensorOf(op.getNumbers()) : nullptr;
  if (failed(ragged.check(fail)))
    return failure();
  // The number of each sequence's first tile.
  SmallVector<int64_t> first;
  for (int64_t i = 0; i < ragged.sequences; ++i) {
    first.push_back(ragged.offset(i) / int64_t(op.getBM()) + i);
    if (!numbers)
      continue;
    FailureOr<int64_t> at =
        numbers->offset({context.integerOf(op.getBlock()), i}, fail);
    if (failed(at) || failed(numbers->checkWritten(*at, fail)))
      return failure();
    first.back() = numbers->loadInt(*at);
  }
  int64_t number = context.integerOf(op.getNumber()), sequence = 0;
  for (int64_t i = 1; i < ragged.sequences; ++i)
    if (first[i] <= number)
      sequence = i;
  int64_t tiles = ragged.tiles(sequence, op.getBM(), op.getOver());
  int64_t tile = number - first[sequence];
  if (op.getFromEnd() && tile < tiles)
    tile = tiles - 1 - tile;
  context.setInteger(op.getSequence(), sequence);
  context.setInteger(op.getTile(), tile);
  return success();
}

LogicalResult tile::execute(TileContext &context, NumberTilesOp op) {
  auto fail = [&] { return context.errorAt(op); };
  RaggedRows ragged{context.tensorOf(op.getOffsets()),
                    context.integerOf(op.getSequences()),
                    context.integerOf(op.getRows())};
  Tensor *numbers = &context.tensorOf(op.getNumbers());
  if (failed(ragged.check(fail)) || failed(numbers->checkWritable(fail)))
    return failure();
  int64_t sofar = 0;
  for (int64_t i = 0; i < ragged.sequences; ++i) {
    FailureOr<int64_t> at =
        numbers->offset({context.integerOf(op.getBlock()), i}, fail);
    if (failed(at))
      return failure();
    numbers->storeInt(*at, sofar, op);
    sofar += ragged.tiles(i, op.getBM(), op.getOver());
  }
  context.setInteger(op.getTiles(), sofar);
  return success();
}

LogicalResult tile::execute(TileContext &context, MmaStartOp op) {
  std::vector<Products::Product> &products =
      context.ofTeam<Products>().products;
  Products::Product &product = products.emplace_back();
  product.op = op;
  auto operand = [&](Value value) -> Products::Operand {
    if (isa<StagedType>(value.getType()))
      return context.objectOf<FillRef>(value);
    return context.shareMatrix(value);
  };
  product.a = operand(op.getA());
  product.b = operand(op.getB());
  if (op.getAcc() && isa<PendingType>(op.getAcc().getType()))
    product.before = context.objectOf<Products::Pending>(op.getAcc()).number;
  else if (op.getAcc())
    product.acc = context.shareMatrix(op.getAcc());
  else
    product.acc = std::make_shared<const Matrix>(
        op.getResult().getType().getRows(), op.getResult().getType().getCols());
  context.setObject(op.getResult(),
                    Products::Pending{unsigned(products.size() - 1)});
  return success();
}

/// Products end at the last moment that the waits allow, in order.
LogicalResult tile::execute(TileContext &context, MmaWaitOp op) {
  auto fail = [&] { return context.errorAt(op); };
  auto &[products, finished] = context.ofTeam<Products>();
  Rings &rings = context.ofBlock<Rings>();
  unsigned number = context.objectOf<Products::Pending>(op.getPending()).number;
  Products::Product &awaited = products[number];
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
    Products::Product &product = products[finished];
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
        target = std::get<std::shared_ptr<const Matrix>>(operand).get();
      }
    }
    if (product.before)
      product.acc = products[*product.before].acc;
    context.counts().multiplyAdds +=
        operands[0]->rows * operands[0]->cols * product.acc->cols;
    product.acc = std::make_shared<const Matrix>(multiply(
        *operands[0], *operands[1], *product.acc, product.op.getTransposeB()));
  }
  context.setMatrix(op.getAcc(), awaited.acc);
  return success();
}

LogicalResult tile::execute(TileContext &context, TurnWaitOp op) {
  TurnWaitOp &turn = context.ofTeam<Turn>().wait;
  if (turn) {
    InFlightDiagnostic diag = context.errorAt(op)
                              << "waits for a turn that it has already";
    diag.attachNote(turn.getLoc()) << "the turn began here";
    return diag;
  }
  turn = op;
  return success();
}

LogicalResult tile::execute(TileContext &context, TurnPassOp op) {
  TurnWaitOp &turn = context.ofTeam<Turn>().wait;
  if (!turn)
    return context.errorAt(op) << "passes on a turn that it does not have";
  turn = nullptr;
  return success();
}
