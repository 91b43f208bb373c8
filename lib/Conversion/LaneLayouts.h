//===- LaneLayouts.h - Which lane holds what --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How a block-level fragment lies in a lane's registers, and the arithmetic
/// that turns a linear layout into addresses.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_LANELAYOUTS_H
#define KVBUFFER_LIB_CONVERSION_LANELAYOUTS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// The fragments of one schedule on one target.
///
/// A warp holds `WM` rows of every fragment but `b`, which every warp holds
/// whole. A fragment is a grid of *atoms*, the operands of one matrix
/// instruction, listed row by row; an atom's elements in a lane are its
/// registers, and the atom's layout maps ("register", "lane") to ("row", "col")
/// inside of the atom. With `swap_a_b` an accumulator atom is the transposed
/// result of the instruction, and a and b change places.
class FragmentLayouts {
public:
  FragmentLayouts(ScheduleAttr schedule, const TargetInfo &target);

  /// One role's atom.
  struct Atom {
    /// ("register", "lane") -> ("row", "col"), in coordinates of the fragment:
    /// A is [rows of S][K], B is [K][columns], Acc is [rows][columns].
    LinearLayout layout;
    int64_t rows, cols;
    int64_t registers() const {
      return int64_t(1) << layout.inLog2("register");
    }
  };
  const Atom &atom(Role role) const {
    return role == Role::A ? a : role == Role::B ? b : acc;
  }

  /// The operands of the second product, P (`a`) and V (`b`), contracted in the
  /// order in which the accumulators of the first hold their columns; the
  /// natural order where no other spares P an exchange between lanes.
  const Atom &contracted(Role role) const {
    return role == Role::A ? contractedA : contractedB;
  }
  /// Elements in one word of an operand: the unit in which a lane's values of
  /// roles a and b are kept; the words of a group of instructions are one.
  int64_t wordElements() const { return words; }
  /// Instructions that one atom's words feed, along the contraction.
  unsigned group() const { return groupSize; }
  /// Rows that one warp holds of a fragment with rows over the warps.
  int64_t warpRows() const { return schedule.getWM(); }

  /// Accumulator registers of one atom, grouped by row: the row inside of the
  /// atom that the registers with equal row part have at lane 0, ascending.
  llvm::ArrayRef<int64_t> rowParts() const { return rowOffsets; }
  /// The index into `rowParts` of an accumulator register.
  unsigned rowPart(int64_t reg) const;
  /// Lane bits that lanes with the same accumulator row differ in.
  llvm::ArrayRef<unsigned> reductionBits() const { return reduceBits; }
  /// The accumulator's elements, a power of two, that a lane holds in a row of
  /// registers and of columns.
  int64_t columnRun() const;
  /// The lane bits, ascending by column, whose 2^s lanes share every `width`
  /// columns of an accumulator row, one 32-bit word of `bits`-bit elements each
  /// and nothing else: after a transposition of words among them, a lane holds
  /// all of a vector. Empty where the layout is another: a run that is no word,
  /// lanes that hold more or fewer of the columns.
  llvm::SmallVector<unsigned> vectorLanes(int64_t bits, int64_t width) const;

private:
  ScheduleAttr schedule;
  Atom a, b, acc, contractedA, contractedB;
  int64_t words;
  unsigned groupSize;
  llvm::SmallVector<int64_t> rowOffsets;
  llvm::SmallVector<unsigned> reduceBits;
};

/// Emits `x`'s image under a linear map given by the images of its bits: the
/// XOR, over all shift distances, of masked and shifted copies of `x` (i32).
mlir::Value emitLinear(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                       llvm::ArrayRef<int64_t> basis);

/// An address that is linear in some bits of the machine plus a constant.
struct LinearAddress {
  /// One run-time coordinate (i32) and the images of its bits.
  struct Term {
    mlir::Value value;
    llvm::SmallVector<int64_t> basis;
  };
  llvm::SmallVector<Term> terms;

  /// base + (terms XOR constant), as an index. The bits of the constant that
  /// the terms cannot reach are added last, so that they end up in the
  /// instruction's immediate offset and accesses share the rest. `base` is a
  /// multiple of `align`: constant bits below that are changed behind the sum,
  /// so that all accesses share the sum too.
  mlir::Value emit(mlir::ImplicitLocOpBuilder &b, mlir::Value base,
                   int64_t align, int64_t constant) const;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_LANELAYOUTS_H
