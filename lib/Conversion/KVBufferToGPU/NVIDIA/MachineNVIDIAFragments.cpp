//===- MachineNVIDIAFragments.cpp - Fragments from DRAM ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane's words of operand a are two neighbouring columns each, so a lane that
// loads them itself reads 4 bytes at a time, four lanes 16 bytes of a row. That
// is for operands that are read once: it takes no LDS and no barrier.
//
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/Staging.h"
#include "MachineNVIDIA.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <map>

using namespace mlir;
using namespace kvbuf;

LogicalResult NVIDIAMachine::emitTileFragment(Lanes &lower, TileFragmentOp op,
                                              const TileView &tile,
                                              Values &words) {
  // Groups of warps that multiply together read the second operand from LDS;
  // the lanes of each hold the first one's as those of a single warp do.
  if (asyncProducts() && op.getFragment().getType().getRole() != Role::A)
    return Machine::emitTileFragment(lower, op, tile, words);
  ImplicitLocOpBuilder &b = lower.b;
  FragmentType type = op.getFragment().getType();
  TileType tileType = op.getTile().getType();
  Type element = type.getElementType();
  const FragmentLayout &atom = lower.layouts.of(type);
  int64_t width = atom.words, columns = tileType.getCols();
  auto wordType = VectorType::get({width}, element);
  for (int64_t bit = 0; int64_t(1) << bit < width; ++bit)
    if (atom.layout.basis("register", bit, "col") != 1 << bit)
      return op.emitOpError()
             << "a lane's words are no pieces of rows on " << lower.target.chip;
  SmallVector<int64_t> rowBits, colBits;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit) {
    rowBits.push_back(atom.layout.basis("lane", bit, "row"));
    colBits.push_back(atom.layout.basis("lane", bit, "col"));
  }
  int64_t warpRows = atom.warpRows(type);
  Value row = arith::AddIOp::create(
      b, emitLinear(b, lower.lane, rowBits),
      arith::MulIOp::create(b, lower.rowPart(atom), lower.i32(warpRows))
          .getResult());
  Value col = emitLinear(b, lower.lane, colBits);
  Value source = lower.flat(tile.data);
  // LLVM has no 8-bit floats.
  auto zeroType = element.getIntOrFloatBitWidth() == 8
                      ? wordType.clone(b.getI8Type())
                      : wordType;
  Value zero = arith::ConstantOp::create(b, zeroType, b.getZeroAttr(zeroType));
  if (zeroType != wordType)
    zero = arith::BitcastOp::create(b, wordType, zero);

  // All words of a row under one branch, so that their loads overlap. Columns
  // are 8 apart, as operands' head sizes are: a word is past the tile or not.
  struct Place {
    size_t word;
    int64_t col;
  };
  int64_t perRow = atom.atomCols(type);
  size_t wordsOfAtom = atom.registers() / width;
  for (int64_t r = 0; r < warpRows; r += atom.rows) {
    size_t first = words.size();
    words.append(perRow * wordsOfAtom, zero);
    // The words by the row of the atom that they are in.
    std::map<int64_t, SmallVector<Place>> byRow;
    for (int64_t c = 0; c < perRow; ++c)
      for (size_t word = 0; word < wordsOfAtom; ++word) {
        std::pair<StringRef, int64_t> reg{"register", int64_t(word) * width};
        int64_t at = c * atom.cols + atom.layout.apply({reg}, "col");
        byRow[atom.layout.apply({reg}, "row")].push_back(
            {first + c * wordsOfAtom + word, at});
      }
    for (auto &[offset, places] : byRow) {
      Value at = arith::AddIOp::create(b, row, lower.i32(r + offset));
      Value valid =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, at, tile.hi);
      SmallVector<Type> types(places.size(), wordType);
      auto load = scf::IfOp::create(b, types, valid, /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(load.thenBlock());
      Value line =
          arith::AddIOp::create(b, tile.lineOf(lower, at), lower.toIndex(col));
      Values loaded;
      for (const Place &place : places) {
        if (place.col / 8 * 8 >= columns) {
          loaded.push_back(zero);
          continue;
        }
        Value from = arith::AddIOp::create(b, line, lower.index(place.col));
        loaded.push_back(vector::LoadOp::create(
            b, wordType, source, ValueRange{from}, /*nontemporal=*/false,
            llvm::Align(std::min<int64_t>(lower.alignment, 4))));
      }
      scf::YieldOp::create(b, loaded);
      b.setInsertionPointToStart(load.elseBlock());
      scf::YieldOp::create(b, Values(places.size(), zero));
      for (auto [place, value] : llvm::zip_equal(places, load.getResults()))
        words[place.word] = value;
    }
  }
  return success();
}
