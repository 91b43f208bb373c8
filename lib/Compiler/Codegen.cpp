//===- Codegen.cpp - From the target stage to code ------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Compiler/Codegen.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include <mutex>

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
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.chip, target.features, llvm::TargetOptions(),
      llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
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
    pm.addPass(createConvertNVVMToLLVMPass());
    if (failed(pm.run(*copy)))
      return nullptr;
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
  constexpr llvm::StringLiteral denormals = "denormal-fp-math-f32";
  for (llvm::Function &function : *translated)
    if (!function.isDeclaration() && !function.hasFnAttribute(denormals))
      function.addFnAttr(denormals, "preserve-sign,preserve-sign");
  return translated;
}

namespace {

/// Turns LLVM's diagnostics into MLIR's.
struct DiagnosticForwarder : llvm::DiagnosticHandler {
  DiagnosticForwarder(Location loc, bool &failed) : loc(loc), failed(failed) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::DiagnosticPrinterRawOStream printer(os);
    info.print(printer);
    switch (info.getSeverity()) {
    case llvm::DS_Error:
      failed = true;
      emitError(loc) << "code generation: " << text;
      break;
    case llvm::DS_Warning:
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
};

} // namespace

namespace {

/// Switches LLVM's loop strength reduction off for as long as this lives. It
/// gives each address of a loop a 64-bit pointer of its own, which costs
/// registers that these kernels lack: on an H200 prefill gains 5 % without it.
/// The switch is an option of the process; there is none for one compilation.
class WithoutLoopStrengthReduction {
public:
  WithoutLoopStrengthReduction() {
    auto &options = llvm::cl::getRegisteredOptions();
    if (auto found = options.find("disable-lsr"); found != options.end()) {
      option = static_cast<llvm::cl::opt<bool> *>(found->second);
      before = option->getValue();
      option->setValue(true);
    }
  }
  ~WithoutLoopStrengthReduction() {
    if (option)
      option->setValue(before);
  }

private:
  llvm::cl::opt<bool> *option = nullptr;
  bool before = false;
};

} // namespace

/// Called where LLVM would end the process: for a fatal error of a backend.
static void onFatalError(void *location, const char *reason, bool) {
  emitError(*static_cast<Location *>(location))
      << "code generation: " << reason;
  if (auto *recovery = llvm::CrashRecoveryContext::GetCurrent())
    recovery->HandleExit(1);
}

llvm::FailureOr<std::string> kvbuf::generateCode(llvm::Module &module,
                                                 const TargetInfo &target,
                                                 CodeKind kind, Location loc) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, loc);
  if (!machine)
    return failure();
  bool failedInside = false;
  module.getContext().setDiagnosticHandler(
      std::make_unique<DiagnosticForwarder>(loc, failedInside));

  // What follows sets options and handlers of the process, so one backend runs
  // at a time.
  static std::mutex backends;
  std::scoped_lock lock(backends);
  WithoutLoopStrengthReduction withoutReduction;

  llvm::SmallVector<char> buffer;
  llvm::raw_svector_ostream os(buffer);
  llvm::legacy::PassManager passes;
  auto fileType = kind == CodeKind::Assembly
                      ? llvm::CodeGenFileType::AssemblyFile
                      : llvm::CodeGenFileType::ObjectFile;
  if (machine->addPassesToEmitFile(passes, os, nullptr, fileType)) {
    emitError(loc) << "the backend for " << target.chip
                   << " cannot write this kind of file";
    return failure();
  }
  // A backend ends the process on instructions that it cannot select; a
  // library, and a tool that owes a location, must not.
  llvm::CrashRecoveryContext::Enable();
  bool finished;
  {
    llvm::ScopedFatalErrorHandler handler(onFatalError, &loc);
    llvm::CrashRecoveryContext recovery;
    finished = recovery.RunSafely([&] { passes.run(module); });
  }
  llvm::CrashRecoveryContext::Disable();
  if (!finished)
    emitError(loc) << "the backend for " << target.chip
                   << " could not compile this kernel";
  if (!finished || failedInside)
    return failure();
  return std::string(buffer.begin(), buffer.end());
}
