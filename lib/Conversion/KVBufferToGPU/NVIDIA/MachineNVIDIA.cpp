//===- MachineNVIDIA.cpp - Movement on NVIDIA, sm_80 and later --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MachineNVIDIA.h"
#include "KVBufferToGPU/PackedRows.h"
#include "KVBufferToGPU/Pages.h"
#include "KVBufferToGPU/Staging.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

std::unique_ptr<Machine> kvbuf::createNVIDIAMachine() {
  return std::make_unique<NVIDIAMachine>();
}

void NVIDIAMachine::tokenTypes(Lanes &lower, KVBufferAttr params,
                               SmallVectorImpl<Type> &types) {
  if (goesThroughRegisters(lower.target, params))
    stagedTypes(lower, params, types);
  if (hasAsyncCopies)
    types.push_back(nvgpu::DeviceAsyncTokenType::get(lower.b.getContext()));
}

SmallVector<int64_t> NVIDIAMachine::imagesOf(const SharedTile &tile,
                                             StringRef dim, unsigned log2Step,
                                             unsigned bits) {
  SmallVector<int64_t> images;
  LinearLayout block = tile.block();
  for (unsigned bit = 0; bit < bits; ++bit)
    images.push_back(block.basis(dim, log2Step + bit, "byte") /
                     tile.elementBytes);
  return images;
}

Value NVIDIAMachine::emitAddress(Lanes &lower, const LinearAddress &address,
                                 Value first, KVBufferAttr params, int64_t row,
                                 int64_t col) {
  SharedTile layout = sharedTile(params);
  int64_t align = slotAlignment(params) / layout.elementBytes;
  int64_t offset = layout.byteOffset(row, col) / layout.elementBytes;
  if (llvm::isPowerOf2_64(layout.rows))
    return address.emit(lower.b, first, align, offset);
  // Where a block begins is no XOR of bits then; inside of it all is.
  int64_t block =
      col / layout.blockCols * layout.blockBytes() / layout.elementBytes;
  Value inBlock = address.emit(lower.b, first, align, offset - block);
  return arith::AddIOp::create(lower.b, inBlock, lower.index(block));
}

Values NVIDIAMachine::emitLoad(Lanes &lower, DramLoadOp op,
                               const TileView &tile, Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  Values values;
  if (packedRowOf(op.getTile())) {
    emitPackedLoad(lower, op.getTile(), tile,
                   op.getBuffer().getType().getParams(), slot,
                   op.getPred() ? lower.single(op.getPred()) : Value(),
                   {lower.thread, lower.threads()});
  } else if (goesThroughRegisters(lower.target,
                                  op.getBuffer().getType().getParams())) {
    values = emitStagedLoads(lower, op, tile);
    if (!hasAsyncCopies)
      return values;
  } else {
    OpBuilder::InsertionGuard guard(b);
    Copy copy{op.getTile().getType(), op.getBuffer().getType().getParams(),
              lower.threads(), int64_t(op.getBlock())};
    // Ahead of all branches, where the lanes of a warp are known to be
    // together.
    Values pages;
    if (tile.map == RowMap::Lanes)
      pages =
          pagesOfSteps(lower, copy, tile,
                       startsAtMultiple(op.getTile(), copy.type.getPageSize()));
    copy.pages = pages;
    if (op.getPred()) {
      auto issued = scf::IfOp::create(b, lower.single(op.getPred()),
                                      /*withElseRegion=*/false);
      b.setInsertionPointToStart(issued.thenBlock());
    }
    emitTileCopies(lower, op, copy, tile, slot);
  }
  // The group exists whether or not it has copies: waits count groups.
  auto group = nvgpu::DeviceAsyncCreateGroupOp::create(
      b, nvgpu::DeviceAsyncTokenType::get(b.getContext()), ValueRange{});
  // Printed bare, it would take the next line's result for an operand of its
  // own when it is read back; an attribute ends it.
  group->setAttr(KVBufferDialect::kGroupAttr, b.getUnitAttr());
  values.push_back(group);
  return values;
}

void NVIDIAMachine::emitStage(Lanes &lower, LdsStageOp op,
                              ArrayRef<Values> tokens) {
  ImplicitLocOpBuilder &b = lower.b;
  Value group;
  for (auto [operand, values] : llvm::zip_equal(op.getTokens(), tokens)) {
    KVBufferAttr params = cast<TokenType>(operand.getType()).getParams();
    if (goesThroughRegisters(lower.target, params))
      emitStagedStores(
          lower, params, values.front(),
          ArrayRef<Value>(values).drop_front().drop_back(hasAsyncCopies));
    else
      group = values.back();
  }
  if (group)
    nvgpu::DeviceAsyncWaitOp::create(
        b, group, b.getI32IntegerAttr(op.getYounger().value_or(0)));
  emitMeet(lower);
}

void NVIDIAMachine::emitMeet(Lanes &lower) {
  ImplicitLocOpBuilder &b = lower.b;
  if (!lower.team)
    gpu::BarrierOp::create(b);
  else if (Value barrier = lower.teamBarrier())
    emitNamedBarrier(lower, barrier,
                     lower.schedule.getWarps() * lower.target.waveSize,
                     /*wait=*/true);
  else
    // Lanes of a warp are apart, too: what one has copied, another reads.
    NVVM::SyncWarpOp::create(b, lower.i32(-1));
}

void NVIDIAMachine::emitLanding(Lanes &lower) {
  if (hasAsyncCopies)
    NVVM::CpAsyncWaitGroupOp::create(lower.b, 0);
}

void NVIDIAMachine::emitNamedBarrier(Lanes &lower, Value id, int64_t threads,
                                     bool wait) {
  ImplicitLocOpBuilder &b = lower.b;
  Value count = lower.i32(threads);
  if (wait)
    NVVM::BarrierOp::create(b, TypeRange(), id, count,
                            NVVM::BarrierReductionAttr(), Value());
  else
    NVVM::BarrierArriveOp::create(b, id, count);
}
