//===- lib/Runtime/Check.cpp - The pass rule --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Check.h"
#include "../Random.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Parallel.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>

using namespace kvbuf::rt;

namespace {

constexpr double kLargestFactor = 2, kMeanFactor = 1.15, kMeanFloor = 1e-6,
                 kWorstRowFactor = 1.5, kLseFloor = 1e-4, kLseFactor = 1e-5;

/// What f32 costs a row beside the baseline's roundings, relative to the row: a
/// weight, which is 1 for a single key in the baseline alone, times a scale,
/// and the product with the sum's inverse are rounded, 2^-24 each, and the
/// inverse is off by a unit in the last place, 2^-23. Rows of which the
/// baseline is exact differ by that; beside roundings of 16 bits it is nothing.
constexpr double kWorstRowFloor = 0x1p-22;

/// Multiply-adds of a reference that counts as quick: a few seconds on two
/// cores.
constexpr double kQuickWork = 6e9;
constexpr int64_t kLeastSample = 512;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", x);
  return text;
}

/// Numbers rows of all sequences in the order sequence, query, head.
class RowIndex {
public:
  explicit RowIndex(const Workload &w) : heads(w.problem().heads) {
    for (int64_t b = 0; b < w.batch(); ++b)
      starts.push_back(starts.back() + w.queries(b) * heads);
  }
  int64_t count() const { return starts.back(); }
  RowId at(int64_t n) const {
    int64_t b =
        std::upper_bound(starts.begin(), starts.end(), n) - starts.begin() - 1;
    int64_t rest = n - starts[b];
    return {b, rest / heads, rest % heads};
  }
  int64_t of(const RowId &row) const {
    return starts[row.b] + row.i * heads + row.h;
  }

private:
  int64_t heads;
  std::vector<int64_t> starts = {0};
};

/// All rows, or a random sample with the first and last query of each sequence
/// in it.
std::vector<int64_t> chooseRows(const Workload &w, const RowIndex &index,
                                const CheckOptions &options) {
  const AttentionProblem &p = w.problem();
  int64_t total = index.count(), wanted = options.rows;
  if (wanted == 0) {
    double work = w.visiblePairs() * static_cast<double>(p.heads) * 2 *
                  static_cast<double>(p.headSize + p.valueHeadSize);
    double share = work > kQuickWork ? kQuickWork / work : 1;
    wanted = std::max(static_cast<int64_t>(share * static_cast<double>(total)),
                      kLeastSample);
  }
  std::vector<int64_t> rows;
  if (wanted < 0 || wanted >= total) {
    rows.resize(total);
    for (int64_t n = 0; n < total; ++n)
      rows[n] = n;
    return rows;
  }
  Random random(options.seed, /*stream=*/200);
  std::set<int64_t> sample;
  for (int64_t b = 0; b < w.batch(); ++b)
    if (int64_t last = w.queries(b) - 1;
        last >= 0 && static_cast<int64_t>(sample.size()) + 2 <= wanted) {
      sample.insert(index.of({b, 0, random.below(p.heads)}));
      sample.insert(index.of({b, last, random.below(p.heads)}));
    }
  while (static_cast<int64_t>(sample.size()) < wanted)
    sample.insert(random.below(total));
  return {sample.begin(), sample.end()};
}

/// What a thread gathers; merged at the end. Ties go to the lower row, so that
/// the report does not depend on the threads.
struct Totals {
  double sum = 0, baseSum = 0, elements = 0;
  double largest = -1, excess = -kInfinity, baseLargest = 0;
  RowId largestRow, excessRow;
  int64_t largestColumn = 0, excessColumn = 0;
  double worst = -1, baseWorst = 0;
  RowId worstRow;
  double lse = -1, lseLimit = 0, lseShare = -1; // of its limit
  RowId lseRow;
};

bool before(const RowId &a, const RowId &b) {
  return std::tie(a.b, a.i, a.h) < std::tie(b.b, b.i, b.h);
}

/// Takes the larger value; `a` is updated together with its companions.
template <typename... Pairs>
void takeLarger(double &a, RowId &aRow, double b, const RowId &bRow,
                Pairs &&...companions) {
  if (!(b > a || (b == a && before(bRow, aRow))))
    return;
  a = b;
  aRow = bRow;
  (companions(), ...);
}

void merge(Totals &t, const Totals &o) {
  t.sum += o.sum;
  t.baseSum += o.baseSum;
  t.elements += o.elements;
  t.baseLargest = std::max(t.baseLargest, o.baseLargest);
  t.baseWorst = std::max(t.baseWorst, o.baseWorst);
  takeLarger(t.largest, t.largestRow, o.largest, o.largestRow,
             [&] { t.largestColumn = o.largestColumn; });
  takeLarger(t.excess, t.excessRow, o.excess, o.excessRow,
             [&] { t.excessColumn = o.excessColumn; });
  takeLarger(t.worst, t.worstRow, o.worst, o.worstRow);
  takeLarger(t.lseShare, t.lseRow, o.lseShare, o.lseRow, [&] {
    t.lse = o.lse;
    t.lseLimit = o.lseLimit;
  });
}

/// |out - ref|, infinite if the output is not finite where the reference is.
double errorOf(double out, double ref) {
  double error = std::abs(out - ref);
  return std::isnan(error) ? kInfinity : error;
}

void compareRow(const Workload &w, const RowId &row, const RowResult &r,
                Totals &t) {
  const AttentionProblem &p = w.problem();
  thread_local std::vector<float> o;
  w.oRow(row.b, row.i, row.h, o);
  double error2 = 0, base2 = 0, norm2 = 0;
  for (int64_t d = 0; d < p.valueHeadSize; ++d) {
    double ref = r.reference[d];
    if (!std::isfinite(ref))
      throw Error("the reference is not finite at " + rowString(row) +
                  ": the inputs hold NaN or infinity");
    double error = errorOf(o[d], ref);
    double base = std::abs(static_cast<double>(r.baseline[d]) - ref);
    t.sum += error;
    t.baseSum += base;
    t.baseLargest = std::max(t.baseLargest, base);
    if (error > t.largest) {
      t.largest = error;
      t.largestRow = row;
      t.largestColumn = d;
    }
    double excess = error - ulpOf(p.outDtype, std::abs(ref));
    if (excess > t.excess) {
      t.excess = excess;
      t.excessRow = row;
      t.excessColumn = d;
    }
    error2 += error * error;
    base2 += base * base;
    norm2 += ref * ref;
  }
  t.elements += static_cast<double>(p.valueHeadSize);
  if (norm2 > 0) {
    t.baseWorst = std::max(t.baseWorst, std::sqrt(base2 / norm2));
    takeLarger(t.worst, t.worstRow, std::sqrt(error2 / norm2), row);
  }
  // One of infinity is of a sink's.
  if (p.lse && (std::isfinite(r.lse) || r.lse > 0)) {
    float lse = w.lse(row.b, row.i, row.h);
    double error = lse == r.lse ? 0 : errorOf(lse, r.lse);
    double limit =
        kLseFloor + (std::isfinite(r.lse) ? kLseFactor * std::abs(r.lse) : 0.0);
    takeLarger(t.lseShare, t.lseRow, error / limit, row, [&] {
      t.lse = error;
      t.lseLimit = limit;
    });
  }
}

/// The first row that breaks a rule which needs no reference, and how many do.
struct Violations {
  int64_t count = 0;
  RowId first;
  void add(const RowId &row) {
    if (count == 0 || before(row, first))
      first = row;
    ++count;
  }
  void merge(const Violations &o) {
    if (o.count && (count == 0 || before(o.first, first)))
      first = o.first;
    count += o.count;
  }
  void report(std::vector<std::string> &failures,
              const std::string &what) const {
    if (count)
      failures.push_back(what + " in " + std::to_string(count) +
                         (count == 1 ? " row" : " rows") + ", the first at " +
                         rowString(first));
  }
};

/// Looks at every row: NaN, and rows without visible keys.
void scanRows(const Workload &w, const RowIndex &index, CheckResult &result) {
  const AttentionProblem &p = w.problem();
  Violations nan, nanLse, notZero, notEmpty;
  std::mutex mutex;
  parallelFor(index.count(), 1024, [&](int64_t begin, int64_t end) {
    Violations n, nl, nz, ne;
    std::vector<float> o;
    int64_t empty = 0;
    for (int64_t i = begin; i < end; ++i) {
      RowId row = index.at(i);
      auto [first, last] = w.visible(row.b, row.i);
      bool noKey = first == last;
      w.oRow(row.b, row.i, row.h, o);
      bool hasNan = false, hasValue = false;
      for (float x : o) {
        hasNan |= std::isnan(x);
        hasValue |= x != 0;
      }
      if (hasNan)
        n.add(row);
      else if (noKey && hasValue)
        nz.add(row);
      empty += noKey;
      if (!p.lse)
        continue;
      float lse = w.lse(row.b, row.i, row.h);
      if (std::isnan(lse))
        nl.add(row);
      else if (noKey && !p.sink && lse != -kInfinity)
        ne.add(row);
    }
    std::lock_guard<std::mutex> lock(mutex);
    nan.merge(n);
    nanLse.merge(nl);
    notZero.merge(nz);
    notEmpty.merge(ne);
    result.emptyRows += empty;
  });
  std::string o = "'" + w.problem().tensor("o") + "'",
              lse = "'" + w.problem().tensor("lse") + "'";
  nan.report(result.failures, o + " is NaN or was not written");
  nanLse.report(result.failures, lse + " is NaN or was not written");
  notZero.report(result.failures, o + " is not 0 where no key is visible");
  notEmpty.report(result.failures,
                  lse + " is not -infinity where no key is visible");
}

/// Outputs were filled with 0xFF; what lies between and after their rows must
/// still be.
void checkGaps(const Workload &w, const HostTensor &t, CheckResult &result) {
  if (!t.memory->zonesIntact())
    result.failures.push_back("memory beside tensor '" + t.name +
                              "' was written");
  if (!t.output)
    return;
  int64_t used = 0, count = 1;
  for (int64_t b = 0; b < w.batch(); ++b)
    used += w.queries(b);
  for (int64_t extent : t.shape)
    count *= extent;
  const AttentionProblem &p = w.problem();
  bool isLse = p.roleOf(t.name) == "lse";
  int64_t rowBytes =
      isLse ? 4 : p.valueHeadSize * static_cast<int64_t>(sizeOf(p.outDtype));
  int64_t usedBytes = used * p.heads * rowBytes;
  if (usedBytes == static_cast<int64_t>(t.memory->size()) || count == 0 ||
      t.memory->size() > (uint64_t(1) << 32))
    return;
  // Blank the rows in a copy and look for anything else.
  std::string copy(reinterpret_cast<const char *>(t.memory->data()),
                   t.memory->size());
  for (int64_t b = 0; b < w.batch(); ++b)
    for (int64_t i = 0; i < w.queries(b); ++i)
      for (int64_t h = 0; h < p.heads; ++h) {
        const uint8_t *at =
            isLse ? t.memory->data() +
                        4 * (w.part("q_offsets")
                                 ? h * t.strides[0] +
                                       (w.part("q_offsets")->integer(b) + i) *
                                           t.strides[1]
                                 : b * t.strides[0] + h * t.strides[1] +
                                       i * t.strides[2])
                  : w.oAddress(b, i, h);
        std::memset(copy.data() + (at - t.memory->data()), 0xFF,
                    static_cast<size_t>(rowBytes));
      }
  size_t at = copy.find_first_not_of('\xFF');
  if (at != std::string::npos)
    result.failures.push_back("tensor '" + t.name +
                              "': memory that belongs to no row was written, "
                              "first at byte " +
                              std::to_string(at));
}

} // namespace

std::string kvbuf::rt::rowString(const RowId &row) {
  return "batch " + std::to_string(row.b) + ", query " + std::to_string(row.i) +
         ", head " + std::to_string(row.h);
}

CheckResult kvbuf::rt::checkOutputs(const Workload &w,
                                    const CheckOptions &options) {
  const AttentionProblem &p = w.problem();
  CheckResult result;
  RowIndex index(w);
  std::vector<int64_t> rows = chooseRows(w, index, options);
  result.rowsTotal = index.count();
  result.rowsChecked = static_cast<int64_t>(rows.size());
  result.hasLse = p.lse;

  scanRows(w, index, result);
  for (const HostTensor &t : w.tensors())
    checkGaps(w, t, result);

  // Partial sums are kept by range, so that their order, and with it the last
  // digit of a mean, does not depend on the number of threads.
  constexpr int64_t kGrain = 16;
  std::vector<Totals> partial((rows.size() + kGrain - 1) / kGrain);
  parallelFor(
      static_cast<int64_t>(rows.size()), kGrain,
      [&](int64_t begin, int64_t end) {
        thread_local RowResult row;
        Reference reference(w);
        for (int64_t i = begin; i < end; ++i) {
          RowId id = index.at(rows[i]);
          reference.compute(id, row);
          compareRow(w, id, row, partial[begin / kGrain]);
        }
      },
      options.progress);
  Totals t;
  for (const Totals &part : partial)
    merge(t, part);

  if (!rows.empty()) {
    result.largest = {t.largest, t.baseLargest, 0, true};
    result.largestRow = t.largestRow;
    result.largestColumn = t.largestColumn;
    if (t.excess > kLargestFactor * t.baseLargest) {
      // The element that breaks the rule, which may not be the one with the
      // largest error.
      result.largest.pass = false;
      result.largestRow = t.excessRow;
      result.largestColumn = t.excessColumn;
    }
    // The limit at the reported element.
    RowResult at;
    Reference(w).compute(result.largestRow, at);
    double ref = at.reference[result.largestColumn];
    std::vector<float> o;
    w.oRow(result.largestRow.b, result.largestRow.i, result.largestRow.h, o);
    result.largest.value = errorOf(o[result.largestColumn], ref);
    result.largest.limit =
        kLargestFactor * t.baseLargest + ulpOf(p.outDtype, std::abs(ref));

    double meanLimit = kMeanFactor * t.baseSum / t.elements + kMeanFloor;
    result.mean = {t.sum / t.elements, t.baseSum / t.elements, meanLimit,
                   t.sum / t.elements <= meanLimit};
    if (t.worst >= 0) {
      double limit = kWorstRowFactor * t.baseWorst + kWorstRowFloor;
      result.worstRow = {t.worst, t.baseWorst, limit, t.worst <= limit};
      result.worstRowId = t.worstRow;
    }
    if (t.lse >= 0) {
      result.lse = {t.lse, 0, t.lseLimit, t.lse <= t.lseLimit};
      result.lseRow = t.lseRow;
    }
  }
  auto fail = [&](const Comparison &c, const std::string &what) {
    if (!c.pass)
      result.failures.push_back(what + " " + number(c.value) +
                                " exceeds its limit " + number(c.limit));
  };
  fail(result.largest, "the error at " + rowString(result.largestRow) +
                           ", column " + std::to_string(result.largestColumn) +
                           ":");
  fail(result.mean, "the mean error");
  fail(result.worstRow,
       "the worst row's relative error (" + rowString(result.worstRowId) + ")");
  fail(result.lse,
       "the log-sum-exp's error (" + rowString(result.lseRow) + ")");
  result.pass = result.failures.empty();
  return result;
}

std::vector<uint64_t> kvbuf::rt::digestInputs(const Problem &w) {
  constexpr uint64_t kMost = uint64_t(4) << 30;
  std::vector<uint64_t> digests;
  for (const HostTensor &t : w.tensors()) {
    uint64_t digest = 0;
    if (!t.output && t.memory->size() <= kMost) {
      std::mutex mutex;
      parallelFor(static_cast<int64_t>(t.memory->size()), 1 << 20,
                  [&](int64_t begin, int64_t end) {
                    uint64_t h = static_cast<uint64_t>(begin) + 1;
                    for (int64_t i = begin; i < end; i += 8) {
                      uint64_t word = 0;
                      std::memcpy(
                          &word, t.memory->data() + i,
                          static_cast<size_t>(std::min<int64_t>(8, end - i)));
                      h = (h ^ word) * 0x9E3779B97F4A7C15ull;
                      h ^= h >> 29;
                    }
                    std::lock_guard<std::mutex> lock(mutex);
                    digest += mix(h);
                  });
    }
    digests.push_back(digest);
  }
  return digests;
}
