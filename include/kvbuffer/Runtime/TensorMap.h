//===- TensorMap.h - A tensor map that software can read --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Kernels take a tensor map as a parameter of 128 bytes and hand it to the
/// copy engine; they never look inside. For a GPU the driver writes those bytes
/// (cuTensorMapEncodeTiled), in a format that is not public. For the emulator
/// they are a `SoftwareTensorMap`, with the same contents and the same limits.
///
/// The limits are those of the CUDA driver API, section "Tensor Map Object
/// Management", for tiled maps without interleaving and with unit element
/// strides.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_TENSORMAP_H
#define KVBUFFER_RUNTIME_TENSORMAP_H

#include <cstdint>
#include <string>
#include <type_traits>

namespace kvbuf::rt {

/// Describes boxes of a tensor in global memory and how they lie in shared
/// memory. Dimension 0 is the contiguous one; unused dimensions are zero.
struct alignas(64) SoftwareTensorMap {
  /// What `magic` has to be, and the most dimensions.
  static constexpr uint64_t expectedMagic = 0x314D54667562766Bull; // "kvbufTM1"
  static constexpr unsigned maxRank = 5;

  uint64_t magic;
  /// Bytes of an element: 1, 2, 4 or 8.
  uint8_t elementBytes;
  /// Dimensions, 1 to 5.
  uint8_t rank;
  /// Span of the swizzle in bytes: 0 (none), 32, 64 or 128. In units of 16
  /// bytes, bits [0, n) of a shared address are xored with bits [3, 3 + n), n
  /// being 0, 1, 2 or 3.
  uint8_t swizzle;
  uint8_t reserved0[5];
  /// The first element's address, a multiple of 16.
  uint64_t address;
  /// Elements in each dimension, 1 to 2^32. What a box has outside of them
  /// reads as zero and is not stored.
  uint64_t dims[maxRank];
  /// Bytes from one element to the next along dimensions 1 and up: multiples
  /// of 16 below 2^40.
  uint64_t strides[maxRank - 1];
  /// Elements of a box in each dimension, 1 to 256. Along dimension 0 they fill
  /// a multiple of 16 bytes, and no more than the span of the swizzle.
  uint32_t box[maxRank];
  uint8_t reserved1[12];
};

static_assert(sizeof(SoftwareTensorMap) == 128 &&
              std::is_trivially_copyable_v<SoftwareTensorMap>);

/// Why `map` is none that a driver would make; empty if it is one. A box larger
/// than its tensor is allowed.
inline std::string whyInvalid(const SoftwareTensorMap &map) {
  auto number = [](uint64_t n) { return std::to_string(n); };
  auto of = [&](const char *what, unsigned d, uint64_t n) {
    return what + number(d) + " is " + number(n);
  };
  if (map.magic != SoftwareTensorMap::expectedMagic)
    return "the 128 bytes are no tensor map of the emulator";
  unsigned e = map.elementBytes;
  if (e != 1 && e != 2 && e != 4 && e != 8)
    return "elements of " + number(e) + " bytes; 1, 2, 4 or 8 are possible";
  if (map.rank < 1 || map.rank > SoftwareTensorMap::maxRank)
    return number(map.rank) + " dimensions; 1 to 5 are possible";
  if (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 &&
      map.swizzle != 128)
    return "a swizzle of " + number(map.swizzle) +
           " bytes; 0, 32, 64 or 128 are possible";
  if (map.address % 16)
    return "the tensor's address is no multiple of 16";
  for (unsigned d = 0; d < map.rank; ++d) {
    if (map.dims[d] < 1 || map.dims[d] > uint64_t(1) << 32)
      return of("dimension ", d, map.dims[d]) + "; 1 to 2^32 are possible";
    if (map.box[d] < 1 || map.box[d] > 256)
      return of("the box in dimension ", d, map.box[d]) +
             "; 1 to 256 are possible";
  }
  for (unsigned d = 0; d + 1 < map.rank; ++d)
    if (map.strides[d] % 16 || map.strides[d] >= uint64_t(1) << 40)
      return of("the stride of dimension ", d + 1, map.strides[d]) +
             " bytes; multiples of 16 below 2^40 are possible";
  uint64_t row = uint64_t(map.box[0]) * e;
  if (row % 16)
    return "a box row of " + number(row) + " bytes, no multiple of 16";
  if (map.swizzle && row > map.swizzle)
    return "a box row of " + number(row) +
           " bytes does not fit the swizzle of " + number(map.swizzle);
  return "";
}

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_TENSORMAP_H
