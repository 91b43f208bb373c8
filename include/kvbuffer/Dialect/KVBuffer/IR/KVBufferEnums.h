//===- KVBufferEnums.h - Enumerations of the dialect ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The words that attributes of the dialect choose between, for code that needs
/// no more of it.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERENUMS_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERENUMS_H

#include "mlir/IR/OpImplementation.h"

#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferEnums.h.inc"

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERENUMS_H
