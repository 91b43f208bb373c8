//===- Codegen.cpp - From the target stage to code ------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Compiler/Codegen.h"
#include "AwaitReleases.h"
#include "CompareBySign.h"
#include "CountThreads.h"
#include "LaneMasks.h"
#include "LateChoices.h"
#include "OwnLanes.h"
#include "ParkUniforms.h"
#include "RareBlocks.h"
#include "ReloadArguments.h"
#include "SeldomChanges.h"
#include "SplitConversions.h"
#include "SumsInLoops.h"
#include "SumsOfLanes.h"
#include "VectorFactors.h"
#include "kvbuffer/Conversion/Passes.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/Scalar.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <mutex>
#include <optional>

using namespace mlir;
using namespace kvbuf;

/// Initialises the one backend that is asked for.
static void initializeBackend(Vendor vendor) {
  static std::once_flag nvidia, amd;
  if (vendor == Vendor::NVIDIA)
    std::call_once(nvidia, [] {
      LLVMInitializeNVPTXTargetInfo();
      LLVMInitializeNVPTXTarget();
      LLVMInitializeNVPTXTargetMC();
      LLVMInitializeNVPTXAsmPrinter();
    });
  else
    std::call_once(amd, [] {
      LLVMInitializeAMDGPUTargetInfo();
      LLVMInitializeAMDGPUTarget();
      LLVMInitializeAMDGPUTargetMC();
      LLVMInitializeAMDGPUAsmPrinter();
      // Inline assembly is parsed when an object is written.
      LLVMInitializeAMDGPUAsmParser();
    });
}

/// The backend for a chip; null, with a diagnostic, if LLVM lacks it.
static std::unique_ptr<llvm::TargetMachine>
createMachine(const TargetInfo &target, Location loc) {
  initializeBackend(target.vendor);
  std::string message;
  llvm::Triple triple(target.triple);
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!backend) {
    emitError(loc) << "this LLVM cannot generate code for " << target.chip
                   << ": " << message;
    return nullptr;
  }
  // ptxas numbers values once more: what LLVM's numbering adds to its search
  // for common subexpressions costs a fifth of the time and leaves the machine
  // code of dense kernels as it is.
  auto level = target.vendor == Vendor::NVIDIA
                   ? llvm::CodeGenOptLevel::Default
                   : llvm::CodeGenOptLevel::Aggressive;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.chip, target.features, llvm::TargetOptions(),
      llvm::Reloc::PIC_, std::nullopt, level));
}

/// LLVM takes AMD kernels to have up to 1024 threads, with the registers that
/// these leave, unless it is told; the size that a launch must have tells it.
static void stateGroupSizes(gpu::GPUModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    auto sizes = function->getAttrOfType<DenseI32ArrayAttr>(
        ROCDL::ROCDLDialect::ReqdWorkGroupSizeAttrHelper::getNameStr());
    StringRef name =
        ROCDL::ROCDLDialect::FlatWorkGroupSizeAttrHelper::getNameStr();
    if (!sizes || function->hasAttr(name))
      continue;
    int64_t threads = 1;
    for (int32_t size : sizes.asArrayRef())
      threads *= size;
    std::string text = std::to_string(threads);
    function->setAttr(name,
                      StringAttr::get(module.getContext(), text + "," + text));
  }
}

/// Adds what the target wants of every function, and what this one does not
/// need. Kernels call nothing but intrinsics; a function that calls another
/// could need what the other one asks for.
static void addAttributes(llvm::Function &function, const TargetInfo &target) {
  for (const auto &[name, value] : target.functionAttributes)
    if (!function.hasFnAttribute(name))
      function.addFnAttr(name, value);
  llvm::StringSet<> called;
  for (llvm::Instruction &instruction : llvm::instructions(function))
    if (auto *call = dyn_cast<llvm::CallBase>(&instruction)) {
      llvm::Function *callee = call->getCalledFunction();
      if (!call->isInlineAsm() && (!callee || !callee->isIntrinsic()))
        return;
      if (callee)
        called.insert(callee->getName());
    }
  for (const KernelInput &input : target.kernelInputs)
    if (!called.contains(input.intrinsic))
      function.addFnAttr(input.unusedAttribute);
}

/// Gives atomic operations the order that they ask for by fences: LLVM 22's
/// NVIDIA backend drops it (of `atomicrmw acq_rel` it makes a plain `atom`).
static void fenceAtomics(llvm::Function &function) {
  using Order = llvm::AtomicOrdering;
  for (llvm::Instruction &instruction : llvm::instructions(function)) {
    auto *atomic = dyn_cast<llvm::AtomicRMWInst>(&instruction);
    if (!atomic || !llvm::isStrongerThanMonotonic(atomic->getOrdering()))
      continue;
    Order order = atomic->getOrdering();
    bool isTotal = order == Order::SequentiallyConsistent;
    llvm::SyncScope::ID scope = atomic->getSyncScopeID();
    llvm::IRBuilder<> b(atomic);
    if (llvm::isReleaseOrStronger(order))
      b.CreateFence(isTotal ? order : Order::Release, scope);
    atomic->setOrdering(Order::Monotonic);
    b.SetInsertPoint(atomic->getNextNode());
    if (llvm::isAcquireOrStronger(order))
      b.CreateFence(isTotal ? order : Order::Acquire, scope);
  }
}

std::unique_ptr<llvm::Module>
kvbuf::translateToLLVM(gpu::GPUModuleOp module, const TargetInfo &target,
                       llvm::LLVMContext &context) {
  std::unique_ptr<llvm::TargetMachine> machine =
      createMachine(target, module.getLoc());
  if (!machine)
    return nullptr;
  // NVVM ops that LLVM has no intrinsic for become inline assembly only here,
  // on a copy: the target stage stays readable.
  OwningOpRef<gpu::GPUModuleOp> copy(module.clone());
  if (target.vendor == Vendor::NVIDIA) {
    PassManager pm(module.getContext(), gpu::GPUModuleOp::getOperationName());
    pm.addPass(createConvertKVBufferToInlineAsm());
    pm.addPass(createConvertNVVMToLLVMPass());
    // The target stage is verified, and so is the LLVM IR.
    pm.enableVerifier(false);
    if (failed(pm.run(*copy)))
      return nullptr;
  } else {
    stateGroupSizes(*copy);
  }
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(*copy, context, module.getName());
  if (!translated) {
    emitError(module.getLoc(), "cannot be translated into LLVM IR: the target "
                               "stage is not complete");
    return nullptr;
  }
  translated->setTargetTriple(llvm::Triple(target.triple));
  translated->setDataLayout(machine->createDataLayout());
  // LLVM's default, 6, is newer than what ROCm 5 and 6 load.
  if (target.vendor == Vendor::AMD)
    translated->setModuleFlag(llvm::Module::Error, "amdhsa_code_object_version",
                              500);
  for (llvm::Function &function : *translated)
    if (!function.isDeclaration()) {
      addAttributes(function, target);
      if (target.vendor == Vendor::NVIDIA) {
        fenceAtomics(function);
      } else {
        reloadArguments(function, *machine);
        keepRareBlocksApart(function);
        holdFactorsByLane(function);
        splitConversions(function);
        takeBitsByLane(function, *machine, target.waveSize);
        if (target.writeBackWait)
          awaitReleases(function, *target.writeBackWait);
      }
    }
  return translated;
}

namespace {

/// What a backend says of all functions of a module together.
struct Spills {
  /// Registers that all lanes share, and those of each lane.
  int64_t scalars = 0, vectors = 0;
  /// The waves that a SIMD has room for.
  int64_t waves = 0;
  bool any() const { return scalars || vectors; }
  bool isBetterThan(const Spills &other) const {
    return scalars <= other.scalars && vectors <= other.vectors &&
           scalars + vectors < other.scalars + other.vectors &&
           waves >= other.waves;
  }
};

/// Turns LLVM's diagnostics into MLIR's. The AMD backend says in remarks what
/// it has spilled.
struct DiagnosticForwarder : llvm::DiagnosticHandler {
  DiagnosticForwarder(Location loc, bool &failed, Spills &spills,
                      bool saysWarnings)
      : loc(loc), failed(failed), spills(spills), saysWarnings(saysWarnings) {}

  bool isAnalysisRemarkEnabled(llvm::StringRef pass) const override {
    return pass == "kernel-resource-usage";
  }
  using DiagnosticHandler::isAnyRemarkEnabled;
  bool isAnyRemarkEnabled() const override { return true; }

  /// Adds the number in a remark such as "SGPRs Spill: 3".
  static void addCount(StringRef text, StringRef name, int64_t &count) {
    int64_t number;
    auto [before, after] = text.split(name);
    if (before.size() < text.size() &&
        !after.ltrim(": ").consumeInteger(10, number))
      count += number;
  }

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::DiagnosticPrinterRawOStream printer(os);
    info.print(printer);
    addCount(text, "SGPRs Spill", spills.scalars);
    addCount(text, "VGPRs Spill", spills.vectors);
    addCount(text, "Occupancy [waves/SIMD]", spills.waves);
    switch (info.getSeverity()) {
    case llvm::DS_Error:
      failed = true;
      emitError(loc) << "code generation: " << text;
      break;
    case llvm::DS_Warning:
      if (saysWarnings)
        emitWarning(loc) << "code generation: " << text;
      break;
    case llvm::DS_Remark:
    case llvm::DS_Note:
      break;
    }
    return true;
  }

  Location loc;
  bool &failed;
  Spills &spills;
  bool saysWarnings;
};

} // namespace

/// Called where LLVM would end the process: for a fatal error of a backend.
static void onFatalError(void *location, const char *reason, bool) {
  emitError(*static_cast<Location *>(location))
      << "code generation: " << reason;
  if (auto *recovery = llvm::CrashRecoveryContext::GetCurrent())
    recovery->HandleExit(1);
}

namespace {
/// Sets a flag of LLVM's command line for a while: some decisions of a backend
/// have no other handle.
class ScopedFlag {
public:
  ScopedFlag(StringRef name, bool value) {
    auto &options = llvm::cl::getRegisteredOptions();
    if (auto it = options.find(name); it != options.end()) {
      flag = static_cast<llvm::cl::opt<bool> *>(it->second);
      before = flag->getValue();
      flag->setValue(value);
    }
  }
  ~ScopedFlag() {
    if (flag)
      flag->setValue(before);
  }
  ScopedFlag(const ScopedFlag &) = delete;

private:
  llvm::cl::opt<bool> *flag = nullptr;
  bool before = false;
};
} // namespace

/// Runs the backend on a module, which it changes, and says what it has
/// spilled. A kernel is warned of once.
static llvm::FailureOr<std::string> runBackend(llvm::Module &module,
                                               llvm::TargetMachine &machine,
                                               const TargetInfo &target,
                                               CodeKind kind, Location loc,
                                               Spills &spills, bool isFirst) {
  // What our passes make of LLVM's IR is looked at before its backend, which
  // takes whatever it gets.
  std::string broken;
  llvm::raw_string_ostream said(broken);
  if (llvm::verifyModule(module, &said)) {
    emitError(loc) << "the module for " << target.chip
                   << " is no LLVM IR (a fault of kvbuf): "
                   << StringRef(broken).split('\n').first;
    return failure();
  }
  bool failedInside = false;
  module.getContext().setDiagnosticHandler(
      std::make_unique<DiagnosticForwarder>(loc, failedInside, spills,
                                            /*saysWarnings=*/isFirst));

  // Flags, and what catches a backend that gives up, belong to the process: one
  // backend runs at a time.
  static std::mutex backends;
  std::scoped_lock lock(backends);
  ScopedFlag noStrengthReduction("disable-lsr", !target.loopStrengthReduction);

  llvm::SmallVector<char> buffer;
  llvm::raw_svector_ostream os(buffer);
  llvm::legacy::PassManager passes;
  if (target.vendor == Vendor::NVIDIA) {
    // The backend splits constants off addresses, which leaves the same base
    // many times, and its strength reduction of straight-line code takes a
    // third of a compilation to look among them. Here they become one first;
    // the machine code of loops stays the same.
    passes.add(llvm::createTargetTransformInfoWrapperPass(
        machine.getTargetIRAnalysis()));
    passes.add(llvm::createSeparateConstOffsetFromGEPPass());
    passes.add(llvm::createEarlyCSEPass());
  }
  auto fileType = kind == CodeKind::Assembly
                      ? llvm::CodeGenFileType::AssemblyFile
                      : llvm::CodeGenFileType::ObjectFile;
  if (machine.addPassesToEmitFile(passes, os, nullptr, fileType)) {
    emitError(loc) << "the backend for " << target.chip
                   << " cannot write this kind of file";
    return failure();
  }
  // A backend ends the process on instructions that it cannot select; a
  // library, and a tool that owes a location, must not.
  bool finished;
  {
    llvm::CrashRecoveryContext::Enable();
    llvm::ScopedFatalErrorHandler handler(onFatalError, &loc);
    llvm::CrashRecoveryContext recovery;
    finished = recovery.RunSafely([&] { passes.run(module); });
    llvm::CrashRecoveryContext::Disable();
  }
  if (!finished)
    emitError(loc) << "the backend for " << target.chip
                   << " could not compile this kernel";
  if (!finished || failedInside)
    return failure();
  return std::string(buffer.begin(), buffer.end());
}

namespace {
/// A way to do with fewer registers than a module has spilled.
struct Saving {
  /// What parts of a kernel that compute of the same numbers of lanes have of
  /// each other: a copy of the number behind large loops, or in front of them,
  /// too, or nothing, as each makes the numbers of its threads anew.
  enum Numbers { Copied, CopiedInLoops, MadeAnew };
  /// About as many vector registers for scalars; nothing: none.
  std::optional<size_t> parked;
  Numbers numbers = Copied;
  /// Whether addresses that large loops leave the same are computed before
  /// them.
  bool addressesBefore = false;
  /// The module as it is, without what saves vector instructions, and whether
  /// loops carry what follows from numbers that seldom change all the same:
  /// that takes no scalars.
  bool asItIs = false, carries = false;
  /// Whether what lanes compare to hide scores they compare when these are
  /// there: outside of loops, or anywhere.
  enum Comparisons { Early, LateOutside, Late } comparisons = Early;
  /// Whether constants are added to numbers of all lanes where the sums are
  /// used.
  bool sumsInLoops = false;
  /// Whether what saves vector instructions is there all the same.
  bool keepsSavings = false;
  /// Whether it is there without loops that carry more.
  bool carriesNothing = false;
};
} // namespace

/// Lets the kernels of a module do with fewer of the registers that they have
/// spilled; false if that changes nothing.
static bool saveRegisters(llvm::Module &module, llvm::TargetMachine &machine,
                          const TargetInfo &target, const Spills &spills,
                          const Saving &way) {
  bool changed = false;
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    if (way.comparisons != Saving::Early || way.sumsInLoops) {
      if (!spills.scalars ||
          !(way.sumsInLoops
                ? addWhereUsed(function, machine)
                : compareLate(function, way.comparisons == Saving::Late)))
        continue;
      compareBySign(function, machine);
      changed = true;
    }
    if (way.parked)
      changed |=
          parkUniforms(function, machine, *way.parked, way.addressesBefore);
    if (spills.vectors && way.numbers == Saving::MadeAnew)
      changed |= countThreadsAnew(function, machine, target.waveSize);
    else if (spills.vectors)
      changed |= computeOwnLanes(function, machine,
                                 way.numbers == Saving::CopiedInLoops);
  }
  return changed;
}

/// Has kernels of a module do with fewer vector instructions; whether they
/// compare and add with others.
static bool saveInstructions(llvm::Module &module,
                             llvm::TargetMachine &machine) {
  bool changed = false;
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    addAtExchanges(function);
    changed |= addProductsByScalars(function, machine);
    changed |= compareBySign(function, machine);
  }
  return changed;
}

/// Has the loops of all kernels of a module carry what seldom changes.
static bool carryInAll(llvm::Module &module) {
  bool changed = false;
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      changed |= carrySeldomChanges(function);
  return changed;
}

llvm::FailureOr<std::string> kvbuf::generateCode(llvm::Module &module,
                                                 const TargetInfo &target,
                                                 CodeKind kind, Location loc) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, loc);
  if (!machine)
    return failure();
  std::unique_ptr<llvm::Module> asItIs, withSavings;
  bool compares = false, carries = false;
  if (target.vendor == Vendor::AMD) {
    asItIs = llvm::CloneModule(module);
    carries = carryInAll(module);
    compares = saveInstructions(module, *machine);
    withSavings = llvm::CloneModule(module);
  }
  Spills spills;
  llvm::FailureOr<std::string> code =
      runBackend(module, *machine, target, kind, loc, spills, /*isFirst=*/true);
  if (failed(code) || !asItIs)
    return code;
  // What saves registers, and what it costs, is known when it is compiled. Code
  // that spills nothing stays as it is.
  auto atMost = [&](size_t most) {
    return spills.scalars ? std::optional(most) : std::nullopt;
  };
  size_t scalars = spills.scalars;
  llvm::SmallVector<Saving> ways = {
      {.parked = atMost(scalars), .keepsSavings = true},
      {.parked = std::nullopt, .carriesNothing = true},
      {.parked = std::nullopt, .asItIs = true, .carries = true},
      {.parked = std::nullopt, .asItIs = true},
      {.parked = std::nullopt, .sumsInLoops = true},
      {.parked = std::nullopt, .comparisons = Saving::LateOutside},
      {.parked = std::nullopt, .comparisons = Saving::Late},
      {atMost(scalars), Saving::CopiedInLoops},
      {atMost(SIZE_MAX)},
      {atMost(scalars / 2)},
      {atMost(scalars), Saving::Copied, /*addressesBefore=*/true},
      {std::nullopt, Saving::MadeAnew}};
  Spills least = spills;
  for (size_t i = 0; i < ways.size() && least.any(); ++i) {
    Saving way = ways[i];
    std::unique_ptr<llvm::Module> other =
        llvm::CloneModule(way.keepsSavings ? *withSavings : *asItIs);
    bool differs =
        way.carriesNothing ? carries && saveInstructions(*other, *machine)
        : way.carries      ? compares && carries && carryInAll(*other)
        : way.asItIs       ? compares || carries
                     : saveRegisters(*other, *machine, target, spills, way);
    if (!differs)
      continue;
    Spills fewer;
    llvm::FailureOr<std::string> saved =
        runBackend(*other, *machine, target, kind, loc, fewer,
                   /*isFirst=*/false);
    if (failed(saved))
      return failure();
    if (fewer.isBetterThan(least)) {
      code = std::move(saved);
      least = fewer;
    }
    // Vector registers that are free now are for the scalars that are left.
    if ((way.numbers == Saving::MadeAnew || way.sumsInLoops ||
         way.comparisons != Saving::Early) &&
        !way.parked && fewer.scalars) {
      way.parked = fewer.scalars;
      ways.push_back(way);
    }
  }
  return code;
}
