//===- CommandLine.h - What tools that run kernels are told ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_SUPPORT_COMMANDLINE_H
#define KVBUF_TOOLS_SUPPORT_COMMANDLINE_H

#include "WorkloadFlags.h"
#include "kvbuffer/Runtime/Device.h"
#include "kvbuffer/Runtime/Workload.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

namespace kvbuf::run {

/// Which kernel to run, where, and on which data.
struct KernelOptions {
  std::string file;
  /// As for rt::openDevice, or "auto".
  std::string device = "auto";
  /// Of a file with several; empty: there is one.
  std::string function;
  /// Empty: the GPU's chip, or kDefaultChip.
  std::string target;
  rt::WorkloadOptions workload;
  /// JSON object for the emulator.
  std::string emulator = "{}";
};

/// The command line of one tool: the options above, if it runs kernels, and the
/// tool's own, which it adds to `app`.
class CommandLine {
public:
  CommandLine(const std::string &tool, const char *description,
              const char *footer);

  /// Adds FILE (`fileHelp` says what it may be), --function, --device and
  /// --target.
  void addKernel(KernelOptions &to, const char *fileHelp);
  /// Adds the options of the workload and of the emulator.
  void addWorkload() { flags.addTo(app); }

  /// Parses. On --help or --version prints and returns false. Throws rt::Error
  /// with one sentence on bad usage.
  bool parse(int argc, char **argv);
  /// Likewise, and fills in `to`.
  bool parse(int argc, char **argv, KernelOptions &to);

  CLI::App app;

private:
  std::string tool;
  WorkloadFlags flags;
};

/// Opens the device that is asked for; "auto": a GPU that the artifact fits, or
/// any where it is null, else the emulator. `note` says what was opened, and
/// why. Throws rt::Error with the reason.
std::unique_ptr<rt::Device> openDevice(const KernelOptions &options,
                                       const Artifact *artifact,
                                       const rt::Manifest *manifest,
                                       const rt::DeviceOptions &deviceOptions,
                                       std::string &note);

/// The chip to compile a module for that names none: the one asked for, else
/// the device's; on the emulator kDefaultChip. Throws rt::Error if the device
/// does not tell.
std::string chipToCompileFor(const KernelOptions &options,
                             const rt::Device &device);

/// How a tool ends.
enum ExitStatus { kDone = 0, kFailed = 1, kBadInput = 2, kInterrupted = 130 };

/// Runs `body`; what it throws becomes a message on the standard error stream
/// and the status that the exception stands for.
ExitStatus runTool(const char *tool, const std::function<ExitStatus()> &body);

} // namespace kvbuf::run

#endif // KVBUF_TOOLS_SUPPORT_COMMANDLINE_H
