//===- LoopOrder.cpp - In which order a loop's ops run ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopOrder.h"
#include "../PipelineLoop.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

ArrayRef<const LoopOrder *> kvbuf::loopOrders() {
  static const LoopOrder *const orders[] = {
      &scoresOrder, &turnsOrder, &softmaxOrder, &blocksOrder, &loadsOrder};
  return orders;
}

void FoundLoops::add(scf::ForOp loop, bool asks) {
  if (llvm::none_of(
          loops, [&](const OrderedLoop &other) { return other.loop == loop; }))
    loops.push_back({loop, asks});
}

//===----------------------------------------------------------------------===//
// Placement
//===----------------------------------------------------------------------===//

void Placement::place(Operation *op, int64_t ahead) {
  if (placed.insert(op).second)
    order.push_back({op, ahead});
}

void Placement::place(ArrayRef<Operation *> ops, int64_t ahead) {
  for (Operation *op : ops)
    place(op, ahead);
}

void Placement::placeIf(function_ref<bool(Operation *)> which, int64_t ahead) {
  for (Operation &op : loop.getBody()->without_terminator())
    if (which(&op))
      place(&op, ahead);
}

void Placement::placeWithOperands(Operation *op) {
  if (!op || op->getBlock() != loop.getBody() || placed.contains(op))
    return;
  for (Value operand : op->getOperands())
    placeWithOperands(operand.getDefiningOp());
  place(op);
}

void Placement::placeRest(RewriterBase &rewriter, const OpSlice &ahead,
                          ArrayRef<Value> handed) {
  IRMapping copies;
  auto isMissing = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return def && ahead.contains(def) && !llvm::is_contained(handed, value);
  };
  std::function<void(Operation *)> copyNeeds = [&](Operation *op) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        if (!isMissing(operand) || copies.contains(operand))
          continue;
        Operation *def = operand.getDefiningOp();
        copyNeeds(def);
        place(rewriter.clone(*def, copies));
      }
    });
  };
  for (Operation &op : llvm::make_early_inc_range(*loop.getBody())) {
    if (ahead.contains(&op))
      continue;
    rewriter.setInsertionPoint(&op);
    copyNeeds(&op);
    op.walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        if (isMissing(operand.get()))
          operand.set(copies.lookup(operand.get()));
    });
    if (!op.hasTrait<OpTrait::IsTerminator>())
      place(&op);
  }
}

void Placement::moveLast(function_ref<bool(Operation *)> which) {
  SmallVector<std::pair<Operation *, int64_t>> last;
  llvm::erase_if(order, [&](const auto &entry) {
    bool isLast = which(entry.first);
    if (isLast)
      last.push_back(entry);
    return isLast;
  });
  llvm::append_range(order, last);
}

void Placement::annotate() {
  for (auto [at, entry] : llvm::enumerate(order))
    setStage(entry.first, entry.second, spanOf(entry.first), at);
  loop->setAttr(KVBufferDialect::kPipelineAttr,
                PipelineAttr::get(loop.getContext(), how, start));
}

//===----------------------------------------------------------------------===//
// What orders share
//===----------------------------------------------------------------------===//

void kvbuf::setSpan(Operation *op, StageSpan span) {
  auto stage = op->getAttrOfType<StageAttr>(KVBufferDialect::kStageAttr);
  setStage(op, aheadOf(op), span, stage ? stage.getAt() : -1);
}

bool kvbuf::loadsNumber(Operation *op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  auto tensor = load ? dyn_cast<BlockArgument>(load.getMemRef()) : nullptr;
  return tensor && isa<FunctionOpInterface>(tensor.getOwner()->getParentOp()) &&
         llvm::all_of(tensor.getUsers(), [](Operation *user) {
           return isa<memref::LoadOp, memref::DimOp>(user);
         });
}

bool kvbuf::isLookUp(Operation *op, const std::optional<TargetInfo> &target,
                     int64_t warps) {
  auto tile = dyn_cast<CacheTileOp>(op);
  if (!tile || !tile.getLayout().getRun())
    return false;
  TileType type = tile.getTile().getType();
  return !type.getPageSize() ||
         (target && tile.getLayout().getRows().table &&
          target->lanesLookUp(type.getRows(), type.getPageSize(), warps));
}

Operation *kvbuf::findBound(const OpSlice &slice) {
  auto isBound = [](Operation *op) {
    return !isMemoryEffectFree(op) && !isa<DramLoadOp, CacheTileOp>(op) &&
           !loadsNumber(op);
  };
  const auto *found = llvm::find_if(slice, isBound);
  return found == slice.end() ? nullptr : *found;
}

bool kvbuf::canTakeApart(scf::ForOp loop, const OpSlice &ahead,
                         ArrayRef<Value> handed) {
  OpSlice twice;
  auto read = [&](Operation *op) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp();
            def && ahead.contains(def) && !llvm::is_contained(handed, operand))
          twice.insert(def);
    });
  };
  for (Operation &op : *loop.getBody())
    if (!ahead.contains(&op))
      read(&op);
  for (unsigned i = 0; i < twice.size(); ++i) {
    if (isa<MmaOp>(twice[i]) ||
        (!isMemoryEffectFree(twice[i]) && !loadsNumber(twice[i])))
      return false;
    read(twice[i]);
  }
  return true;
}

bool kvbuf::loadsIntoOneSlot(const OpSlice &slice) {
  return llvm::any_of(slice, [](Operation *op) {
    auto load = dyn_cast<DramLoadOp>(op);
    return load && load.getBuffer().getType().getParams().getStages() < 2;
  });
}
