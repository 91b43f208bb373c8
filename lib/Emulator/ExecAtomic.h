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

void atomic(const Inst &i) {
  if (i.op == Code::AtomicShared)
    return atomicIn(i, reg<uint32_t>(i.a), w.mask);
  // A generic address may be one of shared memory.
  const uint64_t *base = reg<uint64_t>(i.a);
  uint64_t inShared = 0, inGlobal = 0;
  uint32_t narrow[W];
  KVBUF_EACH(w.mask) {
    bool hit = (base[l] & windowMask) == sharedWindow;
    (hit ? inShared : inGlobal) |= 1ull << l;
    narrow[l] = static_cast<uint32_t>(base[l]);
  }
  if (inShared)
    atomicIn(i, narrow, inShared);
  if (inGlobal)
    atomicIn(i, nullptr, inGlobal);
}

// In shared memory at `narrow`, or in global memory if that is null.
void atomicIn(const Inst &i, const uint32_t *base, uint64_t mask) {
  bool inShared = base;
  uint64_t wide[W];
  uint32_t narrow[W];
  unsigned bytes = static_cast<unsigned>(i.imm);
  if (inShared) {
    mask = clearShared(i, narrow, base, mask, bytes, true);
  } else {
    for (unsigned l = 0; l < W; ++l)
      wide[l] = reg<uint64_t>(i.a)[l] + static_cast<uint64_t>(i.offset);
    // It reads and it writes.
    mask = r.checkGlobal(w, i, wide, bytes, mask, false);
    mask = r.checkGlobal(w, i, wide, bytes, mask, true);
    if (mask) {
      sectorCost(i, wide, mask, bytes);
      r.orderAtomic(w, i, wide, mask, /*reads=*/true, /*writes=*/true);
    }
  }
  bool changed = false;
  KVBUF_EACH(mask) {
    uint8_t *p;
    if (inShared) {
      if (h.checkShadow) {
        r.shadowRead(w, i, l, narrow[l], bytes);
        r.shadowWrite(w, i, l, narrow[l], bytes);
      }
      p = h.shared + narrow[l];
    } else {
      p = reinterpret_cast<uint8_t *>(wide[l]);
    }
    bool pair = bytes == 8;
    uint64_t old = 0, x = pair ? reg<uint64_t>(i.b)[l] : reg<uint32_t>(i.b)[l];
    std::memcpy(&old, p, bytes);
    uint64_t now = atomicValue(i.flags, old, x, bytes);
    if (i.c != noSlot &&
        old != (pair ? reg<uint64_t>(i.c)[l] : reg<uint32_t>(i.c)[l]))
      now = old;
    std::memcpy(p, &now, bytes);
    changed |= now != old;
    if (pair)
      reg<uint64_t>(i.dst)[l] = old;
    else
      reg<uint32_t>(i.dst)[l] = static_cast<uint32_t>(old);
  }
  if (h.laneOrder)
    r.observe(w, i, mask, /*reads=*/true);
  if (inShared && mask)
    r.orderShared(w, i, narrow, mask, /*reads=*/true, /*writes=*/true);
  if (!inShared && mask)
    r.communicate(w, i, changed);
}
