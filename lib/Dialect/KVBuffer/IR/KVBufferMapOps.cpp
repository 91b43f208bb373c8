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

LogicalResult MapOp::verify() {
  if (getInputs().empty())
    return emitOpError("expected at least one input");
  if (bool(getRow()) != bool(getCol()))
    return emitOpError("expected both coordinates, or none");
  FragmentType result = getResult().getType();
  auto isLike = [&](FragmentType type) {
    return type.getRole() == Role::Acc && type.getRows() == result.getRows() &&
           type.getCols() == result.getCols();
  };
  for (Type type : getInputs().getTypes())
    if (!isLike(cast<FragmentType>(type)) || !isLike(result))
      return emitOpError() << "expected accumulators of one shape, got " << type
                           << " and " << result;
  return success();
}

LogicalResult MapOp::verifyRegions() {
  Block &body = getBody().front();
  auto index = IndexType::get(getContext());
  SmallVector<Type> expected;
  for (Type type : getInputs().getTypes())
    expected.push_back(cast<FragmentType>(type).getElementType());
  expected.append({index, index});
  if (body.getArgumentTypes() != TypeRange(expected)) {
    InFlightDiagnostic diag =
        emitOpError() << "expected a region of the inputs' elements and "
                         "two coordinates, (";
    llvm::interleaveComma(expected, diag);
    diag << "), got (";
    llvm::interleaveComma(body.getArgumentTypes(), diag);
    return diag << ")";
  }
  if (body.empty())
    return emitOpError("expected a region that ends with kvbuffer.yield");
  Type element = getResult().getType().getElementType();
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield)
    return body.back().emitOpError("cannot end the region of a kvbuffer.map; "
                                   "expected kvbuffer.yield");
  if (yield.getValue().getType() != element)
    return yield.emitOpError()
           << "expected an element of the result, " << element << ", got "
           << yield.getValue().getType();
  WalkResult walk = body.walk([&](Operation *op) -> WalkResult {
    if (op == yield || isa<scf::IfOp, scf::YieldOp>(op))
      return WalkResult::advance();
    auto fail = [&](StringRef why) {
      InFlightDiagnostic diag = op->emitOpError()
                                << "is not allowed in a kvbuffer.map: " << why;
      diag.attachNote(getLoc()) << "the region is here";
      return WalkResult::interrupt();
    };
    if (op->getNumRegions())
      return fail("of ops with regions only scf.if is");
    if (isa_and_nonnull<KVBufferDialect>(op->getDialect()))
      return fail("its values are elements, not fragments");
    if (!isMemoryEffectFree(op) && !hasSingleEffect<MemoryEffects::Read>(op))
      return fail("it may only read memory");
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
