//===- MatrixJob.h - Asynchronous products of a warp ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the interpreter needs to compute a warp's quarter of a group of wgmma,
// and how the matrix unit finds an element in shared memory. Plain structs and
// functions without library code: both sides of the interpreter include this.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_MATRIXJOB_H
#define KVBUF_LIB_EMULATOR_MATRIXJOB_H

#include <cstdint>

namespace kvbuf::emu {

/// Flags of the instruction Wgmma.
enum WgmmaFlags : uint8_t {
  wgmmaBF16 = 1,       // elements are bf16, else f16
  wgmmaRegisterA = 2,  // a comes from registers
  wgmmaTransposeA = 4, // a is M-major in shared memory
  wgmmaTransposeB = 8, // b is N-major
  wgmmaAccumulate = 16,
  wgmmaGroup = 32, // a committed group of its own, awaited by operands
  wgmmaNegateA = 64,
  wgmmaNegateB = 128,
};

/// What an instruction Wgmma's `imm` holds: columns, steps, and, of 8-bit
/// floats, which they are. A step of those is of 32 elements, and so of as many
/// bytes as one of 16 elements of 16 bits.
enum WgmmaTypes : uint8_t {
  wgmmaBytes = 1,   // 8-bit elements, e4m3
  wgmmaLeftBF8 = 2, // of which a's are e5m2
  wgmmaRightBF8 = 4 // and b's
};
constexpr int64_t wgmmaShape(uint32_t n, uint32_t steps, uint8_t types) {
  return n | static_cast<int64_t>(steps) << 16 |
         static_cast<int64_t>(types) << 32;
}
constexpr uint32_t wgmmaColumns(int64_t shape) { return shape & 0xFFFF; }
constexpr uint32_t wgmmaSteps(int64_t shape) { return shape >> 16 & 0xFFFF; }
constexpr uint8_t wgmmaTypes(int64_t shape) {
  return static_cast<uint8_t>(shape >> 32);
}

/// A shared memory descriptor, PTX ISA "Matrix Descriptor Format": bits 0-13
/// the start address, 16-29 the leading, 32-45 the stride byte offset, each
/// without its four low bits; 49-51 the base offset; 62-63 the swizzle.
struct MatrixDescriptor {
  uint32_t start, leading, stride;
  /// Bytes over which 16-byte units are swizzled; 16: not at all.
  uint32_t span;
  uint32_t baseOffset;
};

constexpr uint64_t descriptorReserved = 0x3FF1C000C000C000ull;

/// Descriptors count from the block's first byte, which is at `begin`.
static inline MatrixDescriptor decodeDescriptor(uint64_t d, uint32_t begin) {
  auto field = [&](unsigned bit) {
    return static_cast<uint32_t>(d >> bit & 0x3FFF) << 4;
  };
  static constexpr uint32_t spans[4] = {16, 128, 64, 32};
  return {begin + field(0), field(16), field(32), spans[d >> 62],
          static_cast<uint32_t>(d >> 49 & 7)};
}

/// The address of the 16 bytes at `address` after the swizzle: address bits 4
/// and up are xored with as many bits from 7 up, counted from where the
/// pattern starts.
static inline uint32_t swizzled(uint32_t address, uint32_t span,
                                uint32_t baseOffset = 0) {
  uint32_t row = (address >> 7) - baseOffset;
  return address ^ (row & (span / 16 - 1)) << 4;
}

/// Where 8 consecutive elements of 16 bits lie: of row `mn` (of A, or column of
/// B), at k = 8 `eighth`, for a matrix that is K-major. PTX ISA "Strides" and
/// "Canonical Layouts": 8 rows of `span` bytes make an atom, atoms follow each
/// other at the stride; without a swizzle the two halves of k are the leading
/// byte offset apart.
static inline uint32_t kMajorAddress(const MatrixDescriptor &d, uint32_t mn,
                                     uint32_t eighth) {
  uint32_t at = d.start + mn % 8 * d.span + mn / 8 * d.stride +
                eighth * (d.span == 16 ? d.leading : 16);
  return swizzled(at, d.span, d.baseOffset);
}

/// The same for an MN-major matrix: 8 elements from mn = 8 `eighth`, at `k`.
/// 8 rows of `span` bytes, a row a k, make an atom; the next elements along MN
/// are the leading byte offset away, the next 8 k the stride. Without a swizzle
/// the two exchange their meaning.
static inline uint32_t mnMajorAddress(const MatrixDescriptor &d,
                                      uint32_t eighth, uint32_t k) {
  uint32_t units = d.span / 16;
  uint32_t along = d.span == 16 ? d.stride : d.leading,
           down = d.span == 16 ? d.leading : d.stride;
  uint32_t at = d.start + eighth % units * 16 + eighth / units * along +
                k % 8 * d.span + k / 8 * down;
  return swizzled(at, d.span, d.baseOffset);
}

/// A group of m64 x n x 16 products, or x 32 of bytes, as one warp of the
/// warpgroup sees it.
struct MatrixJob {
  uint32_t inst, warp;
  uint32_t n, steps;
  uint8_t flags, types;
  bool computed;
  /// Operand a of each step: 4 registers of 32 lanes, if in registers.
  const uint32_t *a;
  /// Descriptors of each step.
  const uint64_t *descriptorA, *descriptorB;
  /// n / 2 registers of 32 lanes: first what is added to, then the result.
  uint32_t *accumulators;
};

/// A register of a result that is not there yet holds a signalling NaN that
/// names its job. Copies carry it along; arithmetic does not make such NaNs.
constexpr uint32_t tokenMask = 0xFFC00000, tokenBits = 0x7F800000;
static inline bool isToken(uint32_t word) {
  return (word & tokenMask) == tokenBits && (word & ~tokenMask) >> 7;
}
static inline uint32_t makeToken(uint32_t serial, uint32_t reg) {
  return tokenBits | serial << 7 | reg;
}
static inline uint32_t tokenSerial(uint32_t word) { return word >> 7 & 0x7FFF; }
static inline uint32_t tokenRegister(uint32_t word) { return word & 127; }

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_MATRIXJOB_H
