//===- AskedSchedule.h - Parameters that a user asks for --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_ASKEDSCHEDULE_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_ASKEDSCHEDULE_H

#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringSet.h"

namespace kvbuf {

/// Parameters that a user asks for, as text: "BM=64,warps=2,mma_shape=16x8x16".
class AskedSchedule {
public:
  /// Reads a text; says at `loc` what was expected where it is wrong.
  static llvm::FailureOr<AskedSchedule> parse(llvm::StringRef text,
                                              mlir::Location loc);

  /// The values, each its default where nobody asks for it.
  const ScheduleParameters &values() const { return parameters; }
  /// Whether a parameter is asked for, whatever its value.
  bool names(llvm::StringRef name) const { return named.contains(name); }
  /// A parameter that is asked for and is none of `known`; empty if there is
  /// none.
  llvm::StringRef nameBeside(llvm::ArrayRef<llvm::StringLiteral> known) const;
  /// Whether what has the value `value` is asked not to be.
  bool refuses(llvm::StringRef name, bool value) const {
    return names(name) && !value;
  }
  /// Replaces parameters of `choice` by those that are asked for.
  void applyTo(ScheduleParameters &choice) const;

private:
  ScheduleParameters parameters;
  llvm::StringSet<> named;
};

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_ASKEDSCHEDULE_H
