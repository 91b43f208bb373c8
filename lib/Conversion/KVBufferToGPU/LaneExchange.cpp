//===- LaneExchange.cpp - Fragments that change their layout --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneExchange.h"
#include "LaneWarps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// What an instruction that exchanges data moves.
static constexpr int64_t kWordBits = 32;

/// For each word of the result, the number of the source's word that is it once
/// words are transposed among the lanes; nothing if there is none.
static std::optional<SmallVector<int64_t>>
transposedWords(const FragmentLayout &source, FragmentType from,
                const FragmentLayout &result, FragmentType to) {
  std::optional<LinearLayout> turned = transposedAmongLanes(source.layout);
  int64_t width = result.words;
  if (!turned || source.words != width || source.rowWarps != result.rowWarps ||
      source.colWarps != result.colWarps || source.turned || result.turned ||
      width * to.getElementType().getIntOrFloatBitWidth() != kWordBits ||
      result.layout.inLog2("lane") != turned->inLog2("lane"))
    return std::nullopt;
  for (unsigned bit = 0; bit < result.layout.inLog2("lane"); ++bit)
    if (result.layout.basis("lane", bit) != turned->basis("lane", bit))
      return std::nullopt;
  // Which register of the transposed words an element of an atom is.
  SmallVector<int64_t> registers(source.rows * source.cols, -1);
  for (int64_t reg = 0; reg < source.registers(); ++reg) {
    auto at = turned->apply({{"register", reg}});
    registers[at[0] * source.cols + at[1]] = reg;
  }
  // The place of an element of the result among the source's.
  int64_t sourceCols = source.atomCols(from), resultCols = result.atomCols(to);
  auto placeOf = [&](int64_t atom, int64_t reg) -> int64_t {
    auto at = result.layout.apply({{"register", reg}});
    int64_t row = atom / resultCols * result.rows + at[0],
            col = atom % resultCols * result.cols + at[1];
    int64_t held =
        registers[row % source.rows * source.cols + col % source.cols];
    if (held < 0)
      return -1;
    int64_t inGrid = row / source.rows * sourceCols + col / source.cols;
    return inGrid * source.registers() + held;
  };
  SmallVector<int64_t> words;
  for (int64_t atom = 0; atom < result.atoms(to); ++atom)
    for (int64_t reg = 0; reg < result.registers(); reg += width) {
      int64_t first = placeOf(atom, reg);
      if (first < 0 || first % width)
        return std::nullopt;
      for (int64_t i = 1; i < width; ++i)
        if (placeOf(atom, reg + i) != first + i)
          return std::nullopt;
      words.push_back(first / width);
    }
  return words;
}

//===----------------------------------------------------------------------===//
// Any two layouts
//===----------------------------------------------------------------------===//

/// The atoms of a layout that make a block of `rows` x `cols`, as one.
static LinearLayout blockOf(const FragmentLayout &layout, int64_t rows,
                            int64_t cols) {
  return layout.layout *
         LinearLayout::identity("register", "col",
                                llvm::Log2_64(cols / layout.cols)) *
         LinearLayout::identity("register", "row",
                                llvm::Log2_64(rows / layout.rows));
}

namespace {
/// Elements of a warp's part of a fragment, by block of a common size.
struct BlockedElements {
  const FragmentLayout &layout;
  int64_t rows, cols, atomCols;

  /// The number, atom by atom, of register `reg` of block (i, j).
  int64_t number(int64_t i, int64_t j, int64_t reg) const {
    int64_t inAtom = reg % layout.registers(), atom = reg / layout.registers();
    int64_t across = cols / layout.cols;
    int64_t row = i * (rows / layout.rows) + atom / across,
            col = j * across + atom % across;
    return (row * atomCols + col) * layout.registers() + inAtom;
  }
};
} // namespace

/// A lane's elements as words of 32 bits, one each.
static Values wordsOf(ImplicitLocOpBuilder &b, ArrayRef<Value> vectors) {
  Values words;
  for (Value vector : vectors) {
    auto type = cast<VectorType>(vector.getType());
    unsigned bits = type.getElementTypeBitWidth();
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      Value element =
          vector::ExtractOp::create(b, vector, ArrayRef<int64_t>{i});
      element = arith::BitcastOp::create(b, b.getIntegerType(bits), element);
      if (bits < kWordBits)
        element = arith::ExtUIOp::create(b, b.getI32Type(), element);
      words.push_back(element);
    }
  }
  return words;
}

/// Vectors of `width` elements from words, the other way round.
static Values vectorsOf(ImplicitLocOpBuilder &b, ArrayRef<Value> words,
                        Type element, int64_t width) {
  unsigned bits = element.getIntOrFloatBitWidth();
  Values elements, vectors;
  for (Value word : words) {
    if (bits < kWordBits)
      word = arith::TruncIOp::create(b, b.getIntegerType(bits), word);
    elements.push_back(arith::BitcastOp::create(b, element, word));
  }
  for (size_t i = 0; i < elements.size(); i += width)
    vectors.push_back(vector::FromElementsOp::create(
        b, VectorType::get({width}, element),
        ArrayRef<Value>(elements).slice(i, width)));
  return vectors;
}

/// All sums (XOR) of some numbers.
static SmallVector<int64_t> spanOf(ArrayRef<int64_t> numbers) {
  SmallVector<int64_t> span{0};
  for (int64_t number : numbers)
    if (!llvm::is_contained(span, number))
      for (size_t i = 0, e = span.size(); i < e; ++i)
        span.push_back(span[i] ^ number);
  return span;
}

/// Each element by a shuffle from the lane that holds it. Lanes may want what
/// other lanes hold in different registers: one shuffle for each of them, of
/// which a lane takes its own. Nothing where the fragment is cut otherwise.
static std::optional<Values>
exchangeByShuffles(LaneContext &lower, const FragmentLayout &source,
                   FragmentType from, const FragmentLayout &result,
                   FragmentType to, ArrayRef<Value> words) {
  int64_t rows = std::max(source.rows, result.rows),
          cols = std::max(source.cols, result.cols);
  if (source.turned || result.turned || source.rowWarps != result.rowWarps ||
      source.colWarps != result.colWarps || source.warpRows(from) % rows ||
      source.warpCols(from) % cols ||
      from.getElementType().getIntOrFloatBitWidth() > kWordBits)
    return std::nullopt;
  std::optional<LinearLayout> back = blockOf(source, rows, cols).inverse();
  LinearLayout wanted = blockOf(result, rows, cols);
  if (!back || wanted.inLog2("lane") != back->outLog2("lane"))
    return std::nullopt;
  // Where each register of each lane comes from.
  LinearLayout move = wanted.compose(*back);
  SmallVector<int64_t> lanes, registers;
  bool sameLane = true;
  for (unsigned bit = 0; bit < move.inLog2("lane"); ++bit) {
    lanes.push_back(move.basis("lane", bit, "lane"));
    registers.push_back(move.basis("lane", bit, "register"));
    sameLane &= lanes.back() == int64_t(1) << bit;
  }
  ImplicitLocOpBuilder &b = lower.builder();
  Value fromLane = emitLinear(b, lower.laneInWarp(), lanes),
        choice = emitLinear(b, lower.laneInWarp(), registers);
  BlockedElements held{source, rows, cols, source.atomCols(from)},
      made{result, rows, cols, result.atomCols(to)};
  Values moved(words.size());
  for (int64_t i = 0; i < source.warpRows(from) / rows; ++i)
    for (int64_t j = 0; j < source.warpCols(from) / cols; ++j)
      for (int64_t reg = 0; reg < int64_t(1) << move.inLog2("register");
           ++reg) {
        int64_t lane = move.apply({{"register", reg}}, "lane"),
                first = move.apply({{"register", reg}}, "register");
        Value &value = moved[made.number(i, j, reg)];
        for (int64_t other : spanOf(registers)) {
          Value word = words[held.number(i, j, first ^ other)];
          if (!sameLane || lane)
            word = gpu::ShuffleOp::create(
                       b, word,
                       arith::XOrIOp::create(b, fromLane, lower.i32(lane)),
                       lower.i32(lower.chip().waveSize), gpu::ShuffleMode::IDX)
                       .getShuffleResult();
          if (!value) {
            value = word;
            continue;
          }
          Value mine = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                             choice, lower.i32(other));
          value = arith::SelectOp::create(b, mine, word, value);
        }
      }
  return moved;
}

LogicalResult kvbuf::lowerOp(LaneContext &lanes, ExchangeOp op) {
  ImplicitLocOpBuilder &b = lanes.builder();
  FragmentType from = op.getSource().getType(), to = op.getFragment().getType();
  const FragmentLayout &source = lanes.layoutOf(from),
                       &result = lanes.layoutOf(to);
  // Of an accumulator the registers are one vector, of an operand words.
  int64_t width = to.getRole() == Role::Acc ? result.registers() : result.words;
  if (source.sharesCols() || result.sharesCols()) {
    Values elements;
    for (Value vector : lanes.lanesOf(op.getSource()))
      for (int64_t i = 0, e = cast<VectorType>(vector.getType()).getDimSize(0);
           i < e; ++i)
        elements.push_back(lanes.element(vector, i));
    std::optional<Values> moved = exchangeByLds(lanes, op, from, to, elements);
    if (!moved)
      return op.emitOpError()
             << "cannot change " << from.getLayout() << " into "
             << to.getLayout() << "; expected layouts without transpose_b";
    Values vectors;
    for (size_t i = 0; i < moved->size(); i += width)
      vectors.push_back(vector::FromElementsOp::create(
          b, VectorType::get({width}, to.getElementType()),
          ArrayRef<Value>(*moved).slice(i, width)));
    lanes.setLanes(op.getFragment(), vectors);
    return success();
  }
  std::optional<SmallVector<int64_t>> order;
  if (lanes.chip().transposesAmongLanes)
    order = transposedWords(source, from, result, to);
  if (!order) {
    const Values held = lanes.lanesOf(op.getSource());
    std::optional<Values> moved =
        exchangeByShuffles(lanes, source, from, result, to, wordsOf(b, held));
    if (!moved)
      return op.emitOpError()
             << "cannot change " << from.getLayout() << " into "
             << to.getLayout()
             << "; expected layouts that give each warp the same elements, in "
                "whole instructions";
    lanes.setLanes(op.getFragment(),
                   vectorsOf(b, *moved, to.getElementType(), width));
    return success();
  }

  // An accumulator's registers are one vector, an operand's are words.
  bool whole = from.getRole() == Role::Acc;
  width = result.words;
  int64_t perAtom = source.registers() / width;
  const Values held = lanes.lanesOf(op.getSource());
  auto wordType = VectorType::get({1}, b.getI32Type());
  auto pieceType = VectorType::get({width}, to.getElementType());
  Values results, elements;
  for (int64_t index : *order) {
    Value word = held[whole ? index / perAtom : index];
    if (whole && perAtom > 1) {
      int64_t first = index % perAtom * width;
      word = vector::ShuffleOp::create(
          b, word, word, llvm::to_vector(llvm::seq(first, first + width)));
    }
    Value moved = LaneTransposeOp::create(
        b, vector::ExtractOp::create(
               b, vector::BitCastOp::create(b, wordType, word),
               ArrayRef<int64_t>{0}));
    Value piece = vector::BitCastOp::create(
        b, pieceType,
        vector::FromElementsOp::create(b, wordType, ValueRange{moved}));
    if (!whole) {
      results.push_back(piece);
      continue;
    }
    for (int64_t i = 0; i < width; ++i)
      elements.push_back(lanes.element(piece, i));
    if (int64_t(elements.size()) < result.registers())
      continue;
    results.push_back(vector::FromElementsOp::create(
        b, VectorType::get({result.registers()}, to.getElementType()),
        elements));
    elements.clear();
  }
  lanes.setLanes(op.getFragment(), results);
  return success();
}
