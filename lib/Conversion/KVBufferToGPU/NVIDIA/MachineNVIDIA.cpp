//===- MachineNVIDIA.cpp - Movement on NVIDIA, sm_80 and later --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MachineNVIDIA.h"
#include "KVBufferToGPU/PackedRows.h"
#include "KVBufferToGPU/Pages.h"
#include "KVBufferToGPU/Staging.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// 16 bytes: the widest cp.async, and a row of an ldmatrix matrix.
static constexpr int64_t kVectorBytes = kTensorAlignment;
/// The least that cp.async copies, and two elements.
static constexpr int64_t kWordBytes = 4;
/// Rows of a lane whose copies in words stand beside each other, so that their
/// loads overlap; the rest is a loop.
static constexpr int64_t kRowsAtOnce = 4;

std::unique_ptr<Machine> kvbuf::createNVIDIAMachine() {
  return std::make_unique<NVIDIAMachine>();
}

void NVIDIAMachine::tokenTypes(Lanes &lower, KVBufferAttr params,
                               SmallVectorImpl<Type> &types) {
  if (goesThroughRegisters(lower.target, params))
    stagedTypes(lower, params, types);
  if (hasAsyncCopies)
    types.push_back(nvgpu::DeviceAsyncTokenType::get(lower.b.getContext()));
}

SmallVector<int64_t> NVIDIAMachine::imagesOf(const SharedTile &tile,
                                             StringRef dim, unsigned log2Step,
                                             unsigned bits) {
  SmallVector<int64_t> images;
  LinearLayout block = tile.block();
  for (unsigned bit = 0; bit < bits; ++bit)
    images.push_back(block.basis(dim, log2Step + bit, "byte") /
                     tile.elementBytes);
  return images;
}

Value NVIDIAMachine::emitAddress(Lanes &lower, const LinearAddress &address,
                                 Value first, KVBufferAttr params, int64_t row,
                                 int64_t col) {
  SharedTile layout = sharedTile(params);
  int64_t align = slotAlignment(params) / layout.elementBytes;
  int64_t offset = layout.byteOffset(row, col) / layout.elementBytes;
  if (llvm::isPowerOf2_64(layout.rows))
    return address.emit(lower.b, first, align, offset);
  // Where a block begins is no XOR of bits then; inside of it all is.
  int64_t block =
      col / layout.blockCols * layout.blockBytes() / layout.elementBytes;
  Value inBlock = address.emit(lower.b, first, align, offset - block);
  return arith::AddIOp::create(lower.b, inBlock, lower.index(block));
}

Values NVIDIAMachine::pagesOfSteps(Lanes &lower, Copy &copy,
                                   const TileView &tile, bool aligned) {
  ImplicitLocOpBuilder &b = lower.b;
  SharedTile layout = sharedTile(copy.params);
  int64_t page = copy.type.getPageSize(), perStep = copy.rowsPerStep(layout);
  copy.alignedPages = aligned && page % perStep == 0 && layout.rows % page == 0;
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

/// The elements to copy of `width` at `from`, of which `valid` (i32, perhaps
/// less than 0 or more than `width`) are there, and none unless `ok` (or null):
/// sets `count`, and where there is nothing to copy an address that exists.
static void emitCut(Lanes &lower, Value ok, Value valid, int64_t width,
                    Value &from, Value &count) {
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
  /// A page's first row and those after it are a stride apart.
  Value lineOfPage(Value page);
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

void NVIDIAMachine::CopySteps::enter() {
  // More threads than vectors in a block: the rest stay idle.
  if (rowsPerStep * perRow < copy.threads) {
    Value busy =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lower.thread,
                              lower.i32(rowsPerStep * perRow));
    b.setInsertionPointToStart(
        scf::IfOp::create(b, busy, /*withElseRegion=*/false).thenBlock());
  }
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

Value NVIDIAMachine::CopySteps::lineOfPage(Value page) {
  Value number = arith::IndexCastUIOp::create(b, b.getIndexType(), page);
  Value line = arith::AddIOp::create(
      b, tile.base, arith::MulIOp::create(b, number, tile.pageStride));
  return arith::AddIOp::create(
      b, line, arith::MulIOp::create(b, lower.toIndex(row), tile.rowStride));
}

Values NVIDIAMachine::CopySteps::pagedLines() {
  Values paged;
  Value line;
  for (auto [i, page] : llvm::enumerate(copy.pages)) {
    int64_t step = i * rowsPerStep;
    if (!copy.alignedPages)
      line = tile.lineInPage(
          lower, arith::AddIOp::create(b, row, lower.i32(step)), page);
    else if (i && page == copy.pages[i - 1])
      line = arith::AddIOp::create(
          b, line,
          arith::MulIOp::create(b, lower.index(rowsPerStep), tile.rowStride));
    else
      line = lineOfPage(page);
    paged.push_back(arith::AddIOp::create(b, line, laneCols));
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
    Value count;
    if (copy.checkCols) {
      Value valid = arith::SubIOp::create(
          b, tile.cols,
          arith::AddIOp::create(
              b, arith::MulIOp::create(b, col, lower.i32(width)).getResult(),
              lower.i32(start)));
      emitCut(lower, ok, valid, width, from, count);
    } else if (ok) {
      count =
          arith::SelectOp::create(b, ok, lower.index(width), lower.index(0));
      // A copy of nothing still has an address: one that exists.
      from = arith::SelectOp::create(b, ok, from, lower.index(0));
    }
    nvgpu::DeviceAsyncCopyOp::create(
        b, nvgpu::DeviceAsyncTokenType::get(b.getContext()), shared,
        ValueRange{to}, source, ValueRange{from}, b.getIndexAttr(width), count,
        /*bypassL1=*/copy.bytes == kVectorBytes ? b.getUnitAttr() : UnitAttr());
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

void NVIDIAMachine::emitWordCopies(Lanes &lower, const Copy &copy,
                                   const TileView &tile, Value slot,
                                   bool async) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = copy.params;
  Type element = params.getElementType();
  SharedTile layout = sharedTile(params);
  int64_t width = copy.bytes / layout.elementBytes;
  // Consecutive threads walk the words of a block's row, as far as there are
  // threads, then the next row.
  int64_t perRow = std::min(layout.blockCols / width,
                            int64_t(llvm::bit_floor(uint64_t(copy.threads))));
  int64_t rowsPerStep =
      std::min(int64_t(llvm::bit_floor(uint64_t(copy.threads / perRow))),
               layout.rows & -layout.rows);
  int64_t rowsAtOnce =
      std::min(kRowsAtOnce * rowsPerStep, layout.rows & -layout.rows);
  unsigned colBits = llvm::Log2_64(perRow),
           rowBits = llvm::Log2_64(rowsPerStep),
           stepBits = llvm::Log2_64_Ceil(layout.rows / rowsAtOnce);

  Value col = arith::AndIOp::create(b, lower.thread, lower.i32(perRow - 1));
  Value row = arith::ShRUIOp::create(b, lower.thread, lower.i32(colBits));
  Value first = arith::DivUIOp::create(b, slot, lower.i32(layout.elementBytes));
  Value shared = lower.shared(element), source = lower.flat(tile.data);
  Value laneCol = arith::MulIOp::create(b, col, lower.i32(width));
  Value laneCols = lower.toIndex(laneCol);

  OpBuilder::InsertionGuard guard(b);
  if (rowsPerStep * perRow < copy.threads) {
    Value busy =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lower.thread,
                              lower.i32(rowsPerStep * perRow));
    b.setInsertionPointToStart(
        scf::IfOp::create(b, busy, /*withElseRegion=*/false).thenBlock());
  }
  auto loop = scf::ForOp::create(
      b, lower.i32(0), lower.i32(layout.rows / rowsAtOnce), lower.i32(1));
  b.setInsertionPointToStart(loop.getBody());
  Value step = loop.getInductionVar();
  LinearAddress address;
  address.terms.push_back(
      {col, imagesOf(layout, "col", llvm::Log2_64(width), colBits)});
  address.terms.push_back({row, imagesOf(layout, "row", 0, rowBits)});
  address.terms.push_back(
      {step, imagesOf(layout, "row", llvm::Log2_64(rowsAtOnce), stepBits)});
  Value stepRow = arith::AddIOp::create(
      b, row, arith::MulIOp::create(b, step, lower.i32(rowsAtOnce)));

  // Words loaded ahead of their stores.
  auto wordType = VectorType::get({width}, element);
  struct Word {
    Value value, to;
  };
  SmallVector<Word> loaded;
  for (int64_t ahead = 0; ahead < rowsAtOnce; ahead += rowsPerStep) {
    Value r = arith::AddIOp::create(b, stepRow, lower.i32(ahead));
    Value rowOk = arith::AndIOp::create(
        b, arith::CmpIOp::create(b, arith::CmpIPredicate::slt, r, tile.hi),
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, r, tile.lo));
    Value line =
        tile.isPaged()
            ? tile.lineOf(lower, r, rowOk)
            : Value(arith::AddIOp::create(
                  b, arith::MulIOp::create(b, lower.toIndex(r), tile.rowStride),
                  tile.base));
    line = arith::AddIOp::create(b, line, laneCols);
    for (int64_t start = 0; start < layout.cols(); start += perRow * width) {
      Value ok = rowOk;
      if (start + perRow * width > params.getColumnsOf(copy.block))
        // Columns past the buffer's are zero.
        ok = arith::AndIOp::create(
            b, ok,
            arith::CmpIOp::create(
                b, arith::CmpIPredicate::slt, laneCol,
                lower.i32(std::max<int64_t>(0, params.getColumnsOf(copy.block) -
                                                   start))));
      Value to = emitAddress(lower, address, first, params, ahead, start);
      Value from = arith::AddIOp::create(b, line, lower.index(start));
      Value valid;
      if (copy.checkCols)
        valid = arith::SubIOp::create(
            b, tile.cols, arith::AddIOp::create(b, laneCol, lower.i32(start)));
      if (async) {
        Value count;
        if (copy.checkCols) {
          emitCut(lower, ok, valid, width, from, count);
        } else {
          // A copy of nothing still has an address: one that exists.
          from = arith::SelectOp::create(b, ok, from, lower.index(0));
          count = arith::SelectOp::create(b, ok, lower.index(width),
                                          lower.index(0));
        }
        nvgpu::DeviceAsyncCopyOp::create(
            b, nvgpu::DeviceAsyncTokenType::get(b.getContext()), shared,
            ValueRange{to}, source, ValueRange{from}, b.getIndexAttr(width),
            count, /*bypassL1=*/UnitAttr());
        continue;
      }
      auto load =
          scf::IfOp::create(b, TypeRange{wordType}, ok, /*addThenBlock=*/true,
                            /*addElseBlock=*/true);
      {
        OpBuilder::InsertionGuard inner(b);
        b.setInsertionPointToStart(load.thenBlock());
        Values elements;
        for (int64_t i = 0; i < width; ++i) {
          auto read = [&]() -> Value {
            return memref::LoadOp::create(
                b, source,
                ValueRange{arith::AddIOp::create(b, from, lower.index(i))});
          };
          if (!copy.checkCols) {
            elements.push_back(read());
            continue;
          }
          auto there = scf::IfOp::create(
              b, TypeRange{element},
              arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, valid,
                                    lower.i32(i)),
              /*addThenBlock=*/true, /*addElseBlock=*/true);
          OpBuilder::InsertionGuard one(b);
          b.setInsertionPointToStart(there.thenBlock());
          scf::YieldOp::create(b, read());
          b.setInsertionPointToStart(there.elseBlock());
          scf::YieldOp::create(
              b, arith::ConstantOp::create(b, element, b.getZeroAttr(element))
                     .getResult());
          elements.push_back(there.getResult(0));
        }
        scf::YieldOp::create(b, ValueRange{vector::FromElementsOp::create(
                                    b, wordType, elements)});
        b.setInsertionPointToStart(load.elseBlock());
        scf::YieldOp::create(b, ValueRange{arith::ConstantOp::create(
                                    b, wordType, b.getZeroAttr(wordType))});
      }
      loaded.push_back({load.getResult(0), to});
    }
  }
  for (const Word &word : loaded)
    vector::StoreOp::create(b, word.value, shared, ValueRange{word.to},
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
  for (int64_t bytes : {kVectorBytes / 2, kWordBytes}) {
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

Values NVIDIAMachine::emitLoad(Lanes &lower, DramLoadOp op,
                               const TileView &tile, Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  Values values;
  if (packedRowOf(op.getTile())) {
    emitPackedLoad(lower, op.getTile(), tile,
                   op.getBuffer().getType().getParams(), slot,
                   op.getPred() ? lower.single(op.getPred()) : Value(),
                   {lower.thread, lower.threads()});
  } else if (goesThroughRegisters(lower.target,
                                  op.getBuffer().getType().getParams())) {
    values = emitStagedLoads(lower, op, tile);
    if (!hasAsyncCopies)
      return values;
  } else {
    OpBuilder::InsertionGuard guard(b);
    Copy copy{op.getTile().getType(), op.getBuffer().getType().getParams(),
              lower.threads(), int64_t(op.getBlock())};
    // Ahead of all branches, where the lanes of a warp are known to be
    // together.
    Values pages;
    if (tile.map == RowMap::Lanes)
      pages =
          pagesOfSteps(lower, copy, tile,
                       startsAtMultiple(op.getTile(), copy.type.getPageSize()));
    copy.pages = pages;
    if (op.getPred()) {
      auto issued = scf::IfOp::create(b, lower.single(op.getPred()),
                                      /*withElseRegion=*/false);
      b.setInsertionPointToStart(issued.thenBlock());
    }
    emitTileCopies(lower, op, copy, tile, slot);
  }
  // The group exists whether or not it has copies: waits count groups.
  auto group = nvgpu::DeviceAsyncCreateGroupOp::create(
      b, nvgpu::DeviceAsyncTokenType::get(b.getContext()), ValueRange{});
  // Printed bare, it would take the next line's result for an operand of its
  // own when it is read back; an attribute ends it.
  group->setAttr(KVBufferDialect::kGroupAttr, b.getUnitAttr());
  values.push_back(group);
  return values;
}

void NVIDIAMachine::emitStage(Lanes &lower, LdsStageOp op,
                              ArrayRef<Values> tokens) {
  ImplicitLocOpBuilder &b = lower.b;
  Value group;
  for (auto [operand, values] : llvm::zip_equal(op.getTokens(), tokens)) {
    KVBufferAttr params = cast<TokenType>(operand.getType()).getParams();
    if (goesThroughRegisters(lower.target, params))
      emitStagedStores(
          lower, params, values.front(),
          ArrayRef<Value>(values).drop_front().drop_back(hasAsyncCopies));
    else
      group = values.back();
  }
  if (group)
    nvgpu::DeviceAsyncWaitOp::create(
        b, group, b.getI32IntegerAttr(op.getYounger().value_or(0)));
  emitMeet(lower);
}

void NVIDIAMachine::emitMeet(Lanes &lower) {
  ImplicitLocOpBuilder &b = lower.b;
  if (!lower.team)
    gpu::BarrierOp::create(b);
  else if (Value barrier = lower.teamBarrier())
    emitNamedBarrier(lower, barrier,
                     lower.schedule.getWarps() * lower.target.waveSize,
                     /*wait=*/true);
  else
    // Lanes of a warp are apart, too: what one has copied, another reads.
    NVVM::SyncWarpOp::create(b, lower.i32(-1));
}

void NVIDIAMachine::emitLanding(Lanes &lower) {
  if (hasAsyncCopies)
    NVVM::CpAsyncWaitGroupOp::create(lower.b, 0);
}

void NVIDIAMachine::emitNamedBarrier(Lanes &lower, Value id, int64_t threads,
                                     bool wait) {
  ImplicitLocOpBuilder &b = lower.b;
  Value count = lower.i32(threads);
  if (wait)
    NVVM::BarrierOp::create(b, TypeRange(), id, count,
                            NVVM::BarrierReductionAttr(), Value());
  else
    NVVM::BarrierArriveOp::create(b, id, count);
}

/// Adds the columns of a slot that are a warp's, `cols` for each of `warps`, to
/// an address, as far as they are places in a block; returns the elements of
/// the blocks before them, or null. `part` is the warp's number among them.
static Value emitColPart(Lanes &lower, Value part, int64_t cols, int64_t warps,
                         const SharedTile &tile, LinearAddress &address) {
  ImplicitLocOpBuilder &b = lower.b;
  unsigned bits = llvm::Log2_64(warps), inside = 0;
  SmallVector<int64_t> images;
  LinearLayout block = tile.block();
  for (; inside < bits && cols << inside < tile.blockCols; ++inside)
    images.push_back(
        block.apply({{"row", 0}, {"col", cols << inside}}, "byte") /
        tile.elementBytes);
  if (inside)
    address.terms.push_back({part, images});
  if (inside == bits)
    return {};
  int64_t step =
      (cols << inside) / tile.blockCols * tile.blockBytes() / tile.elementBytes;
  Value number = arith::ShRUIOp::create(b, part, lower.i32(inside));
  return arith::MulIOp::create(b, number, lower.i32(step));
}

int64_t NVIDIAMachine::matricesAtOnce(ArrayRef<Matrix> all, int64_t blockCols) {
  const Matrix &zero = all.front();
  auto inOne = [&](int64_t count) {
    if (all.size() < size_t(count))
      return false;
    for (int64_t w = 0; w < count; ++w) {
      int64_t row = 0, col = 0;
      for (int64_t bit = 1; bit < count; bit *= 2)
        if (w & bit) {
          row ^= all[bit].row ^ zero.row;
          col ^= all[bit].col ^ zero.col;
        }
      if (all[w].row != (zero.row ^ row) || all[w].col != (zero.col ^ col) ||
          all[w].col / blockCols != zero.col / blockCols)
        return false;
    }
    return true;
  };
  return inOne(4) ? 4 : inOne(2) ? 2 : 1;
}

LogicalResult NVIDIAMachine::emitFragmentLoad(Lanes &lower, FragmentLoadOp op,
                                              Value slot, Values &words) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getStaged().getType().getParams();
  FragmentType type = op.getFragment().getType();
  if (type.getElementType() != params.getElementType())
    return op.isCrossed() ? emitNarrowFragment(lower, op, slot, words)
                          : emitNarrowFragmentLoad(lower, op, slot, words);
  SharedTile layout = sharedTile(params);
  const FragmentLayout &atom = lower.layouts.of(type);
  // Rows of b that are the result's columns: as operand b,
  // [contracted][columns], it is transposed in LDS. So is operand a whose rows
  // there are contracted.
  bool isA = type.getRole() == Role::A, crossed = op.isCrossed(),
       turned = atom.turned || crossed;
  int64_t atomRows = atom.fragmentRows(), atomCols = atom.fragmentCols();
  int64_t gridRows = atom.warpRows(type) / atomRows,
          gridCols = atom.warpCols(type) / atomCols;

  // How an operand's register and lane bits lie in LDS decides which form of
  // ldmatrix fits: a word holds two neighbours along a row, or along a column.
  auto rowOf = [&](StringRef in, unsigned bit) {
    return atom.layout.basis(in, bit, turned ? "col" : "row");
  };
  auto colOf = [&](StringRef in, unsigned bit) {
    return atom.layout.basis(in, bit, turned ? "row" : "col");
  };
  bool transposed = rowOf("register", 0) == 1;
  // Elements of a word of 32 bits; ldmatrix transposes pairs of 16 bits.
  int64_t inWord = 4 / layout.elementBytes;
  unsigned wordBits = llvm::Log2_64(inWord);
  auto fits = [&](bool trans) {
    if (trans && inWord != 2)
      return false;
    auto along = [&](StringRef in, unsigned bit) {
      return trans ? rowOf(in, bit) : colOf(in, bit);
    };
    auto across = [&](StringRef in, unsigned bit) {
      return trans ? colOf(in, bit) : rowOf(in, bit);
    };
    bool ok = true;
    for (unsigned bit = 0; bit < wordBits; ++bit)
      ok &= along("register", bit) == 1 << bit && across("register", bit) == 0;
    for (unsigned bit = 0; bit < 5; ++bit)
      ok &= bit < 2 ? along("lane", bit) == inWord << bit &&
                          across("lane", bit) == 0
                    : across("lane", bit) == 1 << (bit - 2) &&
                          along("lane", bit) == 0;
    return ok;
  };
  if (!fits(transposed) && layout.elementBytes == 1 && !crossed)
    return emitByteFragmentLoad(lower, op, slot, words);
  // What is contracted in an order of its own, as beside elements that are
  // widened, no form of ldmatrix reads.
  if (!fits(transposed))
    return emitNarrowFragment(lower, op, slot, words);

  // Matrices of one atom, by its upper register bits; an atom of two matrices
  // shares an instruction with its neighbour along the result's columns.
  unsigned upper = atom.layout.inLog2("register") - wordBits;
  SmallVector<Matrix> all;
  // Order of words: a is [m][k]; b is [k][n].
  int64_t outer = atom.turned ? gridCols : gridRows,
          inner = atom.turned ? gridRows : gridCols;
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < inner; ++j) {
      int64_t row0 = (atom.turned ? j : i) * atomRows,
              col0 = (atom.turned ? i : j) * atomCols;
      if (crossed)
        std::swap(row0, col0);
      row0 += op.getSlotRow();
      col0 += op.getSlotCol();
      for (unsigned word = 0; word < 1u << upper; ++word) {
        Matrix matrix{row0, col0};
        for (unsigned bit = 0; bit < upper; ++bit)
          if (word >> bit & 1) {
            matrix.row += rowOf("register", bit + wordBits);
            matrix.col += colOf("register", bit + wordBits);
          }
        all.push_back(matrix);
      }
    }

  // Words are words: 8-bit elements come as integers.
  Type element = params.getElementType(),
       stored = inWord == 2 ? element : Type(b.getI8Type());
  Value shared = lower.shared(stored);
  Value first = arith::DivUIOp::create(b, slot, lower.i32(layout.elementBytes));
  for (size_t i = 0; i < all.size();) {
    const Matrix &zero = all[i];
    int64_t count =
        matricesAtOnce(ArrayRef(all).drop_front(i), layout.blockCols);
    // Lane l gives the address of row l % 8 of matrix l / 8.
    LinearAddress address;
    SmallVector<int64_t> basis = imagesOf(layout, "row", 0, 3);
    LinearLayout block = layout.block();
    auto image = [&](int64_t row, int64_t col) {
      return block.apply({{"row", row}, {"col", col}}, "byte") /
             layout.elementBytes;
    };
    for (int64_t bit = 1; bit < count; bit *= 2) {
      int64_t row = all[i + bit].row ^ zero.row,
              col = all[i + bit].col ^ zero.col;
      basis.push_back(image(row, col));
    }
    address.terms.push_back({lower.lane, basis});
    Value blocks;
    if (crossed) {
      // Each warp has its own columns of the slot.
      if (atom.rowWarps > 1)
        blocks = emitColPart(lower, lower.rowPart(atom), atom.warpRows(type),
                             atom.rowWarps, layout, address);
    } else if (atom.sharesCols()) {
      if (atom.rowWarps > 1)
        address.terms.push_back(
            {lower.rowPart(atom),
             imagesOf(layout, "row", llvm::Log2_64(atom.warpRows(type)),
                      llvm::Log2_64(atom.rowWarps))});
      if (atom.colWarps > 1)
        blocks = emitColPart(lower, lower.gridCol(atom), atom.warpCols(type),
                             atom.colWarps, layout, address);
    } else if (isA) {
      // Each warp has its own rows.
      int64_t warpRows = atom.warpRows(type);
      unsigned warpBits = llvm::Log2_64_Ceil(atom.rowWarps);
      address.terms.push_back(
          {lower.warp,
           imagesOf(layout, "row", llvm::Log2_64(warpRows), warpBits)});
    }
    Value where =
        emitAddress(lower, address, first, params, zero.row, zero.col);
    if (blocks)
      where = arith::AddIOp::create(b, where, lower.toIndex(blocks));
    auto loaded = VectorType::get({count, inWord}, stored);
    Value matrix = nvgpu::LdMatrixOp::create(
        b, loaded, shared, ValueRange{where}, transposed, count);
    for (int64_t w = 0; w < count; ++w) {
      Value word = vector::ExtractOp::create(b, matrix, ArrayRef<int64_t>{w});
      if (stored != element)
        word = arith::BitcastOp::create(b, VectorType::get({inWord}, element),
                                        word);
      words.push_back(word);
    }
    i += count;
  }
  return success();
}
