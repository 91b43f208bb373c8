//===- DecodeRoles.h - What teams of latent attention share -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the parts of the teams' program share: what all kinds of rows have
/// (DecodeRoles.cpp; scores are DecodeRolesScores.cpp's, halves of O
/// DecodeRolesHalves.cpp's), and what products of bytes have
/// (DecodeRolesBytes.cpp).
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_DECODEROLES_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_DECODEROLES_H

#include "DecodeProgram.h"
#include "kvbuffer/Schedules/LatentRoles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace kvbuf {

/// The teams, as messages call them.
namespace role {
inline constexpr llvm::StringLiteral kScores = "scores", kLeft = "left",
                                     kRight = "right", kTurn = "turn",
                                     kLoad = "load";
} // namespace role

/// Some columns of a row of keys, which fill slots of a ring.
struct DecodeProgram::RolePart {
  int64_t first, cols;
  mlir::TypedValue<RingType> ring;
  /// The part's place among those of a row that take turns in the ring, and how
  /// many do.
  int64_t place = 0, turns = 1;
  /// Fillings of the ring before the first tile of a piece: queries that pass
  /// through.
  int64_t before = 0;

  /// Columns that come before the part's where the ring has those of several.
  int64_t firstInRing() const { return place * cols; }
  bool hasQueries() const { return place < before; }
};

/// What the teams of a block share.
struct DecodeProgram::Roles {
  LatentRoles sizes;
  /// Whether columns of queries that go into registers pass through the slots
  /// of the parts: copies of small pages, two warps each, and of queries, one
  /// warp each, cannot go through the same ones.
  bool queriesBySlots;
  /// Whether the halves of a row take turns in the slots of one ring; whoever
  /// widens packed rows fills rings by themselves.
  bool sharesSlots;
  llvm::SmallVector<RolePart, 3> parts;
  mlir::TypedValue<RingType> queries, weights;
  /// By what each half's rows are rescaled.
  mlir::Value factors[2];
  /// Of bytes: the values, turned; weights and factors, for both halves; what
  /// maxima and sums come to.
  mlir::TypedValue<RingType> turned;
  mlir::Value weighted, ends;
  /// Where the halves of two blocks that have a sequence together trade; null
  /// elsewhere.
  mlir::TypedValue<ShelfType> traded;
  /// Where halves keep all of their slices but the first while they join what
  /// another block has stored: loads of it then have the registers. Null where
  /// none is awaited.
  mlir::TypedValue<ShelfType> parked;
  /// How the block's work is divided, where it has shares of all sequences.
  Shares shares;

  /// Whether a half's factor of a tile comes with the next tile's scores.
  bool isLate(unsigned half) const {
    return half == 1 && !sizes.scoresAhead && !sizes.bytesAhead;
  }
};

/// A piece of a sequence, which a block's teams compute: `count` tiles of keys
/// before tile `end`, from the last one to the first.
struct DecodeProgram::RolePiece {
  Tiles tiles;
  mlir::Value end, count;
  Piece piece;
  /// Of a split: whether there is one.
  mlir::Value isMine;
  /// Whether its sequence has two pieces, and the cluster's two blocks have one
  /// each and no other; null where blocks have no partners.
  mlir::Value isPair;
  /// Tiles and pieces that the block has had before, by which fillings and
  /// entries are counted.
  mlir::Value tilesBefore, piecesBefore;

  /// The number of what each tile has `perTile` of and each piece `perPiece`
  /// others, of which `before` come before the first of tile `i`.
  mlir::Value number(mlir::ImplicitLocOpBuilder &b, mlir::Value i,
                     int64_t perPiece, int64_t before,
                     int64_t perTile = 1) const;
  /// That of the filling of a part that has tile `i`, and of the one before the
  /// first, which queries pass through.
  mlir::Value filling(mlir::ImplicitLocOpBuilder &b, const RolePart &part,
                      mlir::Value i) const;
  mlir::Value ofQueries(mlir::ImplicitLocOpBuilder &b,
                        const RolePart &part) const;
  /// That of a half's entry behind those of `i` tiles: a piece ends with maxima
  /// and sums, and a late half takes one ahead.
  mlir::Value entry(mlir::ImplicitLocOpBuilder &b, bool late, mlir::Value i,
                    int64_t after = 0) const {
    return number(b, i, 2 + late, after);
  }
};

/// The names of teams as references.
mlir::ArrayAttr symbolsOf(mlir::MLIRContext *context,
                          llvm::ArrayRef<llvm::StringRef> names);

/// A view of some columns of a slot; the slot where they are all.
mlir::Value columnsOf(mlir::ImplicitLocOpBuilder &b, mlir::Value staged,
                      int64_t first, int64_t cols);

/// A view of some rows and columns of a slot; the slot where they are all.
mlir::Value partOf(mlir::ImplicitLocOpBuilder &b, mlir::Value staged,
                   int64_t row, int64_t rows, int64_t col, int64_t cols);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_DECODEROLES_H
