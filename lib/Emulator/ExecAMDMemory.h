//===- ExecAMDMemory.h - Buffers, copies into LDS, LDS reads ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Members of Exec. An access to a raw buffer is in range as far as the
// buffer's own length says (CDNA3 ISA, "Range checking"), for each 4 bytes on
// their own: what lies past it reads as zero and is not written. What is in
// range is then checked as any access is.
//
//===----------------------------------------------------------------------===//

// Where the lanes' accesses start, and how many of their first bytes are in
// range.
void bufferRange(const Inst &i, const uint64_t *base, const uint32_t *length,
                 const uint32_t *offset, const uint32_t *waveOffset,
                 uint64_t *address, uint32_t *size) {
  uint32_t bytes = static_cast<uint32_t>(i.imm);
  for (unsigned l = 0; l < W; ++l) {
    uint64_t at = static_cast<uint64_t>(offset[l]) + waveOffset[l] +
                  static_cast<uint64_t>(i.offset);
    uint64_t left = length[l] > at ? length[l] - at : 0;
    address[l] = base[l] + at;
    size[l] = left >= bytes ? bytes : static_cast<uint32_t>(left & ~3ull);
  }
}

// A lane of which only a part is in range.
void partOfLane(const Inst &i, unsigned l, uint64_t address, uint32_t size,
                bool store) {
  uint64_t addresses[W] = {};
  addresses[l] = address;
  if (!r.checkGlobal(w, i, addresses, size, 1ull << l, store))
    return;
  *h.changes += store;
  if (h.watching)
    r.orderGlobal(w, i, addresses, size, 1ull << l, store);
  alignas(16) uint8_t data[16] = {};
  if (!store)
    r.readGlobal(data, address, size);
  // Parts are of accesses of 8 bytes or 16.
  if (i.imm == 8)
    store ? moveLane<8, true>(i, l, data) : moveLane<8, false>(i, l, data);
  else
    store ? moveLane<16, true>(i, l, data) : moveLane<16, false>(i, l, data);
  if (store)
    r.writeGlobal(address, data, size);
}

void bufferAccess(const Inst &i, bool store) {
  uint64_t address[W], whole = 0, part = 0;
  uint32_t size[W];
  bufferRange(i, reg<uint64_t>(i.a),
              reg<uint32_t>(h.lists[i.list + i.listSize]), reg<uint32_t>(i.b),
              reg<uint32_t>(i.c), address, size);
  for (unsigned l = 0; l < W; ++l) {
    whole |= static_cast<uint64_t>(size[l] == i.imm) << l;
    part |= static_cast<uint64_t>(size[l] != i.imm && size[l]) << l;
    address[l] -= static_cast<uint64_t>(i.offset); // added by globalAccess
  }
  whole &= w.mask;
  if (!store && whole != w.mask)
    zero(i, w.mask & ~whole);
  if (whole)
    globalAccess(i, address, whole, store);
  part &= w.mask;
  KVBUF_EACH(part)
  partOfLane(i, l, address[l] + static_cast<uint64_t>(i.offset), size[l],
             store);
}

// Whether the active lanes agree on a value of which the machine takes but
// one.
template <typename T>
bool uniform(const Inst &i, uint32_t slot, const char *text) {
  const T *v = reg<T>(slot);
  T value = v[__builtin_ctzll(w.mask)];
  bool same = true;
  KVBUF_EACH(w.mask) same &= v[l] == value;
  if (!same)
    r.faultText(FaultKind::Divergence, w, i, -1, text);
  return same;
}

// The destination of the lanes: one address for the wave, in M0, to which the
// machine adds the instruction's offset and the lane's place.
uint64_t ldsDestination(const Inst &i, uint32_t *address) {
  uniform<uint32_t>(i, i.a,
                    "the lanes name different LDS addresses; the machine "
                    "takes one for the wave and adds each lane's place");
  uint32_t start = firstActive(i.a), places[W];
  for (unsigned l = 0; l < W; ++l)
    places[l] = start + l * static_cast<uint32_t>(i.imm);
  return clearShared(i, address, places, w.mask, static_cast<unsigned>(i.imm),
                     true);
}

void bufferToLds(const Inst &i) {
  uint32_t base = h.lists[i.list], length = h.lists[i.list + 1];
  const char *text = "the lanes have different buffers or wave offsets, of "
                     "which a copy into LDS takes one";
  uniform<uint64_t>(i, base, text) && uniform<uint32_t>(i, length, text) &&
      uniform<uint32_t>(i, i.c, text);
  uint32_t dst[W], size[W];
  uint64_t src[W], reading = 0;
  bufferRange(i, reg<uint64_t>(base), reg<uint32_t>(length), reg<uint32_t>(i.b),
              reg<uint32_t>(i.c), src, size);
  for (unsigned l = 0; l < W; ++l)
    reading |= static_cast<uint64_t>(size[l] != 0) << l;
  uint64_t mask = ldsDestination(i, dst);
  issueCopy(i, dst, src, size, mask, reading);
  r.vmCount(w);
}

void globalToLds(const Inst &i) {
  const uint64_t *from = reg<uint64_t>(i.b);
  uint32_t dst[W], size[W];
  uint64_t src[W];
  for (unsigned l = 0; l < W; ++l) {
    src[l] = from[l] + static_cast<uint64_t>(i.offset);
    size[l] = static_cast<uint32_t>(i.imm);
  }
  uint64_t mask = ldsDestination(i, dst);
  issueCopy(i, dst, src, size, mask, ~0ull);
  r.vmCount(w);
}

// Each 16 lanes read a matrix of 4 rows and 16 columns of 16 bits, lane 4 r + c
// the columns 4 c to 4 c + 3 of row r, and lane n gets column n. Of 8 bits it
// has 8 rows, lane 2 r + c the columns 8 c to 8 c + 7 (flags = 1).
void readTr16(const Inst &i) {
  if (!converged(i))
    return;
  uint32_t address[W];
  uint64_t good = clearShared(i, address, reg<uint32_t>(i.a), w.mask, 8, false);
  bankCost(i, address, good, 8);
  if (h.tracing)
    r.traceShared(w, i, address, 8, good, false);
  r.ldsIssue(w, i, address, good, false);
  uint16_t rows[W][4] = {};
  KVBUF_EACH(good) {
    if (h.checkShadow && !shadowReadFast(i, l, address[l], 2))
      r.shadowRead(w, i, l, address[l], 8);
    std::memcpy(rows[l], h.shared + address[l], 8);
  }
  uint32_t *lo = reg<uint32_t>(h.lists[i.list]),
           *hi = reg<uint32_t>(h.lists[i.list + 1]);
  for (unsigned l = 0; i.flags && l < W; ++l) {
    uint8_t column[8];
    for (unsigned row = 0; row < 8; ++row) {
      uint8_t bytes[8];
      std::memcpy(bytes, rows[(l & ~15u) + 2 * row + (l >> 3 & 1)], 8);
      column[row] = bytes[l & 7];
    }
    std::memcpy(lo + l, column, 4);
    std::memcpy(hi + l, column + 4, 4);
  }
  for (unsigned l = 0; !i.flags && l < W; ++l) {
    const uint16_t (*patch)[4] = rows + (l & ~15u);
    unsigned n = l & 15, c = n >> 2, e = n & 3;
    lo[l] = patch[c][e] | static_cast<uint32_t>(patch[4 + c][e]) << 16;
    hi[l] = patch[8 + c][e] | static_cast<uint32_t>(patch[12 + c][e]) << 16;
  }
}

// Each eight lanes read a matrix of 8 x 8 elements of 16 bits, a row each, and
// get a column each (gfx1250).
void loadTr16(const Inst &i) {
  if (!converged(i))
    return;
  uint32_t address[W];
  uint64_t good =
      clearShared(i, address, reg<uint32_t>(i.a), w.mask, 16, false);
  bankCost(i, address, good, 16);
  if (h.tracing)
    r.traceShared(w, i, address, 16, good, false);
  r.ldsIssue(w, i, address, good, false);
  uint16_t rows[W][8] = {};
  KVBUF_EACH(good) {
    if (h.checkShadow && !shadowReadFast(i, l, address[l], 4))
      r.shadowRead(w, i, l, address[l], 16);
    std::memcpy(rows[l], h.shared + address[l], 16);
  }
  for (unsigned word = 0; word < 4; ++word) {
    uint32_t *d = reg<uint32_t>(h.lists[i.list + word]);
    for (unsigned l = 0; l < W; ++l) {
      const uint16_t (*patch)[8] = rows + (l & ~7u) + 2 * word;
      d[l] = patch[0][l & 7] | static_cast<uint32_t>(patch[1][l & 7]) << 16;
    }
  }
}

// A tensor copy (gfx1250): what its descriptor says of three dimensions, as
// MLIR writes it. Elements beyond the tensor's sizes are zero. Its pieces of 16
// bytes are those of one copy; it ignores which lanes are active.
void tensorLoad(const Inst &i) {
  uint64_t word[tensorWords];
  unsigned first = static_cast<unsigned>(__builtin_ctzll(w.mask));
  for (unsigned k = 0; k < tensorWords; ++k) {
    if (!uniform<uint32_t>(i, h.lists[i.list + k],
                           "the lanes have different descriptors, of which a "
                           "tensor copy takes one"))
      return;
    word[k] = reg<uint32_t>(h.lists[i.list + k])[first];
  }
  uint64_t number = w.tensors++;
  if (!(word[0] & 3))
    return; // not asked for
  const uint64_t *what = word + 4, *more = word + 12;
  uint64_t bytes = 1ull << (what[0] >> 16 & 3),
           base = word[2] | (word[3] & 0x1FFFFFF) << 32,
           sizes[3] = {what[1] >> 16 | (what[2] & 0xFFFF) << 16,
                       what[2] >> 16 | (what[3] & 0xFFFF) << 16, more[0]},
           box[3] = {what[3] >> 16, what[4] & 0xFFFF, what[4] >> 16},
           strides[2] = {what[5] | (what[6] & 0xFFFF) << 32,
                         what[6] >> 16 | what[7] << 16};
  box[2] += !box[2];
  uint64_t row = box[0] * bytes, perRow = row / 16;
  // Multicast, barriers, padding and more dimensions are not executed here.
  if (word[3] >> 30 != 2 || what[0] >> 18 || (what[0] & 0xFFFF) || row % 16 ||
      !box[1] || more[3] >> 16)
    return r.faultText(FaultKind::Descriptor, w, i, -1,
                       "the descriptor of a tensor copy is not of a box of up "
                       "to three dimensions with rows of 16 bytes, without "
                       "padding");
  size_t before = w.copies.size();
  uint64_t pieces = perRow * box[1] * box[2];
  for (uint64_t begin = 0; begin < pieces; begin += W) {
    uint32_t places[W] = {}, dst[W], size[W] = {};
    uint64_t src[W] = {}, active = 0, reading = 0;
    for (unsigned l = 0; l < W && begin + l < pieces; ++l) {
      uint64_t p = begin + l, column = p % perRow * 16 / bytes,
               y = p / perRow % box[1], z = p / perRow / box[1];
      bool inside = y < sizes[1] && z < sizes[2] && column < sizes[0];
      uint64_t left = inside ? (sizes[0] - column) * bytes : 0;
      active |= 1ull << l;
      places[l] = static_cast<uint32_t>(word[1] + 16 * p);
      src[l] = base + (column + y * strides[0] + z * strides[1]) * bytes;
      size[l] = left < 16 ? static_cast<uint32_t>(left) : 16;
      reading |= static_cast<uint64_t>(size[l] != 0) << l;
    }
    uint64_t mask = clearShared(i, dst, places, active, 16, true);
    issueCopy(i, dst, src, size, mask, reading);
  }
  for (size_t k = before; k < w.copies.size(); ++k) {
    w.copies[k].byTensor = true;
    std::fill_n(w.copies[k].group, W, static_cast<uint32_t>(number));
  }
}

// Accesses of 16 bytes. Which lanes the machine serves together is known from
// one public measurement only: not those that follow each other, but lanes
// 0-3, 12-15 and 20-27 of each half, then the others. An access has to do
// without conflicts in both orders.
void addPassesOf16(const uint32_t *address, uint64_t mask, uint64_t &cost,
                   uint64_t &ideal) {
  static const uint8_t order[32] = {0,  1,  2,  3,  12, 13, 14, 15, 20, 21, 22,
                                    23, 24, 25, 26, 27, 4,  5,  6,  7,  8,  9,
                                    10, 11, 16, 17, 18, 19, 28, 29, 30, 31};
  uint32_t ordered[W];
  uint64_t orderedMask = 0, cost1 = 0, cost2 = 0, ideal1 = 0, ideal2 = 0;
  for (unsigned l = 0; l < W; ++l) {
    unsigned from = (l & 32) | order[l & 31];
    ordered[l] = address[from];
    orderedMask |= (mask >> from & 1) << l;
  }
  addPhases(address, mask, 16, cost1, ideal1);
  addPhases(ordered, orderedMask, 16, cost2, ideal2);
  cost += cost1 > cost2 ? cost1 : cost2;
  ideal += cost1 > cost2 ? ideal1 : ideal2;
}
