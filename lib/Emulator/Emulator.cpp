//===- Emulator.cpp - The emulator's interface ----------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Emulator/Emulator.h"
#include "kvbuffer/Emulator/Import.h"

#include "KernelReport.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>

using namespace kvbuf::emu;
namespace json = llvm::json;

Emulator::~Emulator() = default;

namespace {

class EmulatorImpl final : public Emulator {
public:
  EmulatorImpl(const Options &options, MessageFn message)
      : options(options), message(std::move(message)) {}

  bool load(mlir::ModuleOp module);
  bool registerBuffer(llvm::StringRef name, void *data, size_t bytes,
                      bool readable, bool writable, bool initialized) override;
  bool registerTracked(llvm::StringRef name, void *data, size_t bytes,
                       bool readable, bool writable, uint8_t *written) override;
  void clearBuffers() override {
    ranges.clear();
    written.clear();
    addVariables();
  }
  std::optional<llvm::ArrayRef<uint8_t>>
  variable(llvm::StringRef name) const override;
  bool setVariable(llvm::StringRef name,
                   llvm::ArrayRef<uint8_t> bytes) override;
  std::optional<llvm::ArrayRef<uint32_t>>
  parameterBytes(llvm::StringRef entry) const override {
    for (const auto &k : kernels)
      if (k->program.name == entry)
        return llvm::ArrayRef<uint32_t>(k->program.argBytes);
    return std::nullopt;
  }
  std::vector<llvm::StringRef> kernelNames() const override {
    std::vector<llvm::StringRef> names;
    for (const auto &k : kernels)
      names.push_back(k->program.name);
    return names;
  }
  LaunchResult launch(llvm::StringRef entry, std::array<unsigned, 3> grid,
                      std::array<unsigned, 3> block, unsigned dynamicShared,
                      llvm::ArrayRef<Argument> args,
                      ProgressFn progress) override;
  bool refuses(llvm::StringRef entry) const override {
    for (const auto &k : kernels)
      if (k->program.name == entry && !k->refusal.empty()) {
        say(*k);
        return true;
      }
    return false;
  }
  void watch(const int *stop) override { options.interrupt = stop; }
  LaunchResult launchTogether(llvm::ArrayRef<LaunchRequest> requests,
                              ProgressFn progress) override;
  json::Value report() const override;

private:
  void say(const Kernel &kernel) const {
    for (const auto &[severity, location, text] : kernel.refusal)
      send(severity, location, text);
  }
  std::unique_ptr<Launch> makeLaunch(const LaunchRequest &request,
                                     Kernel *&kernel);
  void send(Severity severity, const std::string &location,
            const std::string &text) const {
    static const char *const names[] = {"note", "remark", "warning", "error"};
    if (message)
      message(severity, (location.empty() ? "" : location + ": ") +
                            names[static_cast<int>(severity)] + ": " + text);
  }

  Options options;
  MessageFn message;
  std::vector<std::unique_ptr<Kernel>> kernels;
  void addVariables();

  std::vector<Range> ranges;
  std::vector<std::unique_ptr<uint8_t[]>> written;
  /// The module's, and flags of those that nothing has written at first.
  Variables variables;
  std::vector<std::unique_ptr<uint8_t[]>> variableFlags;
};

} // namespace

std::unique_ptr<Emulator> Emulator::create(mlir::ModuleOp module,
                                           const Options &options,
                                           MessageFn message) {
  if (!options.chip.empty() && !isChipName(options.chip)) {
    message(Severity::Error, "emulator options: the chip '" + options.chip +
                                 "' is unknown; expected 'sm_' or 'gfx' and "
                                 "the chip's number");
    return nullptr;
  }
  auto emulator = std::make_unique<EmulatorImpl>(options, message);
  if (!emulator->load(module))
    return nullptr;
  return emulator;
}

bool EmulatorImpl::load(mlir::ModuleOp module) {
  Kernel *decoding = nullptr;
  mlir::ScopedDiagnosticHandler handler(
      module.getContext(), [&](mlir::Diagnostic &d) {
        Severity s = d.getSeverity() == mlir::DiagnosticSeverity::Error
                         ? Severity::Error
                         : Severity::Note;
        if (decoding)
          decoding->refusal.push_back(
              {s, describeLocation(d.getLocation()), d.str()});
        else
          send(s, describeLocation(d.getLocation()), d.str());
        return mlir::success();
      });
  if (failed(verifyForeign(module)))
    return false;
  raiseIntrinsics(module);
  if (failed(verifyForeign(module)))
    return false;
  llvm::SmallVector<mlir::LLVM::LLVMFuncOp> found;
  module.walk([&](mlir::LLVM::LLVMFuncOp f) {
    if (f->hasAttr(mlir::NVVM::NVVMDialect::getKernelFuncAttrName()) ||
        f->hasAttr(mlir::ROCDL::ROCDLDialect::getKernelFuncAttrName()) ||
        f->hasAttr(mlir::gpu::GPUDialect::getKernelFuncAttrName()))
      found.push_back(f);
  });
  if (found.empty()) {
    module.emitError("the module has no kernel: no function is marked "
                     "'nvvm.kernel' or 'rocdl.kernel'");
    return false;
  }
  for (mlir::LLVM::LLVMFuncOp f : found) {
    kernels.push_back(std::make_unique<Kernel>());
    decoding = kernels.back().get();
    auto program = decodeKernel(f, chipOf(f, options.chip), options, variables);
    decoding = nullptr;
    if (succeeded(program)) {
      kernels.back()->program = std::move(*program);
      kernels.back()->refusal.clear();
      continue;
    }
    kernels.back()->program.name = f.getName().str();
    if (!module->hasAttr(kForeignAttr)) {
      say(*kernels.back());
      return false;
    }
  }
  auto isRefused = [](const auto &k) { return !k->refusal.empty(); };
  if (llvm::all_of(kernels, isRefused)) {
    for (const auto &k : kernels)
      say(*k);
    return false;
  }
  // One flag an element of `variables`; null where all of it is written.
  for (const auto &[op, variable] : variables)
    variableFlags.push_back(variable.isInitialized || !options.uninitialized
                                ? nullptr
                                : std::make_unique<uint8_t[]>(variable.bytes));
  addVariables();
  return true;
}

void EmulatorImpl::addVariables() {
  for (auto [entry, flags] : llvm::zip_equal(variables, variableFlags)) {
    const Variable &v = entry.second;
    uint64_t begin = reinterpret_cast<uint64_t>(v.begin);
    ranges.push_back({begin, begin + v.bytes, flags.get(), true, !v.isConstant,
                      "'" + v.name + "'"});
  }
}

/// A variable is called by its name in the module, or by that in a source of
/// C++: those that are static, or in a namespace, are mangled.
static bool isCalled(const Variable &v, llvm::StringRef name) {
  return v.name == name || llvm::demangle(v.name) == name;
}

std::optional<llvm::ArrayRef<uint8_t>>
EmulatorImpl::variable(llvm::StringRef name) const {
  for (const auto &[op, v] : variables)
    if (isCalled(v, name))
      return llvm::ArrayRef<uint8_t>(v.begin, v.bytes);
  return std::nullopt;
}

bool EmulatorImpl::setVariable(llvm::StringRef name,
                               llvm::ArrayRef<uint8_t> bytes) {
  for (auto [entry, flags] : llvm::zip_equal(variables, variableFlags)) {
    const Variable &v = entry.second;
    if (!isCalled(v, name))
      continue;
    if (bytes.size() > v.bytes) {
      send(Severity::Error, "",
           llvm::formatv("variable '{0}' has {1} bytes, not {2}", name, v.bytes,
                         bytes.size()));
      return false;
    }
    llvm::copy(bytes, v.begin);
    if (flags)
      std::fill_n(flags.get(), bytes.size(), 1);
    return true;
  }
  send(Severity::Error, "",
       llvm::formatv("no kernel uses a variable '{0}' of global or constant "
                     "memory",
                     name));
  return false;
}

bool EmulatorImpl::registerBuffer(llvm::StringRef name, void *data,
                                  size_t bytes, bool readable, bool writable,
                                  bool initialized) {
  uint8_t *flags = nullptr;
  if (!initialized && options.uninitialized) {
    written.push_back(std::make_unique<uint8_t[]>(bytes));
    flags = written.back().get();
  }
  return registerTracked(name, data, bytes, readable, writable, flags);
}

bool EmulatorImpl::registerTracked(llvm::StringRef name, void *data,
                                   size_t bytes, bool readable, bool writable,
                                   uint8_t *flags) {
  if (!options.uninitialized)
    flags = nullptr;
  uint64_t begin = reinterpret_cast<uint64_t>(data), end = begin + bytes;
  if (end < begin) {
    send(Severity::Error, "",
         ("buffer '" + name + "' does not end in memory").str());
    return false;
  }
  // The same input may be given as two tensors; outputs are their own.
  for (const Range &r : ranges)
    if (begin < r.end && r.begin < end &&
        (writable || flags || r.writable || r.written)) {
      send(Severity::Error, "",
           ("buffer '" + name + "' overlaps buffer '" + r.name + "'").str());
      return false;
    }
  ranges.push_back({begin, end, flags, readable, writable, name.str()});
  return true;
}

LaunchResult
EmulatorImpl::launch(llvm::StringRef entry, std::array<unsigned, 3> grid,
                     std::array<unsigned, 3> block, unsigned dynamicShared,
                     llvm::ArrayRef<Argument> args, ProgressFn progress) {
  return launchTogether({{entry, grid, block, dynamicShared, args}},
                        std::move(progress));
}

LaunchResult
EmulatorImpl::launchTogether(llvm::ArrayRef<LaunchRequest> requests,
                             ProgressFn progress) {
  std::vector<std::unique_ptr<Launch>> launches;
  std::vector<Kernel *> of;
  for (const LaunchRequest &request : requests) {
    launches.push_back(makeLaunch(request, of.emplace_back()));
    if (!launches.back())
      return LaunchResult::Usage;
    if (requests.size() > 1)
      launches.back()->ordinal = launches.size();
  }
  size_t ownRanges = ranges.size();
  auto start = std::chrono::steady_clock::now();
  bool good = true;
  for (const auto &launch : launches)
    good = good && launch->prepare();
  if (good) {
    Window window(options, ranges);
    for (const auto &launch : launches)
      window.add(*launch);
    window.execute(progress);
  }
  ranges.resize(ownRanges);
  if (!good)
    return LaunchResult::Usage;
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  // What ran at once took its time together.
  bool clean = true, interrupted = false, asserted = false;
  for (auto [launch, kernel] : llvm::zip_equal(launches, of)) {
    kernel->add(*launch, seconds.count() / launches.size());
    clean &= launch->findings.empty();
    interrupted |= launch->interrupted;
    asserted |= launch->asserted;
  }
  if (interrupted)
    return LaunchResult::Interrupted;
  if (!clean)
    return LaunchResult::Fault;
  return asserted ? LaunchResult::Asserted : LaunchResult::Clean;
}

/// Null: a usage error (a message was sent).
std::unique_ptr<Launch> EmulatorImpl::makeLaunch(const LaunchRequest &request,
                                                 Kernel *&kernel) {
  for (const auto &k : kernels)
    if (k->program.name == request.entry)
      kernel = k.get();
  if (!kernel) {
    send(Severity::Error, "", ("no kernel '" + request.entry + "'").str());
    return nullptr;
  }
  if (!kernel->refusal.empty()) {
    say(*kernel);
    return nullptr;
  }
  const Program &p = kernel->program;
  auto usage = [&](const llvm::Twine &text) {
    send(Severity::Error, p.origins[0].location,
         ("kernel '" + request.entry + "' " + text).str());
    return nullptr;
  };
  if (request.args.size() != p.argBytes.size())
    return usage("takes " + llvm::Twine(p.argBytes.size()) +
                 " arguments, not " + llvm::Twine(request.args.size()));
  std::vector<const void *> values;
  for (auto [i, a] : llvm::enumerate(request.args)) {
    if (a.bytes != p.argBytes[i])
      return usage("takes " + llvm::Twine(p.argBytes[i]) +
                   " bytes as argument " + llvm::Twine(i) + ", not " +
                   llvm::Twine(a.bytes));
    values.push_back(a.value);
  }
  LaunchSize size;
  llvm::copy(request.grid, size.grid);
  llvm::copy(request.block, size.block);
  llvm::copy(request.cluster, size.cluster);
  size.dynamicShared = request.dynamicShared;
  return std::make_unique<Launch>(
      p, options, ranges,
      [&](Severity s, const std::string &location, const std::string &text) {
        send(s, location, text);
      },
      size, std::move(values));
}

json::Value EmulatorImpl::report() const {
  json::Array all;
  double seconds = 0;
  uint64_t lanes = 0, errors = 0, conflicts = 0;
  for (const auto &k : kernels) {
    if (!k->totals.launches)
      continue;
    json::Object o = k->report();
    seconds += k->totals.seconds;
    lanes += *o.getInteger("lane_instructions");
    conflicts += *o.getInteger("bank_conflicts");
    errors += k->totals.findings.size();
    all.push_back(std::move(o));
  }
  return json::Object{
      {"kernels", std::move(all)},
      {"lane_instructions", lanes},
      {"bank_conflicts", conflicts},
      {"errors", errors},
      {"seconds", seconds},
      {"lane_instructions_per_second", seconds > 0 ? lanes / seconds : 0.0}};
}
