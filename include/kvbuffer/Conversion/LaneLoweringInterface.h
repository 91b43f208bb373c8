//===- LaneLoweringInterface.h - Ops that become lane code ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What an op of a tile program, the dialect's own or another's, implements to
/// become code for one lane, and what the lane level offers to it.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_CONVERSION_LANELOWERINGINTERFACE_H
#define KVBUFFER_CONVERSION_LANELOWERINGINTERFACE_H

#include "kvbuffer/Conversion/FragmentLayout.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <functional>

namespace kvbuf {

/// The place of an element that a lane holds of a fragment. Row and column lack
/// what depends on the lane: `LaneContext::laneRow` and `laneCol`.
struct LaneElement {
  int64_t row, col;
  /// Which of the lane's row values (of a fragment of role `row`) belongs to
  /// it.
  int64_t rowValue;
};

/// A kernel that is being lowered, as an op's own lowering sees it.
class LaneContext {
public:
  virtual ~LaneContext() = default;

  /// Builds lane code at the op's place, with the op's location.
  virtual mlir::ImplicitLocOpBuilder &builder() = 0;
  /// The chip that the kernel is for.
  virtual const TargetInfo &chip() const = 0;

  /// What a lane holds of a value: a scalar itself; of a fragment of role `acc`
  /// a vector for each atom, of role `a` or `b` its words, of role `row` a
  /// scalar for each row. Tensors, tiles and slots have forms of their own.
  virtual llvm::SmallVector<mlir::Value> lanesOf(mlir::Value value) = 0;
  /// Says it of a result, in the same form.
  virtual void setLanes(mlir::Value value, mlir::ValueRange lanes) = 0;
  /// The one value that a lane has of a scalar.
  mlir::Value single(mlir::Value value) { return lanesOf(value).front(); }
  /// The types of what a lane holds of a value of a type.
  virtual void laneTypes(mlir::Type type,
                         llvm::SmallVectorImpl<mlir::Type> &types) = 0;
  /// Where lanes hold the elements of fragments of a type.
  virtual const FragmentLayout &layoutOf(FragmentType type) = 0;

  /// Constants.
  virtual mlir::Value index(int64_t value) = 0;
  virtual mlir::Value i32(int64_t value) = 0;
  virtual mlir::Value f32(double value) = 0;
  /// An index in 32 bits, and back, by its sign.
  virtual mlir::Value toI32(mlir::Value index) = 0;
  virtual mlir::Value toIndex(mlir::Value i32) = 0;

  /// Calls `fn` for each element that a lane holds of a fragment of role `acc`,
  /// with its value and place, and returns what a lane holds of the fragment of
  /// the same type whose elements `fn` yields.
  virtual llvm::SmallVector<mlir::Value>
  mapElements(mlir::TypedValue<FragmentType> fragment,
              llvm::function_ref<mlir::Value(mlir::Value element,
                                             const LaneElement &at)>
                  fn) = 0;
  /// The same of some vectors, whose elements `fn` gets by the number of their
  /// vector and their place in it.
  virtual llvm::SmallVector<mlir::Value>
  mapElements(llvm::ArrayRef<mlir::Value> vectors,
              llvm::function_ref<mlir::Value(mlir::Value element, unsigned atom,
                                             int64_t reg)>
                  fn) = 0;
  /// Element `i` of a vector.
  virtual mlir::Value element(mlir::Value vector, int64_t i) = 0;
  /// The lane-dependent part of an element's row and column; i32.
  virtual mlir::Value laneRow(FragmentType type) = 0;
  virtual mlir::Value laneCol(FragmentType type) = 0;
  /// The sum or the maximum of the values that lanes have for a row of a
  /// fragment of this type; all lanes that share the row have it then.
  virtual mlir::Value reduceRow(FragmentType type, mlir::Value value,
                                bool isMax) = 0;
  /// The same of the lanes of a warp alone, and of several rows' values of the
  /// warps that share the columns of fragments of this type.
  virtual mlir::Value reduceLanes(const FragmentLayout &layout,
                                  mlir::Value value, bool isMax) = 0;
  virtual llvm::SmallVector<mlir::Value>
  reduceWarps(FragmentType type, llvm::ArrayRef<mlir::Value> values,
              bool isMax) = 0;
  /// A vector of f32 as one of an operand's elements; a probability is in
  /// [0, 1]. The quotient of two f32, the second one not 0, as fast as the chip
  /// has it.
  virtual mlir::Value roundOperand(mlir::Value vector, mlir::VectorType type,
                                   bool isProbability) = 0;
  virtual mlir::Value ratio(mlir::Value x, mlir::Value y) = 0;

  /// The element at (row, col), i32, of a tile in DRAM; any lane may ask for
  /// any, and gets zero where the tile has none. Fails, with an error at the
  /// op, for elements below 16 bits, and for tiles whose pages lanes have
  /// looked up for a load.
  virtual mlir::FailureOr<mlir::Value>
  tileElement(mlir::TypedValue<TileType> tile, mlir::Value row,
              mlir::Value col) = 0;

  /// The thread among those that work together, of the block or of the team
  /// whose code is lowered (i32), and how many there are. All of them run an
  /// op.
  virtual mlir::Value ownThread() = 0;
  virtual int64_t ownThreads() const = 0;
  /// The element at (row, col), i32, of what a slot of LDS holds, as it is
  /// stored; any thread may ask for any. Fails, with an error at the op, for
  /// slots whose elements the chip has turned, and for elements below 16 bits.
  virtual mlir::FailureOr<mlir::Value>
  stagedElement(mlir::TypedValue<StagedType> staged, mlir::Value row,
                mlir::Value col) = 0;
  /// LDS of its own for an op, `count` elements of a type in a memref of rank
  /// 1: the block's, or of the copy of the team. What they hold at first is
  /// not known; in a loop, what the op's last run has left.
  virtual mlir::Value ldsElements(mlir::Type type, int64_t count) = 0;
  /// Those threads meet: what one has written to LDS before, all see.
  virtual void meet() = 0;

  /// Builds where a row of a tile lies: an index for each dimension of its
  /// tensor but the last, which its columns run along from 0 on.
  using RowPlace = std::function<llvm::SmallVector<mlir::Value>(
      mlir::ImplicitLocOpBuilder &b, mlir::Value row)>;
  /// Says of a tile in DRAM, of a type with `page_size = 1`, that it is of rows
  /// of `tensor`, a memref among the kernel's arguments. The first `rows` of
  /// them (an index) are valid. `place` is called where the tile is loaded
  /// (`kvbuffer.dram_load`), after the op, with the number of a row, an index,
  /// also of one that is not valid: what is read to place that has to exist,
  /// and where it lies does not matter.
  virtual void setTileRows(mlir::TypedValue<TileType> tile, mlir::Value tensor,
                           mlir::Value rows, RowPlace place) = 0;
  /// The tensor that an argument of the kernel is, as a memref that code may
  /// read.
  virtual mlir::Value memrefOf(mlir::Value tensor) = 0;
};

/// Gives the ops of `kvbuffer`, `scf` and `memref` that kernels consist of
/// their lowering. `convert-kvbuffer-to-gpu` does it for its context.
void registerLaneLoweringModels(mlir::DialectRegistry &registry);

} // namespace kvbuf

#include "kvbuffer/Conversion/LaneLoweringInterface.h.inc"

#endif // KVBUFFER_CONVERSION_LANELOWERINGINTERFACE_H
