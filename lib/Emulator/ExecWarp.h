//===- ExecWarp.h - Exchange between the lanes of a warp --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Members of Exec. The member mask must name exactly the lanes that are here,
// of those that have not ended: the emulator's lanes never meet anywhere but at
// a branch's join.
//
//===----------------------------------------------------------------------===//

bool members(const Inst &i, uint64_t named) {
  named &= w.full;
  if ((named & w.live) == w.mask || (named & w.live & ~r.goneOf(w)) == w.mask)
    return true;
  r.faultText(FaultKind::Divergence, w, i, -1,
              w.mask & ~named
                  ? "the member mask leaves out lanes that execute it"
                  : "the member mask names lanes that do not execute it");
  return false;
}

uint32_t firstActive(uint32_t slot) {
  return reg<uint32_t>(slot)[__builtin_ctzll(w.mask)];
}

void shuffle(const Inst &i) {
  const uint32_t *slots = h.lists + i.list;
  uint64_t named = firstActive(slots[0]);
  if (w.mask & ~named)
    r.leavesOut(w, i);
  else
    members(i, named);
  const uint32_t *a = reg<uint32_t>(i.a), *b = reg<uint32_t>(i.b),
                 *c = reg<uint32_t>(i.c);
  uint32_t value[W], valid[W];
  for (unsigned l = 0; l < W; ++l) {
    uint32_t segment = c[l] >> 8 & 31, clamp = c[l] & 31, n = b[l] & 31;
    uint32_t least = l & segment, most = least | (clamp & ~segment);
    uint32_t from, ok;
    switch (i.flags) {
    case 0: // bfly
      from = l ^ n;
      ok = from <= most;
      break;
    case 1: // up: the clamp is the lower bound
      from = l - n;
      ok = static_cast<int32_t>(from) >= static_cast<int32_t>(most);
      break;
    case 2: // down
      from = l + n;
      ok = from <= most;
      break;
    default: // idx
      from = least | (n & ~segment);
      ok = from <= most;
      break;
    }
    from = ok ? from : l;
    value[l] = a[from & (W - 1)];
    valid[l] = ok;
    if ((w.mask >> l & 1) && !(w.mask >> (from & (W - 1)) & 1))
      r.faultText(FaultKind::Divergence, w, i, l,
                  "reads from a lane that does not take part");
  }
  uint32_t *d = out<uint32_t>(i.dst);
  std::memcpy(d, value, sizeof(value));
  done<uint32_t>(i.dst);
  if (slots[1] != noSlot) {
    d = out<uint32_t>(slots[1]);
    std::memcpy(d, valid, sizeof(valid));
    done<uint32_t>(slots[1]);
  }
}

void vote(const Inst &i) {
  members(i, firstActive(i.b));
  const uint32_t *a = reg<uint32_t>(i.a);
  uint64_t set = 0;
  for (unsigned l = 0; l < W; ++l)
    set |= static_cast<uint64_t>(a[l] & 1) << l;
  set &= w.mask;
  uint32_t result = i.flags == 0   ? set != 0                   // any
                    : i.flags == 1 ? set == w.mask              // all
                    : i.flags == 2 ? static_cast<uint32_t>(set) // ballot
                                   : set == w.mask || set == 0; // uni
  uint32_t *d = out<uint32_t>(i.dst);
  KVBUF_LANES d[l] = result;
  done<uint32_t>(i.dst);
}

void elect(const Inst &i) {
  members(i, firstActive(i.a));
  unsigned leader = __builtin_ctzll(w.mask);
  uint32_t *d = out<uint32_t>(i.dst);
  KVBUF_LANES d[l] = l == leader;
  done<uint32_t>(i.dst);
}
