//===- Mediator.h - Between an editor and MLIR's server ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_LSP_SERVER_MEDIATOR_H
#define KVBUF_TOOLS_LSP_SERVER_MEDIATOR_H

#include "mlir/IR/DialectRegistry.h"
#include <cstdio>

namespace kvbuf::lsp {

/// Passes messages between an editor (stdin and stdout) and MLIR's language
/// server, and adds what that server does not know (Knowledge.h) to its answers
/// and notifications. `toServer` and `fromServer` are ends of pipes;
/// `delimited` is the form of tests: messages with lines "// -----" between
/// them, answers indented. Returns when both sides have ended.
void mediate(const mlir::DialectRegistry &registry, std::FILE *toServer,
             std::FILE *fromServer, bool delimited);

} // namespace kvbuf::lsp

#endif // KVBUF_TOOLS_LSP_SERVER_MEDIATOR_H
