//===- KVBufferAttributes.cpp - Attributes of the kvbuffer dialect *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/DialectImplementation.h"
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
// Named parameters
//===----------------------------------------------------------------------===//

namespace {
/// One `name = value` of an attribute: an integer, a flag, a list, or a keyword
/// (`setKeyword` says whether it knows the word, `keywords` names those it
/// does).
struct Parameter {
  StringRef name;
  int64_t *integer = nullptr;
  bool *flag = nullptr;
  SmallVector<int64_t> *list = nullptr;
  std::function<bool(StringRef)> setKeyword = {};
  StringRef keywords = {};
  bool required = false;
  bool seen = false;
};
} // namespace

/// Parses `, name = value` until `>`; every name at most once, in any order.
static ParseResult parseParameters(AsmParser &parser,
                                   MutableArrayRef<Parameter> parameters,
                                   bool leadingComma) {
  bool first = !leadingComma;
  while (failed(parser.parseOptionalGreater())) {
    if (!first && parser.parseComma())
      return failure();
    first = false;
    StringRef name;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    auto *it = llvm::find_if(
        parameters, [&](const Parameter &p) { return p.name == name; });
    if (it == parameters.end() || it->seen) {
      InFlightDiagnostic diag =
          parser.emitError(loc)
          << (it == parameters.end() ? "unknown" : "repeated") << " parameter '"
          << name << "', expected one of ";
      llvm::interleaveComma(parameters, diag,
                            [&](const Parameter &p) { diag << p.name; });
      return diag;
    }
    it->seen = true;
    if (it->integer && parser.parseInteger(*it->integer))
      return failure();
    if (it->flag) {
      StringRef value;
      SMLoc valueLoc = parser.getCurrentLocation();
      if (parser.parseKeyword(&value))
        return failure();
      if (value != "true" && value != "false")
        return parser.emitError(valueLoc, "expected true or false");
      *it->flag = value == "true";
    }
    if (it->setKeyword) {
      StringRef value;
      SMLoc valueLoc = parser.getCurrentLocation();
      if (parser.parseKeyword(&value))
        return failure();
      if (!it->setKeyword(value))
        return parser.emitError(valueLoc) << "expected " << it->keywords;
    }
    if (it->list &&
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
          return parser.parseInteger(it->list->emplace_back());
        }))
      return failure();
  }
  for (const Parameter &p : parameters)
    if (p.required && !p.seen)
      return parser.emitError(parser.getNameLoc())
             << "missing parameter '" << p.name << "'";
  return success();
}

/// The setter of a keyword parameter of an enumeration.
template <typename E>
static std::function<bool(StringRef)>
setEnum(E &out, std::optional<E> (*symbolize)(StringRef)) {
  return [&out, symbolize](StringRef text) {
    std::optional<E> value = symbolize(text);
    if (value)
      out = *value;
    return value.has_value();
  };
}

static void printList(AsmPrinter &printer, StringRef name,
                      ArrayRef<int64_t> values) {
  printer << ", " << name << " = [";
  llvm::interleaveComma(values, printer);
  printer << ']';
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
  return success();
}

//===----------------------------------------------------------------------===//
// ScheduleAttr
//===----------------------------------------------------------------------===//

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  int64_t BM = 0, BN = 0, BK = 0, stages = 2, warps = 4;
  SmallVector<int64_t> mma;
  bool swap = false, qRegs = false, overlap = false, splitMasks = true,
       sumsInLds = false, overlapProducts = false, pingPong = false,
       joinTiles = false, stageOutput = false, lazyRescale = false;
  int64_t qStages = 1;
  int64_t producers = 0, producerRegisters = 0, consumerRegisters = 0, xcds = 1;
  TileOrder tiles = TileOrder::Grid;
  Path kPath = Path::Direct, vPath = Path::Direct;
  Parameter parameters[] = {
      {.name = "BM", .integer = &BM, .required = true},
      {.name = "BN", .integer = &BN, .required = true},
      {.name = "BK", .integer = &BK, .required = true},
      {.name = "stages", .integer = &stages},
      {.name = "warps", .integer = &warps},
      {.name = "mma_shape", .list = &mma, .required = true},
      {.name = "swap_a_b", .flag = &swap},
      {.name = "q_in_regs", .flag = &qRegs},
      {.name = "overlap", .flag = &overlap},
      {.name = "split_masks", .flag = &splitMasks},
      {.name = "sums_in_lds", .flag = &sumsInLds},
      {.name = "producers", .integer = &producers},
      {.name = "producer_registers", .integer = &producerRegisters},
      {.name = "consumer_registers", .integer = &consumerRegisters},
      {.name = "overlap_products", .flag = &overlapProducts},
      {.name = "ping_pong", .flag = &pingPong},
      {.name = "tiles",
       .setKeyword = setEnum(tiles, symbolizeTileOrder),
       .keywords = "grid, static or dynamic"},
      {.name = "join_tiles", .flag = &joinTiles},
      {.name = "q_stages", .integer = &qStages},
      {.name = "stage_output", .flag = &stageOutput},
      {.name = "lazy_rescale", .flag = &lazyRescale},
      {.name = "k_path",
       .setKeyword = setEnum(kPath, symbolizePath),
       .keywords = "direct or registers"},
      {.name = "v_path",
       .setKeyword = setEnum(vPath, symbolizePath),
       .keywords = "direct or registers"},
      {.name = "xcds", .integer = &xcds}};
  if (parser.parseLess() ||
      parseParameters(parser, parameters, /*leadingComma=*/false))
    return {};
  return parser.getChecked<ScheduleAttr>(
      parser.getContext(), BM, BN, BK, stages, warps, mma, swap, qRegs, overlap,
      splitMasks, sumsInLds, producers, producerRegisters, consumerRegisters,
      overlapProducts, pingPong, tiles, joinTiles, qStages, stageOutput,
      lazyRescale, kPath, vPath, xcds);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<BM = " << getBM() << ", BN = " << getBN() << ", BK = " << getBK()
          << ", stages = " << getStages() << ", warps = " << getWarps();
  printList(printer, "mma_shape", getMmaShape());
  if (getSwapAB())
    printer << ", swap_a_b = true";
  if (getQInRegs())
    printer << ", q_in_regs = true";
  if (getOverlap())
    printer << ", overlap = true";
  if (!getSplitMasks())
    printer << ", split_masks = false";
  if (getSumsInLds())
    printer << ", sums_in_lds = true";
  if (getProducers())
    printer << ", producers = " << getProducers();
  if (getProducerRegisters())
    printer << ", producer_registers = " << getProducerRegisters();
  if (getConsumerRegisters())
    printer << ", consumer_registers = " << getConsumerRegisters();
  if (getOverlapProducts())
    printer << ", overlap_products = true";
  if (getPingPong())
    printer << ", ping_pong = true";
  if (getTiles() != TileOrder::Grid)
    printer << ", tiles = " << stringifyTileOrder(getTiles());
  if (getJoinTiles())
    printer << ", join_tiles = true";
  if (getQStages() != 1)
    printer << ", q_stages = " << getQStages();
  if (getStageOutput())
    printer << ", stage_output = true";
  if (getLazyRescale())
    printer << ", lazy_rescale = true";
  if (getKPath() != Path::Direct)
    printer << ", k_path = " << stringifyPath(getKPath());
  if (getVPath() != Path::Direct)
    printer << ", v_path = " << stringifyPath(getVPath());
  if (getXcds() != 1)
    printer << ", xcds = " << getXcds();
  printer << '>';
}

LogicalResult
ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t BM,
                     int64_t BN, int64_t BK, int64_t stages, int64_t warps,
                     ArrayRef<int64_t> mma, bool, bool, bool, bool, bool,
                     int64_t producers, int64_t producerRegisters,
                     int64_t consumerRegisters, bool, bool, TileOrder, bool,
                     int64_t qStages, bool, bool, Path, Path, int64_t xcds) {
  if (BK <= 0 || !llvm::isPowerOf2_64(BK))
    return emitError() << "BK must be a power of two, got " << BK;
  // Tiles are copied by whole strides of all the warps, which powers of two
  // divide; producers have no such stride.
  for (auto [name, value] :
       {std::pair<StringRef, int64_t>{"BM", BM}, {"BN", BN}}) {
    if (!producers && (value <= 0 || !llvm::isPowerOf2_64(value)))
      return emitError() << name << " must be a power of two, got " << value;
    if (producers && (value <= 0 || value % 16))
      return emitError() << name << " must be a positive multiple of 16, got "
                         << value;
  }
  for (auto [name, value] :
       {std::pair<StringRef, int64_t>{"producers", producers},
        {"producer_registers", producerRegisters},
        {"consumer_registers", consumerRegisters}})
    if (value < 0)
      return emitError() << name << " must not be negative, got " << value;
  if (qStages < 1)
    return emitError() << "q_stages must be at least 1, got " << qStages;
  if (xcds < 1)
    return emitError() << "xcds must be at least 1, got " << xcds;
  if (mma.size() != 3 || llvm::any_of(mma, [](int64_t d) { return d <= 0; }))
    return emitError() << "mma_shape must be three positive sizes M, N, K";
  if (stages < 1)
    return emitError() << "stages must be at least 1, got " << stages;
  if (warps < 1 || BM % warps)
    return emitError() << "warps must divide BM = " << BM << ", got " << warps;
  return success();
}

//===----------------------------------------------------------------------===//
// KVBufferAttr: parameters
//===----------------------------------------------------------------------===//

Attribute KVBufferAttr::parse(AsmParser &parser, Type) {
  auto keyword = [&](auto symbolize, auto &out, StringRef expected) {
    StringRef text;
    SMLoc loc = parser.getCurrentLocation();
    if (failed(parser.parseKeyword(&text)))
      return failure();
    auto value = symbolize(text);
    if (!value)
      return LogicalResult(parser.emitError(loc) << "expected " << expected);
    out = *value;
    return success();
  };
  Operand operand;
  Policy policy;
  Type elementType;
  if (parser.parseLess() ||
      failed(keyword([](StringRef s) { return symbolizeOperand(s); }, operand,
                     "an operand: q, k, v or o")) ||
      parser.parseComma() || parser.parseType(elementType) ||
      parser.parseComma() ||
      failed(
          keyword([](StringRef s) { return symbolizePolicy(s); }, policy,
                  "a policy: double_buffered, streaming or register_staged")))
    return {};
  int64_t BN = 0, WN = 0, BK = 0, numThreads = 0, depth = 0, heads = 1,
          cacheDepth = 0, headDimOffset = 0, regChunk = 0, smemDepth = 0,
          stages = 1, warpSize = 32;
  bool fullKV = true;
  SmallVector<int64_t> mma, swizzle;
  Parameter parameters[] = {
      {.name = "mma_shape", .list = &mma, .required = true},
      {.name = "swizzle", .list = &swizzle},
      {.name = "BN", .integer = &BN, .required = true},
      {.name = "WN", .integer = &WN, .required = true},
      {.name = "BK", .integer = &BK, .required = true},
      {.name = "num_threads", .integer = &numThreads, .required = true},
      {.name = "depth", .integer = &depth, .required = true},
      {.name = "kv_num_heads", .integer = &heads},
      {.name = "full_kv", .flag = &fullKV},
      {.name = "cache_depth", .integer = &cacheDepth},
      {.name = "head_dim_offset", .integer = &headDimOffset},
      {.name = "reg_chunk_depth", .integer = &regChunk},
      {.name = "smem_depth", .integer = &smemDepth},
      {.name = "stages", .integer = &stages},
      {.name = "warp_size", .integer = &warpSize}};
  if (parseParameters(parser, parameters, /*leadingComma=*/true))
    return {};
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
      smemDepth, stages, warpSize);
}

void KVBufferAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyOperand(getOperand()) << ", " << getElementType()
          << ", " << stringifyPolicy(getPolicy());
  printList(printer, "mma_shape", getMmaShape());
  if (!getSwizzle().empty())
    printList(printer, "swizzle", getSwizzle());
  printer << ", BN = " << getBN() << ", WN = " << getWN()
          << ", BK = " << getBK() << ", num_threads = " << getNumThreads()
          << ", depth = " << getDepth();
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
  if (getWarpSize() != 32)
    printer << ", warp_size = " << getWarpSize();
  printer << '>';
}

LogicalResult KVBufferAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, Operand, Type elementType,
    Policy, ArrayRef<int64_t> mma, ArrayRef<int64_t> swizzle, int64_t BN,
    int64_t WN, int64_t BK, int64_t numThreads, int64_t depth, int64_t heads,
    bool, int64_t cacheDepth, int64_t headDimOffset, int64_t regChunk,
    int64_t smemDepth, int64_t stages, int64_t warpSize) {
  if (!elementType.isIntOrFloat() || elementType.getIntOrFloatBitWidth() % 8)
    return emitError() << "elements must be numbers of whole bytes, got "
                       << elementType;
  if (mma.size() != 3 || llvm::any_of(mma, [](int64_t d) { return d <= 0; }))
    return emitError() << "mma_shape must be three positive sizes M, N, K";
  if (!swizzle.empty() && swizzle.size() != 3)
    return emitError() << "swizzle must be [bits, base, shift]";
  // A slot's rows are those of a tile: see ScheduleAttr::verify.
  if (BN <= 0 || (!llvm::isPowerOf2_64(BN) && BN % 16))
    return emitError() << "BN must be a power of two or a multiple of 16, got "
                       << BN;
  for (auto [name, value] :
       {std::pair<StringRef, int64_t>{"BK", BK}, {"warp_size", warpSize}})
    if (value <= 0 || !llvm::isPowerOf2_64(value))
      return emitError() << name << " must be a power of two, got " << value;
  if (WN <= 0 || BN % WN)
    return emitError() << "WN must divide BN = " << BN << ", got " << WN;
  if (numThreads <= 0 || numThreads % warpSize)
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
