//===- ReadOnce.h - Tiles that one block alone reads ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The name of an attribute that programs and the lane lowering share.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_READONCE_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_READONCE_H

#include "llvm/ADT/StringRef.h"

namespace kvbuf {

/// On a `kvbuffer.ring_load`: no other block reads the tile, and this one not
/// again, so that caches between may give it up first. Boxes say so where a
/// chip's can; what is loaded is the same.
inline constexpr llvm::StringLiteral kReadOnceAttr = "kvbuffer.read_once";

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_READONCE_H
