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

namespace kvbuf::emu::tile {

/// The LDS of one block: buffers of slots, and the loads on their way into
/// them. A load lands when a wait forces it to, and no earlier.
class Lds {
public:
  /// A new buffer; returns its number.
  unsigned allocate(AllocOp op);

  /// Issues a load, of nothing if `tile` is null; returns its number, which is
  /// what a token or staged value stands for. Checks that the slot exists, that
  /// no other load is on its way into it, and that a barrier stands behind the
  /// last read of it.
  mlir::FailureOr<unsigned> load(DramLoadOp op, unsigned buffer, int64_t slot,
                                 const Tile *tile, ErrorFn error);

  /// Lands all loads but the `younger` issued last. Checks that those of
  /// `tokens` have landed and that each is staged once.
  mlir::LogicalResult stage(LdsStageOp op, llvm::ArrayRef<unsigned> tokens,
                            ErrorFn error);

  /// The slot that a staged load filled. Checks that it was filled and that no
  /// younger load has begun to overwrite it.
  mlir::FailureOr<const Matrix *> read(FragmentLoadOp op, unsigned load,
                                       ErrorFn error);

  /// Checks that no load is in flight at the end of the block.
  mlir::LogicalResult
  finish(llvm::function_ref<mlir::InFlightDiagnostic(mlir::Operation *)> error);

private:
  struct Slot {
    Matrix data;
    /// The load issued into it last, or -1.
    int64_t newest = -1;
    FragmentLoadOp lastRead;
    /// Barriers that were behind us at the last read.
    uint64_t readAt = 0;
  };
  struct Buffer {
    AllocOp op;
    std::vector<Slot> slots;
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
  };
  Slot &slotOf(const Load &load) {
    return buffers[load.buffer].slots[load.slot];
  }

  std::vector<Buffer> buffers;
  std::vector<Load> loads;
  /// Loads in front of this one have all landed.
  size_t firstInFlight = 0;
  uint64_t barriers = 0;
};

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_LDS_H
