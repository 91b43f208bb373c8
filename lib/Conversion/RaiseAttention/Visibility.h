//===- Visibility.h - Which keys a graph's masks leave visible --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_RAISEATTENTION_VISIBILITY_H
#define KVBUFFER_LIB_CONVERSION_RAISEATTENTION_VISIBILITY_H

#include "ElementExpr.h"
#include <string>

namespace kvbuf::raise {

/// Part of a score that hides keys.
struct Hiding {
  /// What decides: `expr` hides where it is true, hides where it is false, or
  /// is added to the score and hides where it is very negative. Or it is the
  /// score from here on, computed from the one before; the first alone may be.
  enum class Form { WhereTrue, WhereFalse, Added, Computed };
  Form form;
  Expr *expr;
  /// A hidden score, or what an added number is multiplied with.
  double value;
};

/// Numbers at or below this hide a key: the weight of such a score is 0 beside
/// that of any score that is not itself near it.
constexpr double kHidden = -1e4;

/// Visible keys j of query i: lowest <= j - i <= highest.
struct Band {
  std::optional<int64_t> lowest, highest;
  /// Whether every hidden score is -inf.
  bool infinite = true;
  /// The largest hidden score, or number that is added to one.
  double hidden = -std::numeric_limits<double>::infinity();
};

/// A mask that is added, select(c, 0, n) or select(c, n, 0) with n at most
/// `kHidden`, as one that selects; others as they are.
Hiding asSelection(ElementGraph &graph, const Hiding &hiding);

/// The band of keys that `hiding` leaves visible, for queries `i` and keys `j`.
/// Otherwise none, and `why` says why.
std::optional<Band> findBand(ElementGraph &graph, const Hiding &hiding,
                             llvm::ArrayRef<Digit> i, llvm::ArrayRef<Digit> j,
                             std::string &why);

} // namespace kvbuf::raise

#endif // KVBUFFER_LIB_CONVERSION_RAISEATTENTION_VISIBILITY_H
