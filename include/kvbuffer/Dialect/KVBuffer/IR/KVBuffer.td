//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The whole dialect: what generators are run on. Each file that it includes
// parses by itself too.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFER_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFER_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAMDOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferCacheOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferFragmentOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferLaneOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferLayoutOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferMapOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferNVIDIAOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferProblemOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferRingOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferSoftmaxOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferTeamOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferTmaOps.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferWorkOps.td"

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFER_TD
