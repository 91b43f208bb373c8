//===- ReloadArguments.h - Arguments out of registers -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_RELOADARGUMENTS_H
#define KVBUFFER_LIB_COMPILER_RELOADARGUMENTS_H

namespace llvm {
class Function;
class TargetMachine;
} // namespace llvm

namespace kvbuf {

/// Lets an AMD kernel load its arguments where it needs them, before and after
/// its large loops, instead of at its start. Nothing is changed in a function
/// that is no kernel or has no large loop.
void reloadArguments(llvm::Function &kernel, llvm::TargetMachine &machine);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_RELOADARGUMENTS_H
