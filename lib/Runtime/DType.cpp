//===- DType.cpp - Element types on the host ------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/DType.h"
#include "Float8.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <cmath>

using namespace kvbuf::rt;

namespace {
struct DTypeInfo {
  DType type;
  const char *name;
  size_t bytes;
};
constexpr DTypeInfo kTypes[] = {{DType::F16, "f16", 2},
                                {DType::BF16, "bf16", 2},
                                {DType::F32, "f32", 4},
                                {DType::I32, "i32", 4},
                                {DType::I64, "i64", 8},
                                {DType::U8, "u8", 1},
                                {DType::F8E4M3FN, "f8E4M3FN", 1},
                                {DType::F8E5M2, "f8E5M2", 1},
                                {DType::F8E4M3FNUZ, "f8E4M3FNUZ", 1},
                                {DType::F8E5M2FNUZ, "f8E5M2FNUZ", 1}};
} // namespace

size_t kvbuf::rt::sizeOf(DType type) {
  return kTypes[static_cast<size_t>(type)].bytes;
}

const char *kvbuf::rt::nameOf(DType type) {
  return kTypes[static_cast<size_t>(type)].name;
}

DType kvbuf::rt::parseDType(std::string_view name) {
  for (const DTypeInfo &info : kTypes)
    if (name == info.name)
      return info.type;
  throw Error("unknown element type '" + std::string(name) +
              "'; expected f16, bf16, f32, i32, i64, u8, f8E4M3FN, f8E5M2, "
              "f8E4M3FNUZ or f8E5M2FNUZ");
}

uint16_t kvbuf::rt::encodeF16(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  uint32_t rest = u & 0x7FFFFFFFu;
  if (rest > 0x7F800000u)
    return sign | 0x7E00u;
  if (rest >= 0x47800000u) // 65536 and above
    return sign | 0x7C00u;
  if (rest < 0x38800000u) {
    // Below 2^-14 the half is subnormal: adding 0.5 lets the FPU round at bit
    // 2^-24, and the sum's low bits are the result.
    float shifted = std::bit_cast<float>(rest) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) -
                                        0x3F000000u);
  }
  uint32_t rounded = rest + 0xFFFu + ((rest >> 13) & 1u) - 0x38000000u;
  return sign | static_cast<uint16_t>(rounded >> 13);
}

double kvbuf::rt::ulpOf(DType type, double magnitude) {
  if (isFloat8(type))
    return ulp8(type, std::isfinite(magnitude) ? magnitude : 0);
  int mantissa = type == DType::F32 ? 23 : type == DType::BF16 ? 7 : 10;
  int minExponent = type == DType::F16 ? -14 : -126;
  int exponent = minExponent;
  if (magnitude > 0 && std::isfinite(magnitude))
    exponent = std::max(minExponent, std::ilogb(magnitude));
  return std::ldexp(1.0, exponent - mantissa);
}
