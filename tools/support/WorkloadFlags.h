//===- WorkloadFlags.h - Options that describe a workload -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_SUPPORT_WORKLOADFLAGS_H
#define KVBUF_TOOLS_SUPPORT_WORKLOADFLAGS_H

#include "kvbuffer/Runtime/Workload.h"

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace kvbuf::run {

/// Splits "name=value"; throws rt::Error that names the option.
std::pair<std::string, std::string> splitPair(const std::string &option,
                                              const std::string &text);

/// A decimal integer; throws rt::Error that names the option.
int64_t parseInteger(const std::string &option, const std::string &text);

/// Adds an option that may be repeated and takes one value each time, so that a
/// value is never mistaken for FILE.
void addRepeated(CLI::App &app, const char *name, std::vector<std::string> &to,
                 const char *help, const char *typeName);

/// Sizes, lengths, inputs, memory layout and the emulator's options, as every
/// tool that runs kernels takes them. Must outlive the parse.
class WorkloadFlags {
public:
  void addTo(CLI::App &app);
  /// What was given, after the parse. Throws rt::Error with one sentence.
  void apply(rt::WorkloadOptions &to) const;
  /// --emulator's pairs as a JSON object.
  std::string emulatorOptions() const;

private:
  std::vector<std::string> sizes, inputs, strides, offsets, emulator;
  std::string lengthsQ, lengthsK, cacheLengths, init = "normal",
                                                layout = "seq-major";
  uint64_t seed = 1;
  int64_t rowPad = 0;
  bool sharePages = false, separateTables = false;
};

} // namespace kvbuf::run

#endif // KVBUF_TOOLS_SUPPORT_WORKLOADFLAGS_H
