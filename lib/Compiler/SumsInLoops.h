//===- SumsInLoops.h - Sums with constants, where they are used -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_SUMSINLOOPS_H
#define KVBUFFER_LIB_COMPILER_SUMSINLOOPS_H

namespace llvm {
class Function;
class TargetMachine;
} // namespace llvm

namespace kvbuf {

/// Has an AMD kernel add many constants to a number that all lanes have in
/// common where the sums are used, as the places in LDS of a tile's copies are:
/// LLVM would hold each sum in a scalar register through a loop. Returns
/// whether anything has changed.
bool addWhereUsed(llvm::Function &kernel, llvm::TargetMachine &machine);

/// Has an AMD kernel add constants to the place of a lane that others' numbers
/// are taken from (`ds_bpermute`) where they are taken: the instruction has
/// room for a constant, and LLVM would hold each sum in a register through a
/// loop. Returns whether anything has changed.
bool addAtExchanges(llvm::Function &kernel);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_SUMSINLOOPS_H
