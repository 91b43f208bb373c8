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

/// Sums and products of floats, and x * y + z rounded once.
inline mlir::Value addf(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                        mlir::Value y) {
  return mlir::arith::AddFOp::create(b, x, y);
}
inline mlir::Value mulf(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                        mlir::Value y) {
  return mlir::arith::MulFOp::create(b, x, y);
}
mlir::Value fma(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y,
                mlir::Value z);

/// Two to the power of a value.
mlir::Value exp2(mlir::ImplicitLocOpBuilder &b, mlir::Value value);

/// By what a row's scores become exponents in base 2: x = s * scale + offset.
struct RowExponents {
  /// The scale, and the scale with the other sign.
  mlir::Value scale, negScale;
  mlir::Value offset;

  /// The offset of a row whose largest score is `max`, under this scale.
  mlir::Value offsetOf(mlir::ImplicitLocOpBuilder &b, mlir::Value max) const;
};

/// Exponents of a row whose largest score is `max`, or -inf where it has seen
/// no key; `scale` is the softmax's own.
RowExponents exponentsOf(LaneContext &lanes, mlir::Value max,
                         const llvm::APFloat &scale, bool unbounded);

/// Those of a softmax that is `unbounded`.
///
/// The product of the maximum and the scale in base 2 is rounded, and the
/// largest weight is 2 to the power of what is lost. From 2^28 on the scale is
/// the power of two below, by which every product is exact. A row's scores are
/// multiples of 16 apart there, so that all but the largest weigh nothing by
/// either scale; and up to there no more than 8 is lost, which an f16 bears.
RowExponents unboundedExponents(LaneContext &lanes, mlir::Value max,
                                const llvm::APFloat &scale);

/// The largest maximum whose exponents are finite. A sink beyond it counts as
/// infinite: it has all of a row's weight, and a log-sum-exp of infinity.
mlir::Value mostOfMaxima(LaneContext &lanes, const llvm::APFloat &scale,
                         bool unbounded);

/// Which rows of maxima have such a sink, where `kvbuffer.softmax_sink` has
/// made them: the largest maximum may be one of keys, too.
class InfiniteSinks : public LaneState {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InfiniteSinks)
  /// Those of a fragment of maxima, i1 each; none where others made it.
  llvm::ArrayRef<mlir::Value> of(mlir::Value maxima) const {
    auto it = rows.find(maxima);
    return it == rows.end() ? llvm::ArrayRef<mlir::Value>() : it->second;
  }
  void set(mlir::Value maxima, llvm::ArrayRef<mlir::Value> infinite) {
    rows[maxima].assign(infinite.begin(), infinite.end());
  }

private:
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> rows;
};

/// Folds values with one or two chains: two overlap latencies, one saves
/// registers.
mlir::Value fold(unsigned count, llvm::ArrayRef<mlir::Value> values,
                 llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> fn);

/// Chains in which a row's elements are added up or compared.
unsigned foldChains(LaneContext &lanes, FragmentType scores);

/// The largest of numbers by their bits as signed integers, of which machines
/// may take three at a time: so also as numbers, unless all are negative.
mlir::Value largestOfBits(mlir::ImplicitLocOpBuilder &b, unsigned chains,
                          llvm::ArrayRef<mlir::Value> values);

/// The lane's elements of an accumulator of this type, by row.
llvm::SmallVector<Values> valuesByRow(LaneContext &lanes, FragmentType type,
                                      llvm::ArrayRef<mlir::Value> vectors);

/// What rounding to an operand's element type adds to a weight, an f32.
mlir::Value roundingOf(LaneContext &lanes, mlir::Value weight,
                       mlir::Type operand);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_LANEARITHMETIC_H
