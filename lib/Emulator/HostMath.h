//===- HostMath.h - Functions of a lane's numbers ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is too rare for a micro-operation of its own: the device libraries'
// functions, arithmetic that rounds in a given direction, 8-bit floats. The
// instruction LaneCall names one of them by its number here.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_HOSTMATH_H
#define KVBUF_LIB_EMULATOR_HOSTMATH_H

#include <cstddef>
#include <cstdint>

namespace kvbuf::emu {

/// Most operands and results of a function.
constexpr unsigned maxLaneOperands = 4, maxLaneResults = 2;

/// A function of numbers that lie in 64-bit words: fp32, fp64 and integers by
/// their bits, narrow ones zero-extended.
struct LaneFunction {
  const char *name;
  /// "results=operands": n for what fills a register, w for a pair of them.
  const char *signature;
  void (*call)(const uint64_t *in, uint64_t *out, unsigned flags);
};

/// All functions; an instruction's number is an index into them.
const LaneFunction *laneFunctions();
unsigned numLaneFunctions();
/// The number of the function of a name; -1: there is none.
int findLaneFunction(const char *name, size_t length);

/// Flags of the functions "add.f", "fma.d" and their like: how they round
/// (`roundNearest` to `roundZero`), and whether they flush denormals and
/// saturate to [0, 1].
enum LaneFlags : uint8_t {
  roundNearest = 0,
  roundDown = 1,
  roundUp = 2,
  roundZero = 3,
  roundMask = 3,
  flushDenormals = 4,
  saturate = 8,
  isSigned = 16,
};

/// The value after an atomic operation of `kind` (AtomicKind) on `bytes` bytes:
/// `old` was there, `x` is the operand.
uint64_t atomicValue(unsigned kind, uint64_t old, uint64_t x, unsigned bytes);

/// 8-bit and 16-bit floats. Formats: 0 E4M3 (OCP), 1 E4M3 (FNUZ), 2 E5M2 (OCP),
/// 3 E5M2 (FNUZ). Out of range: the largest number if `saturates`, else what
/// the format has for it.
uint8_t toFloat8(float x, unsigned format, bool saturates);
float fromFloat8(uint8_t x, unsigned format);
uint16_t roundToF16(float x);
uint16_t roundToBF16(float x);
float extendF16(uint16_t x);

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_HOSTMATH_H
