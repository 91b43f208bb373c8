//===- Machine.cpp - What machines have in common ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include <numeric>

using namespace mlir;
using namespace kvbuf;

bool kvbuf::isTurnedInLds(const TargetInfo &target, KVBufferAttr params) {
  return params.getOrder() == Dimension::Cols ||
         (params.contractsRows() && !target.readsTransposed &&
          params.getElementType().getIntOrFloatBitWidth() > 8);
}

bool kvbuf::goesThroughRegisters(const TargetInfo &target,
                                 KVBufferAttr params) {
  return params.getPolicy() == Policy::RegisterStaged ||
         (params.getPolicy() == Policy::Streaming &&
          isTurnedInLds(target, params));
}

SharedTile kvbuf::sharedTile(KVBufferAttr params) {
  SharedTile tile;
  tile.rows = params.getBN();
  tile.blockCols = params.getBK();
  tile.repeats = params.getSmemCols() / params.getBK();
  tile.elementBytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  tile.swizzle = params.getSwizzleOfBlocks();
  return tile;
}

int64_t kvbuf::slotAlignment(KVBufferAttr params) {
  return params.getStages() == 1
             ? kBufferAlignment
             : std::gcd(kBufferAlignment, params.getStageBytes());
}

namespace {
/// A machine, by what it is made of.
struct MachineEntry {
  /// What brings tiles.
  CopyEngine engine;
  /// How teams hand slots on; nothing: there are no rings.
  std::optional<SlotSignal> signal;
  /// Whether groups of warps multiply.
  bool groups;
  std::unique_ptr<Machine> (*create)(const TargetInfo &target);
};
} // namespace

/// A kernel's machine is the first one that its chip has all of.
static constexpr MachineEntry kMachines[] = {
    {CopyEngine::Boxes, SlotSignal::PhaseBarriers, true,
     [](const TargetInfo &) { return createHopperMachine(); }},
    {CopyEngine::Boxes, SlotSignal::PhaseBarriers, false,
     [](const TargetInfo &target) {
       return createBoxMachine(target.warpsPerRegisterGroup != 0);
     }},
    {CopyEngine::Waves, SlotSignal::PolledCounters, false,
     [](const TargetInfo &) { return createAMDRingMachine(); }},
    {CopyEngine::Waves, std::nullopt, false,
     [](const TargetInfo &) { return createAMDMachine(); }},
    {CopyEngine::Lanes, std::nullopt, false,
     [](const TargetInfo &) { return createNVIDIAMachine(); }}};

std::unique_ptr<Machine> kvbuf::createMachine(const TargetInfo &target,
                                              bool rings) {
  std::optional<SlotSignal> signal;
  if (rings)
    signal = target.slotSignal;
  const MachineEntry *entry =
      llvm::find_if(kMachines, [&](const MachineEntry &entry) {
        return target.has(entry.engine) && entry.signal == signal &&
               (!entry.groups || target.warpsPerMatrixGroup());
      });
  assert(entry != std::end(kMachines) && "every chip has a machine");
  return entry->create(target);
}

Value Numerics::emitRatio(Lanes &lower, Value x, Value y) {
  return arith::DivFOp::create(lower.b, x, y);
}

LogicalResult Fragments::emitTileFragment(Lanes &, TileFragmentOp op,
                                          const TileView &, Values &) {
  return op.emitOpError() << "has no per-lane form on this target: its "
                             "fragments come from LDS";
}

void Copies::emitMeet(Lanes &lower) { gpu::BarrierOp::create(lower.b); }

Value Numerics::addElements(Lanes &lower, Value sum, Value vector) {
  ImplicitLocOpBuilder &b = lower.b;
  int64_t n = cast<VectorType>(vector.getType()).getNumElements();
  for (int64_t i = 0; i < n; ++i)
    sum = arith::AddFOp::create(
        b, sum,
        arith::ExtFOp::create(b, b.getF32Type(), lower.element(vector, i)));
  return sum;
}

Value Numerics::roundOperand(Lanes &lower, Value value, VectorType type, bool) {
  if (auto element = cast<FloatType>(type.getElementType());
      element.getWidth() == 8) {
    // What exceeds 8-bit floats is the largest one.
    ImplicitLocOpBuilder &b = lower.b;
    auto clamp = [&](arith::CmpFPredicate beyond, const APFloat &limit) {
      APFloat wide = limit;
      bool loses;
      wide.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &loses);
      Value end = arith::ConstantOp::create(
          b, DenseElementsAttr::get(type.clone(b.getF32Type()), wide));
      Value is = arith::CmpFOp::create(b, beyond, value, end);
      value = arith::SelectOp::create(b, is, end, value);
    };
    const llvm::fltSemantics &semantics = element.getFloatSemantics();
    clamp(arith::CmpFPredicate::OGT, APFloat::getLargest(semantics));
    clamp(arith::CmpFPredicate::OLT,
          APFloat::getLargest(semantics, /*Negative=*/true));
  }
  return arith::TruncFOp::create(lower.b, type, value);
}
