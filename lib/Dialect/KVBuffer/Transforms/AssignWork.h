//===- AssignWork.h - What the parts of kvbuf-assign-work share -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// AssignWork.cpp reads a kernel's items of work, gives each block one of them
/// and replaces the ops; WorkClusters.cpp gives blocks of a cluster
/// neighbouring items, WorkOrder.cpp orders them, WorkDies.cpp deals them to
/// dies, WorkLoop.cpp lets blocks take several, and FoldGrid.cpp keeps the grid
/// within what a launch takes.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_ASSIGNWORK_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_ASSIGNWORK_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// A kernel's items of work, and the clusters that take them. Where blocks of a
/// cluster take neighbouring items along a coordinate, *numbers* along it count
/// these together; elsewhere an item's number is the item.
struct WorkItems {
  /// The kernel, its op, what its blocks do, and the chip; where the module
  /// names none, one of which nothing is known but what holds of all.
  mlir::gpu::GPUFuncOp kernel;
  WorkItemOp op;
  Work work;
  TargetInfo target;
  /// Blocks of a cluster; 1: there are no clusters.
  int64_t cluster = 1;
  /// The coordinate along which they take neighbouring items.
  unsigned clustered = 0;

  /// How many coordinates there are, and one of them.
  unsigned size() { return op.getNumResults(); }
  CoordinateAttr coordinate(unsigned i) { return op.getCoordinate(i); }
  /// Items along coordinate `i` that have one number together.
  int64_t together(unsigned i) const { return i == clustered ? cluster : 1; }
  /// Whether the items that a cluster takes are counted in rows, so that it may
  /// walk over the same tiles for all of them.
  bool clustersRows() {
    return cluster > 1 && coordinate(clustered).getStep() != 0;
  }
  /// The numbers along coordinate `i`, an expression over the launch's sizes.
  mlir::Attribute count(unsigned i);
  /// The coordinate along which later items take longer.
  std::optional<unsigned> growing();
  /// The first two coordinates along which all items read the same, each of
  /// another tensor, where no order of lengths goes before.
  std::optional<std::array<unsigned, 2>> strips();
};

/// An expression over the launch's sizes: an operator, by its name, of others.
mlir::Attribute sizeExpression(mlir::Builder &b, llvm::StringRef kind,
                               llvm::ArrayRef<mlir::Attribute> operands);
/// A constant, an index.
inline mlir::Value constantIndex(mlir::ImplicitLocOpBuilder &b, int64_t value) {
  return mlir::arith::ConstantIndexOp::create(b, value);
}
/// Its value in the kernel, by parameters that hold the sizes.
mlir::Value sizeInKernel(mlir::ImplicitLocOpBuilder &b, mlir::Attribute size);

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// Chooses the coordinate along which `blocks` blocks of a cluster take
/// neighbouring items: one of which as many read the same, whatever else, or
/// else one counted in rows along which all do. Whether there is one; if not, a
/// warning says so.
bool chooseClusters(WorkItems &items, int64_t blocks);

/// The number of a block among those of its cluster. With a `number`, which
/// about as many rounds of all clusters have taken before, blocks change places
/// each round: under a mask the last item of a number takes longer than the
/// others; who has it is late, and would be for good, where the others wait for
/// it, if it had the last one each time.
mlir::Value rankInCluster(mlir::ImplicitLocOpBuilder &b, const WorkItems &items,
                          mlir::Value number);

/// Makes the result along whose coordinate a cluster's blocks take neighbouring
/// items the number of these: what needs the block's own item gets it from the
/// number and the block's rank. `number`: see `rankInCluster`.
mlir::LogicalResult replaceClustered(WorkItems &items, mlir::Value number);

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// An order of all items, by numbers from 0 on.
class WorkOrder {
public:
  /// `counts`: the numbers along each coordinate, in the kernel.
  WorkOrder(mlir::ImplicitLocOpBuilder &b, WorkItems &items,
            llvm::ArrayRef<mlir::Value> counts);

  /// Where items grow along a coordinate: lets places along the others come in
  /// groups. What the items of a group read stays in the cache, and the longest
  /// of them come first. A group has about `atOnce` items, the number that is
  /// worked on at once, and the last one twice as many at least: only a long
  /// sequence of ever shorter ones leaves no block idle in the end.
  void group(mlir::ImplicitLocOpBuilder &b, int64_t atOnce);
  /// How many numbers there are.
  mlir::Value total(mlir::ImplicitLocOpBuilder &b);
  /// The number along each coordinate of item `t`.
  llvm::SmallVector<mlir::Value> itemAt(mlir::ImplicitLocOpBuilder &b,
                                        mlir::Value t);

  /// A place along all coordinates but those along which items follow each
  /// other (`inner`, or the two of strips), the first of them fastest, and the
  /// item's number along these.
  struct Place {
    mlir::Value inner, place;
  };
  /// How many items a place has, and how many places there are.
  mlir::Value getItems() const { return ofPlace; }
  mlir::Value getPlaces() const { return places; }
  /// The number along each coordinate of a place's item.
  llvm::SmallVector<mlir::Value> itemOf(mlir::ImplicitLocOpBuilder &b,
                                        Place place);

private:
  /// That of item `t`.
  Place placeAt(mlir::ImplicitLocOpBuilder &b, mlir::Value t);
  /// The numbers along coordinates, the first fastest, of a number of all of
  /// them.
  void spread(mlir::ImplicitLocOpBuilder &b, mlir::Value number,
              llvm::ArrayRef<unsigned> along,
              llvm::SmallVectorImpl<mlir::Value> &item);

  WorkItems &items;
  llvm::SmallVector<mlir::Value> counts;
  /// The two coordinates whose items follow each other in strips, if there are;
  /// else the coordinate along which they do; and the others.
  std::optional<std::array<unsigned, 2>> strips;
  unsigned inner;
  llvm::SmallVector<unsigned> rest;
  /// Items of a place, and places along all others; places of a full group and
  /// of all full groups, null where there are no groups.
  mlir::Value ofPlace, places, ofGroup, grouped;
};

/// Whether there are items that read the same, along a coordinate or in strips
/// of two, and several places of such items, which dies can share out.
bool hasPlacesForDies(WorkItems &items);

/// The numbers along each coordinate of block `id`'s item, one for each block
/// and no block without one. Consecutive blocks go to the chip's `dies` in
/// turn, which have a cache each: a die takes whole places, one after the
/// other. Where items grow, those of its last places, twice as many as it works
/// on at once, come together, the longest of all first, so that no long one
/// ends late. Places that are left when all dies have as many are dealt item by
/// item. `counts`: the numbers along each coordinate.
llvm::SmallVector<mlir::Value> itemOnDie(mlir::ImplicitLocOpBuilder &b,
                                         WorkItems &items,
                                         llvm::ArrayRef<mlir::Value> counts,
                                         mlir::Value id, int64_t dies);

/// The number, in an order of `total` items, of the one that block `id` has
/// where consecutive blocks go to `dies` in turn: each die has a run of items
/// that follow each other, the first dies one more where `dies` does not divide
/// them. All three fit 31 bits.
mlir::Value numberInRuns(mlir::ImplicitLocOpBuilder &b, mlir::Value id,
                         mlir::Value total, int64_t dies);

/// The numbers along each coordinate of block `id`'s item, where a die has a
/// run of items that follow each other, the first coordinate the fastest:
/// neighbours read of the same tokens. `counts`: the numbers along each
/// coordinate.
llvm::SmallVector<mlir::Value> itemInRuns(mlir::ImplicitLocOpBuilder &b,
                                          llvm::ArrayRef<mlir::Value> counts,
                                          mlir::Value id, int64_t dies);

/// The items along two coordinates of number `t`: strips of the first one's,
/// one after the other along the second, so that blocks that run together read
/// few of either.
std::array<mlir::Value, 2> itemInStrips(mlir::ImplicitLocOpBuilder &b,
                                        mlir::Value t, mlir::Value first,
                                        mlir::Value second);

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Replaces the op by numbers along each coordinate, at its place: those of
/// growing items count from the last one. `number`: of the item, where blocks
/// take several.
mlir::LogicalResult replaceItem(WorkItems &items,
                                llvm::ArrayRef<mlir::Value> numbers,
                                llvm::function_ref<mlir::Value(unsigned)> count,
                                mlir::Value number);

/// Makes the kernel's program, that of an item, the body of a loop.
mlir::LogicalResult loopOverItems(WorkItems &items);

/// Keeps the grid of a kernel within what a launch takes: at most `blocks`
/// blocks along z.
void foldGrid(mlir::gpu::GPUFuncOp kernel, int64_t blocks);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_ASSIGNWORK_H
