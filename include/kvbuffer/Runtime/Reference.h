//===- include/kvbuffer/Runtime/Reference.h - Attention on the host *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The reference is attention in float64 on the inputs as stored. The baseline
// is the same mathematics done plainly in the kernel's own precision: 16-bit
// operands, fp32 accumulation, P rounded to the operand type relative to the
// row's maximum over all keys, O rounded to the output type.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_REFERENCE_H
#define KVBUFFER_RUNTIME_REFERENCE_H

#include "kvbuffer/Runtime/Workload.h"

#include <vector>

namespace kvbuf::rt {

/// One row of the output: query `i` of sequence `b`, query head `h`.
struct RowId {
  int64_t b = 0, i = 0, h = 0;
};

/// What a row should be. `reference` and `baseline` have an element for each of
/// a head of values.
struct RowResult {
  std::vector<double> reference;
  std::vector<float> baseline;
  /// m + ln l; -infinity without a visible key (or the sink if there is one).
  double lse = 0;
  /// Number of visible keys.
  int64_t keys = 0;
};

/// Computes rows one at a time; keeps its scratch memory, so use one object a
/// thread.
class Reference {
public:
  /// `workload` must outlive this object.
  explicit Reference(const Workload &workload) : w(workload) {}
  /// Computes one row: in float64 on the inputs as stored, and as the baseline,
  /// in fp32 with the weights rounded to the operands' type.
  void compute(const RowId &row, RowResult &result);

private:
  /// The largest of a row's scores, and the sum of their weights.
  struct Sums {
    double m64, l64 = 0;
    float m32, l32 = 0;
  };
  /// Keys [first, last) of a head of the cache.
  struct Keys {
    int64_t first, last, head;
  };
  /// Computes a row's scores and their maximum.
  void score(const RowId &row, const Keys &keys, Sums &sums);
  /// The same for one key of packed rows, `packed`, of which kernels make what
  /// is `widened`.
  void scorePacked(const RowId &row, const Keys &keys, int64_t j);
  /// Adds up weights, and rows of V by them.
  void weigh(const RowId &row, const Keys &keys, Sums &sums, RowResult &result);
  /// What a soft cap makes of a score.
  void cap(double &a, float &b) const;

  const Workload &w;
  std::vector<double> q64, s64;
  std::vector<float> q32, s32;
  /// Packed rows are taken exactly, and as kernels widen them. The log-sum-exp,
  /// which has a limit and no baseline, is that of the latter: their scores.
  std::vector<double> packed, widened;
  /// A row of a quantized cache.
  std::vector<uint16_t> row16;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_REFERENCE_H
