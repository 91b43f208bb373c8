//===- ExecAtomic.h - Atomic operations on memory ---------------*- C++ -*-===//
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
  case AtomicKind::Wrap: // counts up to x, then from 0 again
    return old >= x ? 0 : old + 1;
  case AtomicKind::FAdd:
    return asBits(asFloat(static_cast<uint32_t>(old)) +
                  asFloat(static_cast<uint32_t>(x)));
  case AtomicKind::CompareExchange: // by whoever knows what to compare with
    return x;
  }
  return old;
}

void atomic(const Inst &i) {
  bool inShared = i.op == Code::AtomicShared;
  uint64_t wide[W], mask = w.mask;
  uint32_t narrow[W];
  if (inShared) {
    mask = clearShared(i, narrow, reg<uint32_t>(i.a), mask, i.imm, true);
  } else {
    for (unsigned l = 0; l < W; ++l)
      wide[l] = reg<uint64_t>(i.a)[l] + static_cast<uint64_t>(i.offset);
    // It reads and it writes.
    mask = r.checkGlobal(w, i, wide, i.imm, mask, false);
    mask = r.checkGlobal(w, i, wide, i.imm, mask, true);
    if (mask) {
      sectorCost(i, wide, mask, i.imm);
      r.orderAtomic(w, i, wide, mask, /*reads=*/true, /*writes=*/true);
    }
  }
  bool changed = false;
  KVBUF_EACH(mask) {
    uint8_t *p;
    if (inShared) {
      if (h.checkShadow) {
        r.shadowRead(w, i, l, narrow[l], i.imm);
        r.shadowWrite(w, i, l, narrow[l], i.imm);
      }
      p = h.shared + narrow[l];
    } else {
      p = reinterpret_cast<uint8_t *>(wide[l]);
    }
    if (i.imm == 8) {
      uint64_t old;
      std::memcpy(&old, p, 8);
      uint64_t now =
          atomicResult<uint64_t, int64_t>(i, old, reg<uint64_t>(i.b)[l]);
      if (i.c != noSlot && old != reg<uint64_t>(i.c)[l])
        now = old;
      std::memcpy(p, &now, 8);
      changed |= now != old;
      reg<uint64_t>(i.dst)[l] = old;
    } else {
      uint32_t old;
      std::memcpy(&old, p, 4);
      uint32_t now =
          atomicResult<uint32_t, int32_t>(i, old, reg<uint32_t>(i.b)[l]);
      if (i.c != noSlot && old != reg<uint32_t>(i.c)[l])
        now = old;
      std::memcpy(p, &now, 4);
      changed |= now != old;
      reg<uint32_t>(i.dst)[l] = old;
    }
  }
  if (!inShared && mask)
    r.communicate(w, i, changed);
}
