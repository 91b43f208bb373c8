//===- CodeObject.h - Reads AMD code objects --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_CODEOBJECT_H
#define KVBUFFER_LIB_COMPILER_CODEOBJECT_H

#include "kvbuffer/Compiler/IsaReport.h"

namespace kvbuf {

/// A kernel as it lies in a code object.
struct CodeObjectKernel {
  /// What the metadata tells; no counts and no loops.
  IsaKernel metadata;
  /// The instructions, and where they lie.
  llvm::StringRef code;
  uint64_t address = 0;
};

/// A function as it lies in a code object, a kernel or one that is called.
struct CodeObjectFunction {
  llvm::StringRef name, code;
  uint64_t address = 0;
};

/// A code object. Names and code of functions refer to the file's bytes.
struct CodeObject {
  /// The chip that it is for, by the ELF header's flags.
  std::string chip;
  /// As the file lists them.
  std::vector<CodeObjectFunction> functions;
  /// By address.
  std::vector<CodeObjectKernel> kernels;
};

/// Reads an ELF file's header, symbols, and metadata note. Errors name what is
/// missing.
llvm::Expected<CodeObject> readCodeObject(llvm::StringRef hsaco);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_CODEOBJECT_H
