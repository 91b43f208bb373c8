//===- Distribution.h - What the parts of kvbuf-distribute-fragments share ===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// DistributeFragments.cpp finds the classes of values that lie alike, and
/// gives layouts to those that no product says anything about;
/// DistributeProducts.cpp gives layouts to products' accumulators and operands,
/// and DistributeStores.cpp to what goes to memory or comes from partial
/// results.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_DISTRIBUTION_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_DISTRIBUTION_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace kvbuf {

/// The columns at the bits of an order, empty for the natural one.
llvm::SmallVector<int64_t> bitsOf(const LinearLayout &order);

/// The layouts of one kernel's fragments.
class Distribution {
public:
  Distribution(mlir::gpu::GPUFuncOp kernel, ScheduleAttr schedule,
               const TargetInfo &target)
      : kernel(kernel), schedule(schedule), target(target) {}

  /// Gives every fragment of the kernel a layout.
  mlir::LogicalResult run();

private:
  /// A product, started or computed at once.
  struct Product {
    mlir::Operation *op;
    /// Null where the matrix unit reads it from LDS.
    mlir::Value a, b;
    /// The accumulators that it yields.
    mlir::Value result;
    bool transposeB;
    mlir::Type element;
    /// Instructions that are laid out as one; 0 until it is known.
    int64_t group = 0;
  };

  /// A class of values.
  struct Class {
    unsigned parent;
    mlir::Value first;
    FragmentLayoutInterface layout;
    /// Values of role a or b that come from accumulators, and whether others
    /// of role a come from memory.
    llvm::SmallVector<mlir::Value> weights;
    bool fromMemory = false;
    /// Of accumulators: the product whose instruction the layout is of, where
    /// no type names it.
    std::optional<ProductKind> kind = {};
  };

  static bool isFragment(mlir::Value value) {
    return mlir::isa<FragmentType, PendingType>(value.getType());
  }
  static Role roleOf(mlir::Value value) {
    auto fragment = mlir::dyn_cast<FragmentType>(value.getType());
    return fragment ? fragment.getRole() : Role::Acc;
  }
  /// The number of a value's class, a new one where it has none.
  unsigned find(mlir::Value value);
  Class &classOf(mlir::Value value) { return classes[find(value)]; }
  /// Makes the classes of two values one, if both are fragments.
  void tie(mlir::Value x, mlir::Value y);
  /// What a loop or a branch hands on lies as what it is handed on as.
  void tieBranches(mlir::RegionBranchOpInterface branch);
  /// An op's fragments of one role lie alike.
  void tieOperands(mlir::Operation *op);
  /// A fragment of one value that comes from outside of a team is made anew in
  /// it, where it may lie over other warps.
  void spreadFills();
  /// Whether the schedule has an instruction for each kind of product.
  bool hasTwoInstructions() const {
    ScheduleAttr s = schedule;
    return s.getMmaShape(ProductKind::Scores) !=
           s.getMmaShape(ProductKind::Values);
  }
  /// Accumulators of one value that several products begin with are made anew
  /// for those that have another layout.
  void splitFills();
  /// What is loaded once for a product by accumulators and for others is loaded
  /// for each of them.
  void splitLoads();
  /// What goes through a queue or a shelf comes out as it lies.
  void tieCarried(mlir::Value carrier, mlir::ValueRange values);
  /// The accumulators of what is stored to a memory or loaded from it, and
  /// those of what is joined.
  struct Partials {
    llvm::SmallVector<mlir::Value> accs, joined;
    llvm::SmallVector<mlir::Operation *> ops;
  };
  /// What is stored and loaded lies alike; what is joined as lanes load most at
  /// once. All have the order of columns in which lanes store most at once.
  mlir::LogicalResult assignPartials();
  /// What goes from memory to LDS, and no product has a say in, lies as lanes
  /// store most at once.
  void assignPuts();
  /// Finds classes, products and partial results, and layouts that types name.
  mlir::LogicalResult collect();
  /// Gives a value's class a layout; says so at `at` if it has another one.
  mlir::LogicalResult assign(mlir::Value value, FragmentLayoutInterface layout,
                             mlir::Operation *at);
  /// The accumulators' layout by the schedule, for operands of a type, in
  /// groups of as many instructions as the chip's read of LDS feeds; of `group`
  /// where that is not 0.
  mlir::FailureOr<MmaLayoutAttr>
  defaultLayout(mlir::Operation *op, mlir::Type element, int64_t group = 0);
  /// How many instructions each product's layouts are of: as many as for all
  /// products that share an operand or accumulators with it.
  void groupProducts();
  /// Gives a product's accumulators, or its operands, their layouts.
  mlir::LogicalResult assignAccumulators(const Product &product);
  mlir::LogicalResult assignOperands(const Product &product);
  /// The order in which a product contracts its operand a; what no order makes
  /// an operand changes places.
  mlir::FailureOr<llvm::SmallVector<int64_t>> orderOf(const Product &product,
                                                      MmaLayoutAttr acc);
  /// The order of a product's contraction in which accumulators that become
  /// its operand b lie, turned in place where none is.
  mlir::FailureOr<llvm::SmallVector<int64_t>> orderByB(const Product &product,
                                                       MmaLayoutAttr acc);
  /// Turns accumulators before they become operand b.
  void turnBefore(FragmentConvertOp op, MmaLayoutAttr turned);
  /// The order of the dimension `out` of a product's operand b whose elements
  /// are narrower in LDS, where lanes read several at once; else empty.
  static llvm::SmallVector<int64_t>
  narrowOrder(const Product &product, MmaLayoutAttr acc, llvm::StringRef out);
  /// Operands that a function of elements takes beside accumulators lie as an
  /// operand of these would.
  void assignMapped();
  /// What is stored has several columns of a row in each word, if it can.
  void turnStores();
  /// What ends a softmax, or takes part in one, looks at whole rows: where
  /// several warps share the columns, they join first.
  mlir::LogicalResult joinWarps();
  /// Gives layouts to what has none yet.
  mlir::LogicalResult assignRest();
  /// Writes the layouts into types.
  void setTypes();

  mlir::gpu::GPUFuncOp kernel;
  ScheduleAttr schedule;
  const TargetInfo &target;
  llvm::MapVector<mlir::Value, unsigned> numbers;
  llvm::SmallVector<Class> classes;
  llvm::SmallVector<Product> products;
  /// The first values that go through each queue and shelf.
  llvm::MapVector<mlir::Value, llvm::SmallVector<mlir::Value>> carried;
  /// Memories of partial results.
  llvm::MapVector<mlir::Value, Partials> partials;
  /// A row value and an accumulator whose rows it is of, by op.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> rows;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_DISTRIBUTION_H
