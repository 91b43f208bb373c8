//===- LaneMasks.h - Bits of the lanes' numbers ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_LANEMASKS_H
#define KVBUFFER_LIB_COMPILER_LANEMASKS_H

#include <cstdint>

namespace llvm {
class Function;
class TargetMachine;
} // namespace llvm

namespace kvbuf {

/// Has lanes of an AMD kernel with waves of 64 lanes take the bits of their
/// numbers, of a word that all of a wave have in common, for what it is: a mask
/// of the lanes.
void takeBitsByLane(llvm::Function &kernel, llvm::TargetMachine &machine,
                    int64_t waveSize);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_LANEMASKS_H
