//===- SizeExpressions.cpp - The manifest's expressions as code -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace kvbuf;

Value kvbuf::emitSizeExpression(OpBuilder &b, Location loc,
                                Attribute expression,
                                function_ref<Value(StringAttr)> nameValue) {
  if (auto number = dyn_cast<IntegerAttr>(expression))
    return arith::ConstantIndexOp::create(b, loc, number.getInt());
  if (auto name = dyn_cast<StringAttr>(expression))
    return nameValue(name);
  auto size = dyn_cast<SizeAttr>(expression);
  if (!size)
    return nullptr;
  auto apply = [&](Value x, Value y) -> Value {
    switch (size.getOperation()) {
    case SizeOperator::Product:
      return arith::MulIOp::create(b, loc, x, y);
    case SizeOperator::Sum:
      return arith::AddIOp::create(b, loc, x, y);
    case SizeOperator::CeilDiv:
      return arith::CeilDivUIOp::create(b, loc, x, y);
    case SizeOperator::FloorDiv:
      return arith::DivUIOp::create(b, loc, x, y);
    case SizeOperator::Min:
      return arith::MinSIOp::create(b, loc, x, y);
    case SizeOperator::Max:
      return arith::MaxSIOp::create(b, loc, x, y);
    }
    llvm_unreachable("unknown operator");
  };
  Value result;
  for (Attribute entry : size.getOperands()) {
    Value x = emitSizeExpression(b, loc, entry, nameValue);
    if (!x)
      return nullptr;
    result = result ? apply(result, x) : x;
  }
  return result;
}

Attribute kvbuf::mostTokensOf(CacheLayout cache, Value argument) {
  Builder b(cache.getContext());
  auto nameOf = [&](const CacheDim &dim) -> Attribute {
    return b.getStringAttr(sizeOfCache(argument, dim.name));
  };
  if (!cache.getRun())
    return nameOf(cache.getLeadingDims().back());
  // As many pages as a row of the table holds.
  Attribute pages = nameOf(cache.getIndexTensors().front().dims.back());
  return SizeAttr::of(b.getContext(), "product",
                      {pages, b.getI64IntegerAttr(cache.getRun())});
}

Attribute kvbuf::fixSizes(Attribute expression,
                          const llvm::StringMap<int64_t> &fixedSizes) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](StringAttr name) -> std::optional<Attribute> {
    auto it = fixedSizes.find(name.getValue());
    if (it == fixedSizes.end())
      return std::nullopt;
    return Builder(name.getContext()).getI64IntegerAttr(it->second);
  });
  return replacer.replace(expression);
}
