//===- include/kvbuffer/Runtime/AppendProblem.h - Appends with data *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_APPENDPROBLEM_H
#define KVBUFFER_RUNTIME_APPENDPROBLEM_H

#include "kvbuffer/Runtime/Problem.h"

#include <string>
#include <vector>

namespace kvbuf::rt {

/// An append of new tokens to caches (`kvbuffer.cache_append`) with every
/// tensor filled in. Sizes: `batch`, `seq_new` (new tokens of a sequence, of
/// the longest where they are ragged), `cache` (tokens before them, of the
/// longest), and the extents of caches and tables, which have defaults.
/// `--lengths-q` gives the new tokens of each sequence, `--cache-lengths` those
/// before.
///
/// The reference is in float64. What is neither rotated nor converted has the
/// same bits. A rotated element may be off by what three roundings of f32 do to
/// its operands, and by half of the cache's last place; of quantized ones the
/// quotient by the scale is so. What no token went to holds what it held.
class AppendProblem : public Problem {
public:
  /// Throws Error for sizes and lengths that do not fit.
  AppendProblem(const Manifest &manifest, const WorkloadOptions &options);

  CheckResult check(const CheckOptions &options) const override;
  /// New tokens read, their rows and scales written, angles read once.
  double minimalBytes() const override;
  std::string describe() const override;

  const AppendSpec &problem() const {
    return static_cast<const AppendSpec &>(*spec.problem());
  }

private:
  /// The elements of one tensor of keys or values.
  struct Checker;

  void chooseSizes();
  std::vector<int64_t> problemShape(const std::string &name) const;
  void fill();
  void fillTokens(const std::string &name, uint64_t stream);
  void fillIndices(const std::string &name);
  /// The element at (sequence, position, head, 0) of a cache, counted from the
  /// first of its tensor; -1: the position has no row. `scales`: of those, the
  /// first of the head.
  int64_t place(const std::string &name, int64_t b, int64_t position,
                int64_t head, bool scales = false) const;
  /// The new token's row.
  int64_t tokenPlace(const HostTensor &tokens, int64_t b, int64_t i,
                     int64_t head) const;
  /// The elements of a head of a tensor of keys or of values, by its name.
  int64_t headSizeOf(const std::string &name) const {
    return name[0] == 'k' ? problem().headSize : problem().valueHeadSize;
  }
  bool hasTable() const {
    return problem().cache == Layout::Continuous ||
           problem().cache == Layout::Paged;
  }

  /// New tokens of each sequence, and the positions of the first.
  std::vector<int64_t> fresh, begin;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_APPENDPROBLEM_H
