//===- Gemm.h - Products of matrices: op and program --------------*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_GEMM_GEMM_H
#define KVBUFFER_LIB_PROGRAMS_GEMM_GEMM_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemInterface.h"
#include "kvbuffer/Target/TargetInfo.h"
#include <array>

#define GET_OP_CLASSES
#include "Gemm/GemmOps.h.inc"

namespace kvbuf::gemm {

/// What kernels and launches call the sizes m, n and k.
inline constexpr llvm::StringLiteral kSizeNames[] = {"m", "n", "k"};

/// Columns of A, of 16 bits, that a step of the loop takes.
inline constexpr int64_t kStep = 64;

/// ProblemInterface's methods; see there.
llvm::LogicalResult chooseSchedule(GemmOp op, const ScheduleQuery &query);
llvm::SmallVector<std::string> candidates(const TargetInfo &target);
llvm::LogicalResult buildTile(GemmOp op, mlir::func::FuncOp function,
                              const TargetInfo &target);
KernelVariants variants(GemmOp op, const VariantQuery &query);

} // namespace kvbuf::gemm

#endif // KVBUFFER_LIB_PROGRAMS_GEMM_GEMM_H
