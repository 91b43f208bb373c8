//===- LaneLowering.cpp - From tiles to lanes -------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "CachePlaces.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace kvbuf;

LaneLowering::LaneLowering(gpu::GPUFuncOp kernel, const TargetInfo &target,
                           ScheduleAttr schedule, Machine &machine,
                           int64_t alignment)
    : Lanes(kernel, target, schedule, machine, alignment), signature(*this),
      rings(ofKernel<LaneRingTeams>()) {
  rings.groupThreads = int64_t(target.warpsPerMatrixGroup()) * target.waveSize;
}

LogicalResult LaneLowering::lowerBlock(Block &block) {
  Operation *end =
      block.mightHaveTerminator() ? block.getTerminator() : nullptr;
  for (Operation &op : block) {
    if (&op == end)
      break;
    b.setLoc(op.getLoc());
    if (failed(lowerOp(&op)))
      return failure();
  }
  return success();
}

/// Whether an op is arithmetic on indices whose results fit 32 bits if its
/// operands do.
static bool isIndexArithmetic(Operation *op) {
  auto isIndex = [](Type type) { return type.isIndex(); };
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivUIOp,
             arith::RemUIOp, arith::CeilDivUIOp, arith::MinSIOp, arith::MaxSIOp,
             arith::MinUIOp, arith::MaxUIOp, arith::CmpIOp, arith::SelectOp,
             arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::ShLIOp,
             arith::ShRUIOp>(op) &&
         (llvm::any_of(op->getResultTypes(), isIndex) ||
          llvm::any_of(op->getOperandTypes(), isIndex));
}

/// Arithmetic on indices, done in 32 bits.
static void lowerNarrow(Lanes &lanes, Operation *op) {
  ImplicitLocOpBuilder &b = lanes.b;
  Values operands;
  for (Value operand : op->getOperands()) {
    Value value = lanes.single(operand);
    operands.push_back(value.getType().isIndex() ? lanes.toI32(value) : value);
  }
  SmallVector<Type> types;
  for (Type type : op->getResultTypes())
    types.push_back(type.isIndex() ? Type(b.getI32Type()) : type);
  Operation *copy = b.create(op->getLoc(), op->getName().getIdentifier(),
                             operands, types, op->getAttrs());
  for (auto [from, to] : llvm::zip_equal(op->getResults(), copy->getResults()))
    lanes.set(from, {from.getType().isIndex() ? lanes.toIndex(to) : to});
}

LogicalResult LaneLowering::lowerOp(Operation *op) {
  current = op;
  if (auto lowering = dyn_cast<LaneLoweringInterface>(op))
    return lowering.lowerToLanes(*this);
  if (isa<WorkItemOp, ItemRowsOp>(op))
    return op->emitOpError() << "has no per-lane form: no block has an item "
                                "yet; run kvbuf-assign-work first";
  if (isa_and_nonnull<KVBufferDialect>(op->getDialect()) || op->getNumRegions())
    return op->emitOpError() << "has no per-lane form";
  auto isTiled = [](Type type) { return isa<FragmentType, TileType>(type); };
  if (llvm::any_of(op->getOperandTypes(), isTiled) ||
      llvm::any_of(op->getResultTypes(), isTiled))
    return op->emitOpError() << "has no per-lane form; expected an op that "
                                "implements LaneLoweringInterface";
  // Rows, keys and numbers of tiles: sizes are passed in 32 bits. In 64 they
  // would take registers that teams beside rings do not have.
  if (machine.hasRings() && narrowsIndices && isIndexArithmetic(op)) {
    lowerNarrow(*this, op);
    return success();
  }
  // Scalar code is the same for every lane.
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Value value = findSingle(operand);
    if (!value)
      return op->emitOpError()
             << "has an operand without a single per-lane value";
    mapping.map(operand, value);
  }
  Operation *copy = b.clone(*op, mapping);
  for (auto [from, to] : llvm::zip_equal(op->getResults(), copy->getResults()))
    set(from, {to});
  return success();
}

LogicalResult LaneLowering::lowerInner(Operation *op) {
  llvm::SaveAndRestore<bool> wide(narrowsIndices, false);
  return lowerOp(op);
}

Value LaneLowering::anyOfGroup(Value condition) {
  if (!rings.signBarriers)
    rings.signBarriers = barriers.take(rings.groups);
  Value id = arith::AddIOp::create(b, rings.group, i32(rings.signBarriers));
  Value any = BarrierAnyOp::create(b, b.getI1Type(), condition, id,
                                   b.getI64IntegerAttr(rings.groupThreads));
  // Said to be the same for all lanes, so that loops after a branch on it keep
  // their numbers in the scalar unit.
  any = uniform(arith::ExtUIOp::create(b, b.getI32Type(), any).getResult());
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, any, i32(0));
}

LogicalResult LaneLowering::run() {
  b.setInsertionPoint(kernel);
  if (failed(checkPlaces(kernel)) || failed(signature.expand()))
    return failure();
  findPlaces(*this);
  Value x = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  thread = blockThread = toI32(x);
  lane = arith::AndIOp::create(b, thread, i32(target.waveSize - 1));
  warp = machine.uniform(
      *this,
      arith::ShRUIOp::create(b, thread, i32(llvm::Log2_64(target.waveSize))));
  if (machine.hasRings()) {
    kernel.walk([&](SoftmaxFinishOp op) {
      accumulatorCols = op.getAcc().getType().getCols();
    });
    machine.emitPrologue(*this);
  }
  // What else lies in LDS comes after the buffers that have their places.
  kernel.walk([&](AllocOp op) {
    auto team = op->getParentOfType<TeamOp>();
    int64_t copies = team ? int64_t(team.getCopies()) : 1;
    int64_t bytes = llvm::alignTo(
        op.getBuffer().getType().getParams().getBytes(), kBufferAlignment);
    if (op.getOffset())
      lds.cover(int64_t(*op.getOffset()) + copies * bytes);
  });
  if (failed(machine.prepare(*this, kernel)))
    return failure();
  if (failed(lowerBlock(kernel.getBody().front())))
    return failure();
  b.setLoc(kernel.getLoc());
  machine.emitEnd(*this);
  gpu::ReturnOp::create(b);
  signature.finish();
  return success();
}
