//===- LaneLayouts.h - Which lane holds what --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How a block-level fragment lies in a lane's registers, and the arithmetic
/// that turns a linear layout into addresses.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELAYOUTS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELAYOUTS_H

#include "kvbuffer/Conversion/FragmentLayout.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace kvbuf {

/// The layouts that a kernel's types name, each worked out once.
class FragmentLayouts {
public:
  /// The layout of a fragment. Row values have that of the fragment whose rows
  /// they are.
  const FragmentLayout &of(FragmentType type);

private:
  llvm::DenseMap<mlir::Attribute, std::unique_ptr<FragmentLayout>> known;
};

/// Emits `x`'s image under a linear map given by the images of its bits: the
/// XOR, over all shift distances, of masked and shifted copies of `x` (i32).
mlir::Value emitLinear(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                       llvm::ArrayRef<int64_t> basis);

/// An address that is linear in some bits of the machine plus a constant.
struct LinearAddress {
  /// One run-time coordinate (i32) and the images of its bits.
  struct Term {
    mlir::Value value;
    llvm::SmallVector<int64_t> basis;
  };
  llvm::SmallVector<Term> terms;

  /// base + (terms XOR constant), as an index. The bits of the constant that
  /// the terms cannot reach are added last, so that they end up in the
  /// instruction's immediate offset and accesses share the rest. `base` is a
  /// multiple of `align`: constant bits below that are changed after the sum,
  /// so that all accesses share the sum too.
  mlir::Value emit(mlir::ImplicitLocOpBuilder &b, mlir::Value base,
                   int64_t align, int64_t constant) const;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANELAYOUTS_H
