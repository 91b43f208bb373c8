//===- kvbuf-run.cpp - Run, check and measure kernels ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../support/Page.h"
#include "../support/Print.h"
#include "../support/Record.h"
#include "Options.h"
#include "kvbuffer/Runtime/CompilerLibrary.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Functions.h"
#include "kvbuffer/Runtime/Npy.h"

#include <csignal>
#include <optional>

using namespace kvbuf;
using namespace kvbuf::rt;
using namespace kvbuf::run;

namespace {

bool endsWith(const std::string &text, const std::string &suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

/// While it lives, Ctrl-C ends a launch on the emulator, and the second one the
/// program, as on a GPU the first does.
class InterruptGuard {
public:
  explicit InterruptGuard(bool wanted) : wanted(wanted) {
    struct sigaction action = {};
    action.sa_handler = [](int) {
      __atomic_store_n(flag.get(), 1, __ATOMIC_RELAXED);
    };
    action.sa_flags = SA_RESETHAND;
    if (wanted)
      sigaction(SIGINT, &action, &before);
  }
  ~InterruptGuard() {
    if (wanted)
      sigaction(SIGINT, &before, nullptr);
  }
  static std::shared_ptr<const int> watched() { return flag; }

private:
  static inline std::shared_ptr<int> flag = std::make_shared<int>(0);
  bool wanted;
  struct sigaction before = {};
};

/// One run of the tool, step by step.
class Runner {
public:
  explicit Runner(const Options &options) : options(options) {
    deviceOptions.emulator = options.emulator;
    deviceOptions.interrupt = InterruptGuard::watched();
    deviceOptions.message = [this](Severity severity, const std::string &text) {
      printer.message(severity, text);
    };
    deviceOptions.progress = [this](uint64_t done, uint64_t total) {
      printer.progress("emulating", done, total);
    };
  }

  ExitStatus run();

private:
  void load();
  void compile(const std::string &source);
  void checkNames() const;
  bool checkResults(Execution &execution, Problem &problem);
  void writeOutputs(const Problem &problem);
  void writePage(const Problem &problem);
  void writeJson();

  const Options &options;
  Printer printer;
  DeviceOptions deviceOptions;
  std::unique_ptr<Device> device;
  std::string deviceNote, source;
  Artifact artifact;
  Manifest manifest;
};

void Runner::load() {
  std::string bytes, error;
  if (!readWholeFile(options.file, bytes, error))
    throw Error(error);
  bool isSource =
      !looksLikeArtifact(bytes) && !endsWith(options.file, ".kvbuf");
  if (isSource) {
    source = bytes;
    compile(bytes);
  } else {
    for (const char *option : {"--target", "--schedule"})
      if (!(option == std::string("--target") ? options.target
                                              : options.schedule)
               .empty())
        throw Error(std::string(option) + " is for the compiler, but '" +
                    options.file + "' is compiled already");
    if (!parseArtifact(bytes, artifact, error))
      throw Error("'" + options.file + "': " + error);
  }
  try {
    std::vector<ArtifactFunction> functions = parseFunctions(artifact);
    const ArtifactFunction &function =
        options.function.empty() ? onlyFunction(functions, "--function=NAME")
                                 : findFunction(functions, options.function);
    manifest = function.manifest;
    artifact = extractFunction(artifact, function);
  } catch (const Error &e) {
    throw Error("'" + options.file + "': " + e.what());
  }
  if (device)
    return;
  device =
      run::openDevice(options, &artifact, &manifest, deviceOptions, deviceNote);
}

void Runner::compile(const std::string &source) {
  std::string target = options.target;
  // Without a target the module's chip counts; where it names none, the device
  // decides, so it is opened first.
  if (target.empty() &&
      moduleTarget(source, options.file, deviceOptions.message).empty()) {
    device =
        run::openDevice(options, nullptr, nullptr, deviceOptions, deviceNote);
    target = chipToCompileFor(options, *device);
  }
  nlohmann::json request = nlohmann::json::object();
  if (!target.empty())
    request["target"] = target;
  if (!options.schedule.empty())
    request["schedule"] = options.schedule;
  if (!options.function.empty())
    request["function"] = options.function;
  // The emulator runs the target stage; code would be made for nothing.
  if (options.device == "emulator" || (device && device->isHost()))
    request["machine_code"] = false;
  std::string error;
  std::string bytes = compileSource(source, options.file, toText(request),
                                    deviceOptions.message);
  if (!parseArtifact(bytes, artifact, error))
    throw Error("the compiler's artifact is unreadable: " + error);
}

void Runner::checkNames() const {
  for (const auto &[name, path] : options.outputs) {
    const TensorSpec *tensor = manifest.findTensor(name);
    if (tensor && tensor->output)
      continue;
    std::vector<std::string> names;
    for (const TensorSpec &t : manifest.tensors)
      if (t.output)
        names.push_back(t.name);
    throw Error("--output " + name +
                ": the kernel has no such output; it has " +
                quotedList(names, "and"));
  }
}

bool Runner::checkResults(Execution &execution, Problem &problem) {
  std::vector<std::string> changed = execution.fetch();
  if (!options.check)
    return true;
  CheckOptions check;
  check.rows = options.checkRows;
  check.seed = options.workload.seed;
  check.progress = [this](uint64_t done, uint64_t total) {
    printer.progress("reference", done, total);
  };
  CheckResult result = problem.check(check);
  for (const std::string &name : changed)
    result.failures.push_back("input '" + name + "' was changed");
  result.pass = result.failures.empty();
  printer.endProgress();
  printer.check(result);
  return result.pass;
}

void Runner::writeOutputs(const Problem &problem) {
  for (const auto &[name, path] : options.outputs) {
    const HostTensor &t = *problem.find(name);
    std::string error;
    if (!writeWholeFile(path, formatNpy(t.dtype, t.shape, t.packed()), error))
      throw Error(error);
    printer.line("output", name + " " + shapeString(t.shape) + " -> " + path);
  }
}

void Runner::writePage(const Problem &problem) {
  PageRequest request;
  request.source = source;
  request.filename = options.file;
  request.function = options.function;
  request.target = manifest.target.chip;
  request.schedule = options.schedule;
  if (device->isHost()) {
    request.workload = options.workload;
    request.emulator = options.emulator;
    request.ptxas = "none";
  } else if (options.bench) {
    // The emulator runs sizes of its own beside what was timed.
    request.bench = toText(printer.json()["bench"]);
    request.device = device->description() + ", " + problem.describe();
  }
  std::string error;
  if (!writeWholeFile(options.report, makePage(request, deviceOptions.message),
                      error))
    throw Error(error);
  printer.line("page", options.report);
}

void Runner::writeJson() {
  std::string error;
  addOrigin(printer.json());
  if (!options.json.empty() &&
      !writeWholeFile(options.json, toText(printer.json(), 2) + "\n", error))
    throw Error(error);
}

ExitStatus Runner::run() {
  load();
  if (isPage(options.report) && source.empty())
    throw Error("--report=" + options.report + " needs the MLIR that '" +
                options.file +
                "' was made from: an artifact has no tile program");
  if (!manifest.problem())
    throw Error("'" + options.file +
                "' is no attention kernel, nor another problem that this tool "
                "knows; it can only be launched through the C or Python API");
  checkNames();
  if (options.report == "text" && device->kind() != "emulator")
    throw Error("--report counts on the emulator; give --device=emulator "
                "(the device is " +
                device->description() + ")");
  printer.problem(manifest, options.file);
  printer.line("target", manifest.target.chip);
  printer.line("device", deviceNote);
  printer.json()["device"] = {{"kind", device->kind()},
                              {"name", device->description()}};

  std::optional<InterruptGuard> guard(device->isHost());
  WorkloadOptions workloadOptions = options.workload;
  workloadOptions.large = !device->isHost();
  std::unique_ptr<Problem> problem = makeProblem(manifest, workloadOptions);
  printer.line("sizes", problem->describe());
  printer.json()["sizes"] = problem->sizes();
  printer.json()["seed"] = workloadOptions.seed;

  std::unique_ptr<Module> module = device->load(artifact, manifest);
  if (std::string text = module->describe(); !text.empty()) {
    printer.line("code", text);
    printer.json()["code"] = text;
  }
  Execution execution(*device, *module, *problem);
  for (const std::string &remark : execution.bound().remarks)
    printer.message(Severity::Remark, remark);
  printer.json()["remarks"] = execution.bound().remarks;
  std::string names;
  for (const KernelLaunch &kernel : execution.bound().kernels) {
    names += (names.empty() ? "" : ", ") + kernel.entry;
    printer.json()["kernels"].push_back(kernel.entry);
  }
  // Of an artifact that leaves a choice.
  if (manifest.kernels.size() > 1 && !names.empty())
    printer.line("launched", names);
  bool pass = true;
  std::string fault;
  try {
    execution.run();
  } catch (const KernelFault &e) {
    fault = e.what();
  }
  guard.reset();
  printer.endProgress();
  if (options.report == "text")
    printer.report(module->report());
  if (fault.empty()) {
    pass = checkResults(execution, *problem);
    if (options.bench)
      printer.bench(
          bench(execution, options.repeat, device->isHost() ? 0.0 : 1.0),
          *problem, *device);
    writeOutputs(*problem);
  } else {
    pass = false;
    printer.line("fault", fault);
    printer.json()["fault"] = fault;
  }
  if (isPage(options.report))
    writePage(*problem);
  printer.json()["pass"] = pass;
  if (options.check || !pass)
    printer.verdict(pass);
  writeJson();
  return pass ? kDone : kFailed;
}

} // namespace

int main(int argc, char **argv) {
  return runTool("kvbuf-run", [&] {
    try {
      std::optional<Options> options = parseCommandLine(argc, argv);
      return options ? Runner(*options).run() : kDone;
    } catch (const ReportedError &) { // its messages are printed
      return kBadInput;
    }
  });
}
