//===- Emulator.cpp - The emulator's interface ----------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Emulator/Emulator.h"
#include "kvbuffer/Emulator/Import.h"

#include "Decoder.h"
#include "Window.h"

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

// What one kernel did in all its launches.
struct KernelTotals {
  uint64_t launches = 0, blocks = 0, unwaited = 0;
  double seconds = 0;
  std::vector<uint64_t> runs, lanes;
  std::vector<MemStat> stats;
  std::vector<Finding> findings;
  /// Of the block that was traced; null: none was.
  json::Value trace = nullptr;
};

struct Kernel {
  Program program;
  KernelTotals totals;
  /// Why it cannot be executed: severity, location, text.
  std::vector<std::tuple<Severity, std::string, std::string>> refusal;

  /// Adds what a launch did.
  void add(const Launch &launch, double seconds);
};

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

void Kernel::add(const Launch &run, double seconds) {
  const Program &p = program;
  KernelTotals &t = totals;
  ++t.launches;
  t.blocks += run.blocksExecuted;
  t.unwaited += run.unwaitedCopies;
  t.seconds += seconds;
  t.runs.resize(p.blocks.size());
  t.lanes.resize(p.blocks.size());
  t.stats.resize(p.numStats);
  for (size_t b = 0; b < p.blocks.size(); ++b) {
    t.runs[b] += run.blockRuns[b];
    t.lanes[b] += run.blockLanes[b];
  }
  for (size_t s = 0; s < p.numStats; ++s) {
    t.stats[s].accesses += run.stats[s].accesses;
    t.stats[s].bytes += run.stats[s].bytes;
    t.stats[s].cost += run.stats[s].cost;
    t.stats[s].ideal += run.stats[s].ideal;
    t.stats[s].passes += run.stats[s].passes;
    t.stats[s].idealPasses += run.stats[s].idealPasses;
  }
  llvm::append_range(t.findings, run.findings);
  if (run.trace)
    t.trace = run.trace->json(run.tracedBlock, run.warpsPerBlock);
}

//===----------------------------------------------------------------------===//
// Report
//===----------------------------------------------------------------------===//

static const char *spaceOf(Code op) {
  switch (op) {
  case Code::LoadShared:
  case Code::StoreShared:
  case Code::LdMatrix:
  case Code::StMatrix:
  case Code::AmdReadTr16:
  case Code::AmdLoadTr16:
    return "shared";
  case Code::LoadLocal:
  case Code::StoreLocal:
    return "local";
  default:
    return "global";
  }
}

static bool isStore(Code op) {
  return op == Code::StoreShared || op == Code::StMatrix ||
         op == Code::StoreGlobal || op == Code::StoreLocal ||
         op == Code::StoreGeneric || op == Code::BulkStore ||
         op == Code::AmdBufferStore;
}

/// How often each operation was executed, by warps and by lanes.
static json::Array countOperations(const Kernel &kernel) {
  const Program &p = kernel.program;
  struct Count {
    uint64_t warps = 0, lanes = 0;
    Class kind = Class::None;
  };
  std::map<uint32_t, Count> counts;
  for (size_t b = 0; b < p.blocks.size(); ++b)
    for (uint32_t i = p.blocks[b].begin; i < p.blocks[b].end; ++i) {
      const Inst &inst = p.insts[i];
      if (inst.cls == Class::None || !kernel.totals.runs[b])
        continue;
      Count &count = counts[inst.origin];
      count.warps += kernel.totals.runs[b];
      count.lanes += kernel.totals.lanes[b];
      count.kind = inst.cls;
    }
  json::Array list;
  for (const auto &[origin, count] : counts)
    list.push_back(json::Object{{"op", p.origins[origin].name},
                                {"location", p.origins[origin].location},
                                {"class", className(count.kind)},
                                {"warp", count.warps},
                                {"lane", count.lanes}});
  return list;
}

namespace {
/// What the memory operations of a kernel did.
struct MemoryTotals {
  json::Array lines;
  std::map<std::string, uint64_t> moved;
  uint64_t conflicts = 0, sectors = 0, idealSectors = 0;
};

/// By how much the count of a class of instructions differs from how often
/// instructions of the class were executed. Wraps around below zero.
struct ClassMove {
  uint64_t warps = 0, lanes = 0;
};
} // namespace

/// Where a generic address points is known when it is used: counts accesses to
/// shared and private memory as what they were.
static std::vector<ClassMove> moveGeneric(const Kernel &kernel) {
  const Program &p = kernel.program;
  std::vector<ClassMove> moves(numClasses);
  if (kernel.totals.stats.empty())
    return moves;
  auto add = [&](Class c, uint64_t warps, uint64_t lanes) {
    moves[static_cast<unsigned>(c)].warps += warps;
    moves[static_cast<unsigned>(c)].lanes += lanes;
  };
  for (size_t b = 0; b < p.blocks.size(); ++b)
    for (uint32_t k = p.blocks[b].begin; k < p.blocks[b].end; ++k) {
      const Inst &inst = p.insts[k];
      if (!isGenericAccess(inst.op) || !inst.imm)
        continue;
      add(inst.cls, -kernel.totals.runs[b], -kernel.totals.lanes[b]);
      auto count = [&](uint32_t which, Class c) {
        const MemStat &s = kernel.totals.stats[inst.stat + which];
        add(c, s.accesses, s.bytes / static_cast<uint64_t>(inst.imm));
      };
      bool store = isStore(inst.op);
      count(0, inst.cls);
      count(genericShared, store ? Class::SharedStore : Class::SharedLoad);
      count(genericLocal, Class::Local);
    }
  return moves;
}

/// Adds up the pieces of each MLIR operation, by where they were executed.
static MemoryTotals countMemory(const Kernel &kernel) {
  const Program &p = kernel.program;
  const KernelTotals &t = kernel.totals;
  MemoryTotals all;
  std::map<std::pair<uint32_t, std::string>, MemStat> lines;
  auto add = [&](const Inst &inst, uint32_t which, const std::string &space) {
    const MemStat &s = t.stats[inst.stat + which];
    if (!s.accesses)
      return;
    MemStat &line = lines[{inst.origin, space}];
    line.accesses += s.accesses;
    line.bytes += s.bytes;
    line.cost += s.cost;
    line.ideal += s.ideal;
    line.passes += s.passes;
    line.idealPasses += s.idealPasses;
    all.conflicts += s.passes - s.idealPasses;
    all.moved[space + (isStore(inst.op) ? "_written" : "_read")] += s.bytes;
    if (inst.op == Code::CpAsync || inst.op == Code::BulkLoad ||
        inst.op == Code::AmdBufferLoadLds ||
        inst.op == Code::AmdGlobalLoadLds || inst.op == Code::AmdTensorLoad)
      all.moved["shared_written"] += s.bytes;
    if (space == "shared")
      all.conflicts += s.cost - s.ideal;
    if (space == "global") {
      all.sectors += s.cost;
      all.idealSectors += s.ideal;
    }
  };
  for (const Inst &inst : p.insts) {
    bool hasStat =
        (inst.imm || inst.op == Code::BulkLoad || inst.op == Code::BulkStore) &&
        inst.cls != Class::None && inst.align;
    if (!(hasStat || inst.op == Code::LdMatrix || inst.op == Code::StMatrix) ||
        t.stats.empty())
      continue;
    add(inst, 0, spaceOf(inst.op));
    if (isGenericAccess(inst.op)) {
      add(inst, genericShared, "shared");
      add(inst, genericLocal, "local");
    }
  }
  for (const auto &[key, s] : lines) {
    const auto &[origin, space] = key;
    json::Object o{{"op", p.origins[origin].name},
                   {"location", p.origins[origin].location},
                   {"space", space},
                   {"accesses", s.accesses},
                   {"bytes", s.bytes}};
    if (space == "shared") {
      o["passes"] = s.cost;
      o["ideal_passes"] = s.ideal;
      o["bank_conflicts"] = s.cost - s.ideal;
    } else if (space == "global") {
      o["sectors"] = s.cost;
      o["ideal_sectors"] = s.ideal;
      if (s.idealPasses) {
        o["passes"] = s.passes;
        o["ideal_passes"] = s.idealPasses;
        o["bank_conflicts"] = s.passes - s.idealPasses;
      }
    }
    all.lines.push_back(std::move(o));
  }
  return all;
}

static json::Object reportKernel(const Kernel &kernel) {
  const Program &p = kernel.program;
  const KernelTotals &t = kernel.totals;
  json::Object classes, bytes;
  uint64_t laneInstructions = 0, warpInstructions = 0;
  double products = 0;
  for (size_t b = 0; b < t.runs.size(); ++b)
    products += static_cast<double>(t.runs[b]) * p.blocks[b].products;
  std::vector<ClassMove> moves = moveGeneric(kernel);
  for (unsigned c = 1; c < numClasses; ++c) {
    uint64_t warps = moves[c].warps, lanes = moves[c].lanes;
    for (size_t b = 0; b < t.runs.size(); ++b) {
      warps += t.runs[b] * p.blocks[b].classCount[c];
      lanes += t.lanes[b] * p.blocks[b].classCount[c];
    }
    warpInstructions += warps;
    laneInstructions += lanes;
    if (warps)
      classes[className(static_cast<Class>(c))] =
          json::Object{{"warp", warps}, {"lane", lanes}};
  }
  MemoryTotals memory = countMemory(kernel);
  for (const auto &[name, n] : memory.moved)
    bytes[name] = n;
  json::Array errors;
  for (const Finding &f : t.findings)
    errors.push_back(json::Object{{"kind", faultName(f.kind)},
                                  {"op", f.op},
                                  {"location", f.location},
                                  {"text", f.text},
                                  {"count", f.count}});
  json::Object all{{"entry", p.name},
                   {"launches", t.launches},
                   {"blocks", t.blocks},
                   {"instructions", std::move(classes)},
                   {"warp_instructions", warpInstructions},
                   {"lane_instructions", laneInstructions},
                   {"matrix_products", products},
                   {"bytes", std::move(bytes)},
                   {"bank_conflicts", memory.conflicts},
                   {"sectors", memory.sectors},
                   {"ideal_sectors", memory.idealSectors},
                   {"unwaited_async_copies", t.unwaited},
                   {"memory", std::move(memory.lines)},
                   {"errors", std::move(errors)},
                   {"seconds", t.seconds}};
  if (t.trace.kind() != json::Value::Null) {
    all["operations"] = countOperations(kernel);
    all["trace"] = t.trace;
  }
  return all;
}

json::Value EmulatorImpl::report() const {
  json::Array all;
  double seconds = 0;
  uint64_t lanes = 0, errors = 0, conflicts = 0;
  for (const auto &k : kernels) {
    if (!k->totals.launches)
      continue;
    json::Object o = reportKernel(*k);
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
