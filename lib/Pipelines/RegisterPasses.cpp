//===- RegisterPasses.cpp - Every pass of this project --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Pipelines/Passes.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "kvbuffer/Programs/Passes.h"
#include "kvbuffer/Transforms/AMD/Passes.h"

void kvbuf::registerAllPasses() {
  registerKVBufferTransformsPasses();
  registerKVBufferConversionPasses();
  registerKVBufferAMDPasses();
  registerKVBufferProgramsPasses();
  registerKVBufferPipelinesPasses();
}
