//===- Float8.h - 8-bit floats on the host ----------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values of the codes of 8-bit floats, by the definitions of the formats:
// the OCP 8-bit floating point specification, and its variants without negative
// zero and infinity.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_FLOAT8_H
#define KVBUFFER_LIB_RUNTIME_FLOAT8_H

#include "kvbuffer/Runtime/DType.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvbuf::rt {

/// The value of a code; NaN for what is no number.
inline double decode8(DType type, uint8_t code) {
  bool isE4 = type == DType::F8E4M3FN || type == DType::F8E4M3FNUZ;
  bool fnuz = type == DType::F8E4M3FNUZ || type == DType::F8E5M2FNUZ;
  int mantissa = isE4 ? 3 : 2, bias = (isE4 ? 7 : 15) + fnuz;
  int a = code & 0x7F, exponent = a >> mantissa, one = 1 << mantissa,
      part = a & (one - 1);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (fnuz ? code == 0x80 : type == DType::F8E4M3FN ? a == 0x7F : a > 0x7C)
    return nan;
  double value = exponent == 0
                     ? std::ldexp(part, 1 - bias - mantissa)
                     : std::ldexp(one + part, exponent - bias - mantissa);
  if (type == DType::F8E5M2 && a == 0x7C)
    value = std::numeric_limits<double>::infinity();
  return code & 0x80 ? -value : value;
}

/// The largest finite value.
inline double largest8(DType type) {
  switch (type) {
  case DType::F8E4M3FN:
    return 448;
  case DType::F8E4M3FNUZ:
    return 240;
  default:
    return 57344;
  }
}

/// The distance between neighbours at this magnitude.
inline double ulp8(DType type, double magnitude) {
  bool isE4 = type == DType::F8E4M3FN || type == DType::F8E4M3FNUZ;
  bool fnuz = type == DType::F8E4M3FNUZ || type == DType::F8E5M2FNUZ;
  int least = 1 - ((isE4 ? 7 : 15) + fnuz);
  int exponent = magnitude > 0 ? std::max(least, std::ilogb(magnitude)) : least;
  return std::ldexp(1.0, exponent - (isE4 ? 3 : 2));
}

/// The code nearest to a number, ties to even; the largest finite ones for what
/// exceeds them.
inline uint8_t encode8(DType type, double x) {
  bool isE4 = type == DType::F8E4M3FN || type == DType::F8E4M3FNUZ;
  bool fnuz = type == DType::F8E4M3FNUZ || type == DType::F8E5M2FNUZ;
  int mantissa = isE4 ? 3 : 2, least = 1 - ((isE4 ? 7 : 15) + fnuz);
  double magnitude = std::min(std::abs(x), largest8(type));
  double unit = ulp8(type, magnitude);
  magnitude = std::nearbyint(magnitude / unit) * unit;
  if (magnitude == 0)
    return !fnuz && std::signbit(x) ? 0x80 : 0;
  int exponent = std::max(least, std::ilogb(magnitude));
  auto units =
      static_cast<int>(magnitude / std::ldexp(1.0, exponent - mantissa));
  int code = ((exponent - least) << mantissa) + units;
  return static_cast<uint8_t>(code | (x < 0 ? 0x80 : 0));
}

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_FLOAT8_H
