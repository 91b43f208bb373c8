//===- KVBufferOps.cpp - Assembly of ops, caches and tiles ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InferTypes.h"
#include "VerifyTile.h"
#include "WorkFormat.h"
#include "mlir/IR/Builders.h"

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

/// Checks that nothing in front of a region uses what is of the region. Names
/// there are looked up late, and may find the region's: where a module is wrong
/// behind it, uses would outlive what they use.
static ParseResult checkUses(OpAsmParser &parser, SMLoc loc, Region &region) {
  auto isInside = [&](Operation *user) {
    for (Region *at = user->getParentRegion(); at; at = at->getParentRegion())
      if (at == &region)
        return true;
    return false;
  };
  auto isOutside = [&](ValueRange values) {
    return llvm::any_of(values, [&](Value value) {
      return !llvm::all_of(value.getUsers(), isInside);
    });
  };
  bool found = false;
  for (Block &block : region) {
    found |= isOutside(block.getArguments());
    block.walk([&](Operation *op) {
      found |= isOutside(op->getResults());
      for (Region &inner : op->getRegions())
        for (Block &of : inner)
          found |= isOutside(of.getArguments());
    });
  }
  if (!found)
    return success();
  for (Block &block : region)
    block.dropAllDefinedValueUses();
  return parser.emitError(
      loc,
      "a value of this region is used in front of it, where there is none");
}

static ParseResult parseOwnRegion(OpAsmParser &parser, Region &region) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseRegion(region) || checkUses(parser, loc, region))
    return failure();
  if (region.empty())
    region.emplaceBlock();
  return success();
}

static void printOwnRegion(OpAsmPrinter &printer, Operation *, Region &region) {
  printer.printRegion(region);
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
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseRegion(body, arguments) || checkUses(parser, loc, body))
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

LogicalResult kvbuf::verifyGroup(Operation *op, int64_t group) {
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
