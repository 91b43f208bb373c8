//===- DecodeProgram.h - The program of few query rows ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the parts of the lowering of decode kernels share: how work is divided
/// (LowerDecode.cpp), the loop over keys (DecodeKeys.cpp), and how what its
/// pieces come to is joined and stored (DecodeJoin.cpp).
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_DECODEPROGRAM_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_DECODEPROGRAM_H

#include "../ProgramBuilder.h"
#include "CacheScales.h"
#include "DecodeSizes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {

class EdgeTiles;

/// What a softmax over some of the keys has come to.
struct DecodeState {
  /// The weighted sum of values; each row's maximum and sum of weights.
  mlir::Value acc, max, sum;
  llvm::SmallVector<mlir::Value> values() const { return {acc, max, sum}; }
  static DecodeState of(mlir::ValueRange values) {
    return {values[0], values[1], values[2]};
  }
};

/// The tile program of a problem whose keys are split.
class DecodeProgram : DecodeSizes, MappedProgramBuilder {
public:
  /// `warps`: the parts of a block that each read tiles of keys of their own
  /// (see DecodeSizes).
  DecodeProgram(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
                const TargetInfo &target, const mlir::IRMapping &args,
                mlir::gpu::GPUFuncOp kernel, CacheAppendOp append,
                int64_t warps);

  /// Builds it at the insertion point.
  void build();

private:
  mlir::Value optional(mlir::Value value) {
    return value ? operand(value) : mlir::Value();
  }
  /// Stores the new tokens that the tiles [first, last) hold.
  void appendTokens(mlir::Value first, mlir::Value last);
  /// The program of a block, or of its warp number `copy`, which has a head of
  /// the cache of its own.
  void buildHead(mlir::Value copy = {});
  /// The head that warp `copy` has of group `number` of heads side by side.
  mlir::Value headOf(mlir::Value number, mlir::Value copy) {
    mlir::Value first = mlir::arith::MulIOp::create(b, number, constant(heads));
    return mlir::arith::AddIOp::create(b, first, copy);
  }
  /// Adds an argument that the runtime provides.
  mlir::Value addArgument(llvm::StringRef name, llvm::StringRef access,
                          mlir::MemRefType type,
                          llvm::ArrayRef<mlir::Attribute> shape);
  /// Slots for tiles of keys, of a block of one warp or of a team of one.
  void allocBuffers();
  /// Adds the memory of `places` pieces a head.
  void addScratch(mlir::Attribute places);
  DecodeState empty(FragmentType accType) {
    return {fill(accType, 0.0f),
            fill(rowType, -std::numeric_limits<float>::infinity()),
            fill(rowType, 0.0f)};
  }
  /// A tile of `cols` columns of a tensor of query rows.
  TileType rowsType(mlir::MemRefType tensor, int64_t cols) {
    return TileType::get(b.getContext(), schedule.getBM(), cols,
                         tensor.getElementType(), group > 1 ? group : 0);
  }
  /// The rows of a tensor [batch, tokens, heads, head_size].
  mlir::Value rowsOf(mlir::Value tensor) {
    auto type = mlir::cast<mlir::MemRefType>(tensor.getType());
    return DramTileOp::create(b, rowsType(type, type.getShape().back()), tensor,
                              rowsAt(), rows, /*valid_cols=*/mlir::Value(),
                              /*row_dim=*/mlir::IntegerAttr(), group);
  }
  /// Where the tile's first row is in a tensor of query rows.
  llvm::SmallVector<mlir::Value> rowsAt() {
    llvm::SmallVector<mlir::Value> at{rowInTensor(), head};
    if (!op.isRagged())
      at.insert(at.begin(), batch);
    return at;
  }
  /// Where the tile's first query is in Q and in the output.
  mlir::Value rowInTensor() {
    if (!op.isRagged())
      return firstQuery;
    return mlir::arith::AddIOp::create(b, firstRow, firstQuery);
  }
  /// A slice of their columns; all of them where there is one slice.
  mlir::Value rowsOf(mlir::Value tensor, mlir::Value slice);
  /// The tiles of keys that some row of sequence `sequence` sees.
  struct Tiles {
    mlir::Value keys, begin, end, count;
    KeyRangeOp range;
    /// Queries of the sequence, and the row that its first one is in where they
    /// are ragged; whether this block's tile has rows of it, null if it must.
    mlir::Value queries, firstRow, active;
  };
  Tiles tilesOf(mlir::Value sequence);
  /// Work for a sequence, in tiles: rows that see no key are written, too.
  mlir::Value unitsOf(const Tiles &tiles, mlir::Value units,
                      mlir::Value pause = {});
  /// What follows is about this sequence.
  void enter(mlir::Value sequence, const Tiles &tiles);
  /// The tiles that a block could read between two sequences. A power of 2, so
  /// that where blocks have half, a quarter, .. of sequences of 2^n tiles, they
  /// still do. More than is lost would cost as much as less.
  mlir::Value pauseInTiles();
  mlir::Value positive(mlir::Value n) {
    return mlir::arith::MaxSIOp::create(b, n, constant(0));
  }
  /// The kernel's work: heads with their tiles of queries, splits or shares of
  /// keys, and, of splits, sequences.
  WorkItemOp createItem();
  /// Splits of a sequence; tiles of each, where the host divides them.
  std::pair<mlir::Attribute, mlir::Attribute> splitsAndShare();
  /// Each block has a split of one sequence.
  void buildSplits();
  /// Divides a sequence's tiles in the kernel; `compute` is what a block with a
  /// split that exists does.
  void divideSplits(
      const Tiles &tiles, mlir::Value split, mlir::Value splitCount,
      llvm::function_ref<void(mlir::Value share, mlir::Value used)> compute);
  /// The tiles of a split, where the kernel divides a sequence's, and how many
  /// splits there are then.
  std::pair<mlir::Value, mlir::Value> shareOfSplits(const Tiles &tiles,
                                                    mlir::Value splitCount);
  /// A block's piece of a sequence: `number` of `count`, whose first is at
  /// place `base` of the memory for partial results.
  struct Piece {
    mlir::Value number, count, base;
    /// Whether it is the first of two, whose other one should have been stored
    /// when it ends; null where no piece is.
    mlir::Value isAwaited = {};
    /// Whether it is the block's last one; null where there is one only.
    mlir::Value last = {};
  };
  /// What a block knows of its share: its units `from` to `upto`, of `size`;
  /// the sequences that have some, and the first one's first unit. Where pairs
  /// of sequences may even each other out (`kvbuffer.share_pairs`): whether
  /// they do, whether the rest of another block's sequence comes first, of
  /// which one, and from which unit on; null elsewhere.
  struct Shares {
    mlir::Value pause, size, first, start, end, from, upto;
    mlir::Value isPaired = {}, hasRest = {}, other = {}, keep = {};
  };
  /// What teams compute (DecodeRoles.cpp, DecodeRolesScores.cpp,
  /// DecodeRolesHalves.cpp).
  void buildRoles();
  struct Roles;
  struct RolePart;
  struct RolePiece;
  /// Columns of one product of scores, by where queries are.
  struct RoleColumns {
    const RolePart *part;
    int64_t first, cols;
    /// Queries; null: those in LDS.
    mlir::Value q;
  };
  /// Products of a tile's scores in flight, and the fillings that they read.
  struct RoleProducts {
    llvm::SmallVector<mlir::Value> products;
    llvm::SmallVector<std::pair<const RolePart *, mlir::Value>> read;
    mlir::Value staged;
  };
  /// Columns of the piece's queries in DRAM.
  mlir::Value queryTile(int64_t first, int64_t cols);
  /// The first `cols` columns of a part of the piece's queries, in registers.
  mlir::Value takeQueries(const RolePart &part, const RolePiece &own,
                          int64_t cols);
  /// The block's split of a sequence; whether it has one is its `isMine`.
  RolePiece splitOfRoles();
  /// Lets a team compute `build` for each of the block's pieces: its split, or
  /// those of its share of all sequences.
  void forEachPiece(const Roles &roles,
                    llvm::function_ref<void(const RolePiece &)> build);
  /// Slots of `rows` x `cols` elements, whose tiles are columns from `offset`
  /// on of rows of `depthInMemory`.
  mlir::TypedValue<RingType> makeRing(int64_t rows, int64_t cols,
                                      int64_t depthInMemory, int64_t offset,
                                      int64_t slots, llvm::StringRef from,
                                      llvm::ArrayRef<llvm::StringRef> to,
                                      Dimension order = Dimension::Rows);
  void makeChannels(Roles &roles);
  /// What teams of bytes have instead, whose values a team turns
  /// (DecodeRolesBytes.cpp).
  void makeChannelsOfBytes(Roles &roles);
  void computeHalfOfBytes(const Roles &roles, const RolePiece &own,
                          unsigned half);
  void turnTiles(const Roles &roles, const RolePiece &own);
  /// What the team of the scores does, that of half of O's columns, and the one
  /// that moves.
  void computeScores(const Roles &roles, const RolePiece &own);
  /// The loop of the team of the scores, which gives queries back (`rest`:
  /// those in LDS) behind it: what maxima and sums come to.
  std::pair<mlir::Value, mlir::Value>
  scoreTiles(const Roles &roles, const RolePiece &own,
             llvm::ArrayRef<RoleColumns> columns, mlir::Value rest,
             const EdgeTiles &edges);
  /// The same with scores of the next tile on their way beside the softmax of
  /// one. Queries are given back before the last tile's.
  std::pair<mlir::Value, mlir::Value>
  scoreTilesAhead(const Roles &roles, const RolePiece &own,
                  llvm::ArrayRef<RoleColumns> columns, mlir::Value rest,
                  const EdgeTiles &edges);
  /// The maxima that rows begin with.
  mlir::Value firstMax();
  /// A loop over `count` tiles that carries maxima, sums and `other`.
  mlir::scf::ForOp scoreLoop(mlir::Value count, mlir::Value other);
  /// The products that scores are made of, with queries in registers taken.
  llvm::SmallVector<RoleColumns> columnsOfScores(const Roles &roles,
                                                 const RolePiece &own);
  /// Starts some products of tile `i`; `queries`: those in LDS.
  void startScores(const Roles &roles, const RolePiece &own,
                   llvm::ArrayRef<RoleColumns> columns, mlir::Value queries,
                   mlir::Value i, RoleProducts &flight);
  /// The scores of products in flight; gives their slots back.
  mlir::Value awaitScores(const RoleProducts &flight);
  /// Weights of type `type` of the scores of tile `i` of a piece, and what
  /// maxima and sums come to with them; `factor`: by what rows have to be
  /// multiplied.
  struct Weighted {
    mlir::Value p, max, sum, factor;
  };
  /// `then` gets the weights, so many parts of their keys one behind the other.
  Weighted weigh(mlir::Value scores, mlir::Value max, mlir::Value sum,
                 FragmentType type, mlir::Value i, int64_t parts,
                 llvm::function_ref<void(const Weighted &, int64_t part)> then);
  /// Those of tile `i`, from `key` on, passed on to the teams that multiply by
  /// them. A half that is late gets its factors later.
  Weighted passWeights(const Roles &roles, const RolePiece &own,
                       mlir::Value scores, mlir::Value max, mlir::Value sum,
                       const EdgeTiles &edges, mlir::Value i, mlir::Value key);
  void computeHalf(const Roles &roles, const RolePiece &own, unsigned half);
  /// What a team does with its half of O when a piece ends: stores it, or joins
  /// it to the others'. `accs`: its columns, in order.
  void storeHalf(const Roles &roles, const RolePiece &own, unsigned half,
                 mlir::ValueRange accs, mlir::Value max, mlir::Value sum);
  /// The slice of a half's columns of that number.
  mlir::Value sliceOf(mlir::ValueRange accs, int64_t slice);
  /// Joins a half to what another block has stored of its sequence. All slices
  /// but the first are parked, where they can be.
  void joinParked(const Roles &roles, const Piece &piece, mlir::ValueRange accs,
                  mlir::Value max, mlir::Value sum);
  /// Joins a half to that of the cluster's other block, without memory: each
  /// block has a part of its columns.
  void tradeHalf(const Roles &roles, mlir::ValueRange accs, mlir::Value max,
                 mlir::Value sum);
  /// Whether the cluster's two blocks have a sequence to themselves, which has
  /// units `start` to `stop` of all and piece `piece` here.
  mlir::Value isPair(const Shares &shares, const Piece &piece,
                     mlir::Value start, mlir::Value stop);
  void moveTiles(const Roles &roles, const RolePiece &own);
  /// The same of packed rows whose bytes come ahead of slots.
  void widenTiles(
      const RolePiece &own, llvm::ArrayRef<const RolePart *> parts,
      llvm::function_ref<mlir::Value(mlir::Value i, mlir::Value keys)> tileAt,
      llvm::function_ref<RingLoadOp(const RolePart &part, mlir::Value tile,
                                    mlir::Value i)>
          load);
  /// The first key of the piece's tile `i`, from the last one on.
  mlir::Value keyOf(const RolePiece &own, mlir::Value i);
  /// Ragged queries: rows past those that the launch says a sequence has at
  /// most (`seq_q`), which the device alone knows better. One block computes a
  /// tile of them over all of its keys: slow, but no row is left out.
  void computeRest();
  void computeRestOf(mlir::Value sequence);
  /// Each block has a share of all sequences.
  void buildShares();
  Shares divideShares();
  /// The same by an op that deals the units of all sequences.
  template <typename OpT> void dealUnits(Shares &shares, OpT share);
  /// The sequence of the piece of that number, of [first, end), and its first
  /// unit, where `start` is that of shares that lie one behind the other.
  std::pair<mlir::Value, mlir::Value>
  sequenceOf(const Shares &shares, mlir::Value number, mlir::Value start);
  /// The tiles of a sequence that are the block's, of whose `units` the first
  /// is unit `start` of all, and unit `stop` the next one's.
  struct OwnTiles {
    mlir::Value first, last;
    Piece piece;
  };
  OwnTiles ownTilesOf(const Shares &shares, const Tiles &tiles,
                      mlir::Value start, mlir::Value units, mlir::Value stop);
  /// The piece of the sequence entered, of whose units the block has those
  /// before `upto` or, of another block's, the rest, where pairs even each
  /// other out; elsewhere `piece`.
  Piece pairedPiece(const Shares &shares, const Piece &piece,
                    mlir::Value units);
  /// Computes the tiles [first, last), one piece of sequence `batch`.
  void computePiece(const Tiles &tiles, mlir::Value first, mlir::Value last,
                    const Piece &piece);
  /// The scales of the block's head of the cache.
  CacheScales scales() { return {b, batch, kvHead}; }
  /// Lets each warp compute a part of a softmax; `then` is what a warp does
  /// with a slice of what the parts come to.
  void inWarps(llvm::StringRef name,
               llvm::function_ref<DecodeState(mlir::Value warp)> compute,
               llvm::function_ref<void(DecodeState, mlir::Value slice)> then);
  /// Teams side by side.
  void teams(llvm::function_ref<void()> build);
  /// `copies` teams of a warp each; `build` gets a copy's number.
  void team(const llvm::Twine &name, int64_t copies,
            llvm::function_ref<void(mlir::Value)> build);
  /// A warp for each slice; the others wait.
  void forSlices(const llvm::Twine &name,
                 llvm::function_ref<void(mlir::Value slice)> build);
  /// A tile of a cache at `key`, in LDS.
  mlir::Value stageTile(mlir::Value cache, mlir::TypedValue<BufferType> buffer,
                        mlir::Value key, const Tiles &tiles);
  /// What it does with a tile of keys (DecodeKeys.cpp).
  struct KeyLoop;
  /// The loop over the tiles [first, end) of keys: every tile of number `warp`,
  /// counted from the last one, of each `warps`.
  DecodeState readKeys(mlir::Value first, mlir::Value end, const Tiles &tiles,
                       mlir::Value warp);
  /// Whether partial results are stored slice by slice.
  bool joinsSlices() { return warps > 1 || schedule.getMovingTeam(); }
  /// Where the slice of a partial result lies, of level 0 (a piece) or 1 (what
  /// a block has joined).
  llvm::SmallVector<mlir::Value> placeOf(int64_t level, mlir::Value place,
                                         mlir::Value slice);
  /// Stores the state of a piece, or a slice of it.
  void store(const DecodeState &state, int64_t level, mlir::Value place,
             mlir::Value slice);
  /// The pieces that a block joins at most.
  int64_t joinedByOne() const;
  /// Joins all pieces where this block, whose own is stored, is the last.
  void join(const Piece &piece);
  /// Whether many pieces are joined by all blocks that have one: where all run
  /// at the same time.
  bool joinsTogether();
  /// Rows of a slice that a block joins at a time of many pieces, so that each
  /// lane of a team has something.
  int64_t rowsOfMany() const;
  /// Joins them so, each block some columns of so many rows at a time.
  void joinTogether(const Piece &piece, int64_t rowsAtOnce);
  /// The same with the first of some numbers of rows with which each block has
  /// a share; where there is none, with `rowsOfMany`.
  void joinByAll(const Piece &piece, llvm::ArrayRef<int64_t> rowsAtOnce);
  /// Whether the piece's sequence has fewer than so many pieces.
  mlir::Value hasBelow(const Piece &piece, int64_t many);
  /// Joins the `count` partial results of a level, each `step` places after the
  /// one before it; `then` is what a warp does with a slice of what they come
  /// to.
  void joinAll(const llvm::Twine &name, int64_t level, mlir::Value place,
               mlir::Value count, int64_t step,
               llvm::function_ref<void(DecodeState, mlir::Value slice)> then);
  /// The same for one slice, of the rows from `from` on that there are types
  /// for.
  DecodeState joinFrom(int64_t level, mlir::Value place, mlir::Value count,
                       int64_t step, mlir::Value slice, mlir::Value from = {});
  /// Joins the parts of a softmax.
  DecodeState merge(const DecodeState &state, const DecodeState &other);
  /// Joins parts, neighbours first: one after the other, each would wait for
  /// the one before it.
  DecodeState mergeAll(llvm::SmallVector<DecodeState> parts);
  /// Slices of parts of a softmax that a lane has registers for at a time, 1 or
  /// more.
  int64_t partsAtOnce() const;
  /// Whether a piece is the first of two, and the other one has arrived, as it
  /// should (`isAwaited`): then this one has, too. `first` is done before where
  /// it is awaited.
  mlir::Value arriveBehind(const Piece &piece,
                           llvm::function_ref<void()> first);
  /// A slice of the second of two pieces, which is stored.
  DecodeState loadStored(const Piece &piece, mlir::Value slice);
  /// The first of two pieces, joined with the second one, which is stored.
  DecodeState mergeStored(const DecodeState &state, const DecodeState &other);
  /// The counter of arrivals at a place.
  llvm::SmallVector<mlir::Value> counterOf(int64_t level, mlir::Value place);
  /// What only the block that arrives last at a place does.
  void ifLast(int64_t level, mlir::Value place, mlir::Value count,
              llvm::function_ref<void()> build);
  /// `yes` where `condition` holds, `no` elsewhere.
  void choose(mlir::Value condition, llvm::function_ref<void()> yes,
              llvm::function_ref<void()> no = {});
  void finish(DecodeState state, mlir::Value slice);

  mlir::gpu::GPUFuncOp kernel;
  /// New tokens that the blocks store; null where there are none.
  CacheAppendOp append;
  mlir::Type element;
  /// The type of the elements of P and V.
  mlir::Type weights;
  /// Head sizes of Q and K and of V and O, padded to whole LDS blocks.
  int64_t depth, valueDepth;
  /// Parts of the columns that warps join side by side; columns of one.
  int64_t colSlices, sliceCols;
  FragmentType accType, sliceType, rowType;
  mlir::FloatAttr softmaxScale;
  /// Whether scores may be of any size.
  mlir::UnitAttr unbounded;

  // Values of the kernel: the sequence, its queries, and the row of its first
  // one where they are ragged; the cache's head and the first query head of it;
  // the tile's first query, its rows, and the number of head and tile together.
  mlir::Value batch, queries, firstRow, kvHead, head, firstQuery, rows, line;
  /// That of the block among those of a head and tile; of the tile.
  mlir::Value block, slice;
  /// What says which of the kernel's work is the block's.
  WorkItemOp item;
  /// Buffers of a block of one warp, one for all pieces. Values that are a part
  /// of keys have none of their own.
  mlir::TypedValue<BufferType> kbuf, vbuf;
  /// The block's queries; null where they are in registers all the time.
  mlir::TypedValue<BufferType> qbuf;
  /// Where warps leave their accumulators, slice by slice, and the maxima and
  /// sums of their rows; null in blocks of one.
  mlir::Value accShelf, rowShelf;
  /// What a team multiplies scores of bytes by; null where there is nothing.
  mlir::Value scale;
  /// Slices of columns that a team of half of O's columns has; none elsewhere.
  int64_t firstSlice = 0, ownSlices = 0;
  /// Partial results and counters: level (pieces, what blocks have joined of
  /// them), head and tile, place; for partial results of blocks of several
  /// warps the slice of columns comes before the place.
  mlir::Value parts, arrived;
  /// Counters of those that join together: half, head and tile, place.
  mlir::Value together;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_DECODEPROGRAM_H
