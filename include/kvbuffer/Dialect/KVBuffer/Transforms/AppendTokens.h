//===- AppendTokens.h - New tokens into caches, by lanes --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What one lane does with its elements of a new token's head: loads, rotates,
/// quantizes and stores them. Lanes speak to each other only where a scale is
/// made of the elements of several. A kernel of its own does this for all
/// tokens
/// (`kvbuf-lower-append`), a kernel that reads what it has stored for some
/// (`kvbuffer.append_tokens`).
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_APPENDTOKENS_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_APPENDTOKENS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <memory>

namespace kvbuf {

/// The operands of an append, of a problem or of a kernel: memrefs and caches
/// of the types that `kvbuffer.cache_append` has. `v`, `vCache`, `cos` and
/// `sin` may be null.
struct AppendOperands {
  mlir::Value k, kCache, v, vCache, cos, sin;
  bool interleaved = false;

  CacheLayout keysLayout() const {
    return llvm::cast<CacheLayout>(kCache.getType());
  }
  /// V's part, as if there were no more.
  AppendOperands valuesAlone() const {
    AppendOperands own;
    own.k = v;
    own.kCache = vCache;
    return own;
  }
  /// Pairs of elements that a token's angles rotate.
  int64_t pairs() const {
    return llvm::cast<mlir::MemRefType>(cos.getType()).getDimSize(1);
  }
};

/// How heads are dealt to lanes.
struct AppendShares {
  /// Elements of a lane, lanes of a head; lanes of a wave.
  int64_t width = 8, lanes = 1, wave = 32;
  /// Pieces that a lane's elements lie in, half a head apart: 1 or 2.
  int64_t pieces = 1;
  /// Elements of a lane of a head of V, where that has another size than K's:
  /// the same lanes store both then, some of them only one. Else 0.
  int64_t valueWidth = 0;
  /// Whether addresses and strides of tensors may be those of any element.
  bool unaligned = false;
  int64_t piece() const { return width / pieces; }
};

/// Deals the heads of an append to lanes of a chip, at most `mostLanes` to one;
/// errors at `op`.
mlir::FailureOr<AppendShares> dealHeads(mlir::Operation *op,
                                        const AppendOperands &operands,
                                        const TargetInfo &target,
                                        int64_t mostLanes);

/// Emits a lane's part of an append.
class AppendEmitter {
public:
  AppendEmitter(mlir::ImplicitLocOpBuilder &b, const AppendOperands &operands,
                const AppendShares &shares);

  /// Loads the lane's elements, calls `findPlace`, which sets `batch` and
  /// `position`, and stores them. `lead`, `active`, `head` and `dim` are set,
  /// and those of V by `dealValues` where its heads have another size.
  void emit(llvm::function_ref<void()> findPlace);
  /// Whether V's heads have another size than K's.
  bool hasValuesApart() const { return bool(values); }
  /// Says which elements of V a head's lane at `place` has, where V's heads
  /// have another size; `exists`: whether there is a token.
  void dealValues(mlir::Value place, mlir::Value exists);

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubIOp::create(b, x, y);
  }
  mlir::Value isLess(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::slt, x,
                                       y);
  }
  mlir::Value both(mlir::Value x, mlir::Value y) {
    return mlir::arith::AndIOp::create(b, x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, condition, x, y);
  }

  mlir::ImplicitLocOpBuilder &b;
  AppendOperands operands;
  AppendShares shares;
  CacheLayout layout;

  /// Of the new token: its indices in K and V, and whether there is one, and
  /// the lane has elements of it.
  llvm::SmallVector<mlir::Value> lead;
  mlir::Value active;
  /// Its place: sequence, position (-1: none), head, and the first element of
  /// the lane.
  mlir::Value batch, position, head, dim;
  /// The row of cosines and sines, where that is not its position's; else null.
  mlir::Value angles;

private:
  /// What emits V's part, where its heads have another size; else null.
  std::unique_ptr<AppendEmitter> values;

  mlir::VectorType vector(mlir::Type element) {
    return mlir::VectorType::get({shares.width}, element);
  }
  mlir::Value splat(double value);
  mlir::Value widen(mlir::Value x);
  /// The elements of two vectors, one after the other.
  mlir::Value joined(mlir::Value x, mlir::Value y);
  /// What `make` yields where `condition` holds, else `otherwise`.
  mlir::Value onlyIf(mlir::Value condition, mlir::Value otherwise,
                     llvm::function_ref<mlir::Value()> make);
  /// The bytes at which a lane's part of a row of so many elements begins.
  mlir::IntegerAttr alignment(mlir::Type element, int64_t elements);
  /// A lane's elements of a token's head, from `from` on.
  mlir::Value loadNew(mlir::Value tokens, mlir::Value from);
  /// The beginning of a lane's piece.
  mlir::Value pieceAt(mlir::Value from, int64_t piece) {
    return piece ? add(from,
                       constant(piece * layout.getHeadSize() / shares.pieces))
                 : from;
  }
  /// The elements after rotation; `x` are those from `dim` on, in f32.
  mlir::Value rotate(mlir::Value x, mlir::Value tokens);
  /// The entries of a table of angles, one for each of `count` elements.
  mlir::Value loadAngles(mlir::Value table, mlir::Value col, int64_t count);
  void append(mlir::Value x, mlir::Value cache);
  /// Stores a vector of stored elements where `condition` holds; `bytes`: what
  /// is known of its address; `part`: which of a packed row, or null.
  void store(mlir::Value x, mlir::Value cache, mlir::Value condition,
             mlir::IntegerAttr bytes, mlir::IntegerAttr part);
  /// The lane's elements into the parts of a packed row that they belong to.
  void appendPacked(mlir::Value x, mlir::Value cache, RowAttr row);
  /// A scale that is made of a group's elements: what they are stored as, the
  /// scale's type, and how many they are; of a packed row the first element of
  /// its part, whether the lane has elements of that, and which part it is.
  struct MadeScale {
    mlir::Type element, type;
    int64_t granularity, begin = 0;
    mlir::Value active = {};
    mlir::IntegerAttr part = {};
  };
  /// One over the scale of the lane's elements; stores a scale that is made.
  mlir::Value inverseScale(mlir::Value x, mlir::Value cache);
  mlir::Value inverseOfMade(mlir::Value x, mlir::Value cache,
                            const MadeScale &made);
  /// The largest magnitude of a group, of the elements of its lanes.
  mlir::Value largestOfGroup(mlir::Value x, int64_t granularity);
  /// A scale as it is stored: in f32, never 0, and as `stored`.
  std::pair<mlir::Value, mlir::Value> roundScale(mlir::Value scale,
                                                 mlir::Type stored);
  /// Elements in f32 times a number.
  mlir::Value quantize(mlir::Value x, mlir::Value inverse);
  /// The elements as the cache stores them.
  mlir::Value narrow(mlir::Value x, mlir::Type stored);
};

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_APPENDTOKENS_H
