//===- Bounds.h - Between which numbers an expression stays -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_RAISEATTENTION_BOUNDS_H
#define KVBUFFER_LIB_CONVERSION_RAISEATTENTION_BOUNDS_H

#include "ElementExpr.h"

namespace kvbuf::raise {

/// The numbers from `lo` to `hi`; truth values are 0 and 1.
struct Bounds {
  double lo, hi;
  bool isOne() const { return lo == hi; }
};

/// Finds bounds of a graph's expressions: by the extents of indices, the
/// numbers in constants and the width of integers.
class BoundsFinder {
public:
  explicit BoundsFinder(ElementGraph &graph) : graph(graph) {}

  /// From here on the coordinate has this value.
  void fix(llvm::ArrayRef<Digit> coord, int64_t value);
  /// Nothing for floats that may be any number.
  std::optional<Bounds> find(Expr *e);

private:
  std::optional<Bounds> findIndex(llvm::ArrayRef<Digit> coord);
  std::optional<Bounds> findElement(Expr *e);
  std::optional<Bounds> findOp(Expr *e);
  std::optional<Bounds> findComparison(Expr *e, Bounds x, Bounds y);

  ElementGraph &graph;
  llvm::DenseMap<Digit, int64_t> fixed;
};

} // namespace kvbuf::raise

#endif // KVBUFFER_LIB_CONVERSION_RAISEATTENTION_BOUNDS_H
