//===- LostRequest.h - What a schedule asks for and does not get *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How passes say that they leave a program as it is although its schedule asks
/// for more.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_LOSTREQUEST_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_LOSTREQUEST_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {

/// Warns at `op` that a pass does not do what the schedule asks for: `text`
/// says what is not done and why ("not overlapped: ..."). A warning is shown
/// whatever remarks are asked for; the remark `name` of `pass` is for tools.
inline void warnLost(mlir::Operation *op, llvm::StringRef pass,
                     llvm::StringRef name, const llvm::Twine &text) {
  op->emitWarning() << text;
  mlir::remark::missed(op->getLoc(),
                       mlir::remark::RemarkOpts::name(name).category(pass))
      << text.str();
}

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_LOSTREQUEST_H
