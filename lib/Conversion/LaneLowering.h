//===- LaneLowering.h - From tiles to lanes ---------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Rewrites a scheduled kernel into per-lane code. One block-level value
/// becomes several lane values:
///
/// | type | lane values |
/// |---|---|
/// | fragment a, b | words, `vector<w x T>`, atom by atom |
/// | fragment acc | one `vector<c x T>` an atom |
/// | fragment row | one f32 for each row that the lane holds |
/// | tile | see `TileValues` |
/// | buffer, staged | the byte offset in shared memory, i32 |
/// | token | the same, and the machine's own token |
/// | cache, tensor argument | see `TensorArg` |
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_LANELOWERING_H
#define KVBUFFER_LIB_CONVERSION_LANELOWERING_H

#include "LaneLayouts.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace kvbuf {

/// Buffers begin at multiples of this many bytes, so that swizzles see a tile
/// that starts at bank 0.
constexpr int64_t kBufferAlignment = 1024;

using Values = llvm::SmallVector<mlir::Value>;

/// A tensor (or cache) among the kernel's parameters.
struct TensorArg {
  /// Rank-0 memref: the address of element 0.
  mlir::Value data;
  /// Strides in elements, as indices; the innermost is 1 and not passed.
  Values strides;
  /// Sizes that the kernel needs, by dimension; null for the others.
  Values sizes;
  /// Of caches: table, its row stride, lengths, offsets; null where absent.
  mlir::Value table, tableStride, lengths, offsets;
};

/// A tile in DRAM, as lane values (in this order in a value list).
struct TileValues {
  /// Address of the tensor, element offset of row 0 column 0, row stride.
  mlir::Value data, base, rowStride;
  /// Rows [lo, hi) are valid, i32.
  mlir::Value lo, hi;
  /// For tiles over small pages: the table, the index of the sequence's first
  /// entry, the key of row 0 and the stride of pages.
  mlir::Value table, tableBase, firstKey, pageStride;

  Values pack() const;
  static TileValues unpack(TileType type, mlir::ValueRange values);
};

class LaneLowering;

/// How one vendor's machine moves data: what below the tile stage differs in
/// more than layouts.
class Machine {
public:
  virtual ~Machine() = default;
  /// The type of a load's own token, a lane value beside the slot's offset.
  virtual mlir::Type tokenType(mlir::MLIRContext *context) = 0;
  /// Starts copying a tile into LDS at byte `slot`; returns the token.
  virtual mlir::Value emitLoad(LaneLowering &lower, DramLoadOp op,
                               const TileValues &tile, mlir::Value slot) = 0;
  /// Waits for loads but the `younger` youngest and meets the block.
  virtual void emitStage(LaneLowering &lower, mlir::ValueRange tokens,
                         int64_t younger) = 0;
  /// Loads a fragment from LDS at byte `slot`.
  virtual mlir::LogicalResult emitFragmentLoad(LaneLowering &lower,
                                               FragmentLoadOp op,
                                               mlir::Value slot,
                                               Values &words) = 0;
};

/// NVIDIA, sm_80 and later: cp.async, ldmatrix.
std::unique_ptr<Machine> createNVIDIAMachine();
/// The machine of a target; null if its vendor has none.
std::unique_ptr<Machine> createMachine(const TargetInfo &target);

/// Lowers one kernel.
class LaneLowering {
public:
  LaneLowering(mlir::gpu::GPUFuncOp kernel, const TargetInfo &target,
               ScheduleAttr schedule, Machine &machine);

  /// Replaces the kernel; errors are reported at the op that causes them.
  mlir::LogicalResult run();

  // For machines and emitters.

  mlir::ImplicitLocOpBuilder b;
  const TargetInfo &target;
  ScheduleAttr schedule;
  FragmentLayouts layouts;
  /// Thread in the block, lane in the warp, warp in the block; i32.
  mlir::Value thread, lane, warp;

  mlir::Value index(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value f32(double value);
  mlir::Value toI32(mlir::Value index);
  mlir::Value toIndex(mlir::Value i32);
  /// The lane value of a scalar of the tile program.
  mlir::Value lookupScalar(mlir::Value value) { return map[value].front(); }
  /// A tensor in DRAM as one line of elements.
  mlir::Value flat(mlir::Value data);
  /// Shared memory as one line of elements of a type.
  mlir::Value shared(mlir::Type element);
  /// The tile that a buffer's slot is, in LDS.
  SharedTile sharedTile(KVBufferAttr params) const;
  /// What every slot's byte offset is a multiple of.
  int64_t slotAlignment(KVBufferAttr params) const;
  /// A lane's element count of a fragment type.
  int64_t atoms(FragmentType type) const;

private:
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  mlir::LogicalResult lowerFor(mlir::scf::ForOp op);
  mlir::LogicalResult lowerIf(mlir::scf::IfOp op);
  void laneTypes(mlir::Type type, llvm::SmallVectorImpl<mlir::Type> &types);

  // Kernel parameters (LaneArguments.cpp).
  mlir::LogicalResult expandArguments();
  void finishKernel();

  // Movement (LaneMovement.cpp).
  mlir::Value lookup(mlir::Value table, mlir::Value entry);
  void lower(CacheNumKeysOp op);
  void lower(CacheTileOp op);
  void lower(DramTileOp op);
  void lower(KeyRangeOp op);
  void lower(AllocOp op);
  void lower(DramLoadOp op);
  void lower(LdsStageOp op);
  mlir::LogicalResult lower(FragmentLoadOp op);
  void lower(FragmentStoreOp op);
  void lower(RowStoreOp op);
  mlir::LogicalResult lower(mlir::memref::LoadOp op);
  mlir::LogicalResult lower(mlir::memref::DimOp op);

  // Mathematics (LaneMath.cpp).
  void lower(FragmentFillOp op);
  void lower(FragmentSliceOp op);
  void lower(MmaOp op);
  mlir::LogicalResult lower(FragmentConvertOp op);
  void lower(SoftcapOp op);
  void lower(FragmentScaleOp op);
  void lower(MaskOp op);
  mlir::LogicalResult lower(OnlineSoftmaxOp op);
  void lower(RescaleOp op);
  void lower(SoftmaxFinishOp op);

  /// Applies `fn` to each element (a register of an atom) of each vector.
  Values mapElements(
      llvm::ArrayRef<mlir::Value> vectors,
      llvm::function_ref<mlir::Value(mlir::Value, unsigned atom, int64_t reg)>
          fn);
  mlir::Value element(mlir::Value vector, int64_t i);
  mlir::Value reduceLanes(mlir::Value value, bool isMax);
  mlir::Value exp2(mlir::Value value);
  /// Accumulator elements as words of operand a; errors if lanes would have to
  /// exchange data.
  mlir::LogicalResult toOperand(mlir::Operation *op, FragmentType type,
                                llvm::ArrayRef<mlir::Value> acc, Values &words);
  /// The row in the block of row part `part` of atom row `atomRow`, less what
  /// depends on the lane.
  int64_t rowOffset(int64_t atomRow, unsigned part) const;
  /// The lane's own row and column of an accumulator; i32.
  mlir::Value laneRow();
  mlir::Value laneCol();

  const Values &get(mlir::Value value) { return map[value]; }

  // Row values that live in LDS, one slot a thread (schedule `sums_in_lds`).

  /// Whether a loop's argument is a softmax's running sum that stays in LDS.
  bool staysInLds(mlir::scf::ForOp loop, unsigned index);
  /// The lane's row values, loaded here where they live in LDS.
  Values rowValues(mlir::Value value);
  /// Stores row values into the slot at `offset` bytes.
  void storeRows(llvm::ArrayRef<mlir::Value> rows, int64_t offset);
  /// The address of the lane's slot, as an index of f32 elements.
  mlir::Value rowSlot(int64_t offset, int64_t rows);
  /// Values in LDS: byte offset of the first thread's slot.
  llvm::DenseMap<mlir::Value, int64_t> inLds;

  mlir::Value single(mlir::Value value) { return map[value].front(); }
  void set(mlir::Value value, Values values) { map[value] = std::move(values); }

  mlir::gpu::GPUFuncOp kernel, lowered;
  Machine &machine;
  llvm::DenseMap<mlir::Value, Values> map;
  llvm::DenseMap<mlir::Value, TensorArg> tensors;
  llvm::SmallVector<mlir::Attribute> parameters, tensorList;
  llvm::SmallVector<mlir::Type> parameterTypes;
  /// Sizes of the manifest that the tensors' types fix.
  llvm::StringMap<int64_t> fixedSizes;
  int64_t ldsBytes = 0;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_LANELOWERING_H
