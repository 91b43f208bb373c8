//===- Math.h - The mathematics of fragments --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_MATH_H
#define KVBUFFER_LIB_EMULATOR_TILE_MATH_H

#include "Tensors.h"

namespace kvbuf::emu::tile {

/// acc + a * b, or acc + a * b^T. Accumulates in fp32, in the order of k; the
/// products of 16-bit numbers are exact in fp32.
Matrix multiply(const Matrix &a, const Matrix &b, const Matrix &acc,
                bool transposeB);

/// A part of a matrix.
Matrix slice(const Matrix &m, int64_t row, int64_t col, int64_t rows,
             int64_t cols);

/// Applies `f` to every element and rounds to the element type.
Matrix map(const Matrix &m, mlir::Type elementType,
           llvm::function_ref<float(float)> f);

/// The keys [lo, hi) that rows of a tile see, and [fullLo, fullHi) that all of
/// them see: `kvbuffer.key_range`.
struct KeyRange {
  int64_t lo, hi, fullLo, fullHi;
};
KeyRange keyRange(int64_t row, int64_t queries, int64_t keys, int64_t BM,
                  MaskAttr mask);

/// Scores with hidden ones at -inf: `kvbuffer.mask`.
Matrix hide(const Matrix &scores, int64_t row, int64_t queries, int64_t key,
            int64_t keys, MaskAttr mask, int64_t group);

/// The sum or the largest element of each row: `kvbuffer.row_reduce`.
Matrix reduceRows(const Matrix &m, bool isMax);

/// The results of `kvbuffer.online_softmax`; `p` is not yet rounded.
struct SoftmaxStep {
  Matrix p, max, sum, rescale;
};
/// `rowMax`: the scores' largest by row, where the program says it; null: they
/// are looked at.
SoftmaxStep onlineSoftmax(const Matrix &scores, const Matrix &max,
                          const Matrix &sum, const Matrix *rowMax, float scale,
                          bool unbounded);

/// The results of `kvbuffer.raise_max`; the block's rows are one group.
struct RaisedMax {
  Matrix max, factor;
  bool any;
};
RaisedMax raiseMax(const Matrix &scores, const Matrix &max, float scale,
                   bool exact, bool unbounded);

/// The power of two by which `kvbuffer.fragment_fit` and `kvbuffer.staged_fit`
/// multiply.
int powerThatFits(const Matrix &source);

/// `kvbuffer.softmax_head`: weights in the left half of the columns, exponents
/// in the right one.
Matrix softmaxHead(const Matrix &scores, const Matrix &max, float scale,
                   bool exponentsOnly, bool unbounded);

/// The results of `kvbuffer.softmax_tail`. `sum` is of weights as `rounded`
/// rounds them; of null, as they are.
struct SoftmaxTail {
  Matrix p, sum;
};
SoftmaxTail softmaxTail(const Matrix &exponents, const Matrix &sum,
                        mlir::Type rounded);

/// The results of `kvbuffer.softmax_finish`; `weights`: their
/// element type, if `max` is their maximum; else null.
struct SoftmaxResult {
  Matrix out, lse;
};
SoftmaxResult finishSoftmax(const Matrix &acc, const Matrix &max,
                            const Matrix &sum, const Matrix *excess,
                            mlir::Type weights, float scale, const float *sink,
                            bool unbounded);

/// The largest maximum whose exponents are finite: a sink beyond it counts as
/// infinite.
float mostOfMaxima(float scale, bool unbounded);

/// A softmax over some of the keys: `kvbuffer.partial_store`.
struct SoftmaxPart {
  Matrix acc, max, sum;
};
/// `kvbuffer.softmax_merge`.
SoftmaxPart mergeSoftmax(const SoftmaxPart &x, const SoftmaxPart &y,
                         float scale, bool unbounded);

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_MATH_H
