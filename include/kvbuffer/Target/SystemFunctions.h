//===- SystemFunctions.h - What a driver gives kernels ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TARGET_SYSTEMFUNCTIONS_H
#define KVBUFFER_TARGET_SYSTEMFUNCTIONS_H

#include "kvbuffer/Target/TargetInfo.h"

namespace kvbuf {

/// The functions that kernels of a vendor may call without a body of them in
/// their module: the driver has it, or the backend knows what it comes to.
/// Kernels are linked with no library.
llvm::ArrayRef<llvm::StringLiteral> systemFunctions(Vendor vendor);

} // namespace kvbuf

#endif // KVBUFFER_TARGET_SYSTEMFUNCTIONS_H
