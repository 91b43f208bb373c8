//===- SumsOfLanes.h - Sums of lanes' numbers with a loop's -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_SUMSOFLANES_H
#define KVBUFFER_LIB_COMPILER_SUMSOFLANES_H

namespace llvm {
class Function;
class TargetMachine;
} // namespace llvm

namespace kvbuf {

/// Has an AMD kernel's large loops add a product that all lanes have in common
/// to what each lane keeps, as the place of a tile in a page to that of the
/// lane's row, by one vector instruction an iteration. Returns whether anything
/// has changed.
bool addProductsByScalars(llvm::Function &kernel, llvm::TargetMachine &machine);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_SUMSOFLANES_H
