//===- ProgressBar.cpp - How far long work has come -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgressBar.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

using namespace kvbuf::tune;

ProgressBar::ProgressBar() : onTerminal(isatty(STDERR_FILENO)) {}

void ProgressBar::show(uint64_t done, const std::string &what) {
  constexpr unsigned width = 30;
  double part = total ? std::min(1.0, static_cast<double>(done) /
                                          static_cast<double>(total))
                      : 1.0;
  int percent = static_cast<int>(100 * part);
  if (!onTerminal) {
    unsigned now = static_cast<unsigned>(percent / 10);
    if (now > tenths)
      std::fprintf(stderr, "kvbuf-tune: %3d%% %s\n", percent, what.c_str());
    tenths = std::max(tenths, now);
    return;
  }
  unsigned filled = static_cast<unsigned>(width * part);
  std::string bar = std::string(filled, '#') + std::string(width - filled, '.');
  // What does not fit in a line would stay behind when the bar is redrawn.
  std::string text = what.substr(0, 38);
  std::fprintf(stderr, "\r\033[K[%s] %3d%% %s", bar.c_str(), percent,
               text.c_str());
  std::fflush(stderr);
  shown = true;
}

void ProgressBar::clear() {
  if (shown)
    std::fprintf(stderr, "\r\033[K");
  shown = false;
}
