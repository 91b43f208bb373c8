//===- RocdlPatterns.h - Parts of the lowering to rocdl ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOROCDL_ROCDLPATTERNS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOROCDL_ROCDLPATTERNS_H

#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kvbuf::torocdl {

/// The chip that an op's module names; where it names none, the vendor's
/// default.
TargetInfo chipOf(mlir::Operation *op);

/// A constant of an integer type.
mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
                     int64_t value);
/// A constant of 32 bits.
mlir::Value i32(mlir::OpBuilder &b, mlir::Location loc, int64_t value);

/// Adds what lowers products, and what puts elements together for them and
/// takes them apart.
void addMatrixPatterns(mlir::RewritePatternSet &patterns,
                       mlir::LLVMTypeConverter &converter);

/// Adds what lowers ranges of memory, loads of them, copies into LDS, reads of
/// it, and LDS itself.
void addMemoryPatterns(mlir::RewritePatternSet &patterns,
                       mlir::LLVMTypeConverter &converter);

} // namespace kvbuf::torocdl

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOROCDL_ROCDLPATTERNS_H
