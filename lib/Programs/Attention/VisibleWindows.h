//===- VisibleWindows.h - Functions that are attributes ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_VISIBLEWINDOWS_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_VISIBLEWINDOWS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

namespace kvbuf {

/// Moves what a problem's functions of scores and visibility say, and
/// attributes can, into these: tiles of keys that such a window hides are left
/// out then, and those that it does not cut are not masked. A soft cap that
/// comes before everything else becomes the attribute, too. Regions that have
/// nothing more to say are removed.
void sayByAttributes(AttentionOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_VISIBLEWINDOWS_H
