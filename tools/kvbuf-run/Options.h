//===- tools/kvbuf-run/Options.h - Command line of kvbuf-run ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_RUN_OPTIONS_H
#define KVBUF_RUN_OPTIONS_H

#include "../support/CommandLine.h"

#include <map>
#include <optional>
#include <string>

namespace kvbuf::run {

/// The command line, parsed.
struct Options : KernelOptions {
  /// Parameters for the compiler to replace; empty: none.
  std::string schedule;
  /// Names of tensors to files.
  std::map<std::string, std::string> outputs;
  bool check = false, bench = false;
  /// "text", the file of a page, or nothing.
  std::string report;
  /// 0: automatic; -1: all.
  int64_t checkRows = 0;
  unsigned repeat = 0;
  std::string json;
};

/// Parses; on --help or --version prints and returns nothing. Throws rt::Error
/// with one sentence on bad usage.
std::optional<Options> parseCommandLine(int argc, char **argv);

} // namespace kvbuf::run

#endif // KVBUF_RUN_OPTIONS_H
