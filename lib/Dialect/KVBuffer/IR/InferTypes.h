//===- InferTypes.h - Types of results from those of operands ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_IR_INFERTYPES_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_IR_INFERTYPES_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Value.h"

namespace kvbuf {

/// Adds what `resultsOf` makes of an operand's type, one type or several, to
/// those of the results. A text may have an operand of another type there, as
/// operands are verified later: an error says that `what` was expected.
template <typename OperandType, typename Function>
mlir::LogicalResult inferFrom(mlir::Value operand, llvm::StringRef what,
                              std::optional<mlir::Location> location,
                              llvm::SmallVectorImpl<mlir::Type> &types,
                              Function resultsOf) {
  auto type = llvm::dyn_cast<OperandType>(operand.getType());
  if (!type)
    return mlir::emitOptionalError(location, "expected ", what, ", got ",
                                   operand.getType());
  auto results = resultsOf(type);
  if constexpr (std::is_convertible_v<decltype(results), mlir::Type>)
    types.push_back(results);
  else
    llvm::append_range(types, results);
  return mlir::success();
}

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_IR_INFERTYPES_H
