//===- FoldGrid.cpp - Keep grids within what a launch takes -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AssignWork.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-assign-work"

/// Whether an expression is never more than `limit`, by its numbers alone.
static bool isAtMost(Attribute expression, int64_t limit) {
  if (auto number = dyn_cast<IntegerAttr>(expression))
    return number.getInt() <= limit;
  auto min = dyn_cast<SizeAttr>(expression);
  return min && min.getOperation() == SizeOperator::Min &&
         llvm::any_of(min.getOperands(), [&](Attribute operand) {
           return isAtMost(operand, limit);
         });
}

/// An expression's value, in the kernel.
static Value valueOf(ImplicitLocOpBuilder &b, Attribute expression) {
  if (auto number = dyn_cast<IntegerAttr>(expression))
    return arith::ConstantIndexOp::create(b, number.getInt());
  if (auto name = dyn_cast<StringAttr>(expression))
    return LaunchSizeOp::create(b, name);
  return LaunchValueOp::create(b, expression);
}

/// The dimension that takes what z does not: y, or else x, where the number
/// of its blocks is fixed, so that to divide by it is cheap.
static std::optional<gpu::Dimension> fixedDimension(gpu::GPUFuncOp kernel,
                                                    ArrayAttr grid) {
  if (isa<IntegerAttr>(grid[1]))
    return gpu::Dimension::y;
  // A cluster's blocks are neighbours along x.
  if (isa<IntegerAttr>(grid[0]) && !kernel.getKnownClusterSize())
    return gpu::Dimension::x;
  return std::nullopt;
}

void kvbuf::foldGrid(gpu::GPUFuncOp kernel, int64_t blocks) {
  auto grid = kernel->getAttrOfType<ArrayAttr>(KVBufferDialect::kGridAttr);
  if (!grid || grid.size() != 3 || isAtMost(grid[2], blocks))
    return;
  std::optional<gpu::Dimension> fixed = fixedDimension(kernel, grid);
  // Teams divide the warps of a whole kernel.
  WalkResult divided =
      kernel.walk([](TeamsOp) { return WalkResult::interrupt(); });
  if (!fixed || divided.wasInterrupted()) {
    remark::missed(kernel.getLoc(),
                   remark::RemarkOpts::name("grid").category(DEBUG_TYPE))
        << "launches of more than 65535 blocks along z fail: "
        << (fixed ? "the kernel has teams"
                  : "neither x nor y has a fixed number of blocks");
    return;
  }

  SmallVector<Operation *> ids;
  kernel.walk([&](Operation *op) {
    auto id = dyn_cast<gpu::BlockIdOp>(op);
    auto dim = dyn_cast<gpu::GridDimOp>(op);
    gpu::Dimension d = id    ? id.getDimension()
                       : dim ? dim.getDimension()
                             : gpu::Dimension::x;
    if ((id || dim) && (d == *fixed || d == gpu::Dimension::z))
      ids.push_back(op);
  });

  // The program, to become what blocks within the grid do. Buffers live as
  // long as the block.
  Block &body = kernel.getBody().front();
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel);
  Operation *end = body.getTerminator();
  SmallVector<Operation *> program;
  for (Operation &op : body.without_terminator())
    if (!isa<AllocOp>(op))
      program.push_back(&op);
  b.setInsertionPoint(end);
  unsigned at = unsigned(*fixed);
  int64_t extent = cast<IntegerAttr>(grid[at]).getInt();
  Value along = gpu::BlockIdOp::create(b, *fixed);
  Value n = arith::ConstantIndexOp::create(b, extent);
  Value inside = arith::RemUIOp::create(b, along, n);
  Value outer = arith::DivUIOp::create(b, along, n);
  Value first = arith::MulIOp::create(
      b, outer, arith::ConstantIndexOp::create(b, blocks));
  Value z = arith::AddIOp::create(
      b, gpu::BlockIdOp::create(b, gpu::Dimension::z), first);
  Value depth = valueOf(b, grid[2]);
  Value active = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, z, depth);
  auto ifOp = scf::IfOp::create(b, active, /*withElseRegion=*/false);
  for (Operation *op : program)
    op->moveBefore(ifOp.thenBlock()->getTerminator());
  for (Operation *op : ids) {
    bool isZ =
        isa<gpu::BlockIdOp>(op)
            ? cast<gpu::BlockIdOp>(op).getDimension() == gpu::Dimension::z
            : cast<gpu::GridDimOp>(op).getDimension() == gpu::Dimension::z;
    Value value =
        isa<gpu::BlockIdOp>(op) ? (isZ ? z : inside) : (isZ ? depth : n);
    op->replaceAllUsesWith(ValueRange{value});
    op->erase();
  }

  Attribute most = b.getI64IntegerAttr(blocks);
  SmallVector<Attribute> folded(grid.getValue());
  folded[2] = sizeExpression(b, "min", {grid[2], most});
  folded[at] = sizeExpression(
      b, "product", {grid[at], sizeExpression(b, "ceildiv", {grid[2], most})});
  kernel->setAttr(KVBufferDialect::kGridAttr, b.getArrayAttr(folded));
}
