//===- TileProgramParts.h - What the parts of a tile program share -*- C++ -*-//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// TileProgram.cpp begins and ends a tile of queries; TileSums.cpp sums up over
/// its tiles of keys.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_TILEPROGRAMPARTS_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_TILEPROGRAMPARTS_H

#include "../ProgramBuilder.h"
#include "AddedScores.h"
#include "Attention.h"
#include "CacheScales.h"
#include "ProblemLimits.h"
#include "TileProgram.h"
#include "TileScores.h"
#include "TiledReads.h"
#include "kvbuffer/Schedules/WideHeads.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {

/// Builds the tile program of one problem.
class TileProgram : MappedProgramBuilder {
public:
  TileProgram(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
              const TargetInfo &target, const mlir::IRMapping &args)
      : MappedProgramBuilder(b, args), op(op), target(target),
        schedule(*op.getSchedule()), element(op.getElementType()),
        products(element), weights(weightsOf(op)), values(valuesOf(op)),
        mask(op.getMaskValue()),
        depth(llvm::alignTo(op.getHeadSize(), schedule.getBK())),
        parts(WideHeads::of(schedule.getStructure(), op.getHeadSize(),
                            op.getValueHeadSize(), target)
                  .valueParts),
        valueDepth(
            llvm::alignTo(op.getValueHeadSize() / parts, schedule.getBK())) {}

  void build();

private:
  /// The buffer of an operand with `rows` rows a slot.
  mlir::TypedValue<BufferType> alloc(Operand operand, int64_t rows,
                                     int64_t stages) {
    return allocOperand(b, op, target, operand, rows, stages);
  }
  /// The `rows` rows of a cache from key `start` on, and its columns from
  /// `column` on, if there is one.
  mlir::Value cacheTile(mlir::Value cache, mlir::Value start, int64_t rows,
                        mlir::Value column = {});
  /// The scores of a tile of K at `key`, which comes through `buffer` as a
  /// whole or block by block; `queries` gives columns of Q, from one on so
  /// many. `begin`: what the first product of a group is added to, null: zero.
  /// The first `held` columns are a product of their own, which that of the
  /// rest goes on with.
  mlir::Value
  multiplyKeys(llvm::function_ref<mlir::Value(int64_t, int64_t)> queries,
               mlir::Value cache, mlir::TypedValue<BufferType> buffer,
               mlir::Value key, llvm::ArrayRef<ScaledColumns> groups,
               mlir::Value begin, int64_t held);
  /// Columns of V and what they are multiplied by.
  struct Weighted {
    ScaledColumns part;
    llvm::SmallVector<mlir::Value, 2> weights;
  };
  /// Adds to `acc` the weighted tile of V at `key`, which comes likewise.
  mlir::Value multiplyValues(llvm::ArrayRef<Weighted> weighted,
                             mlir::Value cache,
                             mlir::TypedValue<BufferType> buffer,
                             mlir::Value key, mlir::Value acc);
  /// Accumulators of neighbouring columns, rescaled, and the products of the
  /// weights and such columns of a tile of values, which are added up apart:
  /// the next is in flight while one is added.
  llvm::SmallVector<mlir::Value> addValues(OnlineSoftmaxOp softmax,
                                           mlir::Value cache,
                                           mlir::TypedValue<BufferType> buffer,
                                           mlir::Value key,
                                           mlir::ValueRange accs);
  /// The same by strips of as many keys as a slot has rows.
  mlir::Value multiplyStrips(llvm::ArrayRef<Weighted> weighted,
                             mlir::Value cache,
                             mlir::TypedValue<BufferType> buffer,
                             mlir::Value key, mlir::Value acc);
  /// Loads a block of columns of a tile of a cache.
  mlir::Value stageBlock(mlir::Value tile, mlir::TypedValue<BufferType> buffer,
                         int64_t block);
  /// The kernel's work: a tile of queries of a head and a sequence each.
  WorkItemOp createItem();
  /// The tiles of keys of a tile of queries: how many the loop over them has,
  /// where its iteration `i` stands (`keyOf`), and which of them are masked.
  struct KeyTiles {
    mlir::Value count;
    EdgeTiles edges;
    std::function<mlir::Value(mlir::Value)> keyOf;
    /// Whether the end of the sequence may cut one, where the program has a
    /// loop for either case; null: it has one loop.
    mlir::Value isCut;
    /// Whether none but the first may be cut by the end of the sequence or the
    /// left side of a window.
    bool wholeAfterFirst;
    /// Whether the end of the sequence may cut any of them, and is asked about
    /// apart from what masks some.
    bool endApart = false;
  };
  /// Those of the range of keys that the rows see, from right to left.
  KeyTiles tilesOfRange();
  /// Those of the blocks that the problem's lists name.
  KeyTiles tilesOfLists();
  /// What a tile of queries is computed with, once it is begun.
  struct QueryTile {
    explicit QueryTile(KeyTiles tiles) : tiles(std::move(tiles)) {}

    KeyTiles tiles;
    /// Where its rows are in Q and O, and how many are left there.
    llvm::SmallVector<mlir::Value> at;
    mlir::Value left;
    /// Q in registers, or else in its slot.
    mlir::Value qf, qs;
    /// The first columns of Q, where these have registers beside the slot.
    mlir::Value qHeld;
    int64_t heldCols = 0;
    mlir::TypedValue<BufferType> kbuf, vbuf;
    /// A tensor that scores read by tiles.
    std::optional<TiledRead> read;
    mlir::memref::LoadOp readBy;
    FragmentType accType, scoreType, rowType, pType, sumType;
    /// Columns of an accumulator, and how many there are.
    int64_t accCols = 0, accParts = 1;
    /// Whether a tile's product is added to the accumulator when it is done.
    bool apart = false;
    /// K's scales, and what is left of them beside those that Q has taken.
    mlir::Value kScale, kFactor;
    /// What weights are multiplied by before they are rounded, and whether an
    /// op of its own does so.
    float gain = 1;
    bool scalesWeights = false;
    /// Whether the matrix unit adds weights up: the ones that it multiplies by,
    /// and the sum that the softmax begins with.
    bool sumsByUnit = false;
    mlir::Value ones, noSum;
    /// The accumulator, the maxima and the sums of weights to begin with, and
    /// the other accumulators.
    llvm::SmallVector<mlir::Value> init;
  };
  void computeTile();
  /// Whether a part of Q has registers beside its slot, if these are left.
  bool holdsQueries();
  /// The load of what scores read by their rows and keys, if tiles of it come
  /// through LDS; else null.
  mlir::memref::LoadOp stagedRead() {
    bool stages = limitsOf(op, schedule.getStructure(), target).stagesReads();
    return stages ? tiledReadOf(op) : mlir::memref::LoadOp();
  }
  /// Whether there are registers for what the next product begins with beside
  /// the operands of both.
  bool hasRoomToBegin();
  /// Whether products begin with what functions add by a factor of the head,
  /// too.
  bool beginsByPlaces();
  /// How many numbers by distances a product may begin with, of which each lane
  /// of a wave has one.
  int64_t numbersOfTables();
  /// The mask, where products of tiles at an edge begin with it.
  std::optional<BegunMask> begunMask();
  /// The function of scores, where products begin with what it adds.
  std::optional<AddedScores> addedScores() {
    if (group != 1)
      return std::nullopt;
    return AddedScores::of(op, stagedRead(),
                           /*scalesQueries=*/!schedule.getQInRegs(),
                           /*byPlaces=*/beginsByPlaces(),
                           /*mostNumbers=*/numbersOfTables());
  }
  /// What the softmax multiplies scores by.
  double softmaxScale() {
    std::optional<AddedScores> added = addedScores();
    return added ? added->getFactor() : softmaxScaleOf(op);
  }
  /// Whether a batch's sequences read the same tiles of it.
  bool sequencesShareReads() {
    mlir::memref::LoadOp read = stagedRead();
    return read && !op.isRagged() && readsSameForAll(read);
  }
  /// Loads the tile's queries, allocates buffers, and makes what the loop over
  /// keys begins with.
  QueryTile beginTile(KeyTiles tiles);
  void beginSums(QueryTile &tile);
  /// The iterations from `first` to `last`, from a state on. `mayBeCut`: of
  /// tiles that the end of the sequence may cut.
  mlir::scf::ForOp sumTiles(const QueryTile &tile, mlir::Value first,
                            mlir::Value last, mlir::ValueRange state,
                            bool mayBeCut);
  /// One of them, in `loop`.
  void addTile(const QueryTile &tile, mlir::scf::ForOp loop, bool mayBeCut);
  /// The scores of one.
  mlir::Value scoresOf(const QueryTile &tile, mlir::scf::ForOp loop,
                       const TileTokens &tokens, bool mayBeCut);
  llvm::SmallVector<mlir::Value> sumAllTiles(const QueryTile &tile);
  /// Divides and stores what has been summed up.
  void finishTile(const QueryTile &tile, llvm::ArrayRef<mlir::Value> sums);
  TileType tileType(int64_t cols, mlir::Type type) {
    return TileType::get(b.getContext(), schedule.getBM(), cols, type,
                         group > 1 ? group : 0);
  }
  /// The sum of two accumulators.
  mlir::Value addUp(mlir::Value one, mlir::Value other);
  /// `count` tiles of keys in parts of the schedule's `sum_keys`, whose sums
  /// are added up. `init`: the accumulator, the maxima and the sums of weights
  /// to begin with, and, where accumulators have a part of the columns each,
  /// the others; `sumTiles` makes the loop over the tiles of a part, from
  /// such a state on. Returns the loop over the parts.
  mlir::scf::ForOp
  sumInParts(mlir::Value count, mlir::ValueRange init,
             llvm::function_ref<mlir::scf::ForOp(mlir::Value, mlir::Value,
                                                 mlir::ValueRange)>
                 sumTiles);

  AttentionOp op;
  const TargetInfo &target;
  ScheduleAttr schedule;
  mlir::Type element;
  /// The type of the elements of Q and K in products.
  mlir::Type products;
  /// Those of P and V.
  mlir::Type weights, values;
  MaskAttr mask;
  /// The head size of Q and K, padded to whole LDS blocks; parts of the columns
  /// of V and O, of which a block has one, and the columns of that, padded.
  int64_t depth, parts, valueDepth;

  // Values of the kernel; `clusterRow` is the first row of all tiles that a
  // cluster's blocks take.
  // Where rows are those of `group` heads, `row` and `clusterRow` count them
  // all and `head` is the first of them; `query` is the row's place among
  // queries.
  mlir::Value batch, head, kvHead, row, clusterRow, queries, firstRow, keys,
      keyLo;
  /// What is read in place of a cache.
  llvm::DenseMap<mlir::Value, mlir::Value> widened;
  /// The number of the block's part of the columns of V and O, and the first of
  /// them; null where there is one part.
  mlir::Value part, partColumn;
  mlir::Value query;
  int64_t group = 1;
  /// Constants.
  mlir::Value c0, c1;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_TILEPROGRAMPARTS_H
