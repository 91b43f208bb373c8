//===- WarpFragment.h - Elements in the lanes' registers --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_WARPFRAGMENT_H
#define KVBUF_LIB_EMULATOR_WARPFRAGMENT_H

#include "HostMath.h"
#include "Machine.h"
#include "WarpOps.h"

#include <bit>
#include <cstring>

namespace kvbuf::emu {

/// The registers of one operand, as lanes hold them.
struct Fragment {
  const Warp &w;
  unsigned lanes;
  const uint32_t *slots;
  bool wide;
  Element element;

  uint64_t word(unsigned lane, unsigned r) const {
    const uint32_t *regs = w.regs + static_cast<size_t>(slots[r]) * lanes;
    if (!wide)
      return regs[lane];
    uint64_t x;
    std::memcpy(&x, regs + 2 * lane, 8);
    return x;
  }
  void setWord(unsigned lane, unsigned r, uint64_t value) const {
    uint32_t *regs = w.regs + static_cast<size_t>(slots[r]) * lanes;
    if (wide)
      std::memcpy(regs + 2 * lane, &value, 8);
    else
      regs[lane] = static_cast<uint32_t>(value);
  }
  unsigned perWord() const { return (wide ? 64 : 32) / bitsOf(element); }
  uint64_t bits(unsigned lane, unsigned e) const {
    unsigned n = bitsOf(element), per = perWord();
    uint64_t x = word(lane, e / per) >> (e % per * n);
    return n == 64 ? x : x & ((uint64_t(1) << n) - 1);
  }
  void setBits(unsigned lane, unsigned e, uint64_t value) const {
    unsigned n = bitsOf(element), per = perWord(), shift = e % per * n;
    if (per == 1)
      return setWord(lane, e, value);
    uint64_t mask = ((uint64_t(1) << n) - 1) << shift;
    setWord(lane, e / per,
            (word(lane, e / per) & ~mask) | (value << shift & mask));
  }
};

/// An element as a number; what it holds is exact in fp64.
inline double numberOf(Element e, uint64_t bits) {
  auto asFloat = [](uint32_t x) { return std::bit_cast<float>(x); };
  switch (e) {
  case Element::F16:
    return extendF16(static_cast<uint16_t>(bits));
  case Element::BF16:
    return asFloat(static_cast<uint32_t>(bits) << 16);
  case Element::TF32: // the last 13 bits are not looked at
    return asFloat(static_cast<uint32_t>(bits) & 0xFFFFE000);
  case Element::F32:
    return asFloat(static_cast<uint32_t>(bits));
  case Element::F64:
    return std::bit_cast<double>(bits);
  case Element::S8:
    return static_cast<int8_t>(bits);
  case Element::S4:
    return static_cast<int8_t>(bits << 4) >> 4;
  case Element::S32:
    return static_cast<int32_t>(bits);
  case Element::E4M3:
    return fromFloat8(static_cast<uint8_t>(bits), 0);
  case Element::E4M3FNUZ:
    return fromFloat8(static_cast<uint8_t>(bits), 1);
  case Element::E5M2:
    return fromFloat8(static_cast<uint8_t>(bits), 2);
  case Element::E5M2FNUZ:
    return fromFloat8(static_cast<uint8_t>(bits), 3);
  case Element::U8:
  case Element::U4:
  case Element::B1:
    return static_cast<double>(bits);
  }
  return 0;
}

/// A sum rounded to an element of 16 bits, or fp32's bits.
inline uint64_t bitsAs(Element e, float x) {
  return e == Element::F16    ? roundToF16(x)
         : e == Element::BF16 ? roundToBF16(x)
                              : std::bit_cast<uint32_t>(x);
}

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_WARPFRAGMENT_H
