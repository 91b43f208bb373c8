//===- LaneArithmetic.h - What softmaxes and caps compute -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEARITHMETIC_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEARITHMETIC_H

#include "Lanes.h"

namespace kvbuf {

/// Sums, differences and products of integers or indices.
inline mlir::Value add(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                       mlir::Value y) {
  return mlir::arith::AddIOp::create(b, x, y);
}
inline mlir::Value sub(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                       mlir::Value y) {
  return mlir::arith::SubIOp::create(b, x, y);
}
inline mlir::Value mul(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                       mlir::Value y) {
  return mlir::arith::MulIOp::create(b, x, y);
}

/// Two to the power of a value.
mlir::Value exp2(mlir::ImplicitLocOpBuilder &b, mlir::Value value);

/// Folds values with one or two chains: two overlap latencies, one saves
/// registers.
mlir::Value fold(unsigned count, llvm::ArrayRef<mlir::Value> values,
                 llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> fn);

/// Chains in which a row's elements are added up or compared.
unsigned foldChains(Lanes &lanes, FragmentType scores);

/// The largest of numbers by their bits as signed integers, of which machines
/// may take three at a time: so also as numbers, unless all are negative.
mlir::Value largestOfBits(mlir::ImplicitLocOpBuilder &b, unsigned chains,
                          llvm::ArrayRef<mlir::Value> values);

/// The lane's elements of an accumulator of this type, by row.
llvm::SmallVector<Values> valuesByRow(Lanes &lanes, FragmentType type,
                                      llvm::ArrayRef<mlir::Value> vectors);

/// What rounding to an operand's element type adds to a weight, an f32.
mlir::Value roundingOf(Lanes &lanes, mlir::Value weight, mlir::Type operand);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEARITHMETIC_H
