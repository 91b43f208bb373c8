//===- AwaitReleases.h - Waits for what a release writes back ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_AWAITRELEASES_H
#define KVBUFFER_LIB_COMPILER_AWAITRELEASES_H

#include <cstdint>

namespace llvm {
class Function;
} // namespace llvm

namespace kvbuf {

/// Lets every release of an AMD function at a scope wider than a block wait for
/// the write-back of L2, by an `s_waitcnt` of this operand behind a fence of
/// its own (`TargetInfo::writeBackWait`).
void awaitReleases(llvm::Function &function, uint32_t wait);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_AWAITRELEASES_H
