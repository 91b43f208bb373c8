//===- OwnLanes.h - What lanes compute around large loops -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_OWNLANES_H
#define KVBUFFER_LIB_COMPILER_OWNLANES_H

namespace llvm {
class Function;
class TargetMachine;
} // namespace llvm

namespace kvbuf {

/// Lets the parts of an AMD kernel behind a large loop, and with `inLoops` its
/// other large loops, compute for themselves what they compute of the same
/// numbers of lanes as parts before them. Returns whether anything has changed.
bool computeOwnLanes(llvm::Function &kernel, llvm::TargetMachine &machine,
                     bool inLoops);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_OWNLANES_H
