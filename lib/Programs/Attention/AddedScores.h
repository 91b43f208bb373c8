//===- AddedScores.h - Biases that products begin with ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A function that multiplies scores by a number and adds what does not depend
/// on them needs no instruction behind the product: its accumulators begin with
/// what is added, over the number, which the softmax takes. Nothing is held in
/// registers beside the product then.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_ADDEDSCORES_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_ADDEDSCORES_H

#include "BegunMask.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace kvbuf {

/// A function of scores that is such a sum.
class AddedScores {
public:
  /// The function of a problem whose load `staged` comes by tiles; nullopt
  /// where it is another: what is added depends on the score, or on tensors
  /// that lanes read by the row or the key, products are scaled before, the
  /// factor is not positive, or there is a sink or a log-sum-exp.
  /// `scalesQueries`: queries can be multiplied where they lie. `byPlaces`: a
  /// function may be one, too, that adds a product of what is the same for the
  /// head and what follows from the row and the key, and reads no tensor for
  /// that (null: no load comes by tiles), or one that adds what it reads by
  /// clamped distances, of no more than `mostNumbers` numbers.
  static std::optional<AddedScores>
  of(AttentionOp op, mlir::memref::LoadOp staged, bool scalesQueries = false,
     bool byPlaces = false, int64_t mostNumbers = 0);

  /// What the product of Q and K, with what it begins with, is to be multiplied
  /// by: the problem's scale, too, unless queries are. Positive.
  double getFactor() const { return factor; }

  /// What queries are to be multiplied by, where nothing of what is added is
  /// then: a power of two, which leaves them exact. Else 1.
  double getQueryScale() const { return queryScale; }

  /// What the product begins with, for the tile `at`, of which `at.read`, if
  /// there is one, has what the load reads. Where there is a `mask`, hidden
  /// elements begin with it instead.
  mlir::Value begin(mlir::ImplicitLocOpBuilder &b, AttentionOp op,
                    const mlir::IRMapping &args, const ScoreTile &at,
                    FragmentType type, const BegunMask *mask = nullptr) const;

private:
  /// The value of one addend, times `by`: what is the same for all keys is
  /// multiplied, where it is a factor of what is far from the lowest number.
  mlir::Value multiplied(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                         mlir::IRMapping &known, double by) const;

  /// A value of the function, and what it is multiplied by.
  struct Addend {
    mlir::Value value;
    double weight;
  };
  /// Of the function's, in the order of their addition.
  llvm::SmallVector<Addend, 1> addends;
  double factor = 1, queryScale = 1;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_ADDEDSCORES_H
