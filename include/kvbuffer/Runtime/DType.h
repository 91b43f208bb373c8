//===- DType.h - Element types on the host ----------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_DTYPE_H
#define KVBUFFER_RUNTIME_DTYPE_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvbuf::rt {

/// Element types that kernels take. The names are those of the manifest; those
/// of 8-bit floats are MLIR's.
enum class DType {
  F16,
  BF16,
  F32,
  I32,
  I64,
  U8,
  F8E4M3FN,
  F8E5M2,
  F8E4M3FNUZ,
  F8E5M2FNUZ
};

/// Bytes of one element.
size_t sizeOf(DType type);

/// "f16", "bf16", "f32", "i32", "i64", "u8", "f8E4M3FN", "f8E5M2",
/// "f8E4M3FNUZ" or "f8E5M2FNUZ".
const char *nameOf(DType type);

/// Whether elements are 8-bit floats, which callers may give as raw bytes (u8).
inline bool isFloat8(DType type) { return type >= DType::F8E4M3FN; }

/// The inverse of nameOf; throws Error for another name.
DType parseDType(std::string_view name);

/// Exact value of a bfloat16.
inline float decodeBF16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Nearest bfloat16, ties to even; NaN stays NaN, overflow becomes infinity.
inline uint16_t encodeBF16(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u)
    return static_cast<uint16_t>((u >> 16) | 0x40u);
  return static_cast<uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
}

/// Exact value of an IEEE half, subnormals included.
inline float decodeF16(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t rest = bits & 0x7FFFu;
  if (rest >= 0x7C00u) // infinity, NaN
    return std::bit_cast<float>(sign | 0x7F800000u | ((rest & 0x3FFu) << 13));
  // Placing the 15 bits one exponent range too low and multiplying back by
  // 2^112 normalizes subnormals on the way.
  float scaled = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

/// Nearest IEEE half, ties to even; NaN stays NaN, overflow becomes infinity.
uint16_t encodeF16(float value);

/// Exact value of a 16-bit float of either type.
inline float decode16(DType type, uint16_t bits) {
  return type == DType::BF16 ? decodeBF16(bits) : decodeF16(bits);
}

/// Nearest 16-bit float of either type.
inline uint16_t encode16(DType type, float value) {
  return type == DType::BF16 ? encodeBF16(value) : encodeF16(value);
}

/// Distance between neighbouring values of f16, bf16 or f32 at this magnitude
/// (that of the smallest normal number below it).
double ulpOf(DType type, double magnitude);

/// The nearest number of f16, bf16 or f32.
inline float roundTo(DType type, float value) {
  return type == DType::F32 ? value : decode16(type, encode16(type, value));
}

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_DTYPE_H
