//===- Remarks.h - Remarks for people ---------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Hands the remarks of MLIR's remark engine to a function, as text.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_COMPILER_REMARKS_H
#define KVBUFFER_COMPILER_REMARKS_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include <functional>
#include <string>

namespace kvbuf {

/// Receives one remark, such as "prefill.mlir:12:3: remark:
/// [kvbuf-choose-schedule] schedule: BM=128, BN=64".
using RemarkFunction = std::function<void(const std::string &)>;

/// Lets the context collect the remarks whose category (the pass that emits
/// them) matches the regular expression `filter`, and hands each to `receive`.
/// Fails if remarks are enabled already.
llvm::LogicalResult enableRemarks(mlir::MLIRContext &context,
                                  llvm::StringRef filter,
                                  RemarkFunction receive);

/// "file:line:col: " of a location; of the innermost file location where there
/// are several, and empty where there is none.
std::string locationPrefix(mlir::Location loc);

} // namespace kvbuf

#endif // KVBUFFER_COMPILER_REMARKS_H
