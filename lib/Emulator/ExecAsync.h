//===- ExecAsync.h - mbarriers, bulk copies, wgmma --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Members of Exec. Nearly all of it is rare and is done by Run; the products
// are computed here.
//
//===----------------------------------------------------------------------===//

// The active lanes whose predicate, if any, is set.
uint64_t predicated(uint32_t slot) {
  if (slot == noSlot)
    return w.mask;
  const uint32_t *p = reg<uint32_t>(slot);
  uint64_t set = 0;
  for (unsigned l = 0; l < W; ++l)
    set |= static_cast<uint64_t>(p[l] & 1) << l;
  return set & w.mask;
}

const uint32_t *maybe(uint32_t slot) {
  return slot == noSlot ? nullptr : reg<uint32_t>(slot);
}

void mbarrier(const Inst &i) {
  const uint32_t *address = reg<uint32_t>(i.a);
  switch (i.op) {
  case Code::MBarrierInit:
    return r.mbarrierInit(w, i, address, reg<uint32_t>(i.b), predicated(i.c));
  case Code::MBarrierInval:
    return r.mbarrierInval(w, i, address, w.mask);
  case Code::MBarrierOwe:
    return r.mbarrierOwe(w, i, address, w.mask);
  default:
    break;
  }
  uint64_t *state = nullptr;
  if (i.dst != noSlot)
    state = out<uint64_t>(i.dst);
  const uint32_t *slots = h.lists + i.list;
  uint64_t mask = predicated(slots[2]);
  uint32_t elsewhere[W];
  if (i.b != noSlot) {
    const uint32_t *rank = reg<uint32_t>(i.b);
    uint64_t reached = 0;
    KVBUF_EACH(mask)
    if (r.reach(w, i, l, address[l], rank[l], elsewhere[l]))
      reached |= 1ull << l;
    mask = reached;
    address = elsewhere;
  }
  r.mbarrierArrive(w, i, address, maybe(slots[0]), maybe(slots[1]), state,
                   mask);
  if (state)
    done<uint64_t>(i.dst);
}

// The lanes whose phase is complete.
uint64_t mbarrierTest(const Inst &i) {
  bool parity = i.flags & 128;
  uint64_t complete = r.mbarrierTest(
      w, i, reg<uint32_t>(i.a), parity ? reg<uint32_t>(i.b) : nullptr,
      parity ? nullptr : reg<uint64_t>(i.b), w.mask);
  if (i.dst != noSlot) {
    uint32_t *d = out<uint32_t>(i.dst);
    KVBUF_LANES d[l] = static_cast<uint32_t>(complete >> l & 1);
    done<uint32_t>(i.dst);
  }
  return complete;
}

void bulkCopy(const Inst &i) {
  bool store = i.op == Code::BulkStore;
  const uint32_t *slots = h.lists + i.list;
  uint64_t mask = predicated(slots[0]);
  const uint32_t *shared = reg<uint32_t>(i.a);
  const uint64_t *global = reg<uint64_t>(i.b);
  KVBUF_EACH(mask) {
    int32_t at[5] = {};
    for (unsigned d = 0; d < i.imm; ++d)
      at[d] = reg<int32_t>(slots[2 + d])[l];
    uint32_t bytes = i.imm ? 0 : reg<uint32_t>(slots[1])[l];
    if (store)
      r.bulkStore(w, i, l, shared[l] + i.offset, global[l], at, bytes);
    else if (i.flags & bulkToCluster)
      r.bulkMulticast(w, i, l, shared[l] + i.offset, global[l],
                      reg<uint32_t>(i.c)[l], at, bytes,
                      reg<uint32_t>(slots[2 + i.imm])[l] & 0xFFFF);
    else
      r.bulkLoad(w, i, l, shared[l] + i.offset, global[l],
                 reg<uint32_t>(i.c)[l], at, bytes);
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void wgmma(const Inst &i) {
  if (!converged(i))
    return;
  bool now = false;
  MatrixJob *job = r.matrixIssue(w, i, now);
  if (job && now)
    product(*job);
}

// False: the warp waits.
bool wgmmaWait(const Inst &i) {
  if (!converged(i))
    return true;
  if (!r.matrixReady(w, i, static_cast<uint32_t>(i.imm)))
    return false;
  while (MatrixJob *job = r.matrixDue(w, static_cast<uint32_t>(i.imm)))
    product(*job);
  r.matrixRetire(w, i);
  return true;
}

template <bool BF16> static float element16(uint32_t bits) {
  return BF16 ? asFloat(bits << 16) : fromF16(bits);
}

using Floats8 = float __attribute__((vector_size(32)));

// z += x y, as multiplyAdd does it (ExecMatrix.h): the products are exact.
static void multiplyAdd8(float x, const Floats8 &y, Floats8 &z) {
#if defined(__clang__) && (defined(__FMA__) || defined(__aarch64__))
  z = __builtin_elementwise_fma(Floats8{x, x, x, x, x, x, x, x}, y, z);
#else
  z = x * y + z;
#endif
}

// Eight consecutive elements.
template <bool BF16> void eight(float *d, uint32_t address) {
  uint16_t bits[8];
  std::memcpy(bits, h.shared + address, 16);
  for (unsigned k = 0; k < 8; ++k)
    d[k] = element16<BF16>(bits[k]);
}

// 32 columns of 16 rows: c += a b. Written with vectors, because compilers make
// scalars of plain loops here, and spill them.
static void columns32(const float (*a)[16], const float (*b)[256],
                      float (*c)[256], unsigned first) {
  for (unsigned row = 0; row < 16; ++row) {
    Floats8 acc[4];
    __builtin_memcpy(acc, &c[row][first], sizeof(acc));
    for (unsigned k = 0; k < 16; ++k) {
      Floats8 y[4];
      __builtin_memcpy(y, &b[k][first], sizeof(y));
      for (unsigned v = 0; v < 4; ++v)
        multiplyAdd8(a[row][k], y[v], acc[v]);
    }
    __builtin_memcpy(&c[row][first], acc, sizeof(acc));
  }
}

// The same for 8 columns.
static void columns8(const float (*a)[16], const float (*b)[256],
                     float (*c)[256], unsigned first) {
  for (unsigned row = 0; row < 16; ++row) {
    Floats8 acc, y;
    __builtin_memcpy(&acc, &c[row][first], sizeof(acc));
    for (unsigned k = 0; k < 16; ++k) {
      __builtin_memcpy(&y, &b[k][first], sizeof(y));
      multiplyAdd8(a[row][k], y, acc);
    }
    __builtin_memcpy(&c[row][first], &acc, sizeof(acc));
  }
}

// Register x of lane l: row l / 4, 8 further for the second pair, columns
// 2 (l % 4) and the next of each eight.
template <typename Assign>
static void moveAccumulators(MatrixJob &job, float (*c)[256], Assign &&assign) {
  for (unsigned x = 0; x < job.n / 2; ++x)
    for (unsigned l = 0; l < 32; ++l)
      assign(job.accumulators[32 * x + l],
             c[l / 4 + 8 * (x / 2 % 2)][8 * (x / 4) + 2 * (l % 4) + x % 2]);
}

// Of 8-bit floats; a step is two halves of 16 elements, 16 bytes each.
void productOfBytes(MatrixJob &job) {
  const float *left = float8Values(job.types & wgmmaLeftBF8, /*fnuz=*/false),
              *right = float8Values(job.types & wgmmaRightBF8, /*fnuz=*/false);
  alignas(64) float a[2][16][16], b[2][16][256], c[16][256];
  moveAccumulators(job, c, [](uint32_t word, float &x) { x = asFloat(word); });
  bool negates = !(job.flags & wgmmaNegateA) != !(job.flags & wgmmaNegateB);
  for (unsigned s = 0; s < job.steps; ++s) {
    MatrixDescriptor db = decodeDescriptor(job.descriptorB[s], h.sharedBegin);
    for (unsigned n = 0; n < job.n; ++n)
      for (unsigned e = 0; e < 2; ++e) {
        const unsigned char *bytes = h.shared + kMajorAddress(db, n, e);
        for (unsigned k = 0; k < 16; ++k)
          b[e][k][n] = right[bytes[k]];
      }
    if (job.flags & wgmmaRegisterA) {
      for (unsigned x = 0; x < 4; ++x)
        for (unsigned l = 0; l < 32; ++l)
          for (unsigned k = 0; k < 4; ++k)
            a[x / 2][l / 4 + 8 * (x % 2)][4 * (l % 4) + k] =
                left[job.a[32 * (4 * s + x) + l] >> 8 * k & 0xFF];
    } else {
      MatrixDescriptor da = decodeDescriptor(job.descriptorA[s], h.sharedBegin);
      for (unsigned m = 0; m < 16; ++m)
        for (unsigned e = 0; e < 2; ++e) {
          const unsigned char *bytes =
              h.shared + kMajorAddress(da, 16 * (job.warp % 4) + m, e);
          for (unsigned k = 0; k < 16; ++k)
            a[e][m][k] = left[bytes[k]];
        }
    }
    if (negates)
      for (auto &half : a)
        for (auto &row : half)
          for (float &x : row)
            x = -x;
    if (h.cutSums) {
      for (unsigned n = 0; n < job.n; ++n)
        for (unsigned row = 0; row < 16; ++row) {
          float x[32], y[32];
          for (unsigned k = 0; k < 32; ++k) {
            x[k] = a[k / 16][row][k % 16];
            y[k] = b[k / 16][k % 16][n];
          }
          c[row][n] = cutSum<32, /*Bytes=*/true>(x, y, 1, c[row][n]);
        }
      continue;
    }
    for (unsigned e = 0; e < 2; ++e) {
      unsigned n = 0;
      for (; n + 32 <= job.n; n += 32)
        columns32(a[e], b[e], c, n);
      for (; n < job.n; n += 8)
        columns8(a[e], b[e], c, n);
    }
  }
  moveAccumulators(job, c, [](uint32_t &word, float x) { word = asBits(x); });
  job.computed = true;
}

template <bool BF16> void productOf(MatrixJob &job) {
  alignas(64) float a[16][16], b[16][256], c[16][256];
  moveAccumulators(job, c, [](uint32_t word, float &x) { x = asFloat(word); });
  for (unsigned s = 0; s < job.steps; ++s) {
    MatrixDescriptor db = decodeDescriptor(job.descriptorB[s], h.sharedBegin);
    if (job.flags & wgmmaTransposeB) {
      for (unsigned k = 0; k < 16; ++k)
        for (unsigned e = 0; e < job.n / 8; ++e)
          eight<BF16>(&b[k][8 * e], mnMajorAddress(db, e, k));
    } else {
      for (unsigned n = 0; n < job.n; ++n)
        for (unsigned e = 0; e < 2; ++e) {
          float x[8];
          eight<BF16>(x, kMajorAddress(db, n, e));
          for (unsigned k = 0; k < 8; ++k)
            b[8 * e + k][n] = x[k];
        }
    }
    unsigned quarter = job.warp % 4;
    if (job.flags & wgmmaRegisterA) {
      for (unsigned x = 0; x < 4; ++x)
        for (unsigned l = 0; l < 32; ++l) {
          uint32_t word = job.a[32 * (4 * s + x) + l];
          float *d = &a[l / 4 + 8 * (x % 2)][2 * (l % 4) + 8 * (x / 2)];
          d[0] = element16<BF16>(word & 0xFFFF);
          d[1] = element16<BF16>(word >> 16);
        }
    } else {
      MatrixDescriptor da = decodeDescriptor(job.descriptorA[s], h.sharedBegin);
      if (job.flags & wgmmaTransposeA) {
        for (unsigned k = 0; k < 16; ++k)
          for (unsigned e = 0; e < 2; ++e) {
            float x[8];
            eight<BF16>(x, mnMajorAddress(da, 2 * quarter + e, k));
            for (unsigned m = 0; m < 8; ++m)
              a[8 * e + m][k] = x[m];
          }
      } else {
        for (unsigned m = 0; m < 16; ++m)
          for (unsigned e = 0; e < 2; ++e)
            eight<BF16>(&a[m][8 * e], kMajorAddress(da, 16 * quarter + m, e));
      }
    }
    if (!(job.flags & wgmmaNegateA) != !(job.flags & wgmmaNegateB))
      for (auto &row : a)
        for (float &x : row)
          x = -x;
    unsigned n = 0;
    if (h.cutSums)
      for (; n < job.n; ++n)
        for (unsigned row = 0; row < 16; ++row)
          c[row][n] = cutSum<16>(a[row], &b[0][n], 256, c[row][n]);
    for (; n + 32 <= job.n; n += 32)
      columns32(a, b, c, n);
    for (; n < job.n; n += 8)
      columns8(a, b, c, n);
  }
  moveAccumulators(job, c, [](uint32_t &word, float x) { word = asBits(x); });
  job.computed = true;
}

void product(MatrixJob &job) {
  // Waves of 64 have none.
  if constexpr (W == 32)
    job.types &wgmmaBytes  ? productOfBytes(job)
    : job.flags &wgmmaBF16 ? productOf<true>(job)
                           : productOf<false>(job);
}
