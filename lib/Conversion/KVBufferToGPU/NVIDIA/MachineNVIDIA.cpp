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
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

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
