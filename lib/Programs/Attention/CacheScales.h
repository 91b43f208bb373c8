//===- CacheScales.h - Scales of quantized caches in tiles ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What tile programs do for caches of 8-bit floats besides widening them: K's
/// scales multiply scores, V's multiply the output, or, where each token has
/// one, the weights. Where groups of a token's elements have scales of their
/// own, each group of K has a product of its own, whose scores are multiplied
/// and added up; each group of V's columns has weights of its own.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_CACHESCALES_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_CACHESCALES_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// The type of the elements of P in products: the problem's, or f16 where V is
/// quantized, which has all 8-bit floats, and more bits for weights of at most
/// 1 than bf16. Of 8-bit floats that with more bits of the chip's two, e4m3.
mlir::Type weightsOf(AttentionOp op);

/// The type of V's elements in those products.
mlir::Type valuesOf(AttentionOp op);

/// What weights of at most 1 are multiplied by before they are rounded to
/// `weights`, a power of two; `CacheScales::finish` divides by it. Not 1 for
/// 8-bit floats, whose smallest numbers are near 1.
float weightGain(mlir::Type weights);

/// Whether the sums of weighted values of a tile of keys are added up by vector
/// instructions, in f32, and not by the matrix unit.
bool addsTilesApart(AttentionOp op, const TargetInfo &target);

/// The type of K's elements where another kernel has widened them: f16 beside
/// queries of bf16 that a scale makes f16 (`fitsQueries`), else the queries'.
/// V's are `valuesOf`.
mlir::Type widenedKeysOf(AttentionOp op);
/// Whether queries are multiplied by keys that are widened ahead: these are of
/// their type, or queries are fit to them in registers.
inline bool holdsWidenedQueries(AttentionOp op, bool qInRegs) {
  return qInRegs || widenedKeysOf(op) == op.getElementType();
}

/// Whether queries that stay in registers become f16 by powers of two
/// (`kvbuffer.fragment_fit`): those of bf16 beside a quantized K, where that is
/// widened to f16 in fewer instructions (sm_90a: 520 a tile for 710), unless
/// no row's bits may depend on others.
bool fitsQueries(AttentionOp op, const TargetInfo &target);

/// Whether each token of a cache has a scale of its own, or several.
bool isScaledByToken(CacheType cache);

/// Whether each token's head has several scales, each of a group of elements.
bool isScaledByGroup(CacheType cache);

/// The tokens of a tile of scores: the tile's first, and the first and the end
/// of those that the sequence has and the kernel may look at. The scales of
/// other tokens, which are hidden, are not looked up.
struct TileTokens {
  mlir::Value first, lo, end;
};

/// Columns of a head that a product takes at a time: those of a group, with the
/// scales of a tile's tokens, or all, without.
struct ScaledColumns {
  int64_t first, cols;
  mlir::Value scales;
  int64_t end() const { return first + cols; }
};

/// Builds the scales of one head of one sequence at the insertion point.
class CacheScales {
public:
  CacheScales(mlir::ImplicitLocOpBuilder &b, mlir::Value batch,
              mlir::Value kvHead)
      : b(b), batch(batch), kvHead(kvHead) {}

  /// The scale of all of the head, f32; null where there is none, or each token
  /// has one.
  mlir::Value ofHead(mlir::Value cache);
  /// Accumulators times a number; `x` itself where that is null.
  mlir::Value multiply(mlir::Value x, mlir::Value scale);
  /// Makes queries in registers f16 where `fitsQueries` says so: `q` becomes
  /// what is multiplied, and `scale`, K's, part of what products' rows are
  /// multiplied by, which is returned. Else, or where `q` is null, returns null
  /// and changes nothing.
  mlir::Value fit(AttentionOp op, const TargetInfo &target, mlir::Value &q,
                  FragmentType row, mlir::Value &scale);
  /// The scales of a tile's tokens, accumulators of `type` whose columns are
  /// tokens; null if the cache has none, or several a token. Two look-ups, one
  /// after the other, stand before the first of them is there.
  mlir::Value ofTokens(mlir::Value cache, FragmentType type,
                       const TileTokens &tokens);
  /// The groups of the first `depth` columns of a head, padding among the last
  /// one's; one of all, without scales, where tokens have no groups.
  llvm::SmallVector<ScaledColumns> groups(mlir::Value cache, int64_t depth,
                                          FragmentType type,
                                          const TileTokens &tokens);
  /// Adds to accumulators `sum` others, a product of some columns, times the
  /// scales of these; either may be null: no sum yet, no scales.
  mlir::Value addScaled(mlir::Value sum, mlir::Value x,
                        mlir::Value tokenScales);
  /// The sum of two accumulators.
  mlir::Value add(mlir::Value x, mlir::Value y);
  /// Accumulators times what `ofTokens` has made; `x` itself where that is
  /// null.
  mlir::Value multiplyByToken(mlir::Value x, mlir::Value tokenScales);
  /// The weights of V's tokens as operands, whose products are added: `p`, or,
  /// if V's tokens have scales, accumulators times these, as `type`; products
  /// are then of magnitudes that f16 has with all bits, and `finish` divides.
  /// For an output of more bits than bf16 also what that rounds off: without
  /// scales no more would be rounded than weights, and the largest, 1, not at
  /// all.
  llvm::SmallVector<mlir::Value, 2> weights(mlir::Value p,
                                            mlir::Value tokenScales,
                                            FragmentType type, AttentionOp op);
  /// The output, an accumulator, times V's scale, and divided by what weights
  /// were multiplied by.
  /// `isGained`: what the output was divided by has the gain of the weights.
  mlir::Value finish(mlir::Value out, mlir::Value v, AttentionOp op,
                     bool isGained = false);

private:
  /// The scales of element `dim` of a tile's tokens.
  mlir::Value ofTokensAt(mlir::Value cache, FragmentType type,
                         const TileTokens &tokens, mlir::Value dim);
  /// A map of fragments; `make` gets the elements and the column's coordinate.
  mlir::Value mapElements(
      mlir::ValueRange inputs, mlir::Value col,
      llvm::function_ref<mlir::Value(mlir::ValueRange, mlir::Value)> make);

  mlir::ImplicitLocOpBuilder &b;
  mlir::Value batch, kvHead;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_CACHESCALES_H
