//===- Pages.h - Pages of a cache, for lanes --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_PAGES_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_PAGES_H

#include "Lanes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

namespace kvbuf {

/// The page of a key and its row in the page, of a cache with pages of `page`
/// tokens; indices.
inline std::pair<mlir::Value, mlir::Value>
pageOf(LaneContext &lower, mlir::Value key, int64_t page) {
  using namespace mlir;
  ImplicitLocOpBuilder &b = lower.builder();
  if (llvm::isPowerOf2_64(page))
    return {arith::ShRUIOp::create(b, key, lower.index(llvm::Log2_64(page))),
            arith::AndIOp::create(b, key, lower.index(page - 1)).getResult()};
  // Keys fit 32 bits, in which a division by a constant is two instructions.
  Value narrow = lower.toI32(key);
  Value number = arith::DivUIOp::create(b, narrow, lower.i32(page));
  Value inPage = arith::SubIOp::create(
      b, narrow, arith::MulIOp::create(b, number, lower.i32(page)).getResult());
  return {lower.toIndex(number), lower.toIndex(inPage)};
}

/// Whether the row of a lane's number, of a tile that begins with row `first`
/// (i32) of a page, lies one page further on than if it began with a page. The
/// bits of all lanes are one word, which scalars make: of each page's rows the
/// last `first` ones are set, what borrows leave of a difference. A page has
/// fewer rows than a word has bits.
inline mlir::Value isPageFurther(LaneContext &lower, mlir::Value first,
                                 int64_t page) {
  using namespace mlir;
  ImplicitLocOpBuilder &b = lower.builder();
  constexpr int64_t kBits = 64;
  uint64_t begins = 0;
  for (int64_t bit = 0; bit < kBits; bit += page)
    begins |= uint64_t(1) << bit;
  auto wide = [&](uint64_t bits) -> Value {
    return arith::ConstantIntOp::create(b, static_cast<int64_t>(bits), kBits);
  };
  auto extended = [&](Value x) -> Value {
    return arith::ExtUIOp::create(b, b.getI64Type(), x);
  };
  Value before = arith::SubIOp::create(b, lower.i32(page), first);
  Value word = arith::SubIOp::create(
      b, wide(begins << page),
      arith::ShLIOp::create(b, wide(begins), extended(before)).getResult());
  return arith::TruncIOp::create(
      b, b.getI1Type(),
      arith::ShRUIOp::create(b, word, extended(lower.laneInWarp()))
          .getResult());
}

/// Entry `entry` of a table of integers, as an index: a block number, which is
/// not negative.
inline mlir::Value blockAt(LaneContext &lower, mlir::Value table,
                           mlir::Value entry) {
  using namespace mlir;
  Value word = memref::LoadOp::create(lower.builder(), lower.flat(table),
                                      ValueRange{entry});
  return arith::IndexCastUIOp::create(lower.builder(),
                                      lower.builder().getIndexType(), word);
}

/// Whether an index of the tile program is known, by its ops, to be a multiple
/// of `factor`.
inline bool isMultipleOf(mlir::Value value, int64_t factor) {
  using namespace mlir;
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant % factor == 0;
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    return isMultipleOf(product.getLhs(), factor) ||
           isMultipleOf(product.getRhs(), factor);
  if (auto difference = value.getDefiningOp<arith::SubIOp>())
    return isMultipleOf(difference.getLhs(), factor) &&
           isMultipleOf(difference.getRhs(), factor);
  auto sum = value.getDefiningOp<arith::AddIOp>();
  return sum && isMultipleOf(sum.getLhs(), factor) &&
         isMultipleOf(sum.getRhs(), factor);
}

/// Whether a tile of a cache starts at a multiple of `rows` keys, wherever it
/// comes from.
inline bool startsAtMultiple(mlir::Value tile, int64_t rows) {
  return llvm::all_of(fragmentSources(tile), [&](mlir::Value source) {
    auto made = source.getDefiningOp<CacheTileOp>();
    return made && isMultipleOf(made.getStart(), rows);
  });
}

/// Whether the rows of a tile, wherever it comes from, are those of several
/// heads (`group` of `kvbuffer.dram_tile`), which are no rows of a box.
inline bool isInGroups(mlir::Value tile) {
  return llvm::any_of(fragmentSources(tile), [](mlir::Value source) {
    auto made = source.getDefiningOp<DramTileOp>();
    return made && int64_t(made.getGroup()) > 1;
  });
}

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_PAGES_H
