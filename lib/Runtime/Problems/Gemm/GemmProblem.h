//===- GemmProblem.h - Products of matrices with data -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_PROBLEMS_GEMM_GEMMPROBLEM_H
#define KVBUFFER_LIB_RUNTIME_PROBLEMS_GEMM_GEMMPROBLEM_H

#include "kvbuffer/Runtime/Problem.h"

#include <string>

namespace kvbuf::rt {

/// The product of matrices that an artifact computes: c = a b, or c = a b^T.
/// Its parts: a, b and c.
struct GemmSpec : ProblemSpec {
  bool transposeB = false;

  std::string describe() const override;
  std::string facts() const override;
  std::unique_ptr<Problem> fill(const Manifest &manifest,
                                const WorkloadOptions &options) const override;
  bool isReadInPlace(const std::string &) const override { return false; }
};

/// A product of two matrices with every tensor filled in: C = A B, or C = A
/// B^T, for tensors a [m, k], b [k, n] or [n, k], and c [m, n] of f16, bf16 or
/// f32. A kernel says so by `#kvbuffer.problem<op = "gemm", transpose_b =
/// true>`. Sizes are those that the tensors' shapes name; 100 or so where none
/// is given.
///
/// The reference is in float64. An element may be off by half of its last
/// place, and by four deviations of what k roundings of f32 make of its terms.
class GemmProblem : public Problem {
public:
  /// Throws Error for sizes that do not fit.
  GemmProblem(const Manifest &manifest, const WorkloadOptions &options);

  CheckResult check(const CheckOptions &options) const override;
  double operations() const override { return 2.0 * m * n * k; }
  double minimalBytes() const override;
  std::string describe() const override;

private:
  const GemmSpec &problem() const {
    return static_cast<const GemmSpec &>(*spec.problem());
  }

  double m = 0, n = 0, k = 0;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_PROBLEMS_GEMM_GEMMPROBLEM_H
