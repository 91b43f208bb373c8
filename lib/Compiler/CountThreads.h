//===- CountThreads.h - Threads' numbers behind large loops -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_COUNTTHREADS_H
#define KVBUFFER_LIB_COMPILER_COUNTTHREADS_H

namespace llvm {
class Function;
class TargetMachine;
} // namespace llvm

namespace kvbuf {

/// Lets the parts of an AMD kernel behind its first large loop make the
/// thread's number, and what they use that is computed of it and constants,
/// anew. Returns whether anything has changed.
bool countThreadsAnew(llvm::Function &kernel, llvm::TargetMachine &machine,
                      unsigned waveSize);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_COUNTTHREADS_H
