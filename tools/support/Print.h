//===- Print.h - What tools that run kernels print --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_SUPPORT_PRINT_H
#define KVBUF_TOOLS_SUPPORT_PRINT_H

#include "kvbuffer/Runtime/Check.h"
#include "kvbuffer/Runtime/Device.h"
#include "kvbuffer/Runtime/Execution.h"
#include "kvbuffer/Runtime/Problem.h"

#include <nlohmann/json.hpp>
#include <string>

namespace kvbuf::run {

using Json = nlohmann::ordered_json;

/// A value as text; bytes that are not UTF-8, as file names may hold, become
/// U+FFFD.
template <typename J> std::string toText(const J &value, int indent = -1) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false,
                    J::error_handler_t::replace);
}

/// Text on the terminal and the same facts as JSON. Colours and progress appear
/// on a terminal alone.
class Printer {
public:
  Printer();
  /// A line "name   value".
  void line(const std::string &name, const std::string &value);
  /// A message of the compiler or the emulator, to standard error.
  void message(rt::Severity severity, const std::string &text);
  /// Redraws a progress line on standard error, at most ten times a second.
  void progress(const std::string &what, uint64_t done, uint64_t total);
  /// Removes the progress line.
  void endProgress();

  void problem(const rt::Manifest &manifest, const std::string &file);
  void check(const rt::CheckResult &result);
  /// Where the device's peaks are known, also the share of them.
  void bench(const rt::BenchResult &result, const rt::Problem &problem,
             const rt::Device &device);
  /// The emulator's JSON report, for people.
  void report(const std::string &text);
  void verdict(bool pass);

  Json &json() { return root; }

private:
  /// The share of the peak that bounds such a problem: what the slower of the
  /// matrix unit and the memory would need at least, over `seconds`.
  void peakShare(double flops, double bytes, double seconds,
                 const rt::TargetSpec &target, const std::string &device);
  std::string color(const char *code, const std::string &text) const;

  bool outIsTerminal, errIsTerminal;
  double lastProgress = 0;
  bool progressShown = false;
  Json root = Json::object();
};

/// "1.23 ms", "12.3 us".
std::string secondsString(double seconds);

} // namespace kvbuf::run

#endif // KVBUF_TOOLS_SUPPORT_PRINT_H
