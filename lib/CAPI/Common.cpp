//===- Common.cpp - What the C APIs share ---------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer-c/Common.h"
#include <cstdlib>

void kvbufFree(void *memory) { std::free(memory); }

const char *kvbufCompilerVersion(void) { return KVBUF_VERSION; }
