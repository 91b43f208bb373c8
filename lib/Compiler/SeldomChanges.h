//===- SeldomChanges.h - What follows from numbers that seldom change -----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_SELDOMCHANGES_H
#define KVBUFFER_LIB_COMPILER_SELDOMCHANGES_H

namespace llvm {
class Function;
} // namespace llvm

namespace kvbuf {

/// Lets an AMD kernel's large loops carry what follows, by constants alone,
/// from a number that only blocks change which are seldom executed: these
/// compute it anew. That is what arithmetic, absolute values, maxima and
/// choices by comparisons make of it; its last results, which something else
/// looks at, are carried. Returns whether anything has changed.
bool carrySeldomChanges(llvm::Function &kernel);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_SELDOMCHANGES_H
