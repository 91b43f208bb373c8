//===- ProblemInterface.h - What passes ask of a problem --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMINTERFACE_H
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMINTERFACE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <functional>
#include <optional>
#include <string>

namespace kvbuf {

struct TargetInfo;

/// An operand of a problem, and the name that it has in the kernel and in the
/// manifest. Those that a problem lacks have null values.
struct NamedOperand {
  mlir::Value value;
  llvm::StringRef name;
};

/// What a schedule is chosen for.
struct ScheduleQuery {
  const TargetInfo &target;
  /// Parameters that the caller asks for ("BM=64,warps=2").
  llvm::StringRef asked;
  /// The caller has other kernels for launches that this one does not suit.
  bool otherByLaunch = false;
};

/// A kernel that a problem gets besides its first one, and how it is lowered.
struct KernelAlternative {
  /// Its name, by what it is for or what the kernel before it needs:
  /// `<entry>_of_few_rows`, `<entry>_without_maps`, `<entry>_unaligned`.
  std::string name;
  /// If set: parameters of the schedule instead of the caller's, and the
  /// problem's own schedule does not count.
  std::optional<std::string> schedule;
  /// Bytes that addresses and strides of 16-bit tensors are multiples of.
  int64_t alignment = 16;
  /// The condition (the field `launch_if`) on launches of the kernel before it;
  /// null where what that one can take decides alone.
  mlir::Attribute launchIf;
  /// If set: launches run it beside the first kernel, too, and this is what it
  /// takes there (`kSharedRowsAttr`).
  mlir::Attribute sharedRows;
  /// If not 0: as many query rows as each sequence of its launches has
  /// (`kKnownRowsAttr`).
  int64_t knownRows = 0;
  /// If set: makes a module at the thread stage with one kernel, of a name,
  /// that every launch of this one runs ahead of it.
  std::function<mlir::OwningOpRef<mlir::ModuleOp>(llvm::StringRef)> ahead;
  /// For a remark: "which runs ...".
  std::string when;
};

/// What is asked for the kernels that launches choose between.
struct VariantQuery {
  /// The first kernel, at the target stage.
  mlir::LLVM::LLVMFuncOp kernel;
  const TargetInfo &target;
  /// Parameters that the caller asks for.
  llvm::StringRef asked;
  /// The caller's launches run kernels ahead of others.
  bool runsAhead = false;
};

/// Kernels besides a first one, in the order in which they are tried.
struct KernelVariants {
  llvm::SmallVector<KernelAlternative> list;
  /// The condition on launches of the last of them (of the first kernel, where
  /// there are none) for one more kernel; null without one.
  mlir::Attribute launchIf;
  /// Whether there is no one more, for tensors that the last cannot take.
  bool complete = false;
  /// The tensors that launches may copy for kernels that cannot take them: all
  /// of them are read, or all of what is written of them.
  llvm::SmallVector<std::string> copied;
  /// The condition under which copies for kernels that do not split keys are
  /// faster than a kernel for any tensors.
  mlir::Attribute copiesPay;
};

} // namespace kvbuf

#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemInterface.h.inc"

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMINTERFACE_H
