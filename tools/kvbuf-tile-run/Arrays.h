//===- Arrays.h - Tile programs on arrays from files ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_TILE_RUN_ARRAYS_H
#define KVBUF_TOOLS_TILE_RUN_ARRAYS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <map>
#include <optional>
#include <string>

namespace kvbuf::tilerun {

/// What a tile program of any kind runs on: arrays from .npy files, by the
/// names of arguments (`kvbuffer.name`; of a cache `k` also `k.table` and so
/// on).
struct ArrayRun {
  std::map<std::string, std::string> inputs, expected, outputs;
  std::map<std::string, int64_t> sizes;
  /// Empty: what the kernel's `kvbuffer.grid` says.
  std::optional<std::array<int64_t, 3>> grid;
  /// The largest difference from what is expected, relative to the largest
  /// expected magnitude.
  double tolerance = 0;
  /// See TileInterpreter::run.
  uint64_t order = 0;
};

/// Runs a kernel. Returns whether it kept its promises and all outputs are as
/// expected. Throws rt::Error for bad input; diagnostics for what the
/// interpreter refuses are followed by an rt::Error, too.
bool runOnArrays(mlir::gpu::GPUFuncOp kernel, const ArrayRun &run,
                 llvm::raw_ostream &os);

} // namespace kvbuf::tilerun

#endif // KVBUF_TOOLS_TILE_RUN_ARRAYS_H
