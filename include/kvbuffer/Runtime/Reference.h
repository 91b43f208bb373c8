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
  const Workload &w;
  std::vector<double> q64, s64;
  std::vector<float> q32, s32;
  /// A row of a quantized cache.
  std::vector<uint16_t> row16;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_REFERENCE_H
