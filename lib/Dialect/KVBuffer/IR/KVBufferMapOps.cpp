//===- KVBufferMapOps.cpp - Verifiers of arithmetic by regions --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace kvbuf;

void MapOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "mapped");
}

void FragmentFitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFragment(), "half");
  setName(getFactor(), "factor");
}

LogicalResult FragmentFitOp::verify() {
  FragmentType source = getSource().getType(), result = getFragment().getType(),
               factor = getFactor().getType();
  if (source.getRole() != Role::A || !source.getElementType().isBF16() ||
      result.getRole() != Role::A || !result.getElementType().isF16())
    return emitOpError() << "expected an operand a of bf16 and one of f16, got "
                         << source << " and " << result;
  if (source.getRows() != result.getRows() ||
      source.getCols() != result.getCols())
    return emitOpError() << "expected fragments of one shape, got " << source
                         << " and " << result;
  if (factor.getRole() != Role::Row || factor.getRows() != source.getRows())
    return emitOpError() << "expected a row value for each row of " << source
                         << ", got " << factor;
  return success();
}

LogicalResult MapOp::verify() {
  if (getInputs().empty())
    return emitOpError("expected at least one input");
  if (bool(getRow()) != bool(getCol()))
    return emitOpError("expected both coordinates, or none");
  FragmentType result = getResult().getType();
  auto isLike = [&](FragmentType type, bool mayBeOperand) {
    return (type.getRole() == Role::Acc ||
            (mayBeOperand && type.getRole() == Role::A)) &&
           type.getRows() == result.getRows() &&
           type.getCols() == result.getCols();
  };
  auto isOfRows = [&](FragmentType type) {
    return type.getRole() == Role::Row && type.getRows() == result.getRows();
  };
  for (auto [i, type] : llvm::enumerate(getInputs().getTypes())) {
    if (i > 0 && isOfRows(cast<FragmentType>(type)) && isLike(result, false)) {
      // A running sum is kept in parts, of which lanes have one each.
      Operation *maker = getInputs()[i].getDefiningOp();
      if (!isa_and_present<RowReduceOp, FragmentFillOp>(maker))
        return emitOpError()
               << "takes values of rows that may be a lane's part of a sum; "
                  "expected results of kvbuffer.row_reduce or "
                  "kvbuffer.fragment_fill";
      continue;
    }
    if (!isLike(cast<FragmentType>(type), /*mayBeOperand=*/i > 0) ||
        !isLike(result, false))
      return emitOpError() << "expected accumulators of one shape, got " << type
                           << " and " << result;
  }
  return success();
}

/// Verifies a region that computes one element from `arguments`. `what` names
/// it in messages, `inputs` says what the arguments are.
static LogicalResult verifyElementRegion(Operation *op, Region &region,
                                         ArrayRef<Type> arguments, Type element,
                                         const Twine &what,
                                         const Twine &inputs) {
  Block &body = region.front();
  if (body.getArgumentTypes() != TypeRange(arguments)) {
    InFlightDiagnostic diag = op->emitOpError()
                              << "expected a region of " << inputs << ", (";
    llvm::interleaveComma(arguments, diag);
    diag << "), got (";
    llvm::interleaveComma(body.getArgumentTypes(), diag);
    return diag << ")";
  }
  if (body.empty())
    return op->emitOpError("expected a region that ends with kvbuffer.yield");
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield)
    return body.back().emitOpError() << "cannot end the region of a " << what
                                     << "; expected kvbuffer.yield";
  if (yield.getValue().getType() != element)
    return yield.emitOpError()
           << "expected an element of the result, " << element << ", got "
           << yield.getValue().getType();
  WalkResult walk = body.walk([&](Operation *inner) -> WalkResult {
    if (inner == yield || isa<scf::IfOp, scf::YieldOp>(inner))
      return WalkResult::advance();
    auto fail = [&](StringRef why) {
      InFlightDiagnostic diag = inner->emitOpError() << "is not allowed in a "
                                                     << what << ": " << why;
      diag.attachNote(op->getLoc()) << "the region is here";
      return WalkResult::interrupt();
    };
    if (inner->getNumRegions())
      return fail("of ops with regions only scf.if is");
    if (isa_and_nonnull<KVBufferDialect>(inner->getDialect()) &&
        !(isa<CacheScaleOp>(inner) && isa<MapOp>(op)))
      return fail("its values are elements, not fragments");
    if (!isMemoryEffectFree(inner) &&
        !hasSingleEffect<MemoryEffects::Read>(inner))
      return fail("it may only read memory");
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult MapOp::verifyRegions() {
  auto index = IndexType::get(getContext());
  SmallVector<Type> expected;
  for (Type type : getInputs().getTypes())
    expected.push_back(cast<FragmentType>(type).getElementType());
  expected.append({index, index});
  return verifyElementRegion(
      *this, getBody(), expected, getResult().getType().getElementType(),
      "kvbuffer.map", "the inputs' elements and two coordinates");
}

void AttentionOp::updateRegionTypes() {
  for (Region *region : {&getScore(), &getVisible()})
    if (!region->empty())
      for (auto [arg, capture] : llvm::zip_equal(
               region->getArguments().take_back(getCaptures().size()),
               getCaptures()))
        arg.setType(capture.getType());
}

LogicalResult AttentionOp::verifyRegions() {
  auto index = IndexType::get(getContext());
  SmallVector<Type> expected(5, index);
  llvm::append_range(expected, getCaptures().getTypes());
  for (Region *region : {&getVisible(), &getScore()}) {
    bool scores = region == &getScore();
    if (scores)
      expected.insert(expected.begin(), Float32Type::get(getContext()));
    if (region->empty())
      continue;
    Type element = scores ? Type(Float32Type::get(getContext()))
                          : Type(IntegerType::get(getContext(), 1));
    if (failed(verifyElementRegion(
            *this, *region, expected, element, "kvbuffer.attention",
            Twine(scores ? "a score, " : "") +
                "the sequence, the head, the row, its position, the key and "
                "the captures")))
      return failure();
  }
  return success();
}
