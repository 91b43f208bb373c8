//===- Page.cpp - A page about a kernel -----------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Page.h"
#include "CommandLine.h"
#include "Print.h"
#include "kvbuffer/Runtime/CompilerLibrary.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Execution.h"

#include <cstdio>

using namespace kvbuf;
using namespace kvbuf::rt;

bool run::isPage(const std::string &report) {
  constexpr std::string_view ending = ".html";
  return report.size() > ending.size() &&
         report.compare(report.size() - ending.size(), ending.size(), ending) ==
             0;
}

/// Runs the kernels on the emulator; adds what it counted.
static void emulate(const run::PageRequest &request, const Artifact &artifact,
                    const Manifest &manifest, const MessageHandler &message,
                    run::Json &data) {
  run::Json options = run::Json::parse(request.emulator, nullptr, false);
  if (!options.is_object())
    throw Error("emulator options: not a JSON object");
  options["trace"] = true;
  DeviceOptions deviceOptions;
  deviceOptions.emulator = options.dump();
  deviceOptions.message = message;
  std::unique_ptr<Device> device = openDevice("emulator", deviceOptions);
  std::unique_ptr<Problem> problem = makeProblem(manifest, request.workload);
  std::unique_ptr<Module> module = device->load(artifact, manifest);
  Execution execution(*device, *module, *problem);
  data["run"]["sizes"] = problem->describe();
  data["run"]["flop"] = problem->operations();
  data["run"]["bytes"] = problem->minimalBytes();
  try {
    execution.run();
  } catch (const KernelFault &fault) {
    data["run"]["fault"] = fault.what();
  }
  data["emulator"] = run::Json::parse(module->report(), nullptr, false);
}

std::string run::makePage(const PageRequest &request,
                          const MessageHandler &message) {
  Json options = {{"report", true}};
  for (const auto &[key, value] : {std::pair("function", request.function),
                                   std::pair("target", request.target),
                                   std::pair("schedule", request.schedule),
                                   std::pair("ptxas", request.ptxas)})
    if (!value.empty())
      options[key] = value;
  // What else there was to say has been said when it was compiled first.
  MessageHandler errors = [&](Severity severity, const std::string &text) {
    if (severity == Severity::Error && message)
      message(severity, text);
  };
  std::string bytes =
      compileSource(request.source, request.filename, toText(options), errors);
  Artifact artifact;
  std::string error;
  if (!parseArtifact(bytes, artifact, error))
    throw Error("the compiler's artifact is unreadable: " + error);
  const std::string *program = artifact.find("report");
  if (!program)
    throw Error("the compiler's artifact has no section 'report'");
  Manifest manifest = parseManifest(artifact.manifest);
  Json data = {
      {"program", Json::parse(*program, nullptr, false)},
      {"manifest", Json::parse(artifact.manifest, nullptr, false)},
      {"run", {{"file", request.filename}, {"kernel", manifest.name}}}};
  if (manifest.problem())
    emulate(request, artifact, manifest, message, data);
  if (!request.bench.empty()) {
    data["run"]["bench"] = Json::parse(request.bench, nullptr, false);
    data["run"]["device"] = request.device;
  }
  return reportPage(toText(data));
}

int run::writePage(const std::string &tool, const PageRequest &request,
                   const std::string &path) {
  return runTool(tool.c_str(), [&] {
    auto message = [](Severity severity, const std::string &text) {
      if (severity == Severity::Error)
        std::fprintf(stderr, "%s\n", text.c_str());
    };
    std::string error;
    try {
      if (!writeWholeFile(path, makePage(request, message), error))
        throw Error(error);
    } catch (const ReportedError &) { // its messages are printed
      return kBadInput;
    }
    return kDone;
  });
}
