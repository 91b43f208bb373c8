//===- KVBufferAttributes.cpp - Attributes of the dialect -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NamedParameters.h"
#include "VerifyTile.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrs.cpp.inc"

void KVBufferDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// MmaLayoutAttr, InstructionAttr
//===----------------------------------------------------------------------===//

/// Parses the name of a matrix unit.
static FailureOr<MatrixUnit> parseUnit(AsmParser &parser) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<MatrixUnit> unit = matrixUnit(name);
  if (!unit)
    return parser.emitError(
        loc, "expected a matrix unit: mma_sync, wgmma, mfma or wmma");
  return *unit;
}

Attribute InstructionAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> shape;
  if (parser.parseLess())
    return {};
  FailureOr<MatrixUnit> unit = parseUnit(parser);
  if (failed(unit) || parser.parseComma() || parseValue(parser, shape) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<InstructionAttr>(parser.getContext(), *unit, shape);
}

void InstructionAttr::print(AsmPrinter &printer) const {
  printer << '<' << matrixUnitName(getUnit()) << ", ";
  printValue(printer, getShape());
  printer << '>';
}

LogicalResult
InstructionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        MatrixUnit unit, ArrayRef<int64_t> shape) {
  if (shape.size() != 3 ||
      llvm::any_of(shape, [](int64_t d) { return d <= 0; }))
    return emitError()
           << "expected the shape of an instruction, three positive "
              "sizes M, N, K";
  if (!matrixLayouts(unit, shape[0], shape[1], shape[2]))
    return emitError() << "there is no instruction " << matrixUnitName(unit)
                       << " of shape " << shape[0] << "x" << shape[1] << "x"
                       << shape[2];
  return success();
}

ProductInstruction InstructionAttr::getInstruction() const {
  return {getUnit(), {getShape()[0], getShape()[1], getShape()[2]}};
}

Attribute MmaLayoutAttr::parse(AsmParser &parser, Type) {
  Role operand;
  if (parser.parseLess())
    return {};
  FailureOr<MatrixUnit> unit = parseUnit(parser);
  if (failed(unit) || parser.parseComma() ||
      parseKeyword(parser, operand, "an operand: "))
    return {};
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape, warps, order, columns;
  int64_t group = 1;
  bool transposeB = false, swapped = false;
  Parameter parameters[] = {{"shape", shape, /*required=*/true},
                            {"group", group},
                            {"warps", warps, /*required=*/true},
                            {"transpose_b", transposeB},
                            {"swapped", swapped},
                            {"order", order},
                            {"columns", columns}};
  if (parseParameters(parser, parameters, /*leadingComma=*/true))
    return {};
  if (warps.size() != 2) {
    parser.emitError(loc, "expected warps = [rows, columns]");
    return {};
  }
  return parser.getChecked<MmaLayoutAttr>(parser.getContext(), *unit, operand,
                                          shape, group, warps[0], warps[1],
                                          transposeB, swapped, order, columns);
}

void MmaLayoutAttr::print(AsmPrinter &printer) const {
  printer << '<' << matrixUnitName(getUnit()) << ", "
          << stringifyRole(getOperand());
  printList(printer, "shape", getShape());
  if (getGroup() != 1)
    printer << ", group = " << getGroup();
  printList(printer, "warps", {getWarpRows(), getWarpCols()});
  if (getTransposeB())
    printer << ", transpose_b = true";
  if (getSwapped())
    printer << ", swapped = true";
  if (!getOrder().empty())
    printList(printer, "order", getOrder());
  if (!getColumns().empty())
    printList(printer, "columns", getColumns());
  printer << '>';
}

//===----------------------------------------------------------------------===//
// MaskAttr
//===----------------------------------------------------------------------===//

LogicalResult MaskAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               bool causal, int64_t left, int64_t right) {
  if (left < -1 || right < -1)
    return emitError()
           << "a window reaches 0 or more keys to either side, or -1 "
              "for no limit; got left = "
           << left << ", right = " << right;
  // Positions are sums of lengths and windows.
  constexpr int64_t kMost = int64_t(1) << 62;
  if (left > kMost || right > kMost)
    return emitError() << "a window reaches at most " << kMost
                       << " keys to either side, or -1 for no limit; got left "
                          "= "
                       << left << ", right = " << right;
  return success();
}

LogicalResult
BlockMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      int64_t rows, int64_t keys, ArrayRef<int64_t> lists) {
  if (rows < 1 || keys < 1)
    return emitError()
           << "expected blocks of at least one row and one key, got "
              "rows = "
           << rows << ", keys = " << keys;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (rows > kMost || keys > kMost)
    return emitError() << "expected blocks of at most " << kMost
                       << " rows and keys, got rows = " << rows
                       << ", keys = " << keys;
  if (lists.size() != 2 && lists.size() != 4)
    return emitError()
           << "expected the numbers of 2 captures, of partly visible "
              "blocks, or of 4, of wholly visible ones, too; got "
           << lists.size();
  for (auto [i, number] : llvm::enumerate(lists))
    if (number < 0 || llvm::is_contained(lists.take_front(i), number))
      return emitError() << "expected numbers of different captures, got "
                         << number;
  return success();
}

//===----------------------------------------------------------------------===//
// RowAttr
//===----------------------------------------------------------------------===//

LogicalResult RowPartAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t count, Type element, int64_t at,
                                  Type scale, int64_t granularity,
                                  int64_t scaleAt) {
  // Lanes widen so many elements at a time.
  constexpr int64_t unit = 8;
  auto isFloat8 = [](Type type) {
    return isa<Float8E4M3FNType, Float8E5M2Type, Float8E4M3FNUZType,
               Float8E5M2FNUZType>(type);
  };
  if (!isFloat8(element) && !isa<BFloat16Type, Float16Type>(element))
    return emitError() << "expected a part of bf16, f16 or an 8-bit float, got "
                       << element;
  if (count < unit || count % unit || count > kMostElements)
    return emitError() << "expected a part of a multiple of " << unit
                       << " elements, got " << count;
  int64_t step = unit * element.getIntOrFloatBitWidth() / 8;
  if (at < 0 || at % step || at > kMostElements)
    return emitError() << "expected a part of " << element
                       << " at a multiple of " << step << " bytes, got " << at;
  if (!scale) {
    if (granularity || scaleAt)
      return emitError() << "granularity and scale_at belong to parts with "
                            "scales; expected scale = f32 besides";
    return success();
  }
  if (!isa<Float32Type, BFloat16Type, Float16Type, Float8E8M0FNUType>(scale))
    return emitError() << "expected scales of f32, bf16, f16 or f8E8M0FNU, got "
                       << scale;
  if (granularity < unit || granularity % unit)
    return emitError() << "expected scales of groups of a multiple of " << unit
                       << " elements, got granularity = " << granularity;
  int64_t bytes = scale.getIntOrFloatBitWidth() / 8;
  if (scaleAt < 0 || scaleAt % bytes || scaleAt > kMostElements)
    return emitError() << "expected scales of " << scale << " at a multiple of "
                       << bytes << " bytes, got " << scaleAt;
  return success();
}

/// Bytes of a part's elements, and of its scales.
static int64_t elementBytes(RowPartAttr part) {
  return part.getCount() * part.getElement().getIntOrFloatBitWidth() / 8;
}
static int64_t scaleBytes(RowPartAttr part) {
  if (!part.getScale())
    return 0;
  return llvm::divideCeil(part.getCount(), part.getGranularity()) *
         part.getScale().getIntOrFloatBitWidth() / 8;
}

LogicalResult RowAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              int64_t bytes, ArrayRef<RowPartAttr> parts,
                              int64_t tail, int64_t rows, int64_t stride) {
  if (bytes < 1 || bytes > kMostElements || bytes % 16)
    return emitError() << "expected a row of a multiple of 16 bytes, got "
                       << bytes;
  if (parts.empty())
    return emitError() << "expected a part or more";
  if (tail < 0 ||
      (tail && (rows < 1 || stride % bytes || stride < rows * (bytes + tail))))
    return emitError() << "expected tails of at least a byte, behind rows of "
                          "which each stride, a multiple of "
                       << bytes
                       << " bytes, has room for both; got tail = " << tail
                       << ", rows = " << rows << ", stride = " << stride;
  // Bytes that are taken, in the order of their begin.
  SmallVector<std::pair<int64_t, int64_t>> taken;
  for (RowPartAttr part : parts) {
    taken.push_back({part.getAt(), part.getAt() + elementBytes(part)});
    if (int64_t own = scaleBytes(part))
      taken.push_back({part.getScaleAt(), part.getScaleAt() + own});
  }
  llvm::sort(taken);
  int64_t end = 0;
  for (auto [from, upto] : taken) {
    if (from < end || upto > bytes + tail || (from < bytes && upto > bytes))
      return emitError() << "bytes " << from << " to " << upto
                         << " of a row are taken twice, or do not lie in its "
                         << bytes << " bytes or the " << tail << " of its tail";
    end = upto;
  }
  return success();
}

int64_t RowAttr::getElements() const {
  int64_t count = 0;
  for (RowPartAttr part : getParts())
    count += part.getCount();
  return count;
}

int64_t RowAttr::getReach() const {
  return getBytes() + getTailRows() * getTail();
}

Type RowAttr::getStoredType() const {
  Type first = getParts().front().getElement();
  return first.getIntOrFloatBitWidth() == 8
             ? first
             : Type(Float8E4M3FNType::get(getContext()));
}

//===----------------------------------------------------------------------===//
// KVBufferAttr: parameters
//===----------------------------------------------------------------------===//

/// The rest of the short form, of a slot of `rows` x `cols` elements.
static Attribute parseNeutral(AsmParser &parser, int64_t rows, int64_t cols,
                              Type elementType) {
  int64_t BK = cols, stages = 1, rowDepth = cols, offset = 0, chunk = cols;
  bool fullKV = true;
  SmallVector<int64_t> swizzle;
  Policy policy = Policy::DoubleBuffered;
  Dimension order = Dimension::Rows;
  Parameter parameters[] = {{"BK", BK},
                            {"stages", stages},
                            {"swizzle", swizzle},
                            {"policy", policy},
                            {"order", order},
                            {"cache_depth", rowDepth},
                            {"head_dim_offset", offset},
                            {"full_kv", fullKV},
                            {"reg_chunk_depth", chunk}};
  bool leavesOpen = false;
  if (parseParameters(parser, parameters, /*leadingComma=*/true, &leavesOpen))
    return {};
  // In the order of the parameters.
  int64_t open = 0;
  constexpr KVBufferAttr::Open bits[] = {
      KVBufferAttr::kOpenBK, KVBufferAttr::kOpenStages,
      KVBufferAttr::kOpenSwizzle, KVBufferAttr::kOpenPolicy,
      KVBufferAttr::kOpenOrder};
  for (auto [parameter, bit] : llvm::zip(parameters, bits))
    if (leavesOpen && !parameter.seen)
      open |= bit;
  // Some columns of a block that divide the slot's.
  if (open & KVBufferAttr::kOpenBK)
    BK = cols & -cols;
  return parser.getChecked<KVBufferAttr>(
      parser.getContext(), Operand::Any, elementType, policy,
      ArrayRef<int64_t>(), swizzle, rows, /*WN=*/rows, BK, /*num_threads=*/0,
      /*depth=*/cols, /*kv_num_heads=*/1, fullKV, rowDepth, offset, chunk,
      /*smem_depth=*/BK > 0 ? int64_t(llvm::alignTo(cols, BK)) : cols, stages,
      /*warp_size=*/0, order, open);
}

Attribute KVBufferAttr::parse(AsmParser &parser, Type) {
  Operand operand;
  Policy policy;
  Type elementType;
  if (parser.parseLess())
    return {};
  // A size begins the short form, a word the long one.
  int64_t rows;
  SMLoc loc = parser.getCurrentLocation();
  if (OptionalParseResult first = parser.parseOptionalInteger(rows);
      first.has_value()) {
    SmallVector<int64_t, 2> cols;
    if (failed(*first) || parser.parseXInDimensionList() ||
        parser.parseDimensionList(cols, /*allowDynamic=*/false) ||
        parser.parseType(elementType))
      return {};
    if (cols.size() != 1 || rows <= 0 || cols.front() <= 0) {
      parser.emitError(loc, "expected two positive sizes, as in 64x128xbf16");
      return {};
    }
    return parseNeutral(parser, rows, cols.front(), elementType);
  }
  if (parseKeyword(parser, operand, "an operand: "))
    return {};
  if (operand == Operand::Any) {
    parser.emitError(loc,
                     "a buffer of any operand is described by its slot, as "
                     "in 64x128xbf16");
    return {};
  }
  if (parser.parseComma() || parser.parseType(elementType) ||
      parser.parseComma() || parseKeyword(parser, policy, "a policy: "))
    return {};
  int64_t BN = 0, WN = 0, BK = 0, numThreads = 0, depth = 0, heads = 1,
          cacheDepth = 0, headDimOffset = 0, regChunk = 0, smemDepth = 0,
          stages = 1, warpSize = 0;
  bool fullKV = true;
  Dimension order = Dimension::Rows;
  SmallVector<int64_t> mma, swizzle;
  Parameter parameters[] = {{"mma_shape", mma},
                            {"swizzle", swizzle},
                            {"BN", BN, /*required=*/true},
                            {"WN", WN},
                            {"BK", BK, /*required=*/true},
                            {"num_threads", numThreads},
                            {"depth", depth, /*required=*/true},
                            {"kv_num_heads", heads},
                            {"full_kv", fullKV},
                            {"cache_depth", cacheDepth},
                            {"head_dim_offset", headDimOffset},
                            {"reg_chunk_depth", regChunk},
                            {"smem_depth", smemDepth},
                            {"stages", stages},
                            {"warp_size", warpSize},
                            {"order", order}};
  if (parseParameters(parser, parameters, /*leadingComma=*/true))
    return {};
  // Without an instruction and threads, the schedule says who reads a buffer.
  if (!warpSize && (!mma.empty() || numThreads))
    warpSize = 32;
  if (!WN)
    WN = BN;
  // The seed's defaults: everything about depth follows `depth`.
  if (!cacheDepth)
    cacheDepth = depth;
  if (!regChunk)
    regChunk = depth;
  if (!smemDepth && BK > 0)
    smemDepth = llvm::alignTo(depth, BK);
  return parser.getChecked<KVBufferAttr>(
      parser.getContext(), operand, elementType, policy, mma, swizzle, BN, WN,
      BK, numThreads, depth, heads, fullKV, cacheDepth, headDimOffset, regChunk,
      smemDepth, stages, warpSize, order, /*open=*/0);
}

void KVBufferAttr::print(AsmPrinter &printer) const {
  if (isNeutral()) {
    auto names = [&](Open which, bool isDefault) {
      return getOpen() ? !(getOpen() & which) : !isDefault;
    };
    printer << '<' << getBN() << 'x' << getDepth() << 'x' << getElementType();
    if (names(kOpenBK, getBK() == getDepth()))
      printer << ", BK = " << getBK();
    if (names(kOpenStages, getStages() == 1))
      printer << ", stages = " << getStages();
    if (names(kOpenSwizzle, getSwizzle().empty()))
      printList(printer, "swizzle", getSwizzle());
    if (names(kOpenPolicy, getPolicy() == Policy::DoubleBuffered))
      printer << ", policy = " << stringifyPolicy(getPolicy());
    if (names(kOpenOrder, getOrder() == Dimension::Rows))
      printer << ", order = " << stringifyDimension(getOrder());
    if (getCacheDepth() != getDepth())
      printer << ", cache_depth = " << getCacheDepth();
    if (getHeadDimOffset())
      printer << ", head_dim_offset = " << getHeadDimOffset();
    if (!getFullKv())
      printer << ", full_kv = false";
    if (getRegChunkDepth() != getDepth())
      printer << ", reg_chunk_depth = " << getRegChunkDepth();
    if (getOpen())
      printer << ", open";
    printer << '>';
    return;
  }
  printer << '<' << stringifyOperand(getOperand()) << ", " << getElementType()
          << ", " << stringifyPolicy(getPolicy());
  bool states = !getMmaShape().empty();
  if (states)
    printList(printer, "mma_shape", getMmaShape());
  if (!getSwizzle().empty())
    printList(printer, "swizzle", getSwizzle());
  printer << ", BN = " << getBN();
  if (states || getWN() != getBN())
    printer << ", WN = " << getWN();
  printer << ", BK = " << getBK();
  if (states)
    printer << ", num_threads = " << getNumThreads();
  printer << ", depth = " << getDepth();
  if (getKvNumHeads() != 1)
    printer << ", kv_num_heads = " << getKvNumHeads();
  if (!getFullKv())
    printer << ", full_kv = false";
  if (getCacheDepth() != getDepth())
    printer << ", cache_depth = " << getCacheDepth();
  if (getHeadDimOffset())
    printer << ", head_dim_offset = " << getHeadDimOffset();
  if (getRegChunkDepth() != getDepth())
    printer << ", reg_chunk_depth = " << getRegChunkDepth();
  if (getSmemDepth() != int64_t(llvm::alignTo(getDepth(), getBK())))
    printer << ", smem_depth = " << getSmemDepth();
  printer << ", stages = " << getStages();
  if (states && getWarpSize() != 32)
    printer << ", warp_size = " << getWarpSize();
  if (getOrder() != Dimension::Rows)
    printer << ", order = " << stringifyDimension(getOrder());
  printer << '>';
}

SmallVector<int64_t> kvbuf::swizzleList(const Swizzle &swizzle) {
  SmallVector<int64_t> list{swizzle.bits, swizzle.base, swizzle.shift};
  if (const SwizzleTerm &second = swizzle.second; second.bits)
    list.append({second.bits, second.base, second.shift});
  if (swizzle.unit != Swizzle().unit)
    list.push_back(swizzle.unit);
  return list;
}

std::optional<Swizzle> kvbuf::readSwizzle(ArrayRef<int64_t> list) {
  if (list.size() % 3 > 1 || list.size() > 7 || list.size() == 1)
    return std::nullopt;
  auto termAt = [&](size_t i) -> SwizzleTerm {
    if (list.size() < i + 3)
      return {};
    return {unsigned(list[i]), unsigned(list[i + 1]), unsigned(list[i + 2])};
  };
  SwizzleTerm first = termAt(0);
  return Swizzle{first.bits, first.base, first.shift,
                 list.size() % 3 ? unsigned(list.back()) : Swizzle().unit,
                 termAt(3)};
}

Swizzle KVBufferAttr::getSwizzleOfBlocks() const {
  return *readSwizzle(getSwizzle());
}

/// Whether a term of a swizzle of vectors of `vectorBytes` moves those of a
/// block of `rows` rows of `rowBytes` bytes among themselves, and moves any; an
/// error if not.
static LogicalResult verifyTerm(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> term, int64_t vectorBytes,
                                int64_t rows, int64_t rowBytes) {
  int64_t bits = term[0], base = term[1], shift = term[2];
  if (!bits)
    return success();
  // Bits of a vector's number in its row, and in its block.
  int64_t inRow = llvm::Log2_64(std::max(rowBytes / vectorBytes, int64_t(1)));
  int64_t inBlock = inRow + llvm::Log2_64_Ceil(rows);
  // A block whose rows are no power of two is the front of one whose rows are;
  // its vectors stay in it if they stay in their rows.
  int64_t changeable = llvm::isPowerOf2_64(rows) ? inBlock : inRow;
  if (base + bits <= changeable && base + shift < inBlock)
    return success();
  return emitError() << "swizzle [" << bits << ", " << base << ", " << shift
                     << "] does not fit blocks of " << rows << " rows of "
                     << rowBytes << " bytes: expected base + bits of at most "
                     << changeable << " and base + shift of less than "
                     << inBlock << ", bits of a " << vectorBytes
                     << "-byte vector's number";
}

LogicalResult KVBufferAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, Operand operand,
    Type elementType, Policy policy, ArrayRef<int64_t> mma,
    ArrayRef<int64_t> swizzle, int64_t BN, int64_t WN, int64_t BK,
    int64_t numThreads, int64_t depth, int64_t heads, bool, int64_t cacheDepth,
    int64_t headDimOffset, int64_t regChunk, int64_t smemDepth, int64_t stages,
    int64_t warpSize, Dimension order, int64_t) {
  // Who reads a buffer, and how, the buffer says as a whole, or the schedule:
  // of a neutral one always.
  bool neutral =
      operand == Operand::Any || (mma.empty() && !numThreads && !warpSize);
  if (!elementType.isIntOrFloat() || elementType.getIntOrFloatBitWidth() % 8)
    return emitError() << "elements must be numbers of whole bytes, got "
                       << elementType;
  if (!neutral &&
      (mma.size() != 3 || llvm::any_of(mma, [](int64_t d) { return d <= 0; })))
    return emitError() << "mma_shape must be three positive sizes M, N, K";
  if (!readSwizzle(swizzle))
    return emitError() << "swizzle must be [bits, base, shift], perhaps with "
                          "these of a second term, and with a unit";
  int64_t unit = swizzle.size() % 3 ? swizzle.back() : Swizzle().unit;
  if (unit != 8 && unit != 16)
    return emitError() << "the unit of a swizzle must be of 8 or 16 bytes, got "
                       << unit;
  // Another one would not be a permutation, or not be defined.
  SmallVector<ArrayRef<int64_t>, 2> terms;
  for (size_t i = 0; i + 3 <= swizzle.size(); i += 3)
    terms.push_back(swizzle.slice(i, 3));
  for (ArrayRef<int64_t> term : terms)
    if (llvm::any_of(term, [](int64_t x) { return x < 0 || x > 16; }) ||
        (term[0] && !term[2]))
      return emitError() << "swizzle must be three numbers of 0 to 16 whose "
                            "shift is not 0, got ["
                         << term[0] << ", " << term[1] << ", " << term[2]
                         << "]";
  // A slot's rows are those of a tile: see ScheduleRules.cpp.
  if (BN <= 0 || (!llvm::isPowerOf2_64(BN) && BN % 16))
    return emitError() << "BN must be a power of two or a multiple of 16, got "
                       << BN;
  // Rows of words that are one block and lie as they are may have any width.
  bool isOneBlock = operand == Operand::Any && elementType.isF32() &&
                    swizzle.empty() && smemDepth == BK && depth == BK;
  for (auto [name, value] :
       {std::pair<StringRef, int64_t>{"BK", isOneBlock && BK > 0 ? 1 : BK},
        {"warp_size", neutral ? 1 : warpSize}})
    if (value <= 0 || !llvm::isPowerOf2_64(value))
      return emitError() << name << " must be a power of two, got " << value;
  for (ArrayRef<int64_t> term : terms)
    if (failed(verifyTerm(emitError, term, unit, BN,
                          BK * elementType.getIntOrFloatBitWidth() / 8)))
      return failure();
  if (WN <= 0 || BN % WN)
    return emitError() << "WN must divide BN = " << BN << ", got " << WN;
  if (!neutral && (numThreads <= 0 || numThreads % warpSize))
    return emitError() << "num_threads must be a multiple of the wave's "
                       << warpSize << " lanes, got " << numThreads;
  if (depth <= 0 || heads <= 0 || stages < 1)
    return emitError() << "depth, kv_num_heads and stages must be positive";
  if (smemDepth < depth || smemDepth % BK)
    return emitError() << "smem_depth must be a multiple of BK = " << BK
                       << " that holds depth = " << depth << ", got "
                       << smemDepth;
  if (headDimOffset < 0 || headDimOffset + depth > cacheDepth)
    return emitError() << "columns " << headDimOffset << " to "
                       << headDimOffset + depth
                       << " do not lie in a row of cache_depth = "
                       << cacheDepth;
  if (regChunk <= 0 || regChunk > smemDepth)
    return emitError() << "reg_chunk_depth must be in 1.." << smemDepth
                       << ", got " << regChunk;
  // What lanes put into a ring they turn themselves; a matrix unit that reads
  // LDS wants it of bytes alone.
  bool areBytes =
      elementType.isIntOrFloat() && elementType.getIntOrFloatBitWidth() == 8;
  if (order == Dimension::Cols && policy == Policy::DoubleBuffered && !areBytes)
    return emitError()
           << "order = cols needs policy = register_staged: elements "
              "are turned in registers on their way";
  // A strip goes where the one before was.
  if (policy == Policy::Streaming && stages != 1)
    return emitError() << "policy streaming has one slot, through which strips "
                          "go one after the other; expected stages = 1, got "
                       << stages;
  return success();
}

//===----------------------------------------------------------------------===//
// KVBufferAttr: derived members (formulas: seed page KVBuffer)
//===----------------------------------------------------------------------===//

int64_t KVBufferAttr::getNumMmas() const {
  return llvm::divideCeil(isTranspose() ? getWN() : getDepth(), getMmaN());
}
int64_t KVBufferAttr::getNumKMmas2() const {
  return llvm::divideCeil(getBK(), getMmaK());
}
int64_t KVBufferAttr::getNumKTiles() const {
  return llvm::divideCeil(isTranspose() ? getDepth() : getWN(), getBK());
}
int64_t KVBufferAttr::getRegKTiles() const {
  return isTranspose() ? llvm::divideCeil(getRegChunkDepth(), getBK())
                       : getNumKTiles();
}
int64_t KVBufferAttr::getNumRepeats() const { return getSmemDepth() / getBK(); }
int64_t KVBufferAttr::getSmemCols() const {
  return getFullKv() ? getSmemDepth() : getBK();
}
int64_t KVBufferAttr::getColumnsOf(int64_t block) const {
  if (getFullKv())
    return getDepth();
  return std::clamp<int64_t>(getDepth() - block * getBK(), 0, getBK());
}
int64_t KVBufferAttr::getSmemStageSize() const {
  return getBN() * getSmemCols();
}
int64_t KVBufferAttr::getStageBytes() const {
  return getSmemStageSize() * (getElementType().getIntOrFloatBitWidth() / 8);
}
int64_t KVBufferAttr::getBytes() const { return getStageBytes() * getStages(); }
int64_t KVBufferAttr::getInputFragSize() const {
  return getMmaK() * getMmaN() / getWarpSize();
}
int64_t KVBufferAttr::getSimdWidth() const {
  return 128 / getElementType().getIntOrFloatBitWidth();
}
int64_t KVBufferAttr::getDmaUnits() const {
  return getFullKv() ? (getBN() / getWarpTileRows()) * getNumRepeats() : 1;
}
int64_t KVBufferAttr::getVmInstrsPerLoad() const {
  return llvm::divideCeil(getDmaUnits(), getNumThreads() / getWarpSize()) * 2;
}
int64_t KVBufferAttr::getRegTileSize() const {
  return getNumMmas() * getNumKMmas2() * getRegKTiles() * getInputFragSize();
}
