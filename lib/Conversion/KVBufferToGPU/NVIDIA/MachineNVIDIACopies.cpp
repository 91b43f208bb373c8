//===- MachineNVIDIACopies.cpp - Tiles into LDS by cp.async -----*- C++ -*-===//
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes copy vectors of 16 bytes where a tile's rows begin at multiples of
// these, else words of 8 or 4, by cp.async, or by loads and stores.
//
//===----------------------------------------------------------------------===//

#include "KVBufferToGPU/Pages.h"
#include "KVBufferToGPU/Staging.h"
#include "MachineNVIDIA.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// 16 bytes: the widest cp.async, and a row of an ldmatrix matrix.
static constexpr int64_t kVectorBytes = kTensorAlignment;
/// The least that cp.async copies, and two elements.
static constexpr int64_t kCopyWordBytes = 4;
/// Rows of a lane whose copies in words stand beside each other, so that their
/// loads overlap; the rest is a loop.
static constexpr int64_t kRowsAtOnce = 4;

Values NVIDIAMachine::pagesOfSteps(Lanes &lower, Copy &copy,
                                   const TileView &tile, bool aligned) {
  ImplicitLocOpBuilder &b = lower.b;
  SharedTile layout = sharedTile(copy.params);
  int64_t page = copy.type.getPageSize(), perStep = copy.rowsPerStep(layout);
  copy.alignedPages = aligned && page % perStep == 0 && layout.rows % page == 0;
  copy.wholePages = aligned && perStep % page == 0;
  Value row = arith::ShRUIOp::create(
      b, lower.thread, lower.i32(llvm::Log2_64(copy.perRow(layout))));
  Values pages;
  for (int64_t step = 0; step < layout.rows; step += perStep) {
    if (!copy.alignedPages)
      pages.push_back(tile.pageOfLane(
          lower, arith::AddIOp::create(b, row, lower.i32(step))));
    else if (step % page == 0)
      pages.push_back(tile.pageOfLane(lower, lower.i32(step)));
    else
      pages.push_back(pages.back());
  }
  return pages;
}

int64_t NVIDIAMachine::Copy::perRow(const SharedTile &layout) const {
  return layout.blockCols * layout.elementBytes / bytes;
}

int64_t NVIDIAMachine::Copy::rowsPerStep(const SharedTile &layout) const {
  // So many as are a power of two that divides all rows.
  return std::min(int64_t(llvm::bit_floor(uint64_t(threads / perRow(layout)))),
                  layout.rows & -layout.rows);
}

/// A copy by a lane: `width` elements from `from` of `source` to `to` of
/// `shared`.
struct NVIDIAMachine::LaneCopy {
  Lanes &lower;
  Value shared, to, source, from;
  int64_t width;
  /// Elements of them that are there, an index; null: all.
  Value count;

  /// Copies nothing unless `ok` (or null), and no more than `valid` elements
  /// (i32, perhaps less than 0 or more than `width`).
  void cut(Value ok, Value valid);
  /// Copies all elements if `ok`, else none; and, as a copy of nothing still
  /// has an address, from one that exists.
  void countIf(Value ok) {
    count = arith::SelectOp::create(lower.b, ok, lower.index(width),
                                    lower.index(0));
  }
  void placeIf(Value ok) {
    from = arith::SelectOp::create(lower.b, ok, from, lower.index(0));
  }
  void emit(bool bypassL1);
};

void NVIDIAMachine::LaneCopy::cut(Value ok, Value valid) {
  ImplicitLocOpBuilder &b = lower.b;
  Value zero = lower.i32(0);
  valid = arith::MaxSIOp::create(
      b, arith::MinSIOp::create(b, valid, lower.i32(width)), zero);
  if (ok)
    valid = arith::SelectOp::create(b, ok, valid, zero);
  Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, valid, zero);
  from = arith::SelectOp::create(b, any, from, lower.index(0));
  count = lower.toIndex(valid);
}

void NVIDIAMachine::LaneCopy::emit(bool bypassL1) {
  ImplicitLocOpBuilder &b = lower.b;
  nvgpu::DeviceAsyncCopyOp::create(
      b, nvgpu::DeviceAsyncTokenType::get(b.getContext()), shared,
      ValueRange{to}, source, ValueRange{from}, b.getIndexAttr(width), count,
      bypassL1 ? b.getUnitAttr() : UnitAttr());
}

void NVIDIAMachine::keepLoop(scf::ForOp loop) {
  MLIRContext *context = loop.getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/BoolAttr::get(context, true), {}, {}, {}, {}, {},
      {});
  loop->setDiscardableAttr(
      "llvm.loop_annotation",
      LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {}, {},
                                    {}, {}, {}, {}, {}, {}, {}));
}

/// The steps of a tile's copies: consecutive threads walk the vectors of a
/// block's row, then the next row.
struct NVIDIAMachine::CopySteps {
  Lanes &lower;
  ImplicitLocOpBuilder &b;
  const Copy &copy;
  const TileView &tile;
  SharedTile layout;
  int64_t width, columns, perRow, rowsPerStep;
  /// Rows whose steps stand beside each other; the others are a loop's.
  int64_t rowsAtOnce;
  /// The lane's vector in a row, and its row in the first step; i32.
  Value col, row;
  LinearAddress address;
  Value first, shared, source, laneCols;
  /// Of the first step's row: so each step compares with a number.
  Value rowsToEnd, rowsToBegin;

  CopySteps(Lanes &lower, const Copy &copy, const TileView &tile, Value slot);
  /// Goes on in the threads that copy, and in the loop over steps.
  void enter();
  /// Says which rows are valid.
  void checkRows();
  /// Whether the lane's row of a step is; null: it is.
  Value isRowOk(int64_t step);
  /// Where the lane's vector of each step begins, in elements, of rows that are
  /// looked up. All look-ups come before the first copy: no load of a table
  /// passes a copy, and one after the other they would take as many latencies
  /// as there are steps.
  Values pagedLines();
  /// Whether a lane's place in a page is the same in each of them: a part of
  /// the source, not of each step's sum.
  bool hasPlaceInPages() const {
    return !copy.pages.empty() && (copy.alignedPages || copy.wholePages);
  }
  /// The source from the lane's vector of a page's first step on.
  Value sourceOfLane();
  /// Copies what the lane has of a row of each block; `rowOk` as above.
  void copyRow(Value line, Value rowOk, int64_t step);
};

NVIDIAMachine::CopySteps::CopySteps(Lanes &lower, const Copy &copy,
                                    const TileView &tile, Value slot)
    : lower(lower), b(lower.b), copy(copy), tile(tile),
      layout(sharedTile(copy.params)), width(copy.bytes / layout.elementBytes),
      columns(copy.params.getColumnsOf(copy.block)),
      perRow(copy.perRow(layout)), rowsPerStep(copy.rowsPerStep(layout)),
      rowsAtOnce(layout.rows) {
  // Where steps are a loop, its number's bits are the rows' highest.
  if (copy.stepsAtOnce)
    rowsAtOnce =
        std::min(copy.stepsAtOnce * rowsPerStep, layout.rows & -layout.rows);
  if (copy.group)
    rowsAtOnce = copy.groupRows;
  unsigned colBits = llvm::Log2_64(perRow),
           rowBits = llvm::Log2_64(rowsPerStep);
  col = arith::AndIOp::create(b, lower.thread, lower.i32(perRow - 1));
  row = arith::ShRUIOp::create(b, lower.thread, lower.i32(colBits));
  address.terms.push_back(
      {col, imagesOf(layout, "col", llvm::Log2_64(width), colBits)});
  address.terms.push_back({row, imagesOf(layout, "row", 0, rowBits)});
  first = arith::DivUIOp::create(b, slot, lower.i32(layout.elementBytes));
  shared = lower.shared(copy.params.getElementType());
  source = lower.flat(tile.data);
  laneCols = lower.toIndex(arith::MulIOp::create(b, col, lower.i32(width)));
}

/// Goes on in the first `some` of `all` threads: where these are more than the
/// vectors of a step, the rest stay idle.
static void goOnIn(Lanes &lower, int64_t some, int64_t all) {
  ImplicitLocOpBuilder &b = lower.b;
  if (some >= all)
    return;
  Value busy = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lower.thread,
                                     lower.i32(some));
  b.setInsertionPointToStart(
      scf::IfOp::create(b, busy, /*withElseRegion=*/false).thenBlock());
}

void NVIDIAMachine::CopySteps::enter() {
  goOnIn(lower, rowsPerStep * perRow, copy.threads);
  Value number = copy.group;
  if (!number && rowsAtOnce < layout.rows) {
    auto loop = scf::ForOp::create(
        b, lower.i32(0), lower.i32(layout.rows / rowsAtOnce), lower.i32(1));
    // Whoever asked for a loop has no registers for several steps.
    keepLoop(loop);
    b.setInsertionPointToStart(loop.getBody());
    number = loop.getInductionVar();
  }
  if (number) {
    address.terms.push_back(
        {number, imagesOf(layout, "row", llvm::Log2_64(rowsAtOnce),
                          llvm::Log2_64_Ceil(layout.rows / rowsAtOnce))});
    row = arith::AddIOp::create(
        b, row, arith::MulIOp::create(b, number, lower.i32(rowsAtOnce)));
  }
}

void NVIDIAMachine::CopySteps::checkRows() {
  rowsToEnd = arith::SubIOp::create(b, tile.hi, row);
  if (!matchPattern(tile.lo, m_Zero()))
    rowsToBegin = arith::SubIOp::create(
        b, arith::MaxSIOp::create(b, tile.lo, lower.i32(0)), row);
}

Value NVIDIAMachine::CopySteps::isRowOk(int64_t step) {
  Value rowOk;
  if (rowsToEnd)
    rowOk = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, rowsToEnd,
                                  lower.i32(step));
  if (rowsToBegin)
    rowOk = arith::AndIOp::create(
        b, rowOk,
        arith::CmpIOp::create(b, arith::CmpIPredicate::sle, rowsToBegin,
                              lower.i32(step)));
  return rowOk;
}

Value NVIDIAMachine::CopySteps::sourceOfLane() {
  Value inPage = row;
  if (copy.wholePages)
    inPage = arith::RemUIOp::create(b, row, lower.i32(copy.type.getPageSize()));
  Value place = arith::AddIOp::create(
      b, tile.base,
      arith::MulIOp::create(b, lower.toIndex(inPage), tile.rowStride));
  place = arith::AddIOp::create(b, place, laneCols);
  auto type = cast<MemRefType>(source.getType());
  type = MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1}),
      type.getMemorySpace());
  // The length is of no consequence: nothing asks for it.
  return memref::ReinterpretCastOp::create(
      b, type, tile.data, OpFoldResult(place),
      ArrayRef<OpFoldResult>{lower.index(std::numeric_limits<int64_t>::max())},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

Values NVIDIAMachine::CopySteps::pagedLines() {
  Values paged;
  Value line;
  for (auto [i, page] : llvm::enumerate(copy.pages)) {
    if (!hasPlaceInPages()) {
      line = tile.lineInPage(
          lower, arith::AddIOp::create(b, row, lower.i32(i * rowsPerStep)),
          page);
      paged.push_back(arith::AddIOp::create(b, line, laneCols));
      continue;
    }
    if (!copy.wholePages && i && page == copy.pages[i - 1])
      line = arith::AddIOp::create(
          b, line,
          arith::MulIOp::create(b, lower.index(rowsPerStep), tile.rowStride));
    else
      line = arith::MulIOp::create(
          b, arith::IndexCastUIOp::create(b, b.getIndexType(), page),
          tile.pageStride);
    paged.push_back(line);
  }
  if (tile.isPaged() && copy.pages.empty())
    for (int64_t step = 0; step < rowsAtOnce; step += rowsPerStep) {
      Value r = arith::AddIOp::create(b, row, lower.i32(step));
      line =
          copy.lineOf ? copy.lineOf(r) : tile.lineOf(lower, r, isRowOk(step));
      paged.push_back(arith::AddIOp::create(b, line, laneCols));
    }
  return paged;
}

void NVIDIAMachine::CopySteps::copyRow(Value line, Value rowOk, int64_t step) {
  for (int64_t block = 0; block < layout.repeats; ++block) {
    int64_t start = block * layout.blockCols;
    Value ok = rowOk;
    if (start + layout.blockCols > columns) {
      // Columns past the buffer's are zero.
      Value inside = arith::CmpIOp::create(
          b, arith::CmpIPredicate::slt, col,
          lower.i32(std::max<int64_t>(0, columns - start) / width));
      ok = ok ? arith::AndIOp::create(b, ok, inside) : inside;
    }
    Value to = emitAddress(lower, address, first, copy.params, step, start);
    Value from = arith::AddIOp::create(b, line, lower.index(start));
    LaneCopy one{lower, shared, to, source, from, width, /*count=*/Value()};
    if (copy.checkCols) {
      Value valid = arith::SubIOp::create(
          b, tile.cols,
          arith::AddIOp::create(
              b, arith::MulIOp::create(b, col, lower.i32(width)).getResult(),
              lower.i32(start)));
      one.cut(ok, valid);
    } else if (ok) {
      one.countIf(ok);
      one.placeIf(ok);
    }
    one.emit(/*bypassL1=*/copy.bytes == kVectorBytes);
  }
}

void NVIDIAMachine::emitCopies(Lanes &lower, const Copy &copy,
                               const TileView &tile, Value slot,
                               bool checkRows) {
  ImplicitLocOpBuilder &b = lower.b;
  CopySteps steps(lower, copy, tile, slot);
  OpBuilder::InsertionGuard guard(b);
  steps.enter();
  // One lane-dependent offset lives through the steps; the others are sums
  // along the way, which costs no more instructions and saves two registers a
  // step.
  Value walk, stride;
  if (!tile.isPaged()) {
    Value laneLine =
        arith::MulIOp::create(b, lower.toIndex(steps.row), tile.rowStride);
    laneLine = arith::AddIOp::create(b, laneLine, steps.laneCols);
    walk = arith::AddIOp::create(b, laneLine, tile.base);
    stride = arith::MulIOp::create(b, lower.index(steps.rowsPerStep),
                                   tile.rowStride);
  }
  if (checkRows)
    steps.checkRows();
  // A page's number is multiplied and added to what all pages have in common by
  // one instruction.
  if (steps.hasPlaceInPages())
    steps.source = steps.sourceOfLane();
  Values paged = steps.pagedLines();
  for (int64_t step = 0; step < steps.rowsAtOnce; step += steps.rowsPerStep) {
    Value rowOk = steps.isRowOk(step);
    if (tile.isPaged())
      walk = paged[step / steps.rowsPerStep];
    else if (step)
      walk = arith::AddIOp::create(b, walk, stride);
    steps.copyRow(walk, rowOk, step);
  }
}

/// The steps of a tile's copies by words: consecutive threads walk the words of
/// a block's row, as far as there are threads, then the next row.
struct NVIDIAMachine::WordSteps {
  Lanes &lower;
  ImplicitLocOpBuilder &b;
  const Copy &copy;
  const TileView &tile;
  KVBufferAttr params;
  Type element;
  SharedTile layout;
  /// Elements of a word; words of a row, and rows, of a step; rows whose steps
  /// stand beside each other, the rest is a loop.
  int64_t width, perRow, rowsPerStep, rowsAtOnce;
  /// The lane's word in a row, its row in the first step, and among those of
  /// the loop's step; the word's first element; i32.
  Value col, row, stepRow, laneCol;
  Value laneCols, first, shared, source;
  LinearAddress address;
  /// Words loaded ahead of their stores.
  struct Word {
    Value value, to;
  };
  SmallVector<Word> loaded;

  WordSteps(Lanes &lower, const Copy &copy, const TileView &tile, Value slot);
  /// Goes on in the threads that copy, and in the loop over steps.
  void enter();
  /// Where the lane's row `row` begins, if it is valid.
  Value lineOf(Value row, Value ok);
  /// The words of a row, `ahead` behind the step's first one.
  void copyRow(Value line, Value rowOk, int64_t ahead, bool async);
  /// A word by loads of elements, `valid` of which are there; zeros unless
  /// `ok`.
  Value loadWord(Value from, Value ok, Value valid);
  Value loadElement(Value from, int64_t number, Value valid);
};

NVIDIAMachine::WordSteps::WordSteps(Lanes &lower, const Copy &copy,
                                    const TileView &tile, Value slot)
    : lower(lower), b(lower.b), copy(copy), tile(tile), params(copy.params),
      element(params.getElementType()), layout(sharedTile(params)),
      width(copy.bytes / layout.elementBytes),
      perRow(std::min(layout.blockCols / width,
                      int64_t(llvm::bit_floor(uint64_t(copy.threads))))),
      rowsPerStep(
          std::min(int64_t(llvm::bit_floor(uint64_t(copy.threads / perRow))),
                   layout.rows & -layout.rows)),
      rowsAtOnce(
          std::min(kRowsAtOnce * rowsPerStep, layout.rows & -layout.rows)) {
  col = arith::AndIOp::create(b, lower.thread, lower.i32(perRow - 1));
  row =
      arith::ShRUIOp::create(b, lower.thread, lower.i32(llvm::Log2_64(perRow)));
  first = arith::DivUIOp::create(b, slot, lower.i32(layout.elementBytes));
  shared = lower.shared(element);
  source = lower.flat(tile.data);
  laneCol = arith::MulIOp::create(b, col, lower.i32(width));
  laneCols = lower.toIndex(laneCol);
}

void NVIDIAMachine::WordSteps::enter() {
  goOnIn(lower, rowsPerStep * perRow, copy.threads);
  auto loop = scf::ForOp::create(
      b, lower.i32(0), lower.i32(layout.rows / rowsAtOnce), lower.i32(1));
  b.setInsertionPointToStart(loop.getBody());
  Value step = loop.getInductionVar();
  address.terms.push_back({col, imagesOf(layout, "col", llvm::Log2_64(width),
                                         llvm::Log2_64(perRow))});
  address.terms.push_back(
      {row, imagesOf(layout, "row", 0, llvm::Log2_64(rowsPerStep))});
  address.terms.push_back(
      {step, imagesOf(layout, "row", llvm::Log2_64(rowsAtOnce),
                      llvm::Log2_64_Ceil(layout.rows / rowsAtOnce))});
  stepRow = arith::AddIOp::create(
      b, row, arith::MulIOp::create(b, step, lower.i32(rowsAtOnce)));
}

Value NVIDIAMachine::WordSteps::lineOf(Value row, Value ok) {
  if (tile.isPaged())
    return tile.lineOf(lower, row, ok);
  return arith::AddIOp::create(
      b, arith::MulIOp::create(b, lower.toIndex(row), tile.rowStride),
      tile.base);
}

void NVIDIAMachine::WordSteps::copyRow(Value line, Value rowOk, int64_t ahead,
                                       bool async) {
  int64_t columns = params.getColumnsOf(copy.block);
  for (int64_t start = 0; start < layout.cols(); start += perRow * width) {
    Value ok = rowOk;
    if (start + perRow * width > columns)
      // Columns past the buffer's are zero.
      ok = arith::AndIOp::create(
          b, ok,
          arith::CmpIOp::create(
              b, arith::CmpIPredicate::slt, laneCol,
              lower.i32(std::max<int64_t>(0, columns - start))));
    Value to = emitAddress(lower, address, first, params, ahead, start);
    Value from = arith::AddIOp::create(b, line, lower.index(start));
    Value valid;
    if (copy.checkCols)
      valid = arith::SubIOp::create(
          b, tile.cols, arith::AddIOp::create(b, laneCol, lower.i32(start)));
    if (!async) {
      loaded.push_back({loadWord(from, ok, valid), to});
      continue;
    }
    LaneCopy one{lower, shared, to, source, from, width, /*count=*/Value()};
    if (copy.checkCols) {
      one.cut(ok, valid);
    } else {
      one.placeIf(ok);
      one.countIf(ok);
    }
    one.emit(/*bypassL1=*/false);
  }
}

Value NVIDIAMachine::WordSteps::loadElement(Value from, int64_t number,
                                            Value valid) {
  auto read = [&]() -> Value {
    return memref::LoadOp::create(
        b, source,
        ValueRange{arith::AddIOp::create(b, from, lower.index(number))});
  };
  if (!copy.checkCols)
    return read();
  auto there =
      scf::IfOp::create(b, TypeRange{element},
                        arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                              valid, lower.i32(number)),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(there.thenBlock());
  scf::YieldOp::create(b, read());
  b.setInsertionPointToStart(there.elseBlock());
  scf::YieldOp::create(
      b, arith::ConstantOp::create(b, element, b.getZeroAttr(element))
             .getResult());
  return there.getResult(0);
}

Value NVIDIAMachine::WordSteps::loadWord(Value from, Value ok, Value valid) {
  auto wordType = VectorType::get({width}, element);
  auto load =
      scf::IfOp::create(b, TypeRange{wordType}, ok, /*addThenBlock=*/true,
                        /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(load.thenBlock());
  Values elements;
  for (int64_t i = 0; i < width; ++i)
    elements.push_back(loadElement(from, i, valid));
  scf::YieldOp::create(
      b, ValueRange{vector::FromElementsOp::create(b, wordType, elements)});
  b.setInsertionPointToStart(load.elseBlock());
  scf::YieldOp::create(b, ValueRange{arith::ConstantOp::create(
                              b, wordType, b.getZeroAttr(wordType))});
  return load.getResult(0);
}

void NVIDIAMachine::emitWordCopies(Lanes &lower, const Copy &copy,
                                   const TileView &tile, Value slot,
                                   bool async) {
  ImplicitLocOpBuilder &b = lower.b;
  WordSteps steps(lower, copy, tile, slot);
  OpBuilder::InsertionGuard guard(b);
  steps.enter();
  for (int64_t ahead = 0; ahead < steps.rowsAtOnce;
       ahead += steps.rowsPerStep) {
    Value row = arith::AddIOp::create(b, steps.stepRow, lower.i32(ahead));
    Value rowOk = arith::AndIOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, tile.hi),
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, row, tile.lo));
    Value line = steps.lineOf(row, rowOk);
    line = arith::AddIOp::create(b, line, steps.laneCols);
    steps.copyRow(line, rowOk, ahead, async);
  }
  for (const WordSteps::Word &word : steps.loaded)
    vector::StoreOp::create(b, word.value, steps.shared, ValueRange{word.to},
                            /*nontemporal=*/false, llvm::Align(copy.bytes));
}

void NVIDIAMachine::emitTileCopies(Lanes &lower, DramLoadOp op,
                                   const Copy &whole, const TileView &tile,
                                   Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getBuffer().getType().getParams();
  Copy copy = whole;
  OpBuilder::InsertionGuard guard(b);
  // Goes on after `then` where rows begin at multiples of `bytes`, which
  // `then` needs.
  auto unlessAligned = [&](int64_t bytes, function_ref<void()> then) {
    if (lower.alignment >= bytes)
      return then();
    auto ifOp = scf::IfOp::create(b, rowsAligned(lower, tile, bytes),
                                  /*withElseRegion=*/true);
    b.setInsertionPointToStart(ifOp.thenBlock());
    then();
    b.setInsertionPointToStart(ifOp.elseBlock());
  };
  // Most tiles are whole; they copy without looking at rows and columns.
  auto ifWhole = [&](function_ref<void()> copyWhole,
                     function_ref<void()> copyCut) {
    Value whole;
    auto require = [&](arith::CmpIPredicate predicate, Value x, int64_t y) {
      Value holds = arith::CmpIOp::create(b, predicate, x, lower.i32(y));
      whole = whole ? arith::AndIOp::create(b, whole, holds) : holds;
    };
    TileType type = op.getTile().getType();
    if (!op.getWhole()) {
      require(arith::CmpIPredicate::sle, tile.lo, 0);
      require(arith::CmpIPredicate::sge, tile.hi, type.getRows());
    }
    if (tile.cols)
      require(arith::CmpIPredicate::sge, tile.cols, type.getCols());
    if (!whole)
      return copyWhole();
    OpBuilder::InsertionGuard guard(b);
    auto ifOp = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
    b.setInsertionPointToStart(ifOp.thenBlock());
    copyWhole();
    b.setInsertionPointToStart(ifOp.elseBlock());
    copyCut();
  };
  Copy cut = copy;
  cut.checkCols = bool(tile.cols);
  unlessAligned(kVectorBytes, [&] {
    ifWhole([&] { emitCopies(lower, copy, tile, slot, /*checkRows=*/false); },
            [&] {
              emitCopies(lower, cut, tile, slot, /*checkRows=*/!op.getWhole());
            });
  });
  if (lower.alignment >= kVectorBytes)
    return;
  for (int64_t bytes : {kVectorBytes / 2, kCopyWordBytes}) {
    if (lower.alignment > bytes)
      continue;
    copy.bytes = cut.bytes = bytes;
    copy.pages = cut.pages = {};
    // Where a step is not a whole number of rows, there is no code without
    // loops.
    bool unrolls =
        copy.perRow(sharedTile(params)) <= copy.threads && !tile.isPaged();
    unlessAligned(bytes, [&] {
      auto copyCut = [&] {
        emitWordCopies(lower, cut, tile, slot, /*async=*/true);
      };
      if (!unrolls)
        return copyCut();
      ifWhole([&] { emitCopies(lower, copy, tile, slot, /*checkRows=*/false); },
              copyCut);
    });
    if (lower.alignment == bytes)
      return;
  }
  emitWordCopies(lower, cut, tile, slot, /*async=*/false);
}
