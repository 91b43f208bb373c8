//===- Page.h - A page about a kernel ---------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_SUPPORT_PAGE_H
#define KVBUF_TOOLS_SUPPORT_PAGE_H

#include "kvbuffer/Runtime/Device.h"
#include "kvbuffer/Runtime/Problem.h"

#include <string>

namespace kvbuf::run {

/// What a page is about.
struct PageRequest {
  /// MLIR, and the file's name for messages.
  std::string source, filename;
  /// Of a module with several.
  std::string function;
  /// As for the compiler; empty: its own choice.
  std::string target, schedule, ptxas;
  /// Sizes of the launch on the emulator.
  rt::WorkloadOptions workload;
  /// The emulator's options, a JSON object.
  std::string emulator = "{}";
  /// What --bench found, a JSON object, and where; empty: nothing was timed.
  std::string bench, device;
};

/// Compiles the source once more, runs it on the emulator, of which one block
/// is traced, and returns the page. A program that the harness knows no problem
/// for is compiled alone. `message` receives the compiler's errors. Throws
/// rt::Error.
std::string makePage(const PageRequest &request,
                     const rt::MessageHandler &message);

/// Whether --report's value names a page to write.
bool isPage(const std::string &report);

/// The same, written to `path`. For code without exceptions: returns 0, or 2
/// after a message on the standard error stream that begins with `tool`.
int writePage(const std::string &tool, const PageRequest &request,
              const std::string &path);

} // namespace kvbuf::run

#endif // KVBUF_TOOLS_SUPPORT_PAGE_H
