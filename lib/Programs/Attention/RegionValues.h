//===- RegionValues.h - Values of a problem's functions ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_REGIONVALUES_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_REGIONVALUES_H

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// A value behind casts between integers, which keys and rows pass unchanged.
mlir::Value stripCasts(mlir::Value value);

/// Copies `value`, of a problem's function, with all that it needs and `known`
/// does not have.
mlir::Value copyValue(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                      mlir::IRMapping &known);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_REGIONVALUES_H
