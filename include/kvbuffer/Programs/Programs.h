//===- Programs.h - The programs of all problems -----------------*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PROGRAMS_PROGRAMS_H
#define KVBUFFER_PROGRAMS_PROGRAMS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace kvbuf {

/// Lets each problem of Problems.def answer what passes ask (ProblemInterface).
void registerPrograms(mlir::DialectRegistry &registry);

#define KVBUF_PROBLEM(NAME)                                                    \
  void register##NAME##Program(mlir::DialectRegistry &registry);
#include "kvbuffer/Problems.def"

} // namespace kvbuf

#endif // KVBUFFER_PROGRAMS_PROGRAMS_H
