//===- TileInterpreter.h - Executes the tile stage --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The meaning of the dialect's block-level ops, in code: a kernel in phase
/// `tile` or `scheduled` runs block by block, each op on whole tiles. Operands
/// of the matrix unit have the values of their 16-bit type, everything else is
/// fp32; a product accumulates in fp32, in the order of k.
///
/// It is stricter than a device. A load lands at the last moment that the waits
/// allow, and each promise that a program has to keep is checked: loads awaited
/// before their data is read, slots overwritten only after a barrier, page
/// look-ups only for tiles with keys, no access outside of a tensor, no element
/// of an output written by two stores. Where rings join teams: fillings in
/// order, each awaited and released once, never read after its release nor
/// released while a product in flight reads it, no wait without end, products
/// awaited once and not left in flight by their waits.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_EMULATOR_TILEINTERPRETER_H
#define KVBUFFER_EMULATOR_TILEINTERPRETER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <cstdint>
#include <memory>

namespace kvbuf::emu {

/// What happened in a run, summed over blocks.
struct TileReport {
  uint64_t blocks = 0;
  /// `kvbuffer.dram_load`s that were not predicated off and
  /// `kvbuffer.ring_load`s, and the bytes of valid rows that they read.
  uint64_t loads = 0;
  uint64_t bytesLoaded = 0;
  /// Entries of page tables (and tables of slots) that were read.
  uint64_t lookups = 0;
  /// `kvbuffer.lds_stage`s: waits, each with a barrier.
  uint64_t barriers = 0;
  /// Multiply-adds of `kvbuffer.mma` and `kvbuffer.mma_start`.
  uint64_t multiplyAdds = 0;
  /// Elements written to DRAM.
  uint64_t stored = 0;
};

/// How a kernel may access a bound tensor.
enum class TileAccess {
  Read,
  Write,
  /// The caller's, read and written: each element written once at most.
  ReadWrite,
  /// Memory of the launch's own: read where it has been written.
  Workspace,
  /// Words of the launch's own that begin and end as 0.
  Counter
};

/// Executes one kernel. Create it, bind each argument, run.
class TileInterpreter {
public:
  /// Fails with a diagnostic if `kernel` is not in phase `tile` or `scheduled`,
  /// or an argument has no `kvbuffer.name`. `kernel` must outlive the
  /// interpreter.
  static mlir::FailureOr<std::unique_ptr<TileInterpreter>>
  create(mlir::gpu::GPUFuncOp kernel);
  ~TileInterpreter();

  /// Binds a tensor: the memref argument of that `kvbuffer.name`, or, for a
  /// cache argument named k, its data "k" and its "k.offsets", "k.table" and
  /// "k.lengths", whichever its kind has. `shape` and `strides` are in
  /// elements. Names that the kernel does not have are ignored. Fails with a
  /// diagnostic if the shape contradicts the argument's type. The memory must
  /// stay valid until the last run.
  mlir::LogicalResult bind(llvm::StringRef name, void *data,
                           llvm::ArrayRef<int64_t> shape,
                           llvm::ArrayRef<int64_t> strides, TileAccess access);

  /// Binds a size that `kvbuffer.launch_size`, or an expression over sizes,
  /// asks for. Those that the shapes of bound tensors tell need not be bound.
  void bindSize(llvm::StringRef name, int64_t value);

  /// The grid that the kernel's `kvbuffer.grid`, or its `kvbuffer.work_item`,
  /// says for the sizes that are bound. Fails with a diagnostic if it says
  /// none, or asks for others.
  mlir::FailureOr<std::array<int64_t, 3>> grid();

  /// Runs `grid` blocks, one after the other: x fastest, or, with an `order`
  /// other than 0, in one of many orders. Tensors with `kvbuffer.access` =
  /// "workspace" or "counter" are made here. Stops at the first broken promise,
  /// with a diagnostic at the op and a note at the other op that takes part.
  mlir::FailureOr<TileReport> run(std::array<int64_t, 3> grid,
                                  uint64_t order = 0);

private:
  struct Impl;
  explicit TileInterpreter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace kvbuf::emu

#endif // KVBUFFER_EMULATOR_TILEINTERPRETER_H
