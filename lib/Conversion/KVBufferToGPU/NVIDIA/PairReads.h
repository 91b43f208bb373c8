//===- PairReads.h - Matrices of pairs of bytes -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_PAIRREADS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_PAIRREADS_H

#include "MachineNVIDIA.h"

namespace kvbuf {

/// Reads of a slot of bytes by ldmatrix. An element of that is two of the
/// slot's, neighbours along a row; places count such pairs, of which a slot's
/// rows and blocks have whole numbers.
struct NVIDIAMachine::PairReads {
  /// Bytes of an element of ldmatrix.
  static constexpr int64_t kUnit = 2;

  Lanes &lower;
  mlir::ImplicitLocOpBuilder &b;
  KVBufferAttr params;
  SharedTile layout;
  LinearLayout block;
  mlir::Value shared;
  /// Where the slot begins, or the warp's part of it.
  mlir::Value start;

  PairReads(Lanes &lower, KVBufferAttr params, mlir::Value slot);
  /// The place of (row, col) in a block.
  int64_t image(int64_t row, int64_t col) const {
    return block.apply({{"row", row}, {"col", col}}, "byte") / kUnit;
  }
  /// Reads matrices by one instruction, transposed or as they lie; `part` says
  /// how far on the warp's lie.
  mlir::Value emit(llvm::ArrayRef<Matrix> together,
                   const std::optional<LinearAddress::Term> &part,
                   bool transposed);
  /// A pair of pairs that a lane has read, as an integer.
  mlir::Value wordOf(mlir::Value pairs);
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_NVIDIA_PAIRREADS_H
