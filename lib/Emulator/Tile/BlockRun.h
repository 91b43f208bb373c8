//===- BlockRun.h - Executes a kernel for one block -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_BLOCKRUN_H
#define KVBUFFER_LIB_EMULATOR_TILE_BLOCKRUN_H

#include "Lds.h"
#include "Math.h"
#include "Rings.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <variant>

namespace kvbuf::emu::tile {

using MatrixRef = std::shared_ptr<const Matrix>;
/// An LDS buffer by its number among those of the block or of a team; a load
/// that a token or staged value stands for, or a product that is awaited; a
/// ring or mailbox; and a filling of one, with the place of the team that waits
/// for it.
struct BufferRef {
  unsigned number;
  Lds *lds;
};
struct LoadRef {
  unsigned number;
  Lds *lds = nullptr;
};
struct ChannelRef {
  unsigned number;
};
struct FillRef {
  unsigned channel;
  int64_t fill;
  unsigned taker;
  bool operator==(const FillRef &) const = default;
};

/// What an SSA value is at run time. Scalars are attributes, so that the
/// folders of their ops compute with them; nothing: an undefined value.
using RuntimeValue =
    std::variant<std::monostate, mlir::Attribute, Tensor *, const Cache *,
                 std::shared_ptr<const Tile>, BufferRef, LoadRef, ChannelRef,
                 FillRef, MatrixRef>;

/// Executes a kernel for one block.
class BlockRun : public TileContext {
public:
  BlockRun(mlir::gpu::GPUFuncOp kernel, llvm::ArrayRef<RuntimeValue> arguments,
           std::array<int64_t, 3> block, std::array<int64_t, 3> grid,
           const llvm::StringMap<int64_t> &sizes, TileReport &report);

  /// Fails with a diagnostic at the first broken promise.
  mlir::LogicalResult run();

  /// Executes an op of our own: what its model calls (TileModels.cpp).
  template <typename OpTy> mlir::LogicalResult runOwn(OpTy op) {
    return runOp(op);
  }

  // What an op's execution is offered.

  const Matrix &matrixOf(mlir::Value fragment) override {
    return matrix(fragment);
  }
  void setMatrix(mlir::Value fragment, Matrix matrix) override {
    set(fragment, std::move(matrix));
  }
  mlir::FailureOr<Matrix> stagedBy(mlir::Operation *op,
                                   mlir::Value staged) override;
  mlir::FailureOr<Matrix> tileBy(mlir::Operation *op,
                                 mlir::Value tile) override;
  double floatOf(mlir::Value value) override {
    return mlir::cast<mlir::FloatAttr>(get<mlir::Attribute>(value))
        .getValueAsDouble();
  }
  void countMultiplyAdds(int64_t count) override {
    report.multiplyAdds += count;
  }
  int64_t integerOf(mlir::Value value) override { return integer(value); }
  void setInteger(mlir::Value value, int64_t integer) override {
    set(value, integer);
  }
  llvm::LogicalResult
  setTileRows(mlir::Operation *op, mlir::Value tile, mlir::Value tensor,
              llvm::ArrayRef<std::vector<int64_t>> rows) override;
  mlir::FailureOr<int64_t> elementOf(mlir::Operation *op, mlir::Value tensor,
                                     llvm::ArrayRef<int64_t> index) override;
  mlir::InFlightDiagnostic errorAt(mlir::Operation *op) override {
    return error(op);
  }

private:
  /// An error at an op, beginning with the block and the loops' iterations.
  mlir::InFlightDiagnostic error(mlir::Operation *op);

  mlir::LogicalResult runBlock(mlir::Block &block);
  mlir::LogicalResult runAny(mlir::Operation *op);
  mlir::LogicalResult runFor(mlir::scf::ForOp op);
  mlir::LogicalResult runIf(mlir::scf::IfOp op);
  mlir::LogicalResult runWhile(mlir::scf::WhileOp op);
  mlir::LogicalResult runDefault(mlir::Operation *op);

  // DRAM (BlockRun.cpp).
  mlir::LogicalResult runOp(mlir::memref::DimOp op);
  mlir::LogicalResult runOp(mlir::memref::LoadOp op);
  mlir::LogicalResult runOp(MakeCacheOp op);
  mlir::LogicalResult runOp(CacheNumKeysOp op);
  mlir::LogicalResult runOp(CacheTileOp op);
  mlir::LogicalResult runOp(CacheScaleOp op);
  mlir::LogicalResult runOp(DramTileOp op);
  mlir::LogicalResult runOp(KeyRangeOp op);
  mlir::LogicalResult runOp(FragmentStoreOp op);
  mlir::LogicalResult runOp(RowStoreOp op);
  /// Executes code that a cache's type has emitted (`Cache::place`, `size`);
  /// what it yields, null as 1.
  mlir::FailureOr<llvm::SmallVector<int64_t>>
  runEmitted(const Cache &cache, mlir::Block &code,
             llvm::ArrayRef<mlir::Value> yields,
             llvm::ArrayRef<int64_t> numbers);
  /// The indices of a token's row in the leading dimensions of a cache's data.
  mlir::FailureOr<llvm::SmallVector<int64_t>> placeToken(mlir::Operation *op,
                                                         const Cache &cache,
                                                         int64_t batch,
                                                         int64_t token);
  mlir::LogicalResult findRows(mlir::Operation *op, Tile &tile);
  // New tokens that the block reads (Append.cpp).
  mlir::LogicalResult runOp(AppendTokensOp op);
  // LDS.
  mlir::LogicalResult runOp(AllocOp op);
  mlir::LogicalResult runOp(StagedViewOp op);
  mlir::LogicalResult runOp(MeetOp op);
  mlir::LogicalResult runOp(StaggerOp op);
  mlir::LogicalResult runOp(DramLoadOp op);
  mlir::LogicalResult runOp(LdsStageOp op);
  mlir::LogicalResult runOp(FragmentLoadOp op);
  // Arithmetic by regions (Map.cpp).
  mlir::LogicalResult runOp(MapOp op);
  // Items of work, and work that blocks share (Work.cpp).
  mlir::LogicalResult runOp(WorkItemOp op);
  mlir::LogicalResult runOp(ItemRowsOp op);
  mlir::LogicalResult runOp(LaunchValueOp op);
  mlir::LogicalResult runOp(ArriveLastOp op);
  mlir::LogicalResult runOp(AfterAllOp op);
  mlir::LogicalResult runOp(ShareWorkOp op);
  mlir::LogicalResult runOp(PartialStoreOp op);
  mlir::LogicalResult runOp(PartialLoadOp op);
  mlir::LogicalResult runOp(PartialJoinOp op);
  mlir::LogicalResult runOp(SoftmaxSinkOp op);
  // Rings and products in flight (RingOps.cpp).
  /// A filling that the team whose code runs takes, if it is one of those that
  /// the ring or mailbox names.
  mlir::FailureOr<FillRef> takenBy(mlir::Operation *op, mlir::Value channel,
                                   int64_t fill);
  /// That no product is in flight and no turn taken when a team ends.
  mlir::LogicalResult finishProducts();
  mlir::LogicalResult runOp(RingOp op);
  mlir::LogicalResult runOp(RingLoadOp op);
  mlir::LogicalResult runOp(RingPutOp op);
  mlir::LogicalResult runOp(RingWaitOp op);
  mlir::LogicalResult runOp(RingReleaseOp op);
  mlir::LogicalResult runOp(MailboxOp op);
  mlir::LogicalResult runOp(MailboxPostOp op);
  mlir::LogicalResult runOp(MailboxTakeOp op);
  mlir::LogicalResult runOp(NextTileOp op);
  /// Blocks of a cluster of the kernel that an op belongs to.
  static int64_t cluster(mlir::Operation *op);
  mlir::LogicalResult runOp(LaunchSizeOp op);
  mlir::LogicalResult runOp(FindTileOp op);
  mlir::LogicalResult runOp(NumberTilesOp op);
  mlir::LogicalResult runOp(MmaStartOp op);
  mlir::LogicalResult runOp(MmaWaitOp op);
  mlir::LogicalResult runOp(TurnWaitOp op);
  mlir::LogicalResult runOp(TurnPassOp op);
  // Teams (Teams.cpp).
  mlir::LogicalResult runOp(TeamsOp op);
  mlir::LogicalResult runOp(QueueOp op);
  mlir::LogicalResult runOp(QueuePutOp op);
  mlir::LogicalResult runOp(QueueTakeOp op);
  mlir::LogicalResult runOp(ShelfOp op);
  mlir::LogicalResult runOp(ShelfPutOp op);
  mlir::LogicalResult runOp(ShelfGetOp op);
  /// The team to execute next of those that are left: one that takes nothing
  /// from others of them; null if there is none.
  TeamOp nextTeam(TeamsOp op, mlir::ArrayRef<TeamOp> left);
  /// The tile of which a load is to move `cols` columns, its rows looked up and
  /// checked; counts the load.
  mlir::FailureOr<Tile> resolve(mlir::Operation *op, mlir::Value tile,
                                int64_t cols, bool whole);
  /// The slot that a staged value stands for, which `op` reads.
  mlir::FailureOr<const Matrix *> slotBy(mlir::Operation *op,
                                         mlir::Value staged);
  template <typename T> const T &get(mlir::Value value) {
    return std::get<T>(values[value]);
  }
  const Matrix &matrix(mlir::Value value) { return *get<MatrixRef>(value); }
  int64_t integer(mlir::Value value);
  llvm::SmallVector<int64_t> integers(mlir::ValueRange range);
  void set(mlir::Value value, RuntimeValue runtime) {
    values[value] = std::move(runtime);
  }
  void set(mlir::Value value, int64_t integer);
  void set(mlir::Value value, Matrix matrix) {
    values[value] = std::make_shared<const Matrix>(std::move(matrix));
  }
  /// Whether an op with this predicate runs.
  bool enabled(mlir::Value pred) { return !pred || integer(pred) != 0; }

  /// An operand of a product in flight.
  using Operand = std::variant<MatrixRef, FillRef>;
  struct Product {
    MmaStartOp op;
    Operand a, b;
    /// What it starts from; its result once it has finished.
    MatrixRef acc;
    MmaWaitOp wait;
    /// The number of the product in flight that it goes on with.
    std::optional<unsigned> before;
  };

  mlir::gpu::GPUFuncOp kernel;
  std::array<int64_t, 3> block, grid;
  TileReport &report;
  llvm::DenseMap<mlir::Value, RuntimeValue> values;
  /// Iterations of the loops around the current op.
  llvm::SmallVector<int64_t> iterations;
  Lds lds;
  /// What ops load into and meet in: the block's, or a team's own.
  Lds *own = &lds;
  /// The team whose code runs and the copy of it; null outside of teams.
  TeamOp team;
  int64_t copy = 0;
  /// A queue's entries, and how many of them each team has taken.
  struct Queue {
    QueueOp op;
    std::vector<llvm::SmallVector<MatrixRef>> entries;
    llvm::StringMap<int64_t> taken;
  };
  llvm::DenseMap<mlir::Value, Queue> queues;
  /// A slot of a shelf: what lies there, the op that has put it, and in which
  /// team and division into teams. `seen`: the op that got it last, likewise.
  struct Kept {
    llvm::SmallVector<MatrixRef> values;
    struct By {
      mlir::Operation *op = nullptr;
      TeamOp team;
      int64_t copy = 0, division = -1;
    } put, seen;
  };
  llvm::DenseMap<mlir::Value, std::vector<Kept>> shelves;
  /// The slot of a shelf that an op uses, if there is one and no other team
  /// that works at the same time has put into it, or, for a put, got from it.
  mlir::FailureOr<Kept *> slotOf(mlir::Operation *op, mlir::Value shelf,
                                 mlir::Value slot, bool puts);
  /// How often the block has been divided into teams so far.
  int64_t division = 0;
  Rings rings;
  const llvm::StringMap<int64_t> &sizes;
  /// Products in the order of their starts; those before `finished` are
  /// done.
  std::vector<Product> products;
  size_t finished = 0;
  /// The wait for the turn that the team has, or null.
  TurnWaitOp turn;
  /// Calls of next_tile; -1 once one of them has found no more.
  int64_t tilesTaken = 0;
  /// Caches that the program makes of memrefs.
  std::vector<std::unique_ptr<Cache>> made;
};

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_BLOCKRUN_H
