//===- Knowledge.h - What the language server knows -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What MLIR's language server cannot know of the dialect: what its ops, types
/// and attributes mean, which words stand in their brackets, and what the
/// compiler says of a problem before it lowers it.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_LSP_SERVER_KNOWLEDGE_H
#define KVBUF_TOOLS_LSP_SERVER_KNOWLEDGE_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace kvbuf::lsp {

/// The description of the op, type or attribute whose name is at `offset` of
/// `text`, as Markdown; empty: there is none.
std::string describe(llvm::StringRef text, size_t offset);

/// A word to complete, and what it is.
struct Word {
  std::string name, detail;
};

/// The words that may stand at `offset`, within the brackets of a
/// `#kvbuffer.mask<`, `#kvbuffer.schedule<` or `!kvbuffer.cache<`; empty
/// elsewhere.
std::vector<Word> complete(llvm::StringRef text, size_t offset);

/// What lowering the problems of a module to the tile stage says, as the LSP's
/// diagnostics: schedules that do not fit, operands that are refused. Empty for
/// text that does not parse, of which MLIR's server tells, or without problems.
llvm::json::Array diagnose(const mlir::DialectRegistry &registry,
                           llvm::StringRef text);

} // namespace kvbuf::lsp

#endif // KVBUF_TOOLS_LSP_SERVER_KNOWLEDGE_H
