//===- ProgramBuilder.h - What all tile programs are built of ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_PROGRAMBUILDER_H
#define KVBUFFER_LIB_PROGRAMS_PROGRAMBUILDER_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf {

/// Builds the tile program of a problem, at a builder's place.
class ProgramBuilder {
protected:
  explicit ProgramBuilder(mlir::ImplicitLocOpBuilder &b) : b(b) {}

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  FragmentType fragment(int64_t rows, int64_t cols, mlir::Type type,
                        Role role) {
    return FragmentType::get(b.getContext(), rows, cols, type, role);
  }
  mlir::Value fill(FragmentType type, float value) {
    return FragmentFillOp::create(b, type, b.getF32FloatAttr(value));
  }

  mlir::ImplicitLocOpBuilder &b;
};

/// The same, where operands of the problem's op are found in a map.
class MappedProgramBuilder : protected ProgramBuilder {
protected:
  MappedProgramBuilder(mlir::ImplicitLocOpBuilder &b,
                       const mlir::IRMapping &args)
      : ProgramBuilder(b), args(args) {}

  /// What an operand of the op is in the kernel.
  mlir::Value operand(mlir::Value value) { return args.lookup(value); }

  const mlir::IRMapping &args;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_PROGRAMBUILDER_H
