//===- WorkFormat.h - The text of items of work -----------------*- C++ -*-===//
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

/// Parses the coordinates of a `kvbuffer.work_item`, without the attribute's
/// name: [<8>, <"rows" by 64>].
mlir::ParseResult parseCoordinates(mlir::OpAsmParser &parser,
                                   mlir::ArrayAttr &coordinates);
/// Prints them so.
void printCoordinates(mlir::OpAsmPrinter &printer, mlir::Operation *,
                      mlir::ArrayAttr coordinates);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_IR_WORKFORMAT_H
