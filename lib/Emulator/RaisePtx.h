//===- RaisePtx.h - Operations in place of PTX in the text ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_RAISEPTX_H
#define KVBUF_LIB_EMULATOR_RAISEPTX_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kvbuf::emu {

/// Replaces inline assembly by the operation of the NVVM dialect that makes
/// such text, if there is one; erases the result that an assembly of no result
/// gets from MLIR's import.
void raisePtx(mlir::LLVM::InlineAsmOp text);

struct PtxInstruction;

/// Makes operations of the LLVM dialect of straight lines of arithmetic, and
/// returns the one whose result is that of `text`; null where there is another
/// instruction. `numbered`: "$0" and on, null for outputs.
mlir::Operation *raiseArithmetic(mlir::LLVM::InlineAsmOp text,
                                 llvm::ArrayRef<PtxInstruction> instructions,
                                 llvm::ArrayRef<mlir::Value> numbered);

/// Makes operations of the LLVM and NVVM dialects of each statement, before
/// `text`, and replaces its result. False where one is not known.
bool raiseStatements(mlir::LLVM::InlineAsmOp text,
                     llvm::ArrayRef<PtxInstruction> instructions,
                     llvm::ArrayRef<mlir::Value> numbered);

/// The opcode of the first statement that `raiseStatements` knows nothing of;
/// empty: of an unknown form are operands.
llvm::StringRef unknownStatement(llvm::StringRef text);

/// How the opcodes begin that `raiseStatements` knows.
llvm::ArrayRef<llvm::StringRef> knownStatements();

/// What a comparison of floats is called in PTX ("ltu": less, or unordered), as
/// LLVM has it; nothing for another word.
std::optional<mlir::LLVM::FCmpPredicate>
ptxFloatPredicate(llvm::StringRef name);

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_RAISEPTX_H
