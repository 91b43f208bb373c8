//===- Passes.h - Conversions out of the kvbuffer dialect -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_CONVERSION_PASSES_H
#define KVBUFFER_CONVERSION_PASSES_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class LLVMTypeConverter;
class RewritePatternSet;
} // namespace mlir

namespace kvbuf {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "kvbuffer/Conversion/Passes.h.inc"

/// The patterns of `convert-kvbuffer-to-nvvm` for this dialect's ops of lanes,
/// and for arithmetic that NVIDIA's chips have instructions for. Those of
/// upstream's dialects (arith, cf, gpu, memref, nvgpu, vector) are the caller's
/// to add.
void populateKVBufferToNVVMConversionPatterns(
    const mlir::LLVMTypeConverter &converter,
    mlir::RewritePatternSet &patterns);

/// The same for `convert-kvbuffer-to-rocdl`. Adds the conversion of
/// `!kvbuffer.range`, a buffer resource, to the converter.
void populateKVBufferToROCDLConversionPatterns(
    mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns);

/// The patterns of `kvbuf-expand-float8`; `converts`: the chip is an NVIDIA one
/// with instructions that convert pairs of 8-bit floats (sm_89 and later).
void populateExpandFloat8Patterns(mlir::RewritePatternSet &patterns,
                                  bool converts);

} // namespace kvbuf

#endif // KVBUFFER_CONVERSION_PASSES_H
