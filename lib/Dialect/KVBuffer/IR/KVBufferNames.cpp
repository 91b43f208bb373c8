//===- KVBufferNames.cpp - Names of results in printed programs -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvbuf;

/// The parameters of what a value is of, if it is of a buffer.
static KVBufferAttr bufferOf(Value value) {
  return llvm::TypeSwitch<Type, KVBufferAttr>(value.getType())
      .Case<BufferType, TokenType, StagedType, RingType>(
          [](auto type) { return type.getParams(); })
      .Default([](Type) { return KVBufferAttr(); });
}

StringRef kvbuf::labelOf(Value value) {
  // Operands are followed as long as they are of the same buffer; whether ops
  // are verified, nobody knows when values get names.
  while (value) {
    KVBufferAttr params = bufferOf(value);
    if (!params)
      return "";
    if (!params.isNeutral())
      return params.getLabel();
    Operation *op = value.getDefiningOp();
    if (auto alloc = dyn_cast_or_null<AllocOp>(op))
      return alloc.getLabel().value_or("");
    auto stage = dyn_cast_or_null<LdsStageOp>(op);
    Value next;
    if (stage) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      if (number < stage.getTokens().size())
        next = stage.getTokens()[number];
    } else if (isa_and_nonnull<DramLoadOp, RingOp, RingWaitOp, StagedViewOp,
                               StagedFitOp>(op)) {
      for (Value operand : op->getOperands())
        if (bufferOf(operand))
          next = operand;
    }
    value = next;
  }
  return "";
}

/// "k" and the suffix for what belongs to K's buffer, and so on; the suffix
/// alone for what belongs to one without a name.
static std::string name(Value value, StringRef suffix) {
  return labelOf(value).str() + suffix.str();
}

void CacheNumKeysOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getKeys(), "keys");
}
void CacheTileOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getTile(), "tile");
}
void DramTileOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getTile(), "tile");
}
void AllocOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getBuffer(), name(getBuffer(), "buf"));
}
void DramLoadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getToken(), name(getToken(), "t"));
}
void LdsStageOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (Value staged : getStaged())
    setName(staged, name(staged, "s"));
}
void FragmentLoadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFragment(), name(getStaged(), "f"));
}
void StagedViewOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getView(), name(getSource(), "s"));
}
void StagedFitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFitted(), name(getSource(), "s"));
  setName(getFactor(), "factor");
}
void TileFragmentOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFragment(), "f");
}
void DramRangeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getRange(), "range");
}
void FragmentFillOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFragment(), getValue().isZero() ? "zero" : "fill");
}
void FragmentSliceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFragment(), "part");
}
void MmaOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getTransposeB() ? "s" : "acc");
}
void FragmentConvertOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFragment(), "rounded");
}
void SoftcapOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "s");
}
void FragmentScaleOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "scaled");
}
void MaskOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "s");
}
void RescaleOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "acc");
}
void RingOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getRing(), name(getRing(), "ring"));
}
void RingWaitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getStaged(), name(getStaged(), "s"));
}
void MmaStartOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getTransposeB() ? "s_pending" : "acc_pending");
}
void MmaWaitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  auto start = getPending().getDefiningOp<MmaStartOp>();
  setName(getAcc(), start && start.getTransposeB() ? "s" : "acc");
}
