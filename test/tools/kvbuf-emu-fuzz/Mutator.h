//===- Mutator.h - Damages modules at the target stage ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TEST_TOOLS_EMUFUZZ_MUTATOR_H
#define KVBUF_TEST_TOOLS_EMUFUZZ_MUTATOR_H

#include "mlir/IR/BuiltinOps.h"

#include <random>
#include <string>
#include <vector>

namespace kvbuf::fuzz {

/// What a module is made of that another one may receive.
struct Pool {
  std::vector<mlir::Type> types;
  std::vector<mlir::Attribute> attributes;
  /// Names of intrinsics that are called by name.
  std::vector<std::string> intrinsics;
  /// Operations of other modules, which their modules own.
  std::vector<mlir::Operation *> operations;

  /// Takes in a module's types, attributes, intrinsics and operations.
  void collect(mlir::ModuleOp module);
  /// Adds types and numbers that nobody means well with.
  void addHostile(mlir::MLIRContext *context);
};

/// Changes modules in memory. The same seed makes the same changes.
class Mutator {
public:
  Mutator(const Pool &pool, uint64_t seed) : pool(pool), random(seed) {}

  /// Makes one change somewhere in a function; false if it found nothing to
  /// change. The module may be invalid after it.
  bool mutate(mlir::ModuleOp module);

  /// A number below `n`, which is not 0.
  uint64_t below(uint64_t n) { return random() % n; }

private:
  template <typename T> const T &pick(const std::vector<T> &from) {
    return from[below(from.size())];
  }
  mlir::Value valueBefore(mlir::Operation *op, mlir::Type like);
  mlir::Attribute change(mlir::Attribute attr);
  bool changeOperands(mlir::Operation *op);
  bool changeAttribute(mlir::Operation *op);
  bool changeIntrinsic(mlir::Operation *op);
  bool changeTypes(mlir::Operation *op);
  bool insertForeign(mlir::Operation *op);
  bool remove(mlir::Operation *op);

  const Pool &pool;
  std::mt19937_64 random;
};

} // namespace kvbuf::fuzz

#endif // KVBUF_TEST_TOOLS_EMUFUZZ_MUTATOR_H
