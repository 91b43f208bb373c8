//===- LateChoices.h - Conditions of choices, made late ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_LATECHOICES_H
#define KVBUFFER_LIB_COMPILER_LATECHOICES_H

namespace llvm {
class Function;
} // namespace llvm

namespace kvbuf {

/// Has an AMD kernel compare for each choice between a number and a constant
/// when the number is there: a lane's answer takes two scalar registers from
/// then on, and answers for a whole tile of scores more than there are. In
/// front of and behind loops, and, with `inLoops`, in these, too. Returns
/// whether anything has changed.
bool compareLate(llvm::Function &kernel, bool inLoops);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_LATECHOICES_H
