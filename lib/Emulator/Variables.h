//===- Variables.h - A module's variables in global memory ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_VARIABLES_H
#define KVBUF_LIB_EMULATOR_VARIABLES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/MapVector.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvbuf::emu {

/// One variable: constants, strings, what kernels keep from launch to launch.
struct Variable {
  std::string name;
  bool isConstant = false, isInitialized = true;
  uint64_t bytes = 0;
  /// Its storage, with what aligns it to 256 bytes.
  std::vector<uint8_t> storage;
  uint8_t *begin = nullptr;
};

/// Those that the kernels of a module use. They live as long as the module.
using Variables = llvm::MapVector<mlir::Operation *, Variable>;

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_VARIABLES_H
