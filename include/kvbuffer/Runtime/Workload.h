//===- include/kvbuffer/Runtime/Workload.h - Attention problems with data *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A workload is an attention problem at concrete sizes with every tensor filled
// in: seeded or from files, lengths, page tables, and poison wherever a kernel
// has no business reading: memory that no query or key uses holds NaN, table
// entries past a sequence's end hold an id far out of range, outputs hold NaN,
// and each tensor lies between two red zones.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_WORKLOAD_H
#define KVBUFFER_RUNTIME_WORKLOAD_H

#include "kvbuffer/Runtime/Problem.h"

#include <map>
#include <string>
#include <vector>

namespace kvbuf::rt {

/// See the file comment.
class Workload : public Problem {
public:
  /// Throws Error for sizes, lengths, files or ids that do not fit.
  Workload(const Manifest &manifest, const WorkloadOptions &options);

  CheckResult check(const CheckOptions &options) const override;
  /// For each visible pair two operations for each element of a head of K and
  /// of V.
  double operations() const override;
  /// Each used row once.
  double minimalBytes() const override;
  std::string describe() const override;

  /// What the workload is of; its number of sequences.
  const AttentionProblem &problem() const {
    return static_cast<const AttentionProblem &>(*spec.problem());
  }
  int64_t batch() const { return static_cast<int64_t>(lenQ.size()); }
  /// Queries and keys of sequence b.
  int64_t queries(int64_t b) const { return lenQ[b]; }
  int64_t keys(int64_t b) const { return lenK[b]; }

  /// The elements of a head, in elements of `wideDtype`; those of 8 bits, in
  /// `scratch`, exactly. Head `h` counts query heads for q and o, and key/value
  /// heads for k and v.
  const uint16_t *qRow(int64_t b, int64_t i, int64_t h,
                       std::vector<uint16_t> &scratch) const;
  /// Those of the output, widened.
  void oRow(int64_t b, int64_t i, int64_t h, std::vector<float> &row) const;
  /// Where they are.
  const uint8_t *oAddress(int64_t b, int64_t i, int64_t h) const;
  /// The same of a cache: elements of 8 bits without their scales.
  const uint16_t *kRow(int64_t b, int64_t j, int64_t h,
                       std::vector<uint16_t> &scratch) const;
  const uint16_t *vRow(int64_t b, int64_t j, int64_t h,
                       std::vector<uint16_t> &scratch) const;
  /// What the elements of such a row stand for themselves times, from element
  /// `d` on; 1 without scales.
  double kScale(int64_t b, int64_t j, int64_t h, int64_t d) const;
  double vScale(int64_t b, int64_t j, int64_t h, int64_t d) const;
  /// The elements of a row that is packed, times their scales.
  void packedRow(int64_t b, int64_t j, int64_t h,
                 std::vector<double> &row) const;
  /// The log-sum-exp that the kernel wrote.
  float lse(int64_t b, int64_t i, int64_t h) const;

  /// Keys [first, last) that query i of sequence b sees; empty: first == last.
  std::pair<int64_t, int64_t> visible(int64_t b, int64_t i) const;
  /// Visible pairs of one query head, summed over all sequences.
  double visiblePairs() const;

private:
  struct CacheTensors {
    HostTensor *data = nullptr, *offsets = nullptr, *table = nullptr,
               *lengths = nullptr, *scales = nullptr;
    const QuantizedSpec *quantized = nullptr;
  };

  void applyFixedSizes();
  void applyUserSizes();
  void chooseLengths();
  void refuseLengthsTwice() const;
  void refuseIdleOptions() const;
  void chooseQueryLengths();
  void chooseKeyLengths();
  void completeSizes();
  void allocate();
  void fillIndices();
  void fillTable(HostTensor &table, uint64_t stream);
  void validateIndices() const;
  void fillData();
  void fillCache(const CacheTensors &cache, uint64_t stream);
  void locate();
  int64_t setDefault(const char *name, int64_t value);
  /// A size that has to be given, unless nothing at all is: then it is `usual`.
  /// Throws Error that names it and says `what` it is.
  int64_t require(const char *name, int64_t usual, const char *what);
  /// The integers of the tensor with that part, from its file.
  std::vector<int64_t> readFile(const std::string &role) const;
  void fillScales(const CacheTensors &cache, uint64_t stream);
  /// Packs a row of elements into bytes.
  void pack(uint8_t *to, const std::vector<float> &row) const;
  /// Where head `h` of token `j` begins in a tensor of a cache's shape: its
  /// data, or scales of groups of elements.
  int64_t cachePlace(const CacheTensors &cache, const HostTensor &tensor,
                     int64_t b, int64_t j, int64_t h) const;
  const uint16_t *cacheRow(const CacheTensors &cache, int64_t b, int64_t j,
                           int64_t h, std::vector<uint16_t> &scratch) const;
  /// The place of a scale among those of a cache.
  int64_t scalePlace(const CacheTensors &cache, int64_t b, int64_t j, int64_t h,
                     int64_t d) const;
  double cacheScale(const CacheTensors &cache, int64_t b, int64_t j, int64_t h,
                    int64_t d) const;

  /// Sizes that the kernel's types fix.
  Sizes fixed;
  std::vector<int64_t> lenQ, lenK, cacheLen;
  HostTensor *q = nullptr, *o = nullptr, *qOffsets = nullptr,
             *lseTensor = nullptr;
  CacheTensors k, v;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_WORKLOAD_H
