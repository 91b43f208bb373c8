//===- Report.h - A page about one kernel -----------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a kernel is at each stage, line by line, and how the lines of one stage
/// come from those of others; where its buffers lie in LDS; how many registers
/// its hot loop needs. All of it is data (JSON); a page shows it.
///
/// The links between stages are locations: each stage is printed, each op is
/// given its line in that print beside the lines of the stages before, and the
/// passes carry locations on.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_REPORT_REPORT_H
#define KVBUFFER_REPORT_REPORT_H

#include "kvbuffer/Compiler/Compiler.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/JSON.h"

namespace kvbuf {

/// The section of an artifact that holds the report's data.
inline constexpr llvm::StringLiteral kReportSection = "report";

/// Lowers `module` in place as `compile` does, and makes an artifact with one
/// section more, `kReportSection`. Its code for the emulator has the lines of
/// the target stage's print for locations ("kvbuf-target:12:3"), so that what
/// the emulator counts can be looked up. Kernels beside the first one
/// (CompileOptions::alternatives) are left out.
llvm::FailureOr<Artifact> compileForReport(mlir::ModuleOp module,
                                           const CompileOptions &options);

/// Where the buffers of a kernel (its `kvbuffer.lds`) lie: for each an object
/// with `name`, `offset`, `slots`, `slot_bytes`, `rows`, `cols`,
/// `element_bytes`, `turned`, and `vectors`: by rows, and in these by groups of
/// elements that are 16 bytes, the number of the 16 bytes in a slot. Buffers
/// whose elements' places are not known are left out.
llvm::json::Array describeLds(mlir::Operation *kernel);

/// Registers of 32 bits that the values of a kernel at the target stage need in
/// its innermost loop with the most operations: pairs of a line, which `lineOf`
/// tells, and the registers before it. Constants and predicates need none.
/// Empty without a loop.
llvm::json::Array
describeRegisters(mlir::Operation *kernel,
                  llvm::function_ref<int64_t(mlir::Operation *)> lineOf);

/// One self-contained HTML page that shows `data`: an object with `program`
/// (the section above), `emulator` (its report, with `trace`) and `run` (what
/// was run, on which sizes, with `flop`, `bytes` and, if it was measured,
/// `bench`).
std::string renderPage(const llvm::json::Value &data);

} // namespace kvbuf

#endif // KVBUFFER_REPORT_REPORT_H
