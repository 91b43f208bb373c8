//===- KVBufferNames.cpp - Names of results in printed programs -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

using namespace mlir;
using namespace kvbuf;

/// "k" and the suffix for what belongs to K's buffer, and so on; the suffix
/// alone for what belongs to a neutral one.
static std::string name(KVBufferAttr params, StringRef suffix) {
  return params.getLabel().str() + suffix.str();
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
  setName(getBuffer(), name(getBuffer().getType().getParams(), "buf"));
}
void DramLoadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getToken(), name(getToken().getType().getParams(), "t"));
}
void LdsStageOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (Value staged : getStaged())
    setName(staged, name(cast<StagedType>(staged.getType()).getParams(), "s"));
}
void FragmentLoadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFragment(), name(getStaged().getType().getParams(), "f"));
}
void StagedViewOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getView(), name(getSource().getType().getParams(), "s"));
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
  setName(getRing(), name(getRing().getType().getParams(), "ring"));
}
void RingWaitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getStaged(), name(getStaged().getType().getParams(), "s"));
}
void MmaStartOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getTransposeB() ? "s_pending" : "acc_pending");
}
void MmaWaitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  auto start = getPending().getDefiningOp<MmaStartOp>();
  setName(getAcc(), start && start.getTransposeB() ? "s" : "acc");
}
