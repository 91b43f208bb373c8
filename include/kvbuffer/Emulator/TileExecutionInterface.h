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

#include "kvbuffer/Emulator/TileTensors.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Support/TypeID.h"
#include <array>
#include <memory>
#include <optional>
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

/// Whose code runs, and where in the launch.
struct TilePlace {
  /// The block, and the grid's extents.
  std::array<int64_t, 3> block, grid;
  /// Blocks of a cluster, along x.
  int64_t cluster = 1;
  /// The team, its name, and which copy of it; null outside of teams.
  mlir::Operation *team = nullptr;
  llvm::StringRef teamName;
  int64_t copy = 0;
};

class TileContext;

/// What ops of one kind have in common while a block is executed, and is no
/// value of the program: derive it from this, with a type ID
/// (`MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID`), and ask for it by
/// `TileContext::ofBlock` or `ofTeam`.
class TileState {
public:
  virtual ~TileState() = default;
  /// Checks, at the end of the `owner` that it is of, "block" or "team", that
  /// what was begun has ended; errors are reported by `context`.
  virtual llvm::LogicalResult finish(TileContext &context,
                                     llvm::StringRef owner) {
    return llvm::success();
  }
};

/// A block that is being executed, as an op sees it.
class TileContext {
public:
  virtual ~TileContext() = default;

  /// The elements of a fragment; row values have one column.
  virtual const Matrix &matrixOf(mlir::Value fragment) = 0;
  virtual void setMatrix(mlir::Value fragment, Matrix matrix) = 0;
  /// The same, to keep: what a fragment is does not change.
  virtual std::shared_ptr<const Matrix> shareMatrix(mlir::Value fragment) = 0;
  virtual void setMatrix(mlir::Value fragment,
                         std::shared_ptr<const Matrix> matrix) = 0;
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
  virtual void setFloat(mlir::Value value, double number) = 0;
  /// Counts the multiplications and additions of a product, for the report.
  virtual void countMultiplyAdds(int64_t count) = 0;
  /// Everything that the report counts.
  virtual TileReport &counts() = 0;
  /// An integer or index.
  virtual int64_t integerOf(mlir::Value value) = 0;
  virtual void setInteger(mlir::Value value, int64_t integer) = 0;
  /// Several of them.
  llvm::SmallVector<int64_t> integersOf(mlir::ValueRange values) {
    return llvm::map_to_vector(
        values, [&](mlir::Value value) { return integerOf(value); });
  }
  /// Says that `value` is what `source` is, whatever that may be.
  virtual void setSame(mlir::Value value, mlir::Value source) = 0;

  /// Values of an op's own types: an object of type `T`, with a type ID, that a
  /// value stands for, also where it has come through loops and branches.
  /// `findObject`: null for a value that stands for none of that type.
  /// `shareObject`: the object, to keep; values may stand for others later.
  template <typename T> void setObject(mlir::Value value, T object) {
    setAnyObject(value, mlir::TypeID::get<T>(),
                 std::make_shared<T>(std::move(object)));
  }
  template <typename T> T *findObject(mlir::Value value) {
    return shareObject<T>(value).get();
  }
  template <typename T> T &objectOf(mlir::Value value) {
    T *object = findObject<T>(value);
    assert(object && "expected a value that stands for an object");
    return *object;
  }
  template <typename T> std::shared_ptr<T> shareObject(mlir::Value value) {
    return std::static_pointer_cast<T>(
        findAnyObject(value, mlir::TypeID::get<T>()));
  }

  /// The state of a kind of ops: the block's, or that of the copy of the team
  /// whose code runs (outside of teams the block's, too). It is made when it is
  /// asked for first. At its owner's end `finish` is called, of the state that
  /// was made last first.
  template <typename T> T &ofBlock() { return stateOf<T>(/*ofTeam=*/false); }
  template <typename T> T &ofTeam() { return stateOf<T>(/*ofTeam=*/true); }

  /// Whose code runs.
  virtual TilePlace place() const = 0;
  /// Executes a region of an op, whose arguments have been set. What its
  /// terminator yields can be asked for then.
  virtual llvm::LogicalResult runBody(mlir::Block &body) = 0;
  /// The same of a team's, as the copy of that number: errors name it, and its
  /// states end with it.
  virtual llvm::LogicalResult runTeam(mlir::Operation *team, int64_t copy) = 0;
  /// All threads that work together meet: the block's, or the team's.
  virtual void meet() = 0;

  /// The value of an expression over sizes; fails, with an error at `op`, where
  /// one of them is not bound. A size by its name, if it is bound.
  virtual llvm::FailureOr<int64_t> sizeOf(mlir::Operation *op,
                                          mlir::Attribute expression) = 0;
  virtual std::optional<int64_t> findSize(llvm::StringRef name) = 0;

  /// A tensor of the kernel. It checks by itself what is done with it.
  virtual tile::Tensor &tensorOf(mlir::Value tensor) = 0;
  virtual void setTensor(mlir::Value value, tile::Tensor &tensor) = 0;
  /// A tile in DRAM: where its rows lie.
  virtual const tile::Tile &tileOf(mlir::Value tile) = 0;
  virtual void setTile(mlir::Value value, tile::Tile tile) = 0;
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

protected:
  virtual void setAnyObject(mlir::Value value, mlir::TypeID type,
                            std::shared_ptr<void> object) = 0;
  virtual std::shared_ptr<void> findAnyObject(mlir::Value value,
                                              mlir::TypeID type) = 0;
  virtual std::unique_ptr<TileState> &anyStateOf(mlir::TypeID type,
                                                 bool ofTeam) = 0;

private:
  template <typename T> T &stateOf(bool ofTeam) {
    std::unique_ptr<TileState> &state =
        anyStateOf(mlir::TypeID::get<T>(), ofTeam);
    if (!state)
      state = std::make_unique<T>();
    return static_cast<T &>(*state);
  }
};

/// Gives the ops of `kvbuffer` that act on tiles their meaning.
/// `TileInterpreter::create` does it for its context.
void registerTileExecutionModels(mlir::DialectRegistry &registry);

} // namespace kvbuf::emu

#include "kvbuffer/Emulator/TileExecutionInterface.h.inc"

#endif // KVBUFFER_EMULATOR_TILEEXECUTIONINTERFACE_H
