//===- BufferizableOpInterfaceImpl.h - Bufferization of problems *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace kvbuf {

/// Lets one-shot-bufferize take `kvbuffer.attention` and
/// `kvbuffer.cache_append` on tensors. `registerAllDialects` calls it.
void registerBufferizableOpInterfaceExternalModels(
    mlir::DialectRegistry &registry);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
