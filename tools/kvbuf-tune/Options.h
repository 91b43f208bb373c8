//===- Options.h - Command line of kvbuf-tune -------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TUNE_OPTIONS_H
#define KVBUF_TUNE_OPTIONS_H

#include "../support/CommandLine.h"

#include <optional>
#include <string>
#include <vector>

namespace kvbuf::tune {

/// The command line, parsed.
struct Options : run::KernelOptions {
  /// Texts for the compiler; the first is "", its own choice. Empty: what the
  /// compiler proposes for the target.
  std::vector<std::string> schedules;
  bool check = true, verbose = false;
  /// Emulate the sizes that are asked for, however long it takes.
  bool fullSize = false;
  /// Turns of each schedule, and milliseconds of a turn.
  unsigned rounds = 5;
  double turn = 50;
  /// How many of the fastest take turns again, beside the compiler's own, and
  /// milliseconds of such a turn; as long a run that does not count is in
  /// front.
  unsigned finals = 8;
  double finalTurn = 200;
  /// The first option that says how turns are taken; empty: none was given.
  std::string turnOption;
  /// Lines of the ranking.
  unsigned top = 20;
  std::string json, csv, best;
};

/// Parses; on --help or --version prints and returns nothing. Throws rt::Error
/// with one sentence on bad usage.
std::optional<Options> parseCommandLine(int argc, char **argv);

} // namespace kvbuf::tune

#endif // KVBUF_TUNE_OPTIONS_H
