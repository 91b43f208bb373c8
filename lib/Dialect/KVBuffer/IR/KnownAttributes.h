//===- KnownAttributes.h - What `kvbuffer.*` attributes may hold -*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_IR_KNOWNATTRIBUTES_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_IR_KNOWNATTRIBUTES_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

namespace kvbuf {

/// An attribute with the dialect's prefix on an op: its name is known, it
/// stands where it is read, its value is of the right kind, and dictionaries
/// have no key that nobody reads. An error at `op` if not.
mlir::LogicalResult verifyDialectAttribute(mlir::Operation *op,
                                           mlir::NamedAttribute attr);

/// The same for an attribute of an argument of the function `op`.
mlir::LogicalResult verifyArgumentAttribute(mlir::Operation *op,
                                            unsigned argument,
                                            mlir::NamedAttribute attr);

/// The fields of `#kvbuffer.launch`, and what may be said of an argument of a
/// kind besides its tensor or size.
llvm::SmallVector<llvm::StringRef> keysOfLaunches();
llvm::SmallVector<llvm::StringRef> keysOfArguments(ArgumentKind kind);
/// The fields of `#kvbuffer.lds`.
llvm::SmallVector<llvm::StringRef> keysOfLds();

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_IR_KNOWNATTRIBUTES_H
