//===- LdsMap.h - What lies where in a kernel's LDS -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the thread stage on, LDS is bytes. What the buffers of the stages before
/// were is kept for messages.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_LDSMAP_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_LDSMAP_H

#include "llvm/ADT/StringRef.h"

namespace kvbuf {

/// On a kernel from the thread stage on: an array of dictionaries, one a buffer:
/// `name` (the operand), `offset` (its first byte), `slots`, `slot_bytes`, and,
/// where a row of a block stays in one place, `rows`, `row_bytes` and `cols` of
/// a block: a slot is blocks of so many rows, one after the other. For messages
/// alone: no code follows from it.
inline constexpr llvm::StringLiteral kLdsAttr = "kvbuffer.lds";

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_LDSMAP_H
