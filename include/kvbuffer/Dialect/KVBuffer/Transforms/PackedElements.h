//===- PackedElements.h - Elements of packed rows, by lanes -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Vectors of elements and scales of a token's packed row (`#kvbuffer.row`) in
/// the memref of its bytes. LLVM has no types for most of them: they are loaded
/// and stored as bytes, and keep their bits.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PACKEDELEMENTS_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PACKEDELEMENTS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// The f32 that a vector of bits of f8E8M0FNU (i8) stands for, a power of two
/// each, or what is no number.
mlir::Value widenPowers(mlir::ImplicitLocOpBuilder &b, mlir::Value codes);

/// The row of a token's head.
class PackedElements {
public:
  /// `data`: the cache's bytes, of which `lead` are the first indices of the
  /// row.
  PackedElements(mlir::ImplicitLocOpBuilder &b, RowAttr row, mlir::Value data,
                 llvm::ArrayRef<mlir::Value> lead, mlir::Value head)
      : b(b), row(row), data(data), lead(lead), head(head) {}

  /// Elements of a part from its element `first` on, as they are stored;
  /// `alignment`: what is known of their address, bytes.
  mlir::Value load(RowPartAttr part, mlir::Value first, mlir::VectorType type,
                   std::optional<int64_t> alignment);
  void store(RowPartAttr part, mlir::Value first, mlir::Value elements,
             std::optional<int64_t> alignment);
  /// The scale of element `first` of a part, and those of the groups after it.
  mlir::Value loadScales(RowPartAttr part, mlir::Value first,
                         mlir::VectorType type);
  void storeScales(RowPartAttr part, mlir::Value first, mlir::Value scales);
  /// Elements of a part in f32, times their scales.
  mlir::Value widened(RowPartAttr part, mlir::Value first, int64_t width,
                      std::optional<int64_t> alignment);

private:
  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::AddIOp>(x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::MulIOp>(x, y);
  }
  mlir::Value groupOf(RowPartAttr part, mlir::Value first);
  /// The column of the memref that byte `at` of the row is, in its tail too.
  mlir::Value column(int64_t at);
  mlir::Value loadBytes(mlir::VectorType type, mlir::Value column,
                        std::optional<int64_t> alignment);
  void storeBytes(mlir::Value vector, mlir::Value column,
                  std::optional<int64_t> alignment);

  mlir::ImplicitLocOpBuilder &b;
  RowAttr row;
  mlir::Value data;
  llvm::ArrayRef<mlir::Value> lead;
  mlir::Value head;
};

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PACKEDELEMENTS_H
