//===- KVBufferTypes.cpp - Types of the kvbuffer dialect --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvbuf;

#define GET_TYPEDEF_CLASSES
#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferTypes.cpp.inc"

void KVBufferDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferTypes.cpp.inc"
      >();
}

/// Parses `64x128xbf16`: exactly two static sizes and an element type.
static ParseResult parseShape(AsmParser &parser, int64_t &rows, int64_t &cols,
                              Type &elementType) {
  SmallVector<int64_t, 2> dims;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(dims, /*allowDynamic=*/false) ||
      parser.parseType(elementType))
    return failure();
  if (dims.size() != 2 || dims[0] <= 0 || dims[1] <= 0)
    return parser.emitError(loc,
                            "expected two positive sizes, as in 64x128xbf16");
  rows = dims[0];
  cols = dims[1];
  return success();
}

/// Parses an optional `, layout`.
static ParseResult parseLayout(AsmParser &parser,
                               FragmentLayoutInterface &layout) {
  if (failed(parser.parseOptionalComma()))
    return success();
  SMLoc loc = parser.getCurrentLocation();
  Attribute attribute;
  if (parser.parseAttribute(attribute))
    return failure();
  layout = dyn_cast<FragmentLayoutInterface>(attribute);
  if (!layout)
    return parser.emitError(loc)
           << "expected the layout of a fragment, as #kvbuffer.mma<...>, got "
           << attribute;
  return success();
}

Type TileType::parse(AsmParser &parser) {
  int64_t rows, cols, pageSize = 0;
  Type elementType;
  if (parser.parseLess() || parseShape(parser, rows, cols, elementType))
    return {};
  if (succeeded(parser.parseOptionalComma()))
    if (parser.parseKeyword("page_size") || parser.parseEqual() ||
        parser.parseInteger(pageSize))
      return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<TileType>(parser.getContext(), rows, cols,
                                     elementType, pageSize);
}

LogicalResult TileType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t rows, int64_t cols, Type elementType,
                               int64_t pageSize) {
  if (!elementType.isIntOrFloat())
    return emitError() << "a tile's elements must be numbers, got "
                       << elementType;
  if (pageSize < 0 || (pageSize && pageSize != rows && pageSize % rows == 0))
    return emitError() << "a tile's page_size must be positive and no multiple "
                          "of its "
                       << rows << " rows, got " << pageSize
                       << "; pages that hold whole tiles need none";
  return success();
}

void TileType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getCols() << 'x' << getElementType();
  if (getPageSize())
    printer << ", page_size = " << getPageSize();
  printer << '>';
}

Type FragmentType::parse(AsmParser &parser) {
  int64_t rows, cols;
  Type elementType;
  StringRef keyword;
  if (parser.parseLess() || parseShape(parser, rows, cols, elementType) ||
      parser.parseComma())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return {};
  std::optional<Role> role = symbolizeRole(keyword);
  if (!role) {
    parser.emitError(loc, "expected a role: a, b, acc or row");
    return {};
  }
  FragmentLayoutInterface layout;
  if (parseLayout(parser, layout) || parser.parseGreater())
    return {};
  return parser.getChecked<FragmentType>(parser.getContext(), rows, cols,
                                         elementType, *role, layout);
}

LogicalResult FragmentType::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t rows, int64_t cols, Type elementType,
                                   Role role, FragmentLayoutInterface layout) {
  // Far more than the registers of any block hold. Lanes have an instruction
  // for each few elements: a fragment of many more takes all memory, or hours.
  constexpr int64_t most = int64_t(1) << 21;
  if (cols > most / rows)
    return emitError() << "a fragment has at most " << most << " elements, got "
                       << rows << "x" << cols;
  if (!elementType.isIntOrFloat())
    return emitError() << "a fragment's elements must be numbers, got "
                       << elementType;
  if (role == Role::Row && cols != 1)
    return emitError() << "a fragment of role row has 1 column, got " << cols;
  if (layout && (role == Role::Row) != isa<SliceLayoutAttr>(layout))
    return emitError() << "a fragment of role " << stringifyRole(role)
                       << (role == Role::Row
                               ? " has the layout of a slice, got "
                               : " has no layout of a slice, got ")
                       << layout;
  return success();
}

FragmentType FragmentType::withLayout(FragmentLayoutInterface layout) const {
  return get(getContext(), getRows(), getCols(), getElementType(), getRole(),
             layout);
}

FragmentType FragmentType::withShape(int64_t rows, int64_t cols) const {
  return get(getContext(), rows, cols, getElementType(), getRole(),
             getLayout());
}

void FragmentType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getCols() << 'x' << getElementType()
          << ", " << stringifyRole(getRole());
  if (getLayout())
    printer << ", " << getLayout();
  printer << '>';
}

Type StagedType::parse(AsmParser &parser) {
  if (parser.parseLess())
    return {};
  FailureOr<KVBufferAttr> params = FieldParser<KVBufferAttr>::parse(parser);
  if (failed(params))
    return {};
  int64_t rows = params->getBN(), cols = params->getSmemCols(), row = 0,
          col = 0;
  if (succeeded(parser.parseOptionalComma())) {
    SmallVector<int64_t, 2> size;
    if (parser.parseDimensionList(size, /*allowDynamic=*/false,
                                  /*withTrailingX=*/false) ||
        parser.parseKeyword("at") || parser.parseLSquare() ||
        parser.parseInteger(row) || parser.parseComma() ||
        parser.parseInteger(col) || parser.parseRSquare())
      return {};
    if (size.size() != 2) {
      parser.emitError(parser.getNameLoc(),
                       "expected two sizes of a view, as in 64x128");
      return {};
    }
    rows = size[0];
    cols = size[1];
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<StagedType>(parser.getContext(), *params, rows, cols,
                                       row, col);
}

LogicalResult StagedType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 KVBufferAttr params, int64_t rows,
                                 int64_t cols, int64_t row, int64_t col) {
  if (rows > 0 && cols > 0 && row >= 0 && col >= 0 &&
      row <= params.getBN() - rows && col <= params.getSmemCols() - cols)
    return success();
  return emitError() << "a view of " << rows << "x" << cols << " at [" << row
                     << ", " << col << "] leaves the slot of " << params.getBN()
                     << "x" << params.getSmemCols();
}

void StagedType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printStrippedAttrOrType(getParams());
  if (!isWhole())
    printer << ", " << getRows() << 'x' << getCols() << " at [" << getRow()
            << ", " << getCol() << ']';
  printer << '>';
}

Type PendingType::parse(AsmParser &parser) {
  int64_t rows, cols;
  Type elementType;
  FragmentLayoutInterface layout;
  if (parser.parseLess() || parseShape(parser, rows, cols, elementType) ||
      parseLayout(parser, layout) || parser.parseGreater())
    return {};
  return PendingType::get(parser.getContext(), rows, cols, elementType, layout);
}

void PendingType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getCols() << 'x' << getElementType();
  if (getLayout())
    printer << ", " << getLayout();
  printer << '>';
}

FragmentType PendingType::getFragment() const {
  return FragmentType::get(getContext(), getRows(), getCols(), getElementType(),
                           Role::Acc, getLayout());
}

Type CacheType::parse(AsmParser &parser) {
  StringRef keyword;
  Type elementType;
  int64_t heads, headSize;
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return {};
  std::optional<CacheKind> kind = symbolizeCacheKind(keyword);
  if (!kind) {
    parser.emitError(loc)
        << "expected a kind of cache: dense, ragged, continuous or paged";
    return {};
  }
  if (parser.parseComma() || parser.parseType(elementType) ||
      parser.parseComma() || parser.parseKeyword("heads") ||
      parser.parseEqual() || parser.parseInteger(heads) ||
      parser.parseComma() || parser.parseKeyword("head_size") ||
      parser.parseEqual() || parser.parseInteger(headSize))
    return {};
  std::optional<int64_t> pageSize, cacheDepth, headDimOffset, granularity;
  Type scaleType;
  RowAttr row;
  while (succeeded(parser.parseOptionalComma())) {
    loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return {};
    std::optional<int64_t> *value =
        llvm::StringSwitch<std::optional<int64_t> *>(keyword)
            .Case("page_size", &pageSize)
            .Case("cache_depth", &cacheDepth)
            .Case("head_dim_offset", &headDimOffset)
            .Case("granularity", &granularity)
            .Default(nullptr);
    bool isScale = keyword == "scale", isRow = keyword == "row";
    if ((!value && !isScale && !isRow) || (value && *value) ||
        (isScale && scaleType) || (isRow && row)) {
      parser.emitError(loc)
          << (value || isScale || isRow ? "repeated" : "unknown")
          << " parameter '" << keyword
          << "', expected page_size, cache_depth, head_dim_offset, scale, "
             "granularity or row, each at most once";
      return {};
    }
    if (parser.parseEqual())
      return {};
    if (isRow) {
      FailureOr<RowAttr> parsed = FieldParser<RowAttr>::parse(parser);
      if (failed(parsed))
        return {};
      row = *parsed;
      continue;
    }
    if (isScale) {
      if (parser.parseType(scaleType))
        return {};
      continue;
    }
    if (value == &granularity) {
      if (succeeded(parser.parseOptionalKeyword("tensor"))) {
        granularity = kPerTensor;
        continue;
      }
      if (succeeded(parser.parseOptionalKeyword("head"))) {
        granularity = kPerHead;
        continue;
      }
      loc = parser.getCurrentLocation();
      int64_t elements = 0;
      if (OptionalParseResult number = parser.parseOptionalInteger(elements);
          number.has_value() && failed(*number))
        return {};
      if (elements <= 0) {
        parser.emitError(loc) << "expected granularity = tensor, head or a "
                                 "positive number of elements";
        return {};
      }
      granularity = elements;
      continue;
    }
    if (parser.parseInteger(value->emplace()))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<CacheType>(
      parser.getContext(), *kind, elementType, heads, headSize,
      pageSize.value_or(0),
      cacheDepth.value_or(row ? row.getReach() : headSize),
      headDimOffset.value_or(0), scaleType, granularity.value_or(kPerTensor),
      row);
}

void CacheType::print(AsmPrinter &printer) const {
  printer << '<' << stringifyCacheKind(getKind()) << ", " << getElementType()
          << ", heads = " << getHeads() << ", head_size = " << getHeadSize();
  if (getPageSize())
    printer << ", page_size = " << getPageSize();
  if (getCacheDepth() != (getRow() ? getRow().getReach() : getHeadSize()))
    printer << ", cache_depth = " << getCacheDepth();
  if (getHeadDimOffset())
    printer << ", head_dim_offset = " << getHeadDimOffset();
  if (getScaleType()) {
    printer << ", scale = " << getScaleType() << ", granularity = ";
    if (getGranularity() == kPerTensor)
      printer << "tensor";
    else if (getGranularity() == kPerHead)
      printer << "head";
    else
      printer << getGranularity();
  }
  if (getRow()) {
    printer << ", row = ";
    printer.printStrippedAttrOrType(getRow());
  }
  printer << '>';
}

/// Checks a cache whose rows are packed.
static LogicalResult verifyPacked(function_ref<InFlightDiagnostic()> emitError,
                                  Type elementType, int64_t headSize,
                                  int64_t cacheDepth, int64_t headDimOffset,
                                  Type scaleType, int64_t granularity,
                                  RowAttr row) {
  if (!isa<BFloat16Type, Float16Type>(elementType))
    return emitError() << "packed rows are widened to bf16 or f16, got "
                       << elementType;
  if (row.getElements() != headSize)
    return emitError() << "expected a row whose parts have head_size = "
                       << headSize << " elements, got " << row.getElements();
  if (cacheDepth != row.getReach() || headDimOffset || granularity > 0)
    return emitError() << "a row says where its bytes and scales are; expected "
                          "no cache_depth and head_dim_offset, and a scale of "
                          "the tensor or of the head at most besides";
  if (scaleType && !isa<Float16Type, BFloat16Type, Float32Type>(scaleType))
    return emitError() << "scales must be f32, bf16 or f16, got " << scaleType;
  return success();
}

LogicalResult CacheType::verify(function_ref<InFlightDiagnostic()> emitError,
                                CacheKind kind, Type elementType, int64_t heads,
                                int64_t headSize, int64_t pageSize,
                                int64_t cacheDepth, int64_t headDimOffset,
                                Type scaleType, int64_t granularity,
                                RowAttr row) {
  if (heads <= 0 || headSize <= 0)
    return emitError() << "a cache needs at least one head and one element per "
                          "head, got heads = "
                       << heads << ", head_size = " << headSize;
  if (!elementType.isIntOrFloat())
    return emitError() << "a cache's elements must be numbers, got "
                       << elementType;
  if (kind == CacheKind::Paged && pageSize <= 0)
    return emitError() << "a paged cache needs page_size, the tokens of a page";
  if (kind != CacheKind::Paged && pageSize != 0)
    return emitError() << "page_size belongs to paged caches, not to "
                       << stringifyCacheKind(kind) << " ones";
  if (row)
    return verifyPacked(emitError, elementType, headSize, cacheDepth,
                        headDimOffset, scaleType, granularity, row);
  if (headDimOffset < 0 || headDimOffset > cacheDepth - headSize)
    return emitError() << "columns " << headDimOffset << " to "
                       << headDimOffset + headSize
                       << " do not lie in a row of cache_depth = "
                       << cacheDepth;
  if (!scaleType && granularity != kPerTensor)
    return emitError() << "granularity belongs to caches with scales; expected "
                          "scale = f32 besides";
  if (!scaleType)
    return success();
  if (!isa<Float16Type, BFloat16Type, Float32Type>(scaleType))
    return emitError() << "scales must be f32, bf16 or f16, got " << scaleType;
  if (!isa<FloatType>(elementType) || elementType.getIntOrFloatBitWidth() != 8)
    return emitError() << "a cache with scales has elements of 8-bit floats, "
                          "such as f8E4M3FN, got "
                       << elementType;
  if (granularity < kPerHead || granularity > headSize)
    return emitError() << "a scale stands for at most the " << headSize
                       << " elements of a token's head, got granularity = "
                       << granularity;
  return success();
}
