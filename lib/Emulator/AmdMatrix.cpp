//===- AmdMatrix.cpp - Products of AMD's waves of any type ----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layouts: RDNA3 ISA and RDNA4 ISA, "Wave Matrix Multiply Accumulate"; AMD's
// matrix instruction calculator for MFMA. WMMA with 16-bit accumulators on
// gfx11 rounds after each pair of products: what hardware has been seen to
// compute, in MLIR's own tests.
//
//===----------------------------------------------------------------------===//

#include "HostMath.h"
#include "Machine.h"
#include "WarpFragment.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace kvbuf::emu;

namespace {

/// Where an element of a lane lies; `block` counts the products that an MFMA
/// makes at once.
struct Place {
  unsigned block, row, col;
};

} // namespace

/// A (transposed: B): element `e` of lane `l` is at (row, k).
static Place operandPlace(const WarpOp &op, unsigned l, unsigned e,
                          unsigned perLane) {
  switch (op.layout) {
  case AmdLayout::Gfx11: // the two halves of the wave hold the same
    return {0, l % 16, e};
  case AmdLayout::Gfx12: {
    // Where a lane has more than 8 elements of 8 bits or more, the two halves
    // of the wave take turns along k (gfx1250).
    unsigned together = bitsOf(op.a) < 8 ? perLane : std::min(perLane, 8u);
    return {0, l % 16, (e / together * 2 + l / 16) * together + e % together};
  }
  case AmdLayout::Mfma:
    break;
  }
  unsigned size = op.m, groups = op.k / perLane;
  return {l / (size * groups), l % size, l / size % groups * perLane + e};
}

/// C and D: element `e` of lane `l`.
static Place resultPlace(const WarpOp &op, unsigned l, unsigned e) {
  switch (op.layout) {
  case AmdLayout::Gfx11:
    return {0, 2 * e + l / 16, l % 16};
  case AmdLayout::Gfx12:
    return {0, e + 8 * (l / 16), l % 16};
  case AmdLayout::Mfma:
    break;
  }
  if (op.c == Element::F64)
    return {0, 4 * e + l / 16, l % 16};
  if (op.m == 4)
    return {l / 4, e, l % 4};
  unsigned perBlock = op.m * op.m / 64, p = e % perBlock;
  return {e / perBlock, p / 4 * (256 / op.m) + 4 * (l / op.m) + p % 4,
          l % op.m};
}

/// The scales of an operand, 2^(byte - 127), 255 is no number: lane l has that
/// of row l % m and of the 32 elements along k from l / m * 32 on.
static std::vector<double> scalesOf(const WarpOp &op, const uint32_t *words,
                                    unsigned byte, unsigned lanes) {
  constexpr unsigned together = 32;
  unsigned groups = op.k / together;
  std::vector<double> scales(op.m * groups);
  for (unsigned l = 0; l < lanes; ++l) {
    unsigned exponent = words[l] >> 8 * byte & 0xFF;
    scales[l % op.m * groups + l / op.m % groups] =
        exponent == 0xFF ? std::numeric_limits<double>::quiet_NaN()
                         : std::ldexp(1.0, static_cast<int>(exponent) - 127);
  }
  return scales;
}

void Run::amdMultiply(Warp &w, const WarpOp &op, const uint32_t *slots) {
  Fragment d{w, lanes, slots, op.wideC, op.c},
      a{w, lanes, slots + op.numD, op.wideA, op.a},
      b{w, lanes, slots + op.numD + op.numA, op.wideA, op.b},
      c{w, lanes, slots + op.numD + op.numA + op.numB, op.wideC, op.c};
  unsigned perA = op.numA * a.perWord(), perB = op.numB * b.perWord();
  if (op.layout == AmdLayout::Gfx11)
    perA = perB = op.k;
  unsigned size = op.m, depth = op.k, blocks = op.blocks;
  std::vector<uint64_t> left(blocks * size * depth), right(left.size()),
      sums(blocks * size * size);
  for (unsigned l = 0; l < lanes; ++l) {
    for (unsigned e = 0; e < perA; ++e) {
      Place p = operandPlace(op, l, e, perA);
      left[(p.block * size + p.row) * depth + p.col] = a.bits(l, e);
    }
    for (unsigned e = 0; e < perB; ++e) {
      Place p = operandPlace(op, l, e, perB);
      right[(p.block * size + p.row) * depth + p.col] = b.bits(l, e);
    }
  }
  // On gfx11 a 16-bit result has a word of its own, of which `high` says which
  // half; the other one stays.
  bool halves = op.layout == AmdLayout::Gfx11 && bitsOf(op.c) == 16;
  unsigned perC = op.numD * (halves ? 1 : c.perWord());
  auto element = [&](unsigned e) { return halves ? 2 * e + op.high : e; };
  for (unsigned l = 0; l < lanes; ++l)
    for (unsigned e = 0; e < perC; ++e) {
      Place p = resultPlace(op, l, e);
      sums[(p.block * size + p.row) * size + p.col] = c.bits(l, element(e));
    }
  std::vector<double> leftScales, rightScales;
  if (op.detail & mfmaScaled) {
    const uint32_t *last = slots + 2 * op.numD + op.numA + op.numB;
    auto words = [&](unsigned i) {
      return w.regs + static_cast<size_t>(last[i]) * lanes;
    };
    leftScales = scalesOf(op, words(0), op.detail >> 1 & 3, lanes);
    rightScales = scalesOf(op, words(1), op.detail >> 3 & 3, lanes);
  }
  for (unsigned block = 0; block < blocks; ++block)
    for (unsigned row = 0; row < size; ++row)
      for (unsigned col = 0; col < size; ++col) {
        uint64_t &result = sums[(block * size + row) * size + col];
        const uint64_t *x = &left[(block * size + row) * depth],
                       *y = &right[(block * size + col) * depth];
        if (op.c == Element::S32) {
          int64_t sum = static_cast<int32_t>(result);
          for (unsigned k = 0; k < depth; ++k)
            sum += static_cast<int64_t>(numberOf(op.a, x[k])) *
                   static_cast<int64_t>(numberOf(op.b, y[k]));
          if (op.saturates)
            sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
          result = static_cast<uint32_t>(sum);
          continue;
        }
        if (op.c == Element::F64) {
          double sum = numberOf(op.c, result);
          for (unsigned k = 0; k < depth; ++k)
            sum = std::fma(numberOf(op.a, x[k]), numberOf(op.b, y[k]), sum);
          result = std::bit_cast<uint64_t>(sum);
          continue;
        }
        float sum = static_cast<float>(numberOf(op.c, result));
        if (!leftScales.empty()) {
          // Of a lane's 32 elements the second half lies half of k behind.
          unsigned groups = depth / 32;
          for (unsigned k = 0; k < depth; ++k) {
            unsigned g = (k / 32 * 16 + k % 32 / 16 * (depth / 2)) / 32;
            sum = static_cast<float>(
                std::fma(numberOf(op.a, x[k]) * leftScales[row * groups + g],
                         numberOf(op.b, y[k]) * rightScales[col * groups + g],
                         static_cast<double>(sum)));
          }
          result = bitsAs(op.c, sum);
          continue;
        }
        for (unsigned k = 0; k < depth; ++k) {
          sum = std::fma(static_cast<float>(numberOf(op.a, x[k])),
                         static_cast<float>(numberOf(op.b, y[k])), sum);
          if (halves && k % 2)
            sum = static_cast<float>(numberOf(op.c, bitsAs(op.c, sum)));
        }
        result = bitsAs(op.c, sum);
      }
  for (unsigned l = 0; l < lanes; ++l)
    for (unsigned e = 0; e < perC; ++e) {
      Place p = resultPlace(op, l, e);
      if (halves) // the other half is C's
        d.setBits(l, 2 * e + !op.high, c.bits(l, 2 * e + !op.high));
      d.setBits(l, element(e), sums[(p.block * size + p.row) * size + p.col]);
    }
}
