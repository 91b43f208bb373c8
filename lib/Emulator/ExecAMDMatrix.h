//===- ExecAMDMatrix.h - Matrix products of AMD's waves ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Members of Exec. With G = 64 / M groups of M lanes (CDNA3 ISA, "Matrix
// fused multiply-add"; CDNA4's shapes follow the same rule with more k):
//   A  lane = M * group + row, element e is k = group * (K / G) + e
//   B  lane = M * group + column, k likewise
//   C  lane = M * group + column, register p is row (p / 4) * 4 G + 4 group
//      + p % 4
// so that the lanes of a group hold, in one register, a row of C. Operands of
// 8-bit floats follow the same rule with four elements to a word.
//
//===----------------------------------------------------------------------===//

// An operand as fp32: element [k][row or column].
template <bool BF16, unsigned M, unsigned K>
void unpackOperand(float (*d)[M], const uint32_t *slots) {
  constexpr unsigned perLane = K * M / 64;
  for (unsigned word = 0; word < perLane / 2; ++word) {
    const uint32_t *s = reg<uint32_t>(slots[word]);
    for (unsigned group = 0; group < 64 / M; ++group) {
      float *lo = d[group * perLane + 2 * word], *hi = lo + M;
      for (unsigned x = 0; x < M; ++x) {
        uint32_t pair = s[group * M + x];
        lo[x] = BF16 ? asFloat(pair << 16) : fromF16(pair & 0xFFFF);
        hi[x] = BF16 ? asFloat(pair & 0xFFFF0000) : fromF16(pair >> 16);
      }
    }
  }
}

// The same for 8-bit floats, by the table of their values.
template <unsigned M, unsigned K>
void unpackFloat8(float (*d)[M], const uint32_t *slots, const float *values) {
  constexpr unsigned perLane = K * M / 64;
  for (unsigned e = 0; e < perLane; ++e) {
    const uint32_t *s = reg<uint32_t>(slots[e / 4]);
    for (unsigned group = 0; group < 64 / M; ++group)
      for (unsigned x = 0; x < M; ++x)
        d[group * perLane + e][x] =
            values[s[group * M + x] >> (8 * (e % 4)) & 0xFF];
  }
}

template <unsigned M, unsigned K> void mfmaShape(const Inst &i) {
  constexpr unsigned registers = M * M / 64;
  const unsigned words = i.flags & mfmaFloat8 ? K * M / 256 : K * M / 128;
  const uint32_t *slots = h.lists + i.list, *a = slots + registers,
                 *b = a + words, *c = b + words;
  alignas(64) float left[K][M], right[K][M];
  if (i.flags & mfmaFloat8) {
    bool fnuz = i.flags & mfmaFNUZ;
    unpackFloat8<M, K>(left, a, float8Values(i.flags & mfmaLeftBF8, fnuz));
    unpackFloat8<M, K>(right, b, float8Values(i.flags & mfmaRightBF8, fnuz));
  } else if (i.flags & mfmaBF16) {
    unpackOperand<true, M, K>(left, a);
    unpackOperand<true, M, K>(right, b);
  } else {
    unpackOperand<false, M, K>(left, a);
    unpackOperand<false, M, K>(right, b);
  }
  for (unsigned p = 0; p < registers; ++p)
    for (unsigned group = 0; group < 64 / M; ++group) {
      unsigned row = p / 4 * (256 / M) + 4 * group + p % 4;
      const float *from = reg<float>(c[p]) + group * M;
      alignas(64) float sum[M];
      for (unsigned n = 0; n < M; ++n)
        sum[n] = from[n];
      for (unsigned k = 0; k < K; ++k) {
        float x = left[k][row];
        for (unsigned n = 0; n < M; ++n)
          sum[n] = multiplyAdd(x, right[k][n], sum[n]);
      }
      std::memcpy(reg<float>(slots[p]) + group * M, sum, sizeof(sum));
    }
}

void mfma(const Inst &i) {
  if (!converged(i))
    return;
  switch (i.imm) {
  case 32 << 16 | 8:
    return mfmaShape<32, 8>(i);
  case 32 << 16 | 16:
    return mfmaShape<32, 16>(i);
  case 16 << 16 | 16:
    return mfmaShape<16, 16>(i);
  case 16 << 16 | 32:
    return mfmaShape<16, 32>(i);
  }
}
