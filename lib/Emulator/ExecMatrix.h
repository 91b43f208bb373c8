//===- ExecMatrix.h - Matrix fragments and products -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Members of Exec. A fragment register of an 8x8 matrix of 16-bit elements
// holds, over the lanes 0 to 31, the matrix row by row: lane 4g + t has the
// elements 2t and 2t + 1 of row g.
//
//===----------------------------------------------------------------------===//

// Lanes that execute something as one, which GPUs order them by.
void meetTogether() {
  if (h.forgiving && w.touched > w.lanes.known)
    r.meetLanes(w, w.mask);
}

bool converged(const Inst &i) {
  if (w.mask == w.full) {
    meetTogether();
    return true;
  }
  r.faultText(FaultKind::Divergence, w, i, -1,
              "executed by a part of the warp, but it needs all lanes");
  return false;
}

// Bank passes of the rows of each matrix, eight at a time.
void matrixCost(const Inst &i, const uint32_t *address, unsigned count) {
  uint64_t mask = count >= 4 ? ~0ull >> 32 : (1ull << 8 * count) - 1;
  bankCost(i, address, mask, 16);
  if (h.tracing)
    r.traceShared(w, i, address, 16, mask, i.op == Code::StMatrix);
}

void ldMatrix(const Inst &i) {
  if (!converged(i))
    return;
  uint32_t address[W];
  unsigned count = i.listSize;
  uint64_t lanes = (1ull << 8 * count) - 1;
  uint64_t good = clearShared(i, address, reg<uint32_t>(i.a), lanes, 16, false);
  matrixCost(i, address, count);
  for (unsigned m = 0; m < count; ++m) {
    uint32_t *d = reg<uint32_t>(h.lists[i.list + m]);
    alignas(16) uint32_t rows[32] = {};
    for (unsigned g = 0; g < 8; ++g) {
      unsigned l = 8 * m + g;
      if (!(good >> l & 1))
        continue;
      if (h.checkShadow && !shadowReadFast(i, l, address[l], 4))
        r.shadowRead(w, i, l, address[l], 16);
      std::memcpy(rows + 4 * g, h.shared + address[l], 16);
    }
    if (!i.flags) {
      std::memcpy(d, rows, sizeof(rows));
      continue;
    }
    uint16_t elements[64];
    std::memcpy(elements, rows, sizeof(rows));
    for (unsigned l = 0; l < 32; ++l) {
      unsigned g = l >> 2, t = l & 3;
      d[l] = elements[16 * t + g] |
             static_cast<uint32_t>(elements[16 * t + 8 + g]) << 16;
    }
  }
  meetTogether();
}

void stMatrix(const Inst &i) {
  if (!converged(i))
    return;
  uint32_t address[W];
  unsigned count = i.listSize;
  uint64_t lanes = (1ull << 8 * count) - 1;
  uint64_t good = clearShared(i, address, reg<uint32_t>(i.a), lanes, 16, true);
  matrixCost(i, address, count);
  for (unsigned m = 0; m < count; ++m) {
    const uint32_t *s = reg<uint32_t>(h.lists[i.list + m]);
    alignas(16) uint32_t rows[32];
    std::memcpy(rows, s, sizeof(rows));
    if (i.flags) {
      uint16_t elements[64];
      for (unsigned l = 0; l < 32; ++l) {
        unsigned g = l >> 2, t = l & 3;
        elements[16 * t + g] = static_cast<uint16_t>(s[l]);
        elements[16 * t + 8 + g] = static_cast<uint16_t>(s[l] >> 16);
      }
      std::memcpy(rows, elements, sizeof(rows));
    }
    for (unsigned g = 0; g < 8; ++g) {
      unsigned l = 8 * m + g;
      if (!(good >> l & 1))
        continue;
      if (h.checkShadow && !shadowWriteFast(i, l, address[l], 4)) {
        h.storesSame = !std::memcmp(h.shared + address[l], rows + 4 * g, 16);
        r.shadowWrite(w, i, l, address[l], 16);
        h.storesSame = false;
      }
      std::memcpy(h.shared + address[l], rows + 4 * g, 16);
    }
  }
  meetTogether();
}

void laneTranspose(const Inst &i) {
  if (!converged(i))
    return;
  uint32_t words[32];
  std::memcpy(words, reg<uint32_t>(i.a), sizeof(words));
  uint16_t elements[64];
  std::memcpy(elements, words, sizeof(words));
  uint32_t *d = out<uint32_t>(i.dst);
  for (unsigned l = 0; l < 32; ++l) {
    unsigned g = l >> 2, t = l & 3;
    d[l] = elements[16 * t + g] |
           static_cast<uint32_t>(elements[16 * t + 8 + g]) << 16;
  }
  done<uint32_t>(i.dst);
}

// An 8x8 fragment register as fp32: element [row][column].
template <bool BF16> static void unpackFragment(float *d, const uint32_t *s) {
  for (unsigned l = 0; l < 32; ++l) {
    d[2 * l] = BF16 ? asFloat(s[l] << 16) : fromF16(s[l] & 0xFFFF);
    d[2 * l + 1] = BF16 ? asFloat(s[l] & 0xFFFF0000) : fromF16(s[l] >> 16);
  }
}

// D = A B + C for one warp: products are exact in fp32 and are added in fp32,
// in the order of k. Being exact, they need no fused addition where the host
// has none (but for products that underflow).
static float multiplyAdd(float x, float y, float z) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}

// A sum of products as an H200's matrix unit makes it, for normal numbers:
// aligned at the largest exponent among the sum so far and the products, of
// which each has that of its operands together; cut off 25 bits below; added
// exactly; and cut off to fp32. Measured for steps of 16 products of bf16, by
// mma.sync and by wgmma (docs/hopper.md). Of 8-bit floats it keeps 13 bits, by
// what is known from outside (WarpOps.cpp).
template <unsigned K, bool Bytes = false>
static float cutSum(const float *x, const float *y, unsigned stride, float c) {
  auto exponent = [](float f) {
    return static_cast<int>(asBits(f) >> 23 & 255) - 127;
  };
  int most = -(1 << 20);
  auto meet = [&](int e) { most = e > most ? e : most; };
  if (c != 0)
    meet(exponent(c));
  float plain = c;
  for (unsigned k = 0; k < K; ++k) {
    plain = multiplyAdd(x[k], y[k * stride], plain);
    if (x[k] != 0 && y[k * stride] != 0)
      meet(Bytes ? exponent(x[k] * y[k * stride])
                 : exponent(x[k]) + exponent(y[k * stride]));
  }
  // Without numbers there is nothing to cut off; what is not finite stays so.
  if (most == -(1 << 20) || exponent(plain) == 128 || exponent(c) == 128)
    return plain;
  auto power = [](int e) {
    uint64_t bits = static_cast<uint64_t>(e + 1023) << 52;
    double d;
    std::memcpy(&d, &bits, sizeof(d));
    return d;
  };
  constexpr int below = Bytes ? 13 : 25, kept = Bytes ? 13 : 23;
  double up = power(below - most);
  int64_t sum = static_cast<int64_t>(static_cast<double>(c) * up);
  for (unsigned k = 0; k < K; ++k)
    sum += static_cast<int64_t>(static_cast<double>(x[k]) * y[k * stride] * up);
  double exact = static_cast<double>(sum) * power(most - below);
  // Towards zero: fp32 has 29 bits less.
  uint64_t bits;
  std::memcpy(&bits, &exact, sizeof(bits));
  bits &= ~((uint64_t(1) << (52 - kept)) - 1);
  std::memcpy(&exact, &bits, sizeof(bits));
  return static_cast<float>(exact);
}

template <bool BF16, unsigned K> void mma(const Inst &i) {
  const uint32_t *slots = h.lists + i.list;
  const uint32_t *a = slots + 4, *b = a + K / 4, *c = b + K / 8;
  // A by 8x8 quadrants: rows 0-7, rows 8-15, then the next eight columns.
  alignas(64) float quadrant[K / 4][64];
  for (unsigned q = 0; q < K / 4; ++q)
    unpackFragment<BF16>(quadrant[q], reg<uint32_t>(a[q]));
  // B's registers hold its columns as rows.
  alignas(64) float columns[64], rows[K][8], sum[16][8];
  for (unsigned q = 0; q < K / 8; ++q) {
    unpackFragment<BF16>(columns, reg<uint32_t>(b[q]));
    for (unsigned n = 0; n < 8; ++n)
      for (unsigned k = 0; k < 8; ++k)
        rows[8 * q + k][n] = columns[8 * n + k];
  }
  for (unsigned half = 0; half < 2; ++half) {
    const float *even = reg<float>(c[2 * half]),
                *odd = reg<float>(c[2 * half + 1]);
    float *d = &sum[8 * half][0];
    for (unsigned l = 0; l < 32; ++l) {
      d[2 * l] = even[l];
      d[2 * l + 1] = odd[l];
    }
  }
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned g = 0; g < 8; ++g) {
      float acc[8];
      for (unsigned n = 0; n < 8; ++n)
        acc[n] = sum[8 * half + g][n];
      float left[K];
      for (unsigned k = 0; k < K; ++k)
        left[k] = quadrant[2 * (k / 8) + half][8 * g + k % 8];
      if (h.cutSums)
        for (unsigned n = 0; n < 8; ++n)
          acc[n] = cutSum<K>(left, &rows[0][n], 8, acc[n]);
      else
        for (unsigned k = 0; k < K; ++k)
          for (unsigned n = 0; n < 8; ++n)
            acc[n] = multiplyAdd(left[k], rows[k][n], acc[n]);
      for (unsigned n = 0; n < 8; ++n)
        sum[8 * half + g][n] = acc[n];
    }
  for (unsigned half = 0; half < 2; ++half) {
    float *even = reg<float>(slots[2 * half]),
          *odd = reg<float>(slots[2 * half + 1]);
    const float *s = &sum[8 * half][0];
    for (unsigned l = 0; l < 32; ++l) {
      even[l] = s[2 * l];
      odd[l] = s[2 * l + 1];
    }
  }
}

void mmaSync(const Inst &i) {
  if (!converged(i))
    return;
  if (i.imm == 16)
    i.flags ? mma<true, 16>(i) : mma<false, 16>(i);
  else
    i.flags ? mma<true, 8>(i) : mma<false, 8>(i);
}
