//===- WarpOps.h - Rare operations of whole warps ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instruction WarpCall does one of these with all lanes of a warp. It names
// a description in the program, which has all that the instruction lacks room
// for.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_WARPOPS_H
#define KVBUF_LIB_EMULATOR_WARPOPS_H

#include <cstdint>

namespace kvbuf::emu {

/// Elements of matrices. Those of fewer than 32 bits are packed in words.
enum class Element : uint8_t {
  F16,
  BF16,
  TF32,
  F32,
  F64,
  S8,
  U8,
  S4,
  U4,
  B1,
  S32,
  E4M3,
  E5M2,
  E4M3FNUZ,
  E5M2FNUZ,
};
/// Bits of an element in registers.
constexpr unsigned bitsOf(Element e) {
  switch (e) {
  case Element::F64:
    return 64;
  case Element::F16:
  case Element::BF16:
    return 16;
  case Element::S8:
  case Element::U8:
  case Element::E4M3:
  case Element::E5M2:
  case Element::E4M3FNUZ:
  case Element::E5M2FNUZ:
    return 8;
  case Element::S4:
  case Element::U4:
    return 4;
  case Element::B1:
    return 1;
  default:
    return 32;
  }
}
constexpr bool isInteger(Element e) {
  return (e >= Element::S8 && e <= Element::B1) || e == Element::S32;
}

enum class WarpOpKind : uint8_t {
  /// D = A B + C of mma.sync: list = D, A, B, C.
  Mma,
  /// The same of wmma, whose fragments have a layout of their own.
  Wmma,
  /// A fragment from memory: list = its registers, address, stride.
  WmmaLoad,
  WmmaStore,
  /// list = result, value, mask; `detail` = a Redux.
  Redux,
  /// list = result, value, mask; and for `detail` 1 (all) a predicate.
  Match,
  /// The lanes that are here: list = result.
  ActiveMask,
  /// A barrier's reduction cannot be told apart by lanes: see BarrierReduce.
  /// D = A B + C of AMD's WMMA and MFMA: list = D, A, B, C.
  AmdWmma,
  AmdMfmaAny,
};

enum class Redux : uint8_t {
  Add,
  And,
  Or,
  Xor,
  SMin,
  SMax,
  UMin,
  UMax,
  FMin,
  FMax
};

/// How AMD's matrices lie in the lanes of a wave.
enum class AmdLayout : uint8_t { Gfx11, Gfx12, Mfma };

struct WarpOp {
  WarpOpKind kind;
  Element a = Element::F16, b = Element::F16, c = Element::F32;
  uint8_t detail = 0;
  /// The operand of a load or store: 'a', 'b', 'c' or 'd'.
  char operand = 'a';
  /// Of the memory (loads and stores): column-major.
  bool columns = false;
  /// Registers of 64 bits for A, B, C and D.
  bool wideA = false, wideC = false;
  /// Integer sums stay within 32 bits. AMD: the upper halves of the words.
  bool saturates = false, high = false;
  uint16_t m = 0, n = 0, k = 0, blocks = 1;
  /// Entries of the list: D and C have as many.
  uint16_t numD = 0, numA = 0, numB = 0;
  AmdLayout layout = AmdLayout::Gfx11;
};

/// `detail` of AmdMfmaAny: 2 operands more, words of which a byte scales each
/// 32 elements; bits 1 and 2 say which byte of A's, bits 3 and 4 which of B's.
inline constexpr uint8_t mfmaScaled = 1;

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_WARPOPS_H
