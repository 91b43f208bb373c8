//===- CompareBySign.h - Order of 64-bit numbers ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_COMPAREBYSIGN_H
#define KVBUFFER_LIB_COMPILER_COMPAREBYSIGN_H

namespace llvm {
class Function;
class TargetMachine;
} // namespace llvm

namespace kvbuf {

/// Lets large loops of an AMD kernel order 64-bit numbers that all lanes have
/// in common by scalar instructions; false if there are none.
bool compareBySign(llvm::Function &kernel, llvm::TargetMachine &machine);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_COMPAREBYSIGN_H
