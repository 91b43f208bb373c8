//===- KVBufferWorkOps.cpp - Verifiers of work that blocks share -*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownAttributes.h"
#include "VerifyTile.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

using namespace mlir;
using namespace kvbuf;

void ArriveLastOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getLast(), "last");
}

void ShareWorkOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getSize(), "size");
  setName(getFirst(), "first");
  setName(getStart(), "start");
  setName(getEnd(), "end");
}

LogicalResult LaunchValueOp::verify() {
  if (kvbuf::detail::isSizeExpression(getExpression()))
    return success();
  return emitOpError() << "expected an integer, the name of a size or "
                          "{product, sum, ceildiv, floordiv, min or max = "
                          "[...]}, got "
                       << getExpression();
}

LogicalResult ArriveLastOp::verify() {
  auto type = cast<MemRefType>(getCounters().getType());
  if (int64_t(getIndices().size()) != type.getRank())
    return emitOpError() << "expected " << type.getRank() << " indices, got "
                         << getIndices().size();
  return success();
}

LogicalResult ShareWorkOp::verifyRegions() {
  Block &body = getBody().front();
  auto index = IndexType::get(getContext());
  if (body.getArgumentTypes() != TypeRange{index})
    return emitOpError("expected a region of one index, the item's number");
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield || yield.getValue().getType() != index)
    return emitOpError("expected a region that ends with kvbuffer.yield of an "
                       "index, the item's units");
  for (Operation &op : body.without_terminator()) {
    auto fail = [&](StringRef why) {
      InFlightDiagnostic diag = op.emitOpError()
                                << "is not allowed in a kvbuffer.share_work: "
                                << why;
      diag.attachNote(getLoc()) << "the region is here";
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

/// Whether a tensor has room for a partial result at `indices`.
static LogicalResult verifyRoom(Operation *op, MemRefType type, size_t indices,
                                FragmentType acc) {
  if (type.getRank() < 2 || type.isDynamicDim(type.getRank() - 1) ||
      type.isDynamicDim(type.getRank() - 2) ||
      type.getShape().back() < acc.getCols() + 2 ||
      type.getShape().back() % 2 || type.getShape().end()[-2] > acc.getRows())
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
template <typename OpTy> static LogicalResult verifyAccess(OpTy op) {
  FragmentType acc = op.getAcc().getType();
  if (failed(verifyPartial(op, acc, op.getMax().getType())) ||
      failed(verifyRoom(op, cast<MemRefType>(op.getParts().getType()),
                        op.getIndices().size(), acc)))
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
  if (failed(verifyScale(*this, getScale())) || failed(verifyAccess(*this)))
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
