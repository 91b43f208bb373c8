//===- KVBufferWorkOps.cpp - Verifiers of work that blocks share -*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyTile.h"
#include "WorkFormat.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// Items of work
//===----------------------------------------------------------------------===//

Attribute CoordinateAttr::parse(AsmParser &parser, Type) {
  Attribute extent, sequences, longest;
  int64_t step = 0, sharing = 1;
  bool growing = false;
  if (parser.parseLess() || parseSize(parser, extent))
    return {};
  if (succeeded(parser.parseOptionalKeyword("by"))) {
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseInteger(step))
      return {};
    if (step < 1) {
      parser.emitError(loc) << "expected items of 1 row or more, got " << step;
      return {};
    }
  }
  if (succeeded(parser.parseOptionalKeyword("over")) &&
      parseSize(parser, sequences))
    return {};
  if (succeeded(parser.parseOptionalKeyword("longest")) &&
      parseSize(parser, longest))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("growing"))) {
      growing = true;
    } else if (succeeded(parser.parseOptionalKeyword("sharing"))) {
      if (parser.parseEqual())
        return {};
      if (succeeded(parser.parseOptionalKeyword("all"))) {
        sharing = 0;
        continue;
      }
      SMLoc loc = parser.getCurrentLocation();
      if (parser.parseInteger(sharing))
        return {};
      if (sharing < 1) {
        parser.emitError(loc) << "expected sharing = all, or a number of 1 or "
                                 "more, got "
                              << sharing;
        return {};
      }
    } else {
      parser.emitError(parser.getCurrentLocation(),
                       "expected growing or sharing");
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<CoordinateAttr>(
      parser.getContext(), extent, step, sequences, longest, growing, sharing);
}

void CoordinateAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printSize(printer, getExtent());
  if (getStep())
    printer << " by " << getStep();
  if (getSequences()) {
    printer << " over ";
    printSize(printer, getSequences());
  }
  if (getLongest()) {
    printer << " longest ";
    printSize(printer, getLongest());
  }
  if (getGrowing())
    printer << ", growing";
  if (isShared())
    printer << ", sharing = all";
  else if (getSharing() != 1)
    printer << ", sharing = " << getSharing();
  printer << '>';
}

LogicalResult
CoordinateAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       Attribute extent, int64_t step, Attribute sequences,
                       Attribute longest, bool, int64_t sharing) {
  for (Attribute size : {extent, sequences, longest})
    if (size && !SizeAttr::isSize(size))
      return emitError() << "expected " << SizeAttr::kExpected << ", got "
                         << size;
  auto number = dyn_cast<IntegerAttr>(extent);
  if (number && number.getInt() < 0)
    return emitError() << "expected an extent of 0 or more, got "
                       << number.getInt();
  if (step < 0)
    return emitError() << "expected items of 1 row or more, got " << step;
  if (sharing < 0)
    return emitError() << "expected 1 item or more that read the same, got "
                       << sharing;
  if (sequences && !step)
    return emitError() << "expected rows of an item (by) before the sequences "
                          "that have them (over)";
  if (longest && !sequences)
    return emitError() << "expected sequences (over) before the rows of the "
                          "longest one (longest)";
  return success();
}

Attribute CoordinateAttr::getCount(int64_t together) const {
  Builder b(getContext());
  auto of = [&](StringRef name, ArrayRef<Attribute> operands) -> Attribute {
    return SizeAttr::of(getContext(), name, operands);
  };
  if (!getStep())
    return getExtent();
  Attribute count =
      of("ceildiv", {getExtent(), b.getI64IntegerAttr(getStep() * together)});
  return getSequences() ? of("sum", {count, getSequences()}) : count;
}

std::optional<int64_t> CoordinateAttr::getFixedCount() const {
  auto number = dyn_cast<IntegerAttr>(getExtent());
  if (!number || getStep())
    return std::nullopt;
  return number.getInt();
}

ParseResult kvbuf::parseCoordinates(OpAsmParser &parser,
                                    ArrayAttr &coordinates) {
  SmallVector<Attribute> list;
  auto parse = [&]() -> ParseResult {
    Attribute coordinate = CoordinateAttr::parse(parser, Type());
    list.push_back(coordinate);
    return success(bool(coordinate));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parse))
    return failure();
  coordinates = parser.getBuilder().getArrayAttr(list);
  return success();
}

void kvbuf::printCoordinates(OpAsmPrinter &printer, Operation *,
                             ArrayAttr coordinates) {
  printer << '[';
  llvm::interleaveComma(coordinates, printer, [&](Attribute coordinate) {
    cast<CoordinateAttr>(coordinate).print(printer);
  });
  printer << ']';
}

void WorkItemOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (Value item : getItems())
    setName(item, "item");
}

LogicalResult WorkItemOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location>,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  types.assign(adaptor.getCoordinates().size(), IndexType::get(context));
  return success();
}

WorkItemOp WorkItemOp::of(Operation *kernel) {
  WorkItemOp item;
  kernel->walk([&](WorkItemOp op) {
    item = op;
    return WalkResult::interrupt();
  });
  return item;
}

ArrayAttr WorkItemOp::getGridOfItems() {
  Builder b(getContext());
  SmallVector<Attribute> counts;
  for (unsigned i = 0, e = getNumResults(); i < e; ++i)
    counts.push_back(getCoordinate(i).getCount());
  counts.resize(std::max<size_t>(counts.size(), 3), b.getI64IntegerAttr(1));
  if (counts.size() > 3) {
    Attribute rest =
        SizeAttr::of(getContext(), "product", ArrayRef(counts).drop_front(2));
    counts.resize(3);
    counts[2] = rest;
  }
  return b.getArrayAttr(counts);
}

LogicalResult WorkItemOp::verify() {
  auto kernel = dyn_cast<gpu::GPUFuncOp>((*this)->getParentOp());
  if (!kernel || !(*this)->getBlock()->isEntryBlock())
    return emitOpError("expected the first block of a gpu.func: a kernel has "
                       "one item at a time");
  if (getCoordinates().empty())
    return emitOpError("expected a coordinate or more");
  if (getReads() && !SizeAttr::isSize(*getReads()))
    return emitOpError() << "reads: expected " << SizeAttr::kExpected
                         << ", got " << *getReads();
  unsigned growing = llvm::count_if(getCoordinates(), [](Attribute coordinate) {
    return cast<CoordinateAttr>(coordinate).getGrowing();
  });
  if (growing > 1)
    return emitOpError("expected items to grow along one coordinate at most");
  for (auto other : kernel.getBody().getOps<WorkItemOp>())
    if (other != *this) {
      if (other->isBeforeInBlock(*this)) {
        InFlightDiagnostic diag = emitOpError(
            "is a second one; expected one for all of a kernel's work");
        diag.attachNote(other.getLoc()) << "the first one is here";
        return diag;
      }
    }
  if (kernel->hasAttr(KVBufferDialect::kGridAttr))
    return emitOpError() << "stands in a kernel with '"
                         << KVBufferDialect::kGridAttr
                         << "', which follows from the items; expected one of "
                            "them";
  return success();
}

void ItemRowsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFirst(), "first");
  setName(getRow(), "row");
}

//===----------------------------------------------------------------------===//
// Work that blocks share
//===----------------------------------------------------------------------===//

void ArriveLastOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getLast(), "last");
}

void ShareWorkOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getSize(), "size");
  setName(getFirst(), "first");
  setName(getStart(), "start");
  setName(getEnd(), "end");
}

void SharePairsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getSize(), "size");
  setName(getFirst(), "first");
  setName(getStart(), "start");
  setName(getEnd(), "end");
  setName(getOther(), "other");
  setName(getKeep(), "keep");
}

LogicalResult LaunchValueOp::verify() {
  if (SizeAttr::isSize(getExpression()))
    return success();
  return emitOpError() << "expected " << SizeAttr::kExpected << ", got "
                       << getExpression();
}

LogicalResult ArriveLastOp::verify() {
  auto type = cast<MemRefType>(getCounters().getType());
  if (int64_t(getIndices().size()) != type.getRank())
    return emitOpError() << "expected " << type.getRank() << " indices, got "
                         << getIndices().size();
  return success();
}

LogicalResult AfterAllOp::verify() {
  auto type = cast<MemRefType>(getCounters().getType());
  if (type.getRank() < 1 || type.getShape().back() != kCounters)
    return emitOpError() << "expected a tensor [.., " << kCounters
                         << "] of counters, got " << type;
  if (int64_t(getIndices().size()) != type.getRank() - 1)
    return emitOpError() << "expected " << type.getRank() - 1
                         << " indices, got " << getIndices().size();
  return success();
}

LogicalResult AfterAllOp::verifyRegions() {
  if (getBody().front().getArgumentTypes() !=
      TypeRange{IndexType::get(getContext())})
    return emitOpError("expected a region of one index, the share's number");
  return success();
}

/// Whether the region of a share of work gives the units of an item, and may
/// run for several side by side.
static LogicalResult verifyUnits(Operation *share, Region &region) {
  Block &body = region.front();
  auto index = IndexType::get(share->getContext());
  if (body.getArgumentTypes() != TypeRange{index})
    return share->emitOpError(
        "expected a region of one index, the item's number");
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield || yield.getValue().getType() != index)
    return share->emitOpError(
        "expected a region that ends with kvbuffer.yield of an "
        "index, the item's units");
  for (Operation &op : body.without_terminator()) {
    auto fail = [&](StringRef why) {
      InFlightDiagnostic diag = op.emitOpError()
                                << "is not allowed in a " << share->getName()
                                << ": " << why;
      diag.attachNote(share->getLoc()) << "the region is here";
      return diag;
    };
    if (op.getNumRegions())
      return fail("it runs for several items side by side, and cannot branch");
    if (isa_and_nonnull<KVBufferDialect>(op.getDialect()) &&
        !isa<CacheNumKeysOp, KeyRangeOp, LaunchSizeOp, LaunchValueOp>(op))
      return fail("of this dialect's ops only those of lengths are");
    if (!isMemoryEffectFree(&op) && !hasSingleEffect<MemoryEffects::Read>(&op))
      return fail("it may only read memory");
  }
  return success();
}

LogicalResult ShareWorkOp::verifyRegions() {
  return verifyUnits(*this, getBody());
}

LogicalResult SharePairsOp::verifyRegions() {
  return verifyUnits(*this, getBody());
}

/// Whether rows of f32 have an accumulator, a maximum and a sum.
static LogicalResult verifyPartial(Operation *op, FragmentType acc,
                                   FragmentType row) {
  if (acc.getRole() != Role::Acc || row.getRole() != Role::Row ||
      acc.getRows() != row.getRows() || !acc.getElementType().isF32() ||
      !row.getElementType().isF32())
    return op->emitOpError()
           << "expected an accumulator of f32 and a row value "
              "for each of its rows, got "
           << acc << " and " << row;
  return success();
}

/// Whether a tensor has room for a partial result at `indices`,
/// of as many rows as the accumulator's, or where it has only `some` of them.
static LogicalResult verifyRoom(Operation *op, MemRefType type, size_t indices,
                                FragmentType acc, bool some) {
  if (type.getRank() < 2 || type.isDynamicDim(type.getRank() - 1) ||
      type.isDynamicDim(type.getRank() - 2) ||
      type.getShape().back() < acc.getCols() + 2 ||
      type.getShape().back() % 2 ||
      (!some && type.getShape().end()[-2] > acc.getRows()))
    return op->emitOpError()
           << "expected a tensor [.., rows, width] with at most "
           << acc.getRows() << " rows and an even width of at least "
           << acc.getCols() + 2 << ", got " << type;
  if (int64_t(indices) != type.getRank() - 2)
    return op->emitOpError()
           << "expected " << type.getRank() - 2 << " indices, got " << indices;
  return success();
}

/// Whether an op can store a partial result, or load one.
template <typename OpTy>
static LogicalResult verifyAccess(OpTy op, bool some = false) {
  FragmentType acc = op.getAcc().getType();
  if (failed(verifyPartial(op, acc, op.getMax().getType())) ||
      failed(verifyRoom(op, cast<MemRefType>(op.getParts().getType()),
                        op.getIndices().size(), acc, some)))
    return failure();
  std::optional<ArrayRef<int64_t>> columns = op.getColumns();
  if (!columns)
    return success();
  int64_t many = int64_t(1) << std::min<size_t>(columns->size(), 62);
  if (isOrderOfBits(*columns) && acc.getCols() % many == 0)
    return success();
  return op.emitOpError() << "expected columns with each of the powers of two "
                             "below one that divides the "
                          << acc.getCols() << " columns once, got [" << *columns
                          << "]";
}

LogicalResult PartialStoreOp::verify() { return verifyAccess(*this); }

LogicalResult PartialLoadOp::verify() { return verifyAccess(*this); }

static LogicalResult verifyScale(Operation *op, const APFloat &scale) {
  if (scale.isFinite() && !scale.isNegative() && !scale.isZero())
    return success();
  return op->emitOpError() << "expected a finite scale above 0";
}

LogicalResult PartialJoinOp::verify() {
  if (failed(verifyScale(*this, getScale())) ||
      failed(verifyAccess(*this, /*some=*/bool(getFrom()))))
    return failure();
  if (getIndices().empty())
    return emitOpError()
           << "expected an index, along which partial results lie";
  // Far more than there are, and few enough that no product overflows.
  constexpr int64_t kMost = int64_t(1) << 20;
  if (int64_t(getStep()) < 1 || int64_t(getStep()) > kMost)
    return emitOpError() << "expected a step from 1 to " << kMost << ", got "
                         << int64_t(getStep());
  return success();
}

LogicalResult SoftmaxMergeOp::verify() {
  if (failed(verifyScale(*this, getScale())))
    return failure();
  return verifyPartial(*this, getAcc().getType(), getMax().getType());
}

LogicalResult SoftmaxSinkOp::verify() {
  if (failed(verifyScale(*this, getScale())))
    return failure();
  auto type = cast<MemRefType>(getSinks().getType());
  if (type.getRank() == 0 || int64_t(getIndices().size()) != type.getRank())
    return emitOpError() << "expected " << std::max<int64_t>(type.getRank(), 1)
                         << " indices, got " << getIndices().size();
  if (int64_t(getGroup()) < 1)
    return emitOpError() << "expected a group of 1 row or more, got "
                         << int64_t(getGroup());
  return verifyPartial(*this, getAcc().getType(), getMax().getType());
}
