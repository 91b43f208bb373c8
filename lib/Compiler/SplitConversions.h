//===- SplitConversions.h - Conversions of odd vectors ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_SPLITCONVERSIONS_H
#define KVBUFFER_LIB_COMPILER_SPLITCONVERSIONS_H

namespace llvm {
class Function;
} // namespace llvm

namespace kvbuf {

/// Makes conversions of five to seven numbers of f16, or into such, two of four
/// numbers: LLVM 22's AMD backend cannot select them.
void splitConversions(llvm::Function &function);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_SPLITCONVERSIONS_H
