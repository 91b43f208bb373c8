//===- include/kvbuffer/Runtime/Check.h - The pass rule ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// One rule on every device. With `ulp` the distance between neighbours of the
// output type at the reference's magnitude, over all checked rows:
//
//   largest error    |out - ref| <= 2 * max|baseline - ref| + ulp, everywhere
//   mean error       mean|out - ref| <= 1.15 * mean|baseline - ref| + 1e-6
//   worst row        max ||out - ref|| / ||ref|| <= 1.5 * the baseline's
//   log-sum-exp      within 1e-4 + 1e-5 * |LSE|
//   rows without key exactly 0, LSE -infinity
//   everywhere       no NaN, nothing written outside of the outputs
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_CHECK_H
#define KVBUFFER_RUNTIME_CHECK_H

#include "kvbuffer/Runtime/Reference.h"

#include <functional>
#include <string>
#include <vector>

namespace kvbuf::rt {

/// Which rows to compare with the reference.
struct CheckOptions {
  /// 0: all if that is quick, else a sample; -1: all.
  int64_t rows = 0;
  uint64_t seed = 1;
  std::function<void(uint64_t done, uint64_t total)> progress;
};

/// A measured value, the baseline's, and the limit.
struct Comparison {
  double value = 0, baseline = 0, limit = 0;
  bool pass = true;
};

/// What the check found.
struct CheckResult {
  bool pass = true;
  /// `largest` alone was compared, element by element: its value is the share
  /// of an element's own limit, `largestWhere` says where that is.
  bool ofElements = false;
  std::string largestWhere;
  int64_t rowsChecked = 0, rowsTotal = 0;
  /// `largest` is at (largestRow, largestColumn); its limit is that element's.
  Comparison largest, mean, worstRow;
  RowId largestRow, worstRowId;
  int64_t largestColumn = 0;
  bool hasLse = false;
  /// At the row that comes closest to its limit.
  Comparison lse;
  RowId lseRow;
  /// Rows in which no key is visible.
  int64_t emptyRows = 0;
  /// One sentence for each violation.
  std::vector<std::string> failures;
};

/// Checks the outputs in the workload's tensors.
CheckResult checkOutputs(const Workload &workload, const CheckOptions &options);

/// "batch 1, query 17, head 3".
std::string rowString(const RowId &row);

/// Digests of the inputs, to tell whether a kernel changed them. Tensors with
/// huge gaps are left out.
std::vector<uint64_t> digestInputs(const Problem &problem);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_CHECK_H
