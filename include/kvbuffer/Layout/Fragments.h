//===- Fragments.h - Matrix-instruction operand layouts ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The operand layouts of matrix instructions, as linear layouts from
/// ("register", "lane") to ("row", "col"). A register holds one element, also
/// where the hardware packs two 16-bit elements into 32 bits. For A, row is M
/// and col is K; for B, row is K and col is N; for C and D, row is M and col
/// is N.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LAYOUT_FRAGMENTS_H
#define KVBUFFER_LAYOUT_FRAGMENTS_H

#include "kvbuffer/Layout/LinearLayout.h"

namespace kvbuf {

/// A family of matrix instructions, whose layouts follow one rule.
enum class MatrixUnit {
  /// `mma.sync` of NVIDIA, by which each warp multiplies for itself.
  MmaSync,
  /// `wgmma` of NVIDIA: four warps multiply together, and read operand b, and
  /// perhaps a, from LDS.
  Wgmma,
  /// MFMA of AMD's CDNA.
  Mfma,
  /// WMMA of AMD's gfx1250, of waves of 32 lanes.
  Wmma
};

/// Its name in the IR: "mma_sync", "wgmma", "mfma", "wmma"; and back, if it is
/// one.
llvm::StringRef matrixUnitName(MatrixUnit unit);
std::optional<MatrixUnit> matrixUnit(llvm::StringRef name);

/// The warps that execute one of its instructions together; each has as many
/// of the instruction's rows as the others, those of the first come first.
int64_t warpsTogether(MatrixUnit unit);

/// The layouts of one matrix instruction D[m,n] = A[m,k] * B[k,n] + C[m,n], or
/// of one warp's rows of it, where several execute it together.
struct MmaLayouts {
  int64_t m = 0, n = 0, k = 0;
  LinearLayout a, b, c;
};

/// `mma.sync.m16n8k16` for 16-bit operands and fp32 accumulators (PTX ISA,
/// "Matrix Fragments for mma.m16n8k16").
MmaLayouts mmaSyncM16N8K16();

/// `mma.sync.m16n8k32` for 8-bit operands and fp32 accumulators (PTX ISA,
/// "Matrix Fragments for mma.m16n8k32"): as the one before, with four elements
/// in a word.
MmaLayouts mmaSyncM16N8K32();

/// Two of them side by side: a lane's columns of B and C are pairs, as LDS is
/// read by pairs of 8-bit elements.
MmaLayouts mmaSyncM16N16K32();

/// CDNA's MFMA of shape m x n x k with 16-bit operands: 32x32x8, 16x16x16
/// (gfx942), 32x32x16, 16x16x32 (gfx950). Shapes whose registers follow the
/// same rule are derived from it: an A lane holds k/(64/m) consecutive k.
/// Returns nothing for another shape.
std::optional<MmaLayouts> mfma16Bit(int64_t m, int64_t n, int64_t k);

/// `v_wmma_f32_16x16x32` of gfx1250 with bf16 or f16 operands (AMD's matrix
/// instruction calculator; FlyDSL's kernels for the chip): a lane of A has 8
/// consecutive k of the lower 16, and as many 16 further on; the two halves of
/// a wave share each 16. A lane of C has 8 rows of a column.
MmaLayouts wmmaM16N16K32();

/// The layouts of a unit's instruction of shape m x n x k, or of a group of
/// instructions that is laid out as one of that k; nothing if it has none. Of
/// `wgmma` those of one warp: PTX ISA, "Matrix fragments for
/// wgmma.mma_async.m64nNk16", whose n are as many columns of 8.
std::optional<MmaLayouts> matrixLayouts(MatrixUnit unit, int64_t m, int64_t n,
                                        int64_t k);

/// Elements of an operand that a lane keeps together as one vector, for that
/// instruction: a register of 32 bits of `mma.sync`, all that a lane holds of
/// an MFMA's or a WMMA's operand.
int64_t wordElements(MatrixUnit unit, int64_t m, int64_t k);

/// The fragment with rows and columns changed over.
LinearLayout transposed(const LinearLayout &fragment);

/// The order in which a second product must contract the columns of a first
/// one's accumulators, so that these become its operand lane by lane, without
/// an exchange. Both layouts map ("register", "lane") to ("row", "col") in
/// coordinates of that operand. The result permutes the bits of the operand's
/// column ("col" to "col"): composed with it, the operand's lanes hold the
/// columns that the accumulator's lanes hold. The other operand must be
/// contracted in the same order. Nothing if no permutation does that.
std::optional<LinearLayout> contractionOrder(const LinearLayout &operand,
                                             const LinearLayout &accumulator);

/// What lanes hold after each word of two registers was transposed among the 32
/// lanes as an 8x8 matrix (`movmatrix`): lane 4 g + t then has what lanes 8 t +
/// g / 2 and 8 t + 4 + g / 2 had in register g mod 2. Nothing where a fragment
/// has no words of two registers or other than 32 lanes.
std::optional<LinearLayout> transposedAmongLanes(const LinearLayout &fragment);

/// The operand whose dimension `out` ("row" or "col") is taken in an order that
/// `contractionOrder` gave.
LinearLayout reordered(const LinearLayout &operand, llvm::StringRef out,
                       const LinearLayout &order);

/// The order of the dimension `out` ("row" or "col") of a fragment in which the
/// elements that a lane holds itself come first, and so lie side by side: for
/// elements that are loaded several at a time. For each bit of the position the
/// element that stands there; empty if that is the natural order.
llvm::SmallVector<int64_t> ownElementsFirst(const LinearLayout &fragment,
                                            llvm::StringRef out);

/// The element ("lane" to ("row", "col")) whose 8 bytes each lane must name to
/// a transposed LDS read of 16-bit elements (`ds_read_b64_tr_b16`), so that the
/// wave receives `fragment`, ("register", "lane") to ("row", "col") with four
/// registers. In each group of 16 lanes, lane l names columns 4 (l mod 4) and
/// on of row l / 4 and receives rows 0 to 3 of column l (CDNA4 ISA, "LDS
/// transpose load"). Nothing if the fragment is not of that form.
std::optional<LinearLayout> transposedRead16(const LinearLayout &fragment);

/// The same for a read of gfx1250 (`ds_load_tr16_b128`), by which each eight
/// lanes get the columns of 8 x 8 elements of 16 bits whose rows they read
/// (FlyDSL's kernels and Triton's description of it).
std::optional<LinearLayout> transposedRead128(const LinearLayout &fragment);

/// What one `ldmatrix.xN` (b16) puts where: ("register", "lane") to ("row",
/// "col") of 2^log2Count 8x8 matrices stacked along rows; `transposed` is the
/// `.trans` form (PTX ISA, "ldmatrix").
LinearLayout ldmatrixFragment(unsigned log2Count, bool transposed);

} // namespace kvbuf

#endif // KVBUFFER_LAYOUT_FRAGMENTS_H
