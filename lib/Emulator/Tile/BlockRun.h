//===- BlockRun.h - Executes a kernel for one block -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_BLOCKRUN_H
#define KVBUFFER_LIB_EMULATOR_TILE_BLOCKRUN_H

#include "Tensors.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <variant>

namespace kvbuf::emu::tile {

using MatrixRef = std::shared_ptr<const Matrix>;

/// An object of an op's own type that a value stands for.
struct Object {
  mlir::TypeID type;
  std::shared_ptr<void> object;
};

/// What an SSA value is at run time. Scalars are attributes, so that the
/// folders of their ops compute with them; nothing: an undefined value.
using RuntimeValue =
    std::variant<std::monostate, mlir::Attribute, Tensor *,
                 std::shared_ptr<const Tile>, MatrixRef, Object>;

/// Executes a kernel for one block: control flow, scalars, and what it offers
/// to ops, which do the rest (`TileExecutionInterface`).
class BlockRun : public TileContext {
public:
  BlockRun(mlir::gpu::GPUFuncOp kernel, llvm::ArrayRef<RuntimeValue> arguments,
           std::array<int64_t, 3> block, std::array<int64_t, 3> grid,
           const llvm::StringMap<int64_t> &sizes, TileReport &report);

  /// Fails with a diagnostic at the first broken promise.
  mlir::LogicalResult run();

  // What an op's execution is offered.

  const Matrix &matrixOf(mlir::Value fragment) override {
    return *get<MatrixRef>(fragment);
  }
  void setMatrix(mlir::Value fragment, Matrix matrix) override {
    set(fragment, std::make_shared<const Matrix>(std::move(matrix)));
  }
  MatrixRef shareMatrix(mlir::Value fragment) override {
    return get<MatrixRef>(fragment);
  }
  void setMatrix(mlir::Value fragment, MatrixRef matrix) override {
    set(fragment, std::move(matrix));
  }
  mlir::FailureOr<Matrix> stagedBy(mlir::Operation *op,
                                   mlir::Value staged) override;
  mlir::FailureOr<Matrix> tileBy(mlir::Operation *op,
                                 mlir::Value tile) override;
  double floatOf(mlir::Value value) override {
    return mlir::cast<mlir::FloatAttr>(get<mlir::Attribute>(value))
        .getValueAsDouble();
  }
  void setFloat(mlir::Value value, double number) override {
    set(value, mlir::Attribute(mlir::FloatAttr::get(value.getType(), number)));
  }
  void countMultiplyAdds(int64_t count) override {
    report.multiplyAdds += count;
  }
  TileReport &counts() override { return report; }
  int64_t integerOf(mlir::Value value) override;
  void setInteger(mlir::Value value, int64_t integer) override;
  void setSame(mlir::Value value, mlir::Value source) override {
    set(value, values[source]);
  }
  TilePlace place() const override;
  mlir::LogicalResult runBody(mlir::Block &body) override;
  mlir::LogicalResult runTeam(mlir::Operation *team, int64_t copy) override;
  void meet() override;
  mlir::FailureOr<int64_t> sizeOf(mlir::Operation *op,
                                  mlir::Attribute expression) override;
  std::optional<int64_t> findSize(llvm::StringRef name) override;
  Tensor &tensorOf(mlir::Value tensor) override {
    return *get<Tensor *>(tensor);
  }
  void setTensor(mlir::Value value, Tensor &tensor) override {
    set(value, &tensor);
  }
  const Tile &tileOf(mlir::Value tile) override {
    return *get<std::shared_ptr<const Tile>>(tile);
  }
  void setTile(mlir::Value value, Tile tile) override {
    set(value, std::make_shared<const Tile>(std::move(tile)));
  }
  llvm::LogicalResult
  setTileRows(mlir::Operation *op, mlir::Value tile, mlir::Value tensor,
              llvm::ArrayRef<std::vector<int64_t>> rows) override;
  mlir::FailureOr<int64_t> elementOf(mlir::Operation *op, mlir::Value tensor,
                                     llvm::ArrayRef<int64_t> index) override;
  mlir::InFlightDiagnostic errorAt(mlir::Operation *op) override;

protected:
  void setAnyObject(mlir::Value value, mlir::TypeID type,
                    std::shared_ptr<void> object) override {
    set(value, Object{type, std::move(object)});
  }
  std::shared_ptr<void> findAnyObject(mlir::Value value,
                                      mlir::TypeID type) override;
  std::unique_ptr<TileState> &anyStateOf(mlir::TypeID type,
                                         bool ofTeam) override;

private:
  mlir::LogicalResult runAny(mlir::Operation *op);
  mlir::LogicalResult runFor(mlir::scf::ForOp op);
  mlir::LogicalResult runIf(mlir::scf::IfOp op);
  mlir::LogicalResult runWhile(mlir::scf::WhileOp op);
  mlir::LogicalResult runDefault(mlir::Operation *op);
  /// Gives values what others are, all at once.
  void pass(mlir::ValueRange from, mlir::ValueRange to);

  template <typename T> const T &get(mlir::Value value) {
    return std::get<T>(values[value]);
  }
  void set(mlir::Value value, RuntimeValue runtime) {
    values[value] = std::move(runtime);
  }

  /// States in the order in which they were made.
  using States = llvm::MapVector<mlir::TypeID, std::unique_ptr<TileState>>;
  /// Asks those of an owner whether they may end, the last one first.
  mlir::LogicalResult finish(States &states, llvm::StringRef owner);

  mlir::gpu::GPUFuncOp kernel;
  std::array<int64_t, 3> block, grid;
  TileReport &report;
  llvm::DenseMap<mlir::Value, RuntimeValue> values;
  /// Iterations of the loops around the current op.
  llvm::SmallVector<int64_t> iterations;
  /// The team whose code runs and the copy of it; null outside of teams.
  TeamOp team;
  int64_t copy = 0;
  States blockStates, teamStates;
  const llvm::StringMap<int64_t> &sizes;
};

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_BLOCKRUN_H
