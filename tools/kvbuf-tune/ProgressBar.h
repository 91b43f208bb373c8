//===- ProgressBar.h - How far long work has come ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TUNE_PROGRESSBAR_H
#define KVBUF_TUNE_PROGRESSBAR_H

#include <cstdint>
#include <string>

namespace kvbuf::tune {

/// A bar on standard error if that is a terminal, else a line for every tenth
/// of the work.
class ProgressBar {
public:
  ProgressBar();
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar &) = delete;
  ProgressBar &operator=(const ProgressBar &) = delete;

  /// Work that has to be done.
  void add(uint64_t steps) { total += steps; }
  /// `done` of the total is done, and `what` is going on.
  void show(uint64_t done, const std::string &what);
  /// Work that will not be needed: the total gets smaller.
  void drop(uint64_t steps) { total = total > steps ? total - steps : 0; }
  /// Removes the bar, so that something else can be printed.
  void clear();

private:
  uint64_t total = 0;
  unsigned tenths = 0;
  bool onTerminal, shown = false;
};

} // namespace kvbuf::tune

#endif // KVBUF_TUNE_PROGRESSBAR_H
