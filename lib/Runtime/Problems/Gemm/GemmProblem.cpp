//===- GemmProblem.cpp - Products of matrices with data -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GemmProblem.h"
#include "../../Random.h"
#include "kvbuffer/Runtime/Check.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Parallel.h"

#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

using namespace kvbuf::rt;

namespace {

/// Rows that are checked where all would take long, and what is long.
constexpr int64_t kSampledRows = 64;
constexpr double kManyOperations = 4e9;

double decode(const HostTensor &t, int64_t at) {
  return t.dtype == DType::F32 ? t.as<float>()[at]
                               : decode16(t.dtype, t.as<uint16_t>()[at]);
}

} // namespace

GemmProblem::GemmProblem(const Manifest &manifest,
                         const WorkloadOptions &options)
    : Problem(manifest, options) {
  refuseSequences("a product of matrices");
  std::set<std::string> known = spec.sizeNames();
  takeSizes(known);
  // No multiples of any tile.
  int64_t usual = options.large ? 2000 : 100;
  for (const std::string &name : known)
    values.emplace(name, usual += 13);
  const GemmSpec &p = problem();
  auto shapeOf = [&](const char *name) {
    return evaluateShape(*spec.findTensor(p.tensor(name)), values);
  };
  std::vector<int64_t> a = shapeOf("a"), b = shapeOf("b"), c = shapeOf("c");
  if (a[1] != b[p.transposeB] || a[0] != c[0] || b[!p.transposeB] != c[1])
    throw Error("tensors '" + p.tensor("a") + "', '" + p.tensor("b") +
                "' and '" + p.tensor("c") + "' have shapes " + shapeString(a) +
                ", " + shapeString(b) + " and " + shapeString(c) +
                ", which is no product" +
                (p.transposeB ? " with the transposed 'b'" : ""));
  m = static_cast<double>(c[0]);
  n = static_cast<double>(c[1]);
  k = static_cast<double>(a[1]);
  allocateAll([](const std::string &) { return std::vector<int64_t>(); });
  uint64_t stream = 0;
  for (const char *name : {"a", "b"}) {
    HostTensor &t = *part(name);
    ++stream;
    if (isGiven(name))
      continue;
    parallelFor(t.shape[0], 16, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        Random random(options.seed, stream, static_cast<uint64_t>(row));
        for (int64_t col = 0; col < t.shape[1]; ++col) {
          int64_t at = row * t.strides[0] + col;
          if (t.dtype == DType::F32)
            t.as<float>()[at] = random.normal();
          else
            t.as<uint16_t>()[at] = encode16(t.dtype, random.normal());
        }
      }
    });
  }
  keepInitial();
}

CheckResult GemmProblem::check(const CheckOptions &options) const {
  CheckResult result;
  result.ofElements = true;
  const HostTensor &a = *part("a"), &b = *part("b"), &c = *part("c");
  bool transposed = problem().transposeB;
  int64_t depth = a.shape[1];
  result.rowsTotal = c.shape[0];
  std::vector<int64_t> rows;
  bool all = options.rows < 0 ||
             (options.rows == 0 && operations() <= kManyOperations);
  int64_t wanted = all ? result.rowsTotal
                       : std::min(result.rowsTotal,
                                  options.rows ? options.rows : kSampledRows);
  Random random(options.seed, 77);
  for (int64_t i = 0; i < wanted; ++i)
    rows.push_back(all ? i : random.below(result.rowsTotal));
  result.rowsChecked = wanted;
  std::mutex mutex;
  std::string worst;
  int64_t wrong = 0;
  parallelFor(
      wanted, 4,
      [&](int64_t begin, int64_t end) {
        std::vector<double> sums(c.shape[1]), sizes(c.shape[1]);
        for (int64_t r = begin; r < end; ++r) {
          int64_t row = rows[r];
          std::fill(sums.begin(), sums.end(), 0.0);
          std::fill(sizes.begin(), sizes.end(), 0.0);
          auto addTerm = [&](int64_t col, int64_t i) {
            double term = decode(a, row * a.strides[0] + i) *
                          decode(b, transposed ? col * b.strides[0] + i
                                               : i * b.strides[0] + col);
            sums[col] += term;
            sizes[col] += term * term;
          };
          for (int64_t x = 0; x < (transposed ? c.shape[1] : depth); ++x)
            for (int64_t y = 0; y < (transposed ? depth : c.shape[1]); ++y)
              transposed ? addTerm(x, y) : addTerm(y, x);
          for (int64_t col = 0; col < c.shape[1]; ++col) {
            double got = decode(c, row * c.strides[0] + col);
            double half = c.dtype == DType::F32
                              ? std::abs(sums[col]) * 0x1p-24
                              : 0.5 * ulpOf(c.dtype, std::abs(sums[col]));
            double limit = half * (1 + 0x1p-10) +
                           4 * std::sqrt(static_cast<double>(depth)) *
                               std::sqrt(sizes[col]) * 0x1p-24;
            double error = std::abs(got - sums[col]);
            double share = error <= limit ? (limit > 0 ? error / limit : 0)
                                          : std::max(error / limit, 1.001);
            std::lock_guard<std::mutex> lock(mutex);
            if (!(share <= 1))
              ++wrong;
            if (share <= result.largest.value)
              continue;
            result.largest = {share, 0, 1, share <= 1};
            result.largestWhere =
                "at [" + std::to_string(row) + ", " + std::to_string(col) + "]";
            worst = "'" + c.name + "' holds " + std::to_string(got) + " at [" +
                    std::to_string(row) + ", " + std::to_string(col) +
                    "]; expected " + std::to_string(sums[col]) +
                    " give or take " + std::to_string(limit);
          }
        }
      },
      options.progress);
  if (wrong)
    result.failures.push_back(worst + "; " + std::to_string(wrong) +
                              " elements are wrong");
  checkZones(result);
  result.pass = result.failures.empty();
  return result;
}

double GemmProblem::minimalBytes() const {
  auto bytes = [&](const char *name) {
    return static_cast<double>(sizeOf(part(name)->dtype));
  };
  return m * k * bytes("a") + n * k * bytes("b") + m * n * bytes("c");
}

std::string GemmProblem::describe() const {
  std::string text;
  for (const auto &[name, value] : values)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}
