//===- RareBlocks.h - What rare blocks compute ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_RAREBLOCKS_H
#define KVBUFFER_LIB_COMPILER_RAREBLOCKS_H

namespace llvm {
class BasicBlock;
class Function;
} // namespace llvm

namespace kvbuf {

/// Whether a block is entered by one branch alone, whose weights say that it
/// seldom is.
bool isRareBlock(const llvm::BasicBlock &block);

/// Lets blocks of an AMD kernel's loops that are seldom executed, by their
/// branches' weights, compute what they need of the lane's number themselves,
/// so that it is in no register of the loop.
void keepRareBlocksApart(llvm::Function &kernel);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_RAREBLOCKS_H
