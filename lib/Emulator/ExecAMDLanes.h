//===- ExecAMDLanes.h - Exchange between the lanes of a wave ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Members of Exec. Results go aside first, because a destination may be one of
// the sources after slots have been shared.
//
//===----------------------------------------------------------------------===//

// Writes a result to the active lanes.
void keepActive(uint32_t slot, const uint32_t *values) {
  uint32_t *d = out<uint32_t>(slot);
  std::memcpy(d, values, W * sizeof(uint32_t));
  done<uint32_t>(slot);
}

void laneMap(const Inst &i) {
  const uint32_t *a = reg<uint32_t>(i.a), *b = reg<uint32_t>(i.b),
                 *from = h.lists + i.list;
  uint32_t values[W];
  for (unsigned l = 0; l < W; ++l) {
    uint32_t source = from[l];
    if (source < W && (w.mask >> source & 1))
      values[l] = a[source];
    else if (source == zeroLane || (source < W && i.flags))
      values[l] = 0;
    else
      values[l] = b[l];
  }
  keepActive(i.dst, values);
}

template <typename T> void readLane(const Inst &i) {
  unsigned first = __builtin_ctzll(w.mask);
  unsigned lane = i.b == noSlot ? first : reg<uint32_t>(i.b)[first] & (W - 1);
  T value = reg<T>(i.a)[lane];
  T *d = out<T>(i.dst);
  for (unsigned l = 0; l < W; ++l)
    d[l] = value;
  done<T>(i.dst);
}

void bpermute(const Inst &i) {
  r.ldsIssue(w, i, nullptr, 0, false);
  const uint32_t *address = reg<uint32_t>(i.a), *b = reg<uint32_t>(i.b);
  uint32_t values[W] = {};
  uint64_t missed = 0;
  for (unsigned l = 0; l < W; ++l) {
    unsigned other = address[l] >> 2 & (W - 1);
    if (i.flags) { // the highest lane that names a place wins
      if (w.mask >> l & 1)
        values[other] = b[l];
    } else if (w.mask >> other & 1) {
      values[l] = b[other];
    } else {
      missed |= uint64_t(1) << l;
    }
  }
  if (missed &= w.mask)
    r.readsNobody(w, i, __builtin_ctzll(missed));
  keepActive(i.dst, values);
}

// Odd groups of the first operand against even groups of the second one.
void swapGroups(const Inst &i) {
  if (!converged(i))
    return;
  const uint32_t *a = reg<uint32_t>(i.a), *b = reg<uint32_t>(i.b);
  uint32_t first[W], second[W];
  unsigned n = static_cast<unsigned>(i.imm);
  for (unsigned l = 0; l < W; ++l) {
    bool odd = l & n;
    first[l] = odd ? b[l - n] : a[l];
    second[l] = odd ? b[l] : a[l + n];
  }
  keepActive(h.lists[i.list], first);
  keepActive(h.lists[i.list + 1], second);
}

void ballot(const Inst &i) {
  const uint32_t *a = reg<uint32_t>(i.a);
  uint64_t set = 0;
  for (unsigned l = 0; l < W; ++l)
    set |= static_cast<uint64_t>(a[l] & 1) << l;
  set &= w.mask;
  uint64_t *d = out<uint64_t>(i.dst);
  for (unsigned l = 0; l < W; ++l)
    d[l] = set;
  done<uint64_t>(i.dst);
}

// The bits of a half of the lanes' mask that are below the lane, plus b.
void countBelow(const Inst &i) {
  const uint32_t *a = reg<uint32_t>(i.a), *b = reg<uint32_t>(i.b);
  uint32_t *d = out<uint32_t>(i.dst);
  unsigned half = i.op == Code::AmdMbcntHi ? 32 : 0;
  for (unsigned l = 0; l < W; ++l) {
    uint64_t below = ((1ull << l) - 1) >> half;
    d[l] = b[l] + static_cast<uint32_t>(
                      __builtin_popcount(a[l] & static_cast<uint32_t>(below)));
  }
  done<uint32_t>(i.dst);
}
