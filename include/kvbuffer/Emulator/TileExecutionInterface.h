//===- TileExecutionInterface.h - Ops that run on whole tiles ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What an op of a tile program, the dialect's own or another's, implements to
/// be executed by the tile interpreter, and what that offers to it.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_EMULATOR_TILEEXECUTIONINTERFACE_H
#define KVBUFFER_EMULATOR_TILEEXECUTIONINTERFACE_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"
#include <vector>

namespace kvbuf::emu {

/// A matrix of numbers: a fragment, or the contents of a slot.
struct Matrix {
  Matrix() = default;
  Matrix(int64_t rows, int64_t cols, float value = 0)
      : rows(rows), cols(cols), data(rows * cols, value) {}
  float &at(int64_t r, int64_t c) { return data[r * cols + c]; }
  float at(int64_t r, int64_t c) const { return data[r * cols + c]; }

  int64_t rows = 0, cols = 0;
  std::vector<float> data;
};

/// A block that is being executed, as an op sees it.
class TileContext {
public:
  virtual ~TileContext() = default;

  /// The elements of a fragment; row values have one column.
  virtual const Matrix &matrixOf(mlir::Value fragment) = 0;
  virtual void setMatrix(mlir::Value fragment, Matrix matrix) = 0;
  /// What a slot of LDS, or the view of one, holds; fails, with an error at
  /// `op`, where `op` must not read it now.
  virtual llvm::FailureOr<Matrix> stagedBy(mlir::Operation *op,
                                           mlir::Value staged) = 0;
  /// The elements of a tile in DRAM, zeros where it has none; fails, with an
  /// error at `op`, where they must not be read now.
  virtual llvm::FailureOr<Matrix> tileBy(mlir::Operation *op,
                                         mlir::Value tile) = 0;
  /// A floating-point number.
  virtual double floatOf(mlir::Value value) = 0;
  /// Counts the multiplications and additions of a product, for the report.
  virtual void countMultiplyAdds(int64_t count) = 0;
  /// An integer or index.
  virtual int64_t integerOf(mlir::Value value) = 0;
  virtual void setInteger(mlir::Value value, int64_t integer) = 0;
  /// Says of a tile in DRAM that it is of rows of `tensor`, an argument of the
  /// kernel: the indices of each in all dimensions but the last, which columns
  /// run along from 0 on. Those that are left of the tile's rows are not valid.
  /// Fails, with an error at `op`, where the tensor has no such row.
  virtual llvm::LogicalResult
  setTileRows(mlir::Operation *op, mlir::Value tile, mlir::Value tensor,
              llvm::ArrayRef<std::vector<int64_t>> rows) = 0;
  /// An element of a tensor of integers; fails, with an error at `op`, where
  /// there is none.
  virtual llvm::FailureOr<int64_t> elementOf(mlir::Operation *op,
                                             mlir::Value tensor,
                                             llvm::ArrayRef<int64_t> index) = 0;
  /// Begins an error at an op, with the block and the loops' iterations.
  virtual mlir::InFlightDiagnostic errorAt(mlir::Operation *op) = 0;
};

/// Gives the ops of `kvbuffer` that act on tiles their meaning.
/// `TileInterpreter::create` does it for its context.
void registerTileExecutionModels(mlir::DialectRegistry &registry);

} // namespace kvbuf::emu

#include "kvbuffer/Emulator/TileExecutionInterface.h.inc"

#endif // KVBUFFER_EMULATOR_TILEEXECUTIONINTERFACE_H
