//===- WorkFormat.h - The text of sizes and items of work -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_IR_WORKFORMAT_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_IR_WORKFORMAT_H

#include "mlir/IR/OpImplementation.h"

namespace kvbuf {

/// Parses a size: an integer, a name, or what `#kvbuffer.size` holds, with or
/// without the attribute's name.
mlir::ParseResult parseSize(mlir::AsmParser &parser, mlir::Attribute &size);
/// Prints it so; a name in quotes.
void printSize(mlir::AsmPrinter &printer, mlir::Attribute size);
inline void printSize(mlir::OpAsmPrinter &printer, mlir::Operation *,
                      mlir::Attribute size) {
  printSize(printer, size);
}

/// Parses the coordinates of a `kvbuffer.work_item`, without the attribute's
/// name: [<8>, <"rows" by 64>].
mlir::ParseResult parseCoordinates(mlir::OpAsmParser &parser,
                                   mlir::ArrayAttr &coordinates);
/// Prints them so.
void printCoordinates(mlir::OpAsmPrinter &printer, mlir::Operation *,
                      mlir::ArrayAttr coordinates);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_IR_WORKFORMAT_H
