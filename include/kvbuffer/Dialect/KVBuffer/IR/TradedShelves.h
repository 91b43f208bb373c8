//===- TradedShelves.h - Shelves over buffers -------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The names of attributes that programs and the lane lowering share.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_TRADEDSHELVES_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_TRADEDSHELVES_H

#include "llvm/ADT/StringRef.h"

namespace kvbuf {

/// On a `kvbuffer.shelf` of a kernel whose blocks are clusters of two: what a
/// team puts into a slot lies in the other block, and what it gets from the
/// slot the same team has put there. Each slot is one team's, which puts once
/// in a launch and then gets, in both blocks or in none. The slots lie over the
/// kernel's buffers: with their first puts the teams of a shelf say that no
/// buffer is read or filled any more.
inline constexpr llvm::StringLiteral kTradedAttr = "kvbuffer.traded";

/// On a `kvbuffer.shelf`: its slots lie over the kernel's buffers. Each is one
/// team's, which puts into it once in a launch, and then gets; all of the
/// shelf's teams do, or none does. With their puts they say that no buffer is
/// read or filled any more, and a put waits for all of them.
inline constexpr llvm::StringLiteral kParkedAttr = "kvbuffer.parked";

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_TRADEDSHELVES_H
