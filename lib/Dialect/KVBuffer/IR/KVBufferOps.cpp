//===- KVBufferOps.cpp - Verifiers of the kvbuffer dialect ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InferTypes.h"
#include "VerifyTile.h"
#include "WorkFormat.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf;

/// Parses `, NAME TYPE` for each optional operand that is present. A directive
/// of its own, because the operands decide which of them follows a comma.
static ParseResult parseOptionalTypes(
    OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> offsets,
    Type &offsetsType, std::optional<OpAsmParser::UnresolvedOperand> lse,
    Type &lseType, std::optional<OpAsmParser::UnresolvedOperand> sink,
    Type &sinkType) {
  auto parse = [&](bool present, StringRef name, Type &type) -> ParseResult {
    if (!present)
      return success();
    if (parser.parseComma() || parser.parseKeyword(name))
      return failure();
    return parser.parseType(type);
  };
  if (parse(offsets.has_value(), "offsets", offsetsType) ||
      parse(lse.has_value(), "lse", lseType))
    return failure();
  return parse(sink.has_value(), "sink", sinkType);
}

static void printOptionalTypes(OpAsmPrinter &printer, Operation *,
                               Value offsets, Type offsetsType, Value lse,
                               Type lseType, Value sink, Type sinkType) {
  if (offsets)
    printer << ", offsets " << offsetsType;
  if (lse)
    printer << ", lse " << lseType;
  if (sink)
    printer << ", sink " << sinkType;
}

/// Parses the type of a cache, with or without the dialect's prefix, or any
/// other: of a tensor, of another dialect's cache.
static ParseResult parseCacheOrTensor(OpAsmParser &parser, Type &type) {
  OptionalParseResult tensor = parser.parseOptionalType(type);
  if (tensor.has_value())
    return *tensor;
  type = CacheType::parse(parser);
  return success(static_cast<bool>(type));
}

static void printCacheOrTensor(OpAsmPrinter &printer, Operation *, Type type) {
  if (auto cache = dyn_cast<CacheType>(type))
    printer.printStrippedAttrOrType(cache);
  else
    printer << type;
}

/// Parses `(%copy) { ... }` or `{ ... }`.
static ParseResult parseTeamBody(OpAsmParser &parser, Region &body) {
  SmallVector<OpAsmParser::Argument, 1> arguments;
  if (succeeded(parser.parseOptionalLParen())) {
    OpAsmParser::Argument &copy = arguments.emplace_back();
    if (parser.parseArgument(copy) || parser.parseRParen())
      return failure();
    copy.type = parser.getBuilder().getIndexType();
  }
  if (parser.parseRegion(body, arguments))
    return failure();
  if (body.empty())
    body.emplaceBlock();
  return success();
}

static void printTeamBody(OpAsmPrinter &printer, Operation *, Region &body) {
  if (body.getNumArguments()) {
    printer << "(";
    llvm::interleaveComma(body.getArguments(), printer, [&](BlockArgument arg) {
      printer.printRegionArgument(arg, {}, /*omitType=*/true);
    });
    printer << ") ";
  }
  printer.printRegion(body, /*printEntryBlockArgs=*/false);
}

/// The type of a queue or shelf, which is the list of its values' types.
template <typename ListType>
static ParseResult parseListType(OpAsmParser &parser,
                                 SmallVectorImpl<Type> &values, Type &list) {
  ListType type;
  if (parser.parseCustomTypeWithFallback(type))
    return failure();
  list = type;
  llvm::append_range(values, type.getTypes());
  return success();
}

static ParseResult parseQueueTypes(OpAsmParser &parser,
                                   SmallVectorImpl<Type> &values, Type &queue) {
  return parseListType<QueueType>(parser, values, queue);
}

static ParseResult parseShelfTypes(OpAsmParser &parser,
                                   SmallVectorImpl<Type> &values, Type &shelf) {
  return parseListType<ShelfType>(parser, values, shelf);
}

static void printShelfTypes(OpAsmPrinter &printer, Operation *, TypeRange,
                            Type shelf) {
  printer.printStrippedAttrOrType(cast<ShelfType>(shelf));
}

static void printQueueTypes(OpAsmPrinter &printer, Operation *, TypeRange,
                            Type queue) {
  printer.printStrippedAttrOrType(cast<QueueType>(queue));
}

/// A dimension in parentheses. (The attribute's own format begins with a
/// space.)
static ParseResult parseDimension(OpAsmParser &parser,
                                  DimensionAttr &dimension) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Dimension> value = symbolizeDimension(keyword);
  if (!value)
    return parser.emitError(loc) << "expected rows or cols, got " << keyword;
  dimension = DimensionAttr::get(parser.getContext(), *value);
  return success();
}

static void printDimension(OpAsmPrinter &printer, Operation *,
                           DimensionAttr dimension) {
  printer << stringifyDimension(dimension.getValue());
}

#define GET_OP_CLASSES
#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Caches and tiles
//===----------------------------------------------------------------------===//

/// Whether what a type states of its rows (`CacheRows`) fits its tensors; else
/// says at `op` what does not.
static LogicalResult verifyRows(Operation *op, CacheLayout cache) {
  CacheRows rows = cache.getRows();
  if (rows.byPlace)
    return success();
  auto expect = [&](bool holds, StringRef what) -> LogicalResult {
    if (holds)
      return success();
    return op->emitOpError()
           << "is of " << cache
           << ", which states where its rows are; expected " << what;
  };
  if (failed(expect(!(rows.offsets && (rows.table || rows.lengths)),
                    "offsets, or a table and lengths")) ||
      failed(expect(cache.getLeadingDims().size() == (rows.offsets ? 1 : 2),
                    rows.offsets
                        ? "one leading dimension, of rows"
                        : "two leading dimensions, blocks and rows")) ||
      failed(
          expect(rows.table || !cache.getRun(), "a table for runs of tokens")))
    return failure();
  SmallVector<CacheTensor> indices = cache.getIndexTensors();
  auto verifyIndex = [&](std::optional<unsigned> index, size_t rank,
                         StringRef what) {
    return expect(!index || (*index < indices.size() &&
                             indices[*index].dims.size() == rank),
                  what);
  };
  if (failed(verifyIndex(rows.table, cache.getRun() ? 2 : 1,
                         cache.getRun()
                             ? "a table of two dimensions among its tensors"
                             : "a table of one dimension among its tensors")) ||
      failed(verifyIndex(rows.lengths, 1,
                         "lengths of one dimension among its tensors")) ||
      failed(verifyIndex(rows.offsets, 1,
                         "offsets of one dimension among its tensors")))
    return failure();
  return success();
}

LogicalResult CacheTileOp::verify() {
  CacheLayout cache = getLayout();
  if (failed(verifyRows(*this, cache)))
    return failure();
  TileType tile = getTile().getType();
  if (tile.getElementType() != cache.getElementType())
    return emitOpError() << "expected a tile of " << cache.getElementType()
                         << ", got " << tile.getElementType();
  if (tile.getCols() > cache.getCacheDepth())
    return emitOpError() << "expected a tile of at most cache_depth = "
                         << cache.getCacheDepth() << " columns, got "
                         << tile.getCols();
  if (int64_t page = cache.getRun()) {
    bool small = page % tile.getRows();
    if (small && tile.getPageSize() != page)
      return emitOpError() << "a tile of " << tile.getRows()
                           << " rows spans pages of " << page
                           << ": expected page_size = " << page
                           << " on the tile";
    if (!small && tile.getPageSize() && tile.getPageSize() != page)
      return emitOpError() << "a page of " << page
                           << " holds whole tiles: expected no page_size on "
                              "the tile, or "
                           << page << " where it begins anywhere";
  } else if (tile.getPageSize()) {
    return emitOpError() << "only paged caches have tiles with page_size";
  }
  return success();
}

LogicalResult CacheScaleOp::verify() {
  if (!getLayout().getScaleType())
    return emitOpError() << "expected a cache with scales, got "
                         << getCache().getType();
  return success();
}

/// Whether rows can come in groups of so many.
static LogicalResult verifyGroup(Operation *op, int64_t group) {
  if (group >= 1 && group <= kMostElements)
    return success();
  return op->emitOpError() << "expected a group of 1 to " << kMostElements
                           << " rows, got " << group;
}

LogicalResult DramTileOp::verify() {
  auto tensor = cast<MemRefType>(getTensor().getType());
  int64_t rank = tensor.getRank(), count = getIndices().size();
  if (!isWindow()) {
    if (rank < 3)
      return emitOpError()
             << "expected a tensor [.., rows, heads, head_size], got " << tensor
             << "; of any other, a window: an index for every dimension, and "
                "valid(rows, columns)";
    if (count != rank - 1)
      return emitOpError() << "expected " << rank - 1 << " indices, got "
                           << count;
    if (getRowDim())
      return emitOpError() << "expected row_dim with valid(rows, columns) only";
  } else {
    if (rank < 2)
      return emitOpError() << "expected a tensor [.., rows, columns], got "
                           << tensor;
    if (count != rank)
      return emitOpError() << "expected " << rank
                           << " indices with valid(rows, columns), got "
                           << count;
    if (getRowDimension() < 0 || getRowDimension() > rank - 2)
      return emitOpError() << "expected row_dim from 0 to " << rank - 2
                           << ", got " << getRowDimension();
  }
  TileType tile = getTile().getType();
  if (tile.getElementType() != tensor.getElementType())
    return emitOpError() << "expected a tile of " << tensor.getElementType();
  if (failed(verifyGroup(*this, getGroup())))
    return failure();
  int64_t group = getGroup();
  if (group > 1 && isWindow() && getRowDimension() != rank - 3)
    return emitOpError() << "expected row_dim = " << rank - 3
                         << " where a group of heads follows rows, got "
                         << getRowDimension();
  if (MemRefType numbers =
          getNumbers() ? cast<MemRefType>(getNumbers().getType()) : nullptr) {
    if (!numbers.getLayout().isIdentity())
      return emitOpError() << "expected numbers of rows side by side, got "
                           << numbers;
    if (group > 1)
      return emitOpError() << "has a group of " << group
                           << " rows: expected none where rows are gathered";
    if (tile.getPageSize() != 1)
      return emitOpError()
             << "gathers rows: expected page_size = 1 on the tile";
  } else if (group == 1 && tile.getPageSize()) {
    return emitOpError() << "only paged caches have tiles with page_size, and "
                            "rows that are gathered";
  }
  if (group > 1 && tile.getPageSize() != group)
    return emitOpError() << "has a group of " << group
                         << " rows: expected page_size = " << group
                         << " on the tile";
  int64_t cols = tensor.getShape().back();
  if (!isWindow() && !ShapedType::isDynamic(cols) && tile.getCols() > cols)
    return emitOpError() << "expected a tile of at most " << cols
                         << " columns, got " << tile.getCols();
  return success();
}

void KeyRangeOp::build(OpBuilder &b, OperationState &state, Value row,
                       Value queries, Value keys, int64_t BM, MaskAttr mask,
                       int64_t group, Value from) {
  build(b, state, row, queries, keys, from, BM, mask, group,
        /*descending=*/false, /*per_group=*/false);
}

LogicalResult KeyRangeOp::verify() {
  if (int64_t(getBM()) <= 0)
    return emitOpError() << "expected a positive BM, got " << int64_t(getBM());
  if (getPerGroup()) {
    auto team = getOperation()->getParentOfType<TeamOp>();
    if (!team || team.isMover())
      return emitOpError()
             << "has per_group outside of a team that multiplies, "
                "whose groups it speaks of";
    if (getDescending())
      return emitOpError()
             << "has descending and per_group: the first asks for the second";
  }
  return verifyGroup(*this, getGroup());
}

bool kvbuf::isFloat8(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8;
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

LogicalResult FragmentSliceOp::verify() {
  FragmentType source = getSource().getType(), part = getFragment().getType();
  if (source.getRole() != part.getRole() ||
      source.getElementType() != part.getElementType())
    return emitOpError() << "expected the source's role and element type";
  if (source.getLayout() != part.getLayout())
    return emitOpError() << "expected the source's layout";
  if (int64_t(getRow()) < 0 || int64_t(getCol()) < 0 ||
      int64_t(getRow()) + part.getRows() > source.getRows() ||
      int64_t(getCol()) + part.getCols() > source.getCols())
    return emitOpError() << "part [" << getRow() << ", " << getCol() << "] of "
                         << part.getRows() << "x" << part.getCols()
                         << " leaves " << source;
  return success();
}

OpFoldResult FragmentSliceOp::fold(FoldAdaptor) {
  if (getSource().getType() == getFragment().getType())
    return getSource();
  return {};
}

LogicalResult MmaOp::verify() {
  FragmentType a = getA().getType(), b = getB().getType(),
               acc = getAcc().getType();
  if (a.getRole() != Role::A || b.getRole() != Role::B ||
      acc.getRole() != Role::Acc)
    return emitOpError() << "expected roles a, b and acc, got "
                         << stringifyRole(a.getRole()) << ", "
                         << stringifyRole(b.getRole()) << " and "
                         << stringifyRole(acc.getRole());
  // Matrix units that have 8-bit floats multiply any by any.
  bool areFloat8 = isFloat8(a.getElementType()) && isFloat8(b.getElementType());
  if (a.getElementType() != b.getElementType() && !areFloat8)
    return emitOpError() << "expected operands of one element type";
  int64_t n = getTransposeB() ? b.getRows() : b.getCols();
  int64_t k = getTransposeB() ? b.getCols() : b.getRows();
  int64_t column = getColumn();
  // A block of columns gives a part of the product's, a transposed b all.
  bool fits = getTransposeB() ? column == 0 && n == acc.getCols()
                              : column >= 0 && column + n <= acc.getCols();
  if (a.getRows() != acc.getRows() || !fits || a.getCols() != k) {
    InFlightDiagnostic diag = emitOpError()
                              << "cannot multiply " << a << " by " << b
                              << (getTransposeB() ? " (transposed)" : "")
                              << " into " << acc;
    if (column)
      diag << " from column " << column << " on";
    return diag;
  }
  // A fragment's type does not say which of its dimensions a lane's words run
  // along; the read that it comes from does.
  for (Value source : fragmentSources(getB())) {
    auto load = source.getDefiningOp<FragmentLoadOp>();
    if (!load)
      continue;
    bool turned = !load.contractsRows();
    if (turned == getTransposeB())
      continue;
    InFlightDiagnostic diag = emitOpError();
    if (load.getContracted() ||
        load.getStaged().getType().getParams().isNeutral())
      diag << "multiplies by a fragment that was loaded contracted("
           << (turned ? "cols" : "rows") << ") "
           << (turned ? "without transpose_b" : "with transpose_b")
           << "; expected contracted(" << (turned ? "rows" : "cols") << ") or "
           << (turned ? "transpose_b" : "no transpose_b");
    else if (turned)
      diag << "multiplies by a fragment of a k buffer, whose rows are columns "
              "of the product, without transpose_b; expected transpose_b, or a "
              "fragment of a v buffer";
    else
      diag << "multiplies by a fragment of a v buffer, whose rows are "
              "contracted, with transpose_b; expected no transpose_b, or a "
              "fragment of a k buffer";
    diag.attachNote(load.getLoc()) << "the fragment is loaded here";
    return diag;
  }
  return verifyProductLayouts(*this, a.getLayout(), b.getLayout(),
                              acc.getLayout(), getTransposeB());
}

LogicalResult FragmentConvertOp::verify() {
  FragmentType source = getSource().getType(), result = getFragment().getType();
  if (source.getRows() != result.getRows() ||
      source.getCols() != result.getCols())
    return emitOpError() << "expected fragments of one shape, got " << source
                         << " and " << result;
  return success();
}

/// Whether a number is finite and above 0.
static bool isPositive(const APFloat &x) {
  return x.isFinite() && !x.isNegative() && !x.isZero();
}

/// Scores are accumulators.
static LogicalResult verifyScores(Operation *op, FragmentType scores) {
  if (scores.getRole() != Role::Acc)
    return op->emitOpError()
           << "expected role acc, got " << stringifyRole(scores.getRole());
  return success();
}

LogicalResult SoftcapOp::verify() {
  if (!isPositive(getCap()))
    return emitOpError() << "expected a finite cap above 0";
  if (!getScale().isFinite())
    return emitOpError() << "expected a finite scale";
  return verifyScores(*this, getScores().getType());
}

LogicalResult FragmentScaleOp::verify() {
  if (!getFactor().isFinite())
    return emitOpError() << "expected a finite factor";
  return success();
}

LogicalResult MaskOp::verify() {
  if (getSeldom() && (getMask().boundsLeft() || getMask().boundsRight()))
    return emitOpError() << "is seldom needed, and has the mask " << getMask()
                         << ", which hides keys of any tile; expected one that "
                            "hides none";
  if (failed(verifyGroup(*this, getGroup())))
    return failure();
  return verifyScores(*this, getScores().getType());
}

/// Whether `row` has a value for each row of `acc`.
static LogicalResult verifyRowValues(Operation *op, FragmentType acc,
                                     FragmentType row) {
  if (acc.getRole() != Role::Acc || row.getRole() != Role::Row ||
      acc.getRows() != row.getRows())
    return op->emitOpError() << "expected an accumulator and a row value for "
                                "each of its rows, got "
                             << acc << " and " << row;
  return success();
}

LogicalResult RescaleOp::verify() {
  return verifyRowValues(*this, getAcc().getType(), getFactor().getType());
}

LogicalResult SoftmaxFinishOp::verify() {
  if (!isPositive(getScale()))
    return emitOpError() << "expected a finite scale above 0";
  return verifyRowValues(*this, getAcc().getType(), getMax().getType());
}

LogicalResult LaneMmaOp::verify() {
  if (getShape().size() != 3 ||
      llvm::any_of(getShape(), [](int64_t d) { return d <= 0; }))
    return emitOpError() << "expected shape of three positive sizes M, N, K";
  return success();
}

LogicalResult AnyNegativeOp::verify() {
  FragmentType type = getRows().getType();
  if (type.getRole() == Role::Row && type.getElementType().isF32())
    return success();
  return emitOpError() << "has rows of " << type
                       << ", expected a fragment of role 'row' and type f32";
}

LogicalResult OnlineSoftmaxOp::verify() {
  if (!isPositive(getScale()))
    return emitOpError() << "expected a finite scale above 0: the maximum is "
                            "taken before the scores are scaled";
  FragmentType s = getScores().getType(), p = getP().getType(),
               m = getMax().getType();
  bool isOperand = p.getRole() == Role::A,
       isWide = p.getRole() == Role::Acc && p.getElementType().isF32();
  if (s.getRole() != Role::Acc || (!isOperand && !isWide) ||
      m.getRole() != Role::Row)
    return emitOpError() << "expected roles acc, row and a, or acc of f32 for "
                            "p that is not rounded yet";
  if (s.getRows() != p.getRows() || s.getCols() != p.getCols() ||
      m.getRows() != s.getRows())
    return emitOpError()
           << "expected scores and p of one shape and a row value "
              "for each of their rows";
  // What a power of two multiplies keeps its bits.
  if (float gain = gainOfWeights(); !(gain >= 0x1p-64f && gain <= 0x1p64f) ||
                                    std::ilogb(gain) < -64 ||
                                    gain != std::ldexp(1.0f, std::ilogb(gain)))
    return emitOpError() << "expected a gain that is a power of two, got "
                         << gain;
  return success();
}

/// Whether scores are a product's times what `kvbuffer.fragment_fit` or
/// `kvbuffer.staged_fit` leaves to each row, which is a positive number.
static RescaleOp productWithFit(Value scores) {
  auto product = scores.getDefiningOp<RescaleOp>();
  if (!product || product.getAddend() ||
      !isa_and_nonnull<FragmentFitOp, StagedFitOp>(
          product.getFactor().getDefiningOp()))
    return nullptr;
  return product;
}

namespace {
/// A positive factor leaves -inf as it is: of scores that are hidden first, a
/// softmax takes the factor with its own scale.
struct MaskBeforeFit : OpRewritePattern<OnlineSoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(OnlineSoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    auto mask = op.getScores().getDefiningOp<MaskOp>();
    RescaleOp product = mask && mask->hasOneUse()
                            ? productWithFit(mask.getScores())
                            : RescaleOp();
    if (!product || !product->hasOneUse())
      return failure();
    rewriter.modifyOpInPlace(
        mask, [&] { mask.getScoresMutable().assign(product.getAcc()); });
    rewriter.setInsertionPointAfter(mask);
    auto scaled = RescaleOp::create(rewriter, product.getLoc(),
                                    mask.getResult(), product.getFactor());
    rewriter.modifyOpInPlace(
        op, [&] { op.getScoresMutable().assign(scaled.getResult()); });
    rewriter.eraseOp(product);
    return success();
  }
};

/// Whether a product is added to finite numbers: to those that it begins with,
/// or to what products of the same accumulators have made of them. (What a
/// block's argument is, others answer for.)
static bool isOfFinite(Value acc) {
  while (acc) {
    if (auto fill = acc.getDefiningOp<FragmentFillOp>())
      return fill.getValue().isFinite();
    if (auto product = acc.getDefiningOp<MmaOp>())
      acc = product.getAcc();
    else if (auto wait = acc.getDefiningOp<MmaWaitOp>())
      acc = wait.getPending();
    else if (auto start = acc.getDefiningOp<MmaStartOp>())
      acc = start.getAcc();
    else
      return isa<BlockArgument>(acc);
  }
  return true;
}

/// Scores that no mask has touched are finite: the guard for rows without a key
/// goes away.
struct DropMaskedFlag : OpRewritePattern<OnlineSoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(OnlineSoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    RescaleOp product = productWithFit(op.getScores());
    Value scores = product ? product.getAcc() : op.getScores();
    if (!op.getMasked() ||
        !isa_and_nonnull<MmaOp, MmaWaitOp, SoftcapOp, FragmentScaleOp>(
            scores.getDefiningOp()))
      return failure();
    while (auto scaled = scores.getDefiningOp<FragmentScaleOp>())
      scores = scaled.getSource();
    if (isa_and_nonnull<MmaOp, MmaWaitOp>(scores.getDefiningOp()) &&
        !isOfFinite(scores))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.setMasked(false); });
    return success();
  }
};
} // namespace

void OnlineSoftmaxOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                  MLIRContext *context) {
  patterns.add<DropMaskedFlag, MaskBeforeFit>(context);
}
