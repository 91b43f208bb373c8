//===- Lds.h - Buffers, loads in flight and their rules ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_LDS_H
#define KVBUFFER_LIB_EMULATOR_TILE_LDS_H

#include "Tensors.h"
#include <algorithm>

namespace kvbuf::emu::tile {

/// The LDS of one block: buffers of slots, and the loads on their way into
/// them. A load lands when a wait forces it to, and no earlier.
///
/// Ops run once for the whole block, but on the machine each warp gets to them
/// when it does: all that is known is who is past which meeting. A
/// kvbuffer.stagger gives the upper half of the warps one more than the lower
/// half has; an op's place among the meetings is then one of two. What one warp
/// does comes before what another does if even the later place of the one is
/// before the earlier place of the other.
class Lds : public TileState {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Lds)

  /// The number of the buffer that an op allocates, a new one the first time.
  unsigned allocate(AllocOp op);

  /// Issues a load into `slot`, or into the slot of the buffer's next filling;
  /// of nothing if `tile` is null. Returns its number, which is what a token or
  /// staged value stands for. Checks that the slot exists, that no other load
  /// is on its way into it, and that all warps have met since the last read of
  /// it.
  mlir::FailureOr<unsigned> load(DramLoadOp op, unsigned buffer,
                                 std::optional<int64_t> slot, const Tile *tile,
                                 ErrorFn error);

  /// Lands all loads but the `younger` issued last, and meets. Checks that
  /// those of `tokens` have landed and that each is staged once.
  mlir::LogicalResult stage(LdsStageOp op, llvm::ArrayRef<unsigned> tokens,
                            ErrorFn error);

  /// A meeting of all warps.
  void meet() { ++lower, ++upper; }

  /// One half of the warps passes a meeting more than the other. Checks that
  /// the halves are level, or one apart at the end.
  mlir::LogicalResult stagger(StaggerOp op, ErrorFn error);

  /// The slot that a staged load filled. Checks that it was filled, that no
  /// younger load has begun to overwrite it, and that all warps have awaited
  /// their parts of it: each counts its own copies only.
  mlir::FailureOr<const Matrix *> read(mlir::Operation *op, unsigned load,
                                       ErrorFn error);
  /// The same, to be changed where it lies.
  mlir::FailureOr<Matrix *> rewrite(mlir::Operation *op, unsigned load,
                                    ErrorFn error);

  /// Checks that no load is in flight at the end of the block, or of the team
  /// that owns the buffers (`owner`), and that its halves are level.
  mlir::LogicalResult finish(TileContext &context,
                             llvm::StringRef owner) override;

private:
  struct Slot {
    Matrix data;
    /// The load issued into it last, or -1.
    int64_t newest = -1;
    mlir::Operation *lastRead = nullptr;
    /// Meetings that the warps furthest on had passed at the last read.
    uint64_t readAt = 0;
  };
  struct Buffer {
    AllocOp op;
    std::vector<Slot> slots;
    /// Loads so far that have left their slots to the order of loads.
    int64_t fillings = 0;
  };
  struct Load {
    DramLoadOp op;
    unsigned buffer = 0;
    int64_t slot = 0;
    Tile tile;
    /// Predicated off: it takes its place among the loads, and moves nothing.
    bool empty = false;
    bool landed = false;
    LdsStageOp staged;
    /// Meetings that a warp must have passed to read what `staged` awaits.
    uint64_t readyAt = 0;
  };
  Slot &slotOf(const Load &load) {
    return buffers[load.buffer].slots[load.slot];
  }

  std::vector<Buffer> buffers;
  std::vector<Load> loads;
  /// Loads before this one have all landed.
  size_t firstInFlight = 0;
  /// Meetings that the lower half of the warps and the upper half have passed.
  uint64_t lower = 0, upper = 0;
  uint64_t first() const { return std::min(lower, upper); }
  uint64_t last() const { return std::max(lower, upper); }
  /// What keeps the halves apart, or null.
  StaggerOp staggered;
};

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_LDS_H
