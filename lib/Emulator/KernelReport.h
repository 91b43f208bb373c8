//===- KernelReport.h - What a kernel did -----------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_KERNELREPORT_H
#define KVBUFFER_LIB_EMULATOR_KERNELREPORT_H

#include "Decoder.h"
#include "Window.h"

#include "llvm/Support/JSON.h"

namespace kvbuf::emu {

/// What one kernel did in all its launches.
struct KernelTotals {
  uint64_t launches = 0, blocks = 0, unwaited = 0;
  double seconds = 0;
  std::vector<uint64_t> runs, lanes;
  std::vector<MemStat> stats;
  std::vector<Finding> findings;
  /// Of the block that was traced; null: none was.
  llvm::json::Value trace = nullptr;
};

/// A kernel that was decoded.
struct Kernel {
  Program program;
  KernelTotals totals;
  /// Why it cannot be executed: severity, location, text.
  std::vector<std::tuple<Severity, std::string, std::string>> refusal;

  /// Adds what a launch did.
  void add(const Launch &launch, double seconds);
  /// Its entry in the report, of all its launches.
  llvm::json::Object report() const;
};

} // namespace kvbuf::emu

#endif // KVBUFFER_LIB_EMULATOR_KERNELREPORT_H
