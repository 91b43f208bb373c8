//===- ScheduleRepair.h - What gives way to what is asked -*- C++ -* ------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A chip proposes a schedule for a problem; users ask for some parameters of
/// another one. Here is which of the chip's other parameters give way to those,
/// and to what the problem has. What users ask for never gives way: a schedule
/// that cannot be is refused (ScheduleRules.cpp, ScheduleLimits.cpp,
/// ProblemLimits.cpp).
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_SCHEDULEREPAIR_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_SCHEDULEREPAIR_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Target/TargetInfo.h"
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

/// Lets the parameters of a chip's choice give way that do not go with what is
/// asked for or with the problem.
void repairSchedule(AttentionOp op, const AskedSchedule &asked,
                    const TargetInfo &target, ScheduleChoice &choice);

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_SCHEDULEREPAIR_H
