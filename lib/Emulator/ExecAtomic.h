//===- ExecAtomic.h - Atomic operations on global memory --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Members of Exec. The lanes take their turns in order, which is one of the
// orders that a GPU may choose.
//
//===----------------------------------------------------------------------===//

template <typename U, typename S> U atomicResult(const Inst &i, U old, U x) {
  switch (static_cast<AtomicKind>(i.flags)) {
  case AtomicKind::Exchange:
    return x;
  case AtomicKind::Add:
    return old + x;
  case AtomicKind::Sub:
    return old - x;
  case AtomicKind::And:
    return old & x;
  case AtomicKind::Or:
    return old | x;
  case AtomicKind::Xor:
    return old ^ x;
  case AtomicKind::SMax:
    return static_cast<S>(old) > static_cast<S>(x) ? old : x;
  case AtomicKind::SMin:
    return static_cast<S>(old) < static_cast<S>(x) ? old : x;
  case AtomicKind::UMax:
    return old > x ? old : x;
  case AtomicKind::UMin:
    return old < x ? old : x;
  case AtomicKind::FAdd:
    return asBits(asFloat(static_cast<uint32_t>(old)) +
                  asFloat(static_cast<uint32_t>(x)));
  }
  return old;
}

template <typename U, typename S> void atomicLanes(const Inst &i) {
  const uint64_t *base = reg<uint64_t>(i.a);
  uint64_t address[W];
  for (unsigned l = 0; l < W; ++l)
    address[l] = base[l] + static_cast<uint64_t>(i.offset);
  uint64_t mask = r.checkGlobal(w, i, address, sizeof(U), w.mask, false) &
                  r.checkGlobal(w, i, address, sizeof(U), w.mask, true);
  if (!mask)
    return;
  sectorCost(i, address, mask, sizeof(U));
  KVBUF_EACH(mask) {
    U old, x = reg<U>(i.b)[l];
    uint8_t *p = reinterpret_cast<uint8_t *>(address[l]);
    std::memcpy(&old, p, sizeof(U));
    U result = atomicResult<U, S>(i, old, x);
    std::memcpy(p, &result, sizeof(U));
    reg<U>(i.dst)[l] = old;
  }
}

void atomicGlobal(const Inst &i) {
  if (i.imm == 8)
    atomicLanes<uint64_t, int64_t>(i);
  else
    atomicLanes<uint32_t, int32_t>(i);
}
