//===- ParkUniforms.h - Scalars in vector registers ----------- -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_PARKUNIFORMS_H
#define KVBUFFER_LIB_COMPILER_PARKUNIFORMS_H

#include <cstddef>

namespace llvm {
class Function;
class TargetMachine;
} // namespace llvm

namespace kvbuf {

/// Lets what all lanes of an AMD kernel have in common, is needed around its
/// large loops and not in them, be in vector registers through these loops, in
/// about `most` of them, what is needed longest first; and comparisons of lanes
/// be made in each iteration of a loop around them. With `addressesBefore`,
/// addresses that these loops leave the same are computed before them, so that
/// what they are made of counts as not needed there. Returns whether anything
/// has changed.
bool parkUniforms(llvm::Function &kernel, llvm::TargetMachine &machine,
                  size_t most, bool addressesBefore);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_PARKUNIFORMS_H
