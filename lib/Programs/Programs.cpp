//===- Programs.cpp - The programs of all problems
//----------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Programs/Programs.h"

void kvbuf::registerPrograms(mlir::DialectRegistry &registry) {
#define KVBUF_PROBLEM(NAME) register##NAME##Program(registry);
#include "kvbuffer/Problems.def"
}
