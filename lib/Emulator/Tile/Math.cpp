//===- Math.cpp - The mathematics of fragments ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Math.h"
#include <cmath>
#include <limits>
#include <numbers>

using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();

Matrix tile::multiply(const Matrix &a, const Matrix &b, const Matrix &acc,
                      bool transposeB) {
  Matrix result = acc;
  // The innermost loop runs along rows of b, so that it is vector code.
  Matrix packed;
  const Matrix *right = &b;
  if (transposeB) {
    packed = Matrix(b.cols, b.rows);
    for (int64_t r = 0; r < b.rows; ++r)
      for (int64_t c = 0; c < b.cols; ++c)
        packed.at(c, r) = b.at(r, c);
    right = &packed;
  }
  for (int64_t i = 0; i < a.rows; ++i) {
    float *out = &result.data[i * result.cols];
    for (int64_t k = 0; k < a.cols; ++k) {
      float x = a.at(i, k);
      const float *y = &right->data[k * right->cols];
      for (int64_t j = 0; j < result.cols; ++j)
        out[j] += x * y[j];
    }
  }
  return result;
}

Matrix tile::slice(const Matrix &m, int64_t row, int64_t col, int64_t rows,
                   int64_t cols) {
  Matrix part(rows, cols);
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(&m.data[(row + r) * m.cols + col], cols, &part.data[r * cols]);
  return part;
}

Matrix tile::map(const Matrix &m, mlir::Type elementType,
                 llvm::function_ref<float(float)> f) {
  Matrix result(m.rows, m.cols);
  for (size_t i = 0; i < m.data.size(); ++i)
    result.data[i] = roundTo(elementType, f(m.data[i]));
  return result;
}

Matrix tile::reduceRows(const Matrix &m, bool isMax) {
  Matrix result(m.rows, 1);
  for (int64_t r = 0; r < m.rows; ++r) {
    float row = isMax ? -kInfinity : 0;
    for (int64_t c = 0; c < m.cols; ++c)
      row = isMax ? std::max(row, m.at(r, c)) : row + m.at(r, c);
    result.at(r, 0) = row;
  }
  return result;
}

/// The keys [first, last) that the row at key position `p` sees.
static std::pair<int64_t, int64_t> visible(int64_t p, int64_t keys,
                                           MaskAttr mask) {
  int64_t first = 0, last = keys;
  if (mask.getCausal())
    last = std::min(last, p + 1);
  if (mask.getRight() >= 0)
    last = std::min(last, p + mask.getRight() + 1);
  if (mask.getLeft() >= 0)
    first = std::max(first, p - mask.getLeft());
  return {first, last};
}

KeyRange tile::keyRange(int64_t row, int64_t queries, int64_t keys, int64_t BM,
                        MaskAttr mask) {
  // Both ends of what a row sees rise from row to row.
  int64_t lastRow = std::min(row + BM, queries) - 1;
  auto [lo, fullHi] = visible(row + keys - queries, keys, mask);
  auto [fullLo, hi] = visible(lastRow + keys - queries, keys, mask);
  return {lo, hi, fullLo, fullHi};
}

Matrix tile::hide(const Matrix &scores, int64_t row, int64_t queries,
                  int64_t key, int64_t keys, MaskAttr mask, int64_t group) {
  Matrix result = scores;
  for (int64_t r = 0; r < scores.rows; ++r) {
    auto [first, last] = visible(row + r / group + keys - queries, keys, mask);
    for (int64_t c = 0; c < scores.cols; ++c)
      if (key + c < first || key + c >= last)
        result.at(r, c) = -kInfinity;
  }
  return result;
}

/// By what scores of a row with this maximum become exponents in base 2, as
/// lanes have it (`unboundedExponents` in LaneArithmetic.h).
static float exponentScale(float max, float scale, bool unbounded) {
  float base2 = scale * std::numbers::log2e_v<double>;
  if (!unbounded || std::abs(max) < std::nextafter(0x1p28f / base2, 0.0f) ||
      std::isnan(max))
    return base2;
  return std::exp2(std::floor(std::log2(base2)));
}

SoftmaxStep tile::onlineSoftmax(const Matrix &scores, const Matrix &max,
                                const Matrix &sum, const Matrix *rowMax,
                                float scale, bool unbounded) {
  SoftmaxStep step{Matrix(scores.rows, scores.cols), max, sum, max};
  for (int64_t r = 0; r < scores.rows; ++r) {
    float m = max.at(r, 0);
    if (rowMax)
      m = std::max(m, rowMax->at(r, 0));
    for (int64_t c = 0; !rowMax && c < scores.cols; ++c)
      m = std::max(m, scores.at(r, c));
    step.max.at(r, 0) = m;
    float base2 = exponentScale(m, scale, unbounded);
    // A row without a key yet: any finite number keeps p at 0.
    float origin = m == -kInfinity ? 0 : m * base2;
    float total = 0;
    for (int64_t c = 0; c < scores.cols; ++c) {
      float p = std::exp2(std::fma(scores.at(r, c), base2, -origin));
      step.p.at(r, c) = p;
      total += p;
    }
    // Of products as they were rounded: exactly 1 where the maximum stays.
    float rescale = std::exp2(max.at(r, 0) * base2 - origin);
    step.rescale.at(r, 0) = rescale;
    step.sum.at(r, 0) = std::fma(sum.at(r, 0), rescale, total);
  }
  return step;
}

RaisedMax tile::raiseMax(const Matrix &scores, const Matrix &max, float scale,
                         bool exact, bool unbounded) {
  RaisedMax raised{max, max, false};
  float base2 = scale * std::numbers::log2e_v<float>;
  for (int64_t r = 0; r < scores.rows; ++r) {
    // Weights of up to 2^8, where products are not rounded by much.
    bool isLarge = unbounded && std::abs(max.at(r, 0)) >= 0x1p20f / base2;
    float slack = exact || isLarge ? 0 : 8;
    for (int64_t c = 0; c < scores.cols; ++c) {
      float &m = raised.max.at(r, 0);
      raised.any |= scores.at(r, c) > max.at(r, 0) + slack / base2;
      m = std::max(m, scores.at(r, c));
    }
  }
  if (!raised.any)
    raised.max = max;
  for (int64_t r = 0; r < scores.rows; ++r) {
    float m = raised.max.at(r, 0), finite = m == -kInfinity ? 0 : m;
    float by = exponentScale(m, scale, unbounded);
    // Of products as they were rounded, where that is much.
    float below = unbounded ? max.at(r, 0) * by - finite * by
                            : (max.at(r, 0) - finite) * base2;
    raised.factor.at(r, 0) = raised.any ? std::exp2(below) : 1;
  }
  return raised;
}

int tile::powerThatFits(const Matrix &source) {
  double largest = 0;
  for (int64_t r = 0; r < source.rows; ++r)
    for (int64_t c = 0; c < source.cols; ++c)
      if (double x = std::abs(double(source.at(r, c))); std::isfinite(x))
        largest = std::max(largest, x);
  // The largest in [2^14, 2^15), but for those that would need more than the
  // powers of two that f32 has.
  return largest > 0 ? std::min(14 - std::ilogb(largest), 126) : 126;
}

Matrix tile::softmaxHead(const Matrix &scores, const Matrix &max, float scale,
                         bool exponentsOnly, bool unbounded) {
  Matrix x(scores.rows, scores.cols);
  for (int64_t r = 0; r < scores.rows; ++r) {
    float base2 = exponentScale(max.at(r, 0), scale, unbounded);
    float m = max.at(r, 0), origin = m == -kInfinity ? 0 : m * base2;
    for (int64_t c = 0; c < scores.cols; ++c) {
      float exponent = std::fma(scores.at(r, c), base2, -origin);
      x.at(r, c) = 2 * c < scores.cols && !exponentsOnly ? std::exp2(exponent)
                                                         : exponent;
    }
  }
  return x;
}

SoftmaxTail tile::softmaxTail(const Matrix &exponents, const Matrix &sum,
                              mlir::Type rounded) {
  SoftmaxTail tail{exponents, sum};
  for (int64_t r = 0; r < exponents.rows; ++r)
    for (int64_t c = 0; c < exponents.cols; ++c) {
      float &p = tail.p.at(r, c);
      if (2 * c >= exponents.cols)
        p = std::exp2(p);
      if (!rounded)
        tail.sum.at(r, 0) += p;
    }
  if (!rounded)
    return tail;
  tail.p = map(tail.p, rounded, [](float x) { return x; });
  for (int64_t r = 0; r < exponents.rows; ++r)
    for (int64_t c = 0; c < exponents.cols; ++c)
      tail.sum.at(r, 0) += tail.p.at(r, c);
  return tail;
}

float tile::mostOfMaxima(float scale, bool unbounded) {
  double base2 = scale * std::numbers::log2e_v<double>;
  double factor = unbounded ? std::exp2(std::floor(std::log2(base2))) : base2;
  constexpr float kMost = std::numeric_limits<float>::max();
  return factor > 1 ? std::nextafter(float(kMost / factor), 0.0f) : kMost;
}

SoftmaxResult tile::finishSoftmax(const Matrix &acc, const Matrix &max,
                                  const Matrix &sum, const Matrix *excess,
                                  mlir::Type weights, float scale,
                                  const float *sink, bool unbounded) {
  SoftmaxResult result{acc, max};
  for (int64_t r = 0; r < acc.rows; ++r) {
    float m = max.at(r, 0) == -kInfinity ? -kInfinity : scale * max.at(r, 0);
    float l = sum.at(r, 0), origin = m, factor = 1;
    // All of the weight is a sink's, here or in front of the op.
    bool isAll = max.at(r, 0) == kInfinity ||
                 (sink && *sink * (1 / scale) > mostOfMaxima(scale, unbounded));
    if (isAll) {
      factor = 0;
      l = 1;
    } else if (sink) {
      // Both terms relative to the larger exponent.
      origin = std::max(m, *sink);
      factor = l == 0 ? 0 : std::exp(m - origin);
      l *= factor;
      if (origin != -kInfinity)
        l += std::exp(*sink - origin);
    }
    float divisor = excess ? l + excess->at(r, 0) * factor : l;
    if (weights && !isAll) {
      // The weight of the largest score, as `onlineSoftmax` computes it.
      float base2 = exponentScale(max.at(r, 0), scale, unbounded);
      float finite = max.at(r, 0) == -kInfinity ? 0 : max.at(r, 0);
      float weight = std::exp2(std::fma(finite, base2, -(finite * base2)));
      divisor += (roundTo(weights, weight) - weight) * factor;
    }
    float inverse = l == 0 ? 0 : factor / divisor;
    for (int64_t c = 0; c < acc.cols; ++c)
      result.out.at(r, c) = acc.at(r, c) * inverse;
    result.lse.at(r, 0) = l == 0  ? -kInfinity
                          : isAll ? kInfinity
                                  : origin + std::log(l);
  }
  return result;
}

SoftmaxPart tile::mergeSoftmax(const SoftmaxPart &x, const SoftmaxPart &y,
                               float scale, bool unbounded) {
  SoftmaxPart part = x;
  for (int64_t r = 0; r < x.acc.rows; ++r) {
    float max = std::max(x.max.at(r, 0), y.max.at(r, 0));
    float base2 = exponentScale(max, scale, unbounded);
    // Two rows without a key: any finite number keeps both factors at 0.
    float origin = max == -kInfinity ? 0 : max * base2;
    float fromX = std::exp2(x.max.at(r, 0) * base2 - origin);
    float fromY = std::exp2(y.max.at(r, 0) * base2 - origin);
    part.max.at(r, 0) = max;
    part.sum.at(r, 0) = std::fma(y.sum.at(r, 0), fromY, x.sum.at(r, 0) * fromX);
    for (int64_t c = 0; c < x.acc.cols; ++c)
      part.acc.at(r, c) =
          std::fma(y.acc.at(r, c), fromY, x.acc.at(r, c) * fromX);
  }
  return part;
}
