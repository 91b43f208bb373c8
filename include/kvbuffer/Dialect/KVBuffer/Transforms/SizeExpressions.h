//===- SizeExpressions.h - The manifest's expressions as code ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_SIZEEXPRESSIONS_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_SIZEEXPRESSIONS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringMap.h"

namespace kvbuf {

/// The value, an index, of an expression over sizes as the manifest states them
/// (include/kvbuffer/Runtime/Manifest.h): a number, a name, or a `SizeAttr`.
/// `nameValue` yields the values of names. Quotients are of numbers that are
/// not negative. Null where `nameValue` yields null, and for what is no
/// expression.
mlir::Value
emitSizeExpression(mlir::OpBuilder &b, mlir::Location loc,
                   mlir::Attribute expression,
                   llvm::function_ref<mlir::Value(mlir::StringAttr)> nameValue);

/// The most tokens that a sequence of a cache has, an expression as the
/// manifest states it; of a ragged cache, whose shapes tell no sequence's, the
/// rows of all. An `argument` of this type may have other names for its sizes.
mlir::Attribute mostTokensOf(CacheLayout cache,
                             mlir::Value argument = mlir::Value());

/// An expression with numbers for the sizes that types fix.
mlir::Attribute fixSizes(mlir::Attribute expression,
                         const llvm::StringMap<int64_t> &fixedSizes);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_SIZEEXPRESSIONS_H
