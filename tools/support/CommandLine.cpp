//===- CommandLine.cpp - What tools that run kernels are told -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Target/DefaultChips.h"

#include <cstdio>
#include <new>

using namespace kvbuf;
using namespace kvbuf::run;
using kvbuf::rt::Error;

CommandLine::CommandLine(const std::string &tool, const char *description,
                         const char *footer)
    : app(description, tool), tool(tool) {
  app.footer(footer);
  app.set_version_flag("--version", tool + " " KVBUF_VERSION);
  app.get_formatter()->column_width(30);
}

void CommandLine::addKernel(KernelOptions &to, const char *fileHelp) {
  app.add_option("FILE", to.file, fileHelp)->required();
  app.add_option("--function", to.function,
                 "which function, where FILE has several")
      ->type_name("NAME");
  app.add_option("--device", to.device,
                 "auto, emulator, cuda, cuda:N, hip or hip:N [auto]")
      ->type_name("NAME");
  app.add_option("--target", to.target,
                 std::string("chip to compile for; overrules the module's, "
                             "with a remark [the one that the module names, "
                             "else the GPU's, else ") +
                     kDefaultChip + "]")
      ->type_name("CHIP");
}

bool CommandLine::parse(int argc, char **argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) { // --help, --version
    app.exit(e);
    return false;
  } catch (const CLI::ParseError &e) {
    throw Error(std::string(e.what()) + " (" + tool +
                " --help lists the options)");
  }
  return true;
}

bool CommandLine::parse(int argc, char **argv, KernelOptions &to) {
  if (!parse(argc, argv))
    return false;
  flags.apply(to.workload);
  to.emulator = flags.emulatorOptions();
  return true;
}

std::unique_ptr<rt::Device>
run::openDevice(const KernelOptions &options, const Artifact *artifact,
                const rt::Manifest *manifest,
                const rt::DeviceOptions &deviceOptions, std::string &note) {
  std::unique_ptr<rt::Device> device;
  if (options.device == "auto")
    device = rt::openAutoDevice(artifact, manifest, deviceOptions, note);
  else
    device = rt::openDevice(options.device, deviceOptions);
  if (!device->isHost() && options.emulator != "{}")
    throw Error("--emulator is for the emulator; give --device=emulator (the "
                "device is " +
                device->description() + ")");
  if (options.device != "auto")
    note = device->description();
  return device;
}

std::string run::chipToCompileFor(const KernelOptions &options,
                                  const rt::Device &device) {
  if (!options.target.empty())
    return options.target;
  std::string chip = device.isHost() ? kDefaultChip : device.chip();
  if (chip.empty())
    throw Error(device.toldChip().empty()
                    ? "give --target=CHIP: " + device.description() +
                          " does not tell its own"
                    : "no target fits " + device.description() +
                          "; give --target=CHIP if it runs the code of one");
  return chip;
}

ExitStatus run::runTool(const char *tool,
                        const std::function<ExitStatus()> &body) {
  auto fail = [&](const char *what, ExitStatus status) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: error: %s\n", tool, what);
    return status;
  };
  try {
    return body();
  } catch (const rt::KernelFault &e) {
    return fail(e.what(), kFailed);
  } catch (const rt::Interrupted &e) {
    return fail(e.what(), kInterrupted);
  } catch (const std::bad_alloc &) {
    return fail("out of memory; give smaller sizes", kBadInput);
  } catch (const std::exception &e) {
    return fail(e.what(), kBadInput);
  }
}
