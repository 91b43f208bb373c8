//===- KVBufferMoveOps.cpp - Loads, staged tiles and stores -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InferTypes.h"
#include "VerifyTile.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"

using namespace mlir;
using namespace kvbuf;

LogicalResult DramLoadOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> location,
                                           DramLoadOp::Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  return inferFrom<BufferType>(
      adaptor.getBuffer(), "a buffer", location, types, [&](BufferType type) {
        return TokenType::get(context, type.getParams());
      });
}

/// Whether elements of 8 bits become those of a buffer in the registers that
/// they go through.
static bool areWidened(Operation *op, Type element, KVBufferAttr params) {
  return isa<DramLoadOp>(op) && isa<FloatType>(element) &&
         element.getIntOrFloatBitWidth() == 8 &&
         isa<BFloat16Type, Float16Type>(params.getElementType()) &&
         params.getPolicy() == Policy::RegisterStaged;
}

LogicalResult kvbuf::verifyTileFits(Operation *op, TileType tile,
                                    KVBufferAttr params) {
  if (tile.getRows() != params.getBN() ||
      tile.getCols() != params.getCacheDepth() ||
      (tile.getElementType() != params.getElementType() &&
       !areWidened(op, tile.getElementType(), params)))
    return op->emitOpError()
           << "expected a tile of " << params.getBN()
           << " rows, cache_depth = " << params.getCacheDepth()
           << " columns and elements " << params.getElementType() << ", got "
           << tile;
  return success();
}

LogicalResult DramLoadOp::verify() {
  KVBufferAttr params = getBuffer().getType().getParams();
  int64_t blocks = params.getFullKv() ? 1 : params.getNumRepeats();
  if (int64_t(getBlock()) < 0 || int64_t(getBlock()) >= blocks)
    return emitOpError() << "expected a block from 0 to " << blocks - 1
                         << ", got " << int64_t(getBlock());
  return verifyTileFits(*this, getTile().getType(), params);
}

LogicalResult LdsStageOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location> location,
                                           LdsStageOp::Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  for (Value token : adaptor.getTokens())
    if (failed(inferFrom<TokenType>(
            token, "tokens of loads", location, types,
            [](TokenType type) { return StagedType::get(type.getParams()); })))
      return failure();
  return success();
}

LogicalResult LdsStageOp::verify() {
  if (std::optional<uint64_t> younger = getYounger())
    if (int64_t(*younger) < 0)
      return emitOpError() << "expected younger of at least 0, got "
                           << int64_t(*younger);
  return success();
}

LogicalResult AllocOp::verify() {
  // Swizzles see slots that begin at bank 0.
  constexpr int64_t alignment = 1024;
  if (std::optional<uint64_t> offset = getOffset();
      offset && (int64_t(*offset) < 0 || int64_t(*offset) % alignment))
    return emitOpError() << "expected an offset that is a multiple of "
                         << alignment << ", got " << int64_t(*offset);
  return success();
}

bool FragmentLoadOp::contractsRows() {
  if (std::optional<Dimension> given = getContracted())
    return *given == Dimension::Rows;
  return getStaged().getType().getParams().contractsRows();
}

bool FragmentLoadOp::isCrossed() {
  return getFragment().getType().getRole() == Role::A &&
         getContracted() == Dimension::Rows;
}

/// Whether the part of `rows` x `cols` at (row, col) lies in a staged value.
static LogicalResult verifyPart(Operation *op, StagedType staged, int64_t row,
                                int64_t col, int64_t rows, int64_t cols) {
  if (row >= 0 && col >= 0 && row + rows <= staged.getRows() &&
      col + cols <= staged.getCols())
    return success();
  return op->emitOpError() << "part [" << row << ", " << col << "] of " << rows
                           << "x" << cols << " leaves the "
                           << (staged.isWhole() ? "slot" : "view") << " of "
                           << staged.getRows() << "x" << staged.getCols();
}

LogicalResult FragmentLoadOp::verify() {
  KVBufferAttr params = getStaged().getType().getParams();
  FragmentType fragment = getFragment().getType();
  Role role = fragment.getRole();
  Type wide = fragment.getElementType();
  bool widens =
      isFloat8(params.getElementType()) && (wide.isBF16() || wide.isF16());
  if (wide != params.getElementType() && !widens)
    return emitOpError() << "expected a fragment of " << params.getElementType()
                         << (isFloat8(params.getElementType()) ? ", bf16 or f16"
                                                               : "");
  if (params.isResult())
    return emitOpError() << "expected a slot of operand q, k or v: o is no "
                            "operand of a product";
  if (params.isNeutral()) {
    // Words that no unit multiplies, lanes read as they hold accumulators.
    bool isWord = wide.isF32();
    if (isWord ? role != Role::Acc : role != Role::A && role != Role::B)
      return emitOpError() << "expected role " << (isWord ? "acc" : "a or b")
                           << ", got " << stringifyRole(role);
    if (role == Role::B && !getContracted())
      return emitOpError() << "expected contracted(rows) or contracted(cols): "
                              "a neutral buffer does not say which";
  } else if (Role its = params.hasRowsOfProduct() ? Role::A : Role::B;
             role != its && !(role == Role::A && getContracted())) {
    // Rows of any slot may be dealt to warps, where the load says so.
    return emitOpError() << "expected role " << stringifyRole(its)
                         << " for operand "
                         << stringifyOperand(params.getOperand());
  }
  if (auto layout = dyn_cast_or_null<MmaLayoutAttr>(fragment.getLayout());
      layout && role == Role::B && layout.getTransposeB() == contractsRows())
    return emitOpError() << "loads contracted("
                         << (contractsRows() ? "rows" : "cols")
                         << ") into a layout "
                         << (contractsRows() ? "with" : "without")
                         << " transpose_b; expected one "
                         << (contractsRows() ? "without" : "with") << " it";
  int64_t rows = fragment.getRows(), cols = fragment.getCols();
  if (isCrossed())
    std::swap(rows, cols);
  return verifyPart(*this, getStaged().getType(), getRow(), getCol(), rows,
                    cols);
}

LogicalResult StagedViewOp::verify() {
  StagedType source = getSource().getType(), view = getView().getType();
  if (view.getParams() != source.getParams())
    return emitOpError() << "expected a view of the source's buffer";
  if (failed(verifyPart(*this, source, getRow(), getCol(), view.getRows(),
                        view.getCols())))
    return failure();
  int64_t row = source.getRow() + int64_t(getRow()),
          col = source.getCol() + int64_t(getCol());
  if (view.getRow() != row || view.getCol() != col)
    return emitOpError() << "expected a view at [" << row << ", " << col
                         << "] of the slot, got [" << view.getRow() << ", "
                         << view.getCol() << "]";
  return success();
}

StagedType StagedFitOp::fittedType(KVBufferAttr source) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](BFloat16Type type) -> Type {
    return Float16Type::get(type.getContext());
  });
  return StagedType::get(cast<KVBufferAttr>(replacer.replace(source)));
}

LogicalResult StagedFitOp::verify() {
  StagedType source = getSource().getType();
  if (!source.getParams().getElementType().isBF16() || !source.isWhole())
    return emitOpError() << "expected a whole slot of bf16, got " << source;
  // An engine may fill it anew, or read it, without seeing what lanes store.
  if (slotOfView(getSource()).getDefiningOp<RingWaitOp>())
    return emitOpError() << "changes a slot of a ring; expected one that "
                            "kvbuffer.lds_stage awaits";
  if (StagedType fitted = fittedType(source.getParams());
      getFitted().getType() != fitted)
    return emitOpError() << "makes " << fitted << " of the slot, got "
                         << getFitted().getType();
  FragmentType factor = getFactor().getType();
  if (factor.getRole() == Role::Row && factor.getElementType().isF32())
    return success();
  return emitOpError() << "expected a factor of f32 for each row, got "
                       << factor;
}

OpFoldResult StagedViewOp::fold(FoldAdaptor) {
  if (getSource().getType() == getView().getType())
    return getSource();
  return {};
}

/// Whether a tile's rows may be looked up one by one only as they are loaded.
static bool isLookedUp(Value tile) {
  auto made = tile.getDefiningOp<DramTileOp>();
  return tile.getDefiningOp<CacheTileOp>() || (made && made.getNumbers());
}

LogicalResult TileFragmentOp::verify() {
  if (isLookedUp(getTile()))
    return emitOpError() << "expected a tile of kvbuffer.dram_tile without "
                            "gather; others go through LDS by "
                            "kvbuffer.dram_load";
  FragmentType fragment = getFragment().getType();
  TileType tile = getTile().getType();
  if (fragment.getRole() != Role::A || fragment.getRows() != tile.getRows() ||
      fragment.getCols() < tile.getCols() ||
      fragment.getElementType() != tile.getElementType())
    return emitOpError() << "expected a fragment of role a with "
                         << tile.getRows() << " rows, at least "
                         << tile.getCols() << " columns and elements "
                         << tile.getElementType() << ", got " << fragment;
  return success();
}

LogicalResult FragmentStoreOp::verify() {
  if (isLookedUp(getTile()))
    return emitOpError() << "expected a tile of kvbuffer.dram_tile without "
                            "gather; rows of a cache are stored by "
                            "kvbuffer.cache_append and kvbuffer.cache.store";
  FragmentType fragment = getFragment().getType();
  TileType tile = getTile().getType();
  if (fragment.getRows() != tile.getRows() ||
      fragment.getCols() < tile.getCols() ||
      fragment.getElementType() != tile.getElementType())
    return emitOpError() << "expected a fragment of " << tile.getRows()
                         << " rows, at least " << tile.getCols()
                         << " columns and elements " << tile.getElementType()
                         << ", got " << fragment;
  return success();
}

LogicalResult RowStoreOp::verify() {
  auto tensor = cast<MemRefType>(getTensor().getType());
  if (getFragment().getType().getRole() != Role::Row)
    return emitOpError() << "expected a fragment of role row";
  if (int64_t(getIndices().size()) != tensor.getRank())
    return emitOpError() << "expected " << tensor.getRank() << " indices, got "
                         << getIndices().size();
  if (getFragment().getType().getElementType() != tensor.getElementType())
    return emitOpError() << "expected a fragment of "
                         << tensor.getElementType();
  if (getGroup() > 1 && tensor.getRank() < 2)
    return emitOpError() << "stores groups of rows along two dimensions; "
                            "expected a tensor of rank 2 or more, got "
                         << tensor;
  return verifyGroup(*this, getGroup());
}
