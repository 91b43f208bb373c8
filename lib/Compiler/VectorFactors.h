//===- VectorFactors.h - Factors of many constants --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_VECTORFACTORS_H
#define KVBUFFER_LIB_COMPILER_VECTORFACTORS_H

namespace llvm {
class Function;
} // namespace llvm

namespace kvbuf {

/// Puts numbers that loops of an AMD kernel multiply many constants by, and
/// that no loop changes, into a register of each lane: an instruction then
/// takes the constant as it is.
void holdFactorsByLane(llvm::Function &kernel);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_VECTORFACTORS_H
