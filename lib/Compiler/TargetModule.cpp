//===- TargetModule.cpp - From kernels to sections ------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetModule.h"
#include "Isa.h"
#include "kvbuffer/Compiler/Codegen.h"
#include "kvbuffer/Compiler/ExternalTools.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace kvbuf;

void kvbuf::step(const CompileOptions &options, StringRef name) {
  if (options.onStep)
    options.onStep(name);
}

llvm::FailureOr<TargetModule> kvbuf::findKernels(ModuleOp module) {
  TargetModule found;
  for (auto code : module.getOps<gpu::GPUModuleOp>()) {
    assert(!found.code && "each is a function of its own");
    found.code = code;
    for (auto function : code.getOps<LLVM::LLVMFuncOp>())
      if (function->hasAttr(KVBufferDialect::kPhaseAttr))
        found.kernels.push_back(function);
  }
  // What is not found here is not compiled.
  WalkResult nested = module.walk([&](Operation *op) -> WalkResult {
    if (!op->hasAttr(KVBufferDialect::kPhaseAttr) ||
        llvm::is_contained(found.kernels, op))
      return WalkResult::advance();
    return op->emitOpError("is a kernel where none is compiled; expected it in "
                           "the module's gpu.module");
  });
  if (nested.wasInterrupted())
    return failure();
  if (found.kernels.empty())
    return module.emitError("has no kernel at the target stage: expected a "
                            "gpu.module with an llvm.func that carries "
                            "kvbuffer.phase"),
           failure();
  return found;
}

std::string kvbuf::writeBytecodeString(ModuleOp module, TargetModule &found) {
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(module.getLoc());
  kernels->getOperation()->setAttrs(module->getAttrDictionary());
  kernels->push_back(found.code->clone());
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  BytecodeWriterConfig config("kvbuf " KVBUF_VERSION);
  (void)writeBytecodeToFile(*kernels, os, config);
  return bytes;
}

/// Adds what the binary's maker, `tool`, knows to `resources`, and says so in
/// remarks.
static void addReport(const ResourceReport &report, StringRef tool,
                      TargetModule &found,
                      MutableArrayRef<KernelResources> resources) {
  for (auto [kernel, use] : llvm::zip_equal(found.kernels, resources)) {
    auto known = report.find(use.entry);
    if (known == report.end())
      continue;
    const KernelResources &told = known->second;
    use.registers = told.registers;
    use.spillBytes = told.spillBytes;
    use.staticSharedBytes = told.staticSharedBytes;
    remark::analysis(kernel.getLoc(),
                     remark::RemarkOpts::name("resources").category(tool))
        << remark::metric("registers", told.registers)
        << remark::metric("spill_bytes", told.spillBytes)
        << remark::metric("static_shared_bytes", told.staticSharedBytes);
  }
}

/// Holds the releases and acquires of an AMD code object against the memory
/// model, and results against when they are there: what LLVM's backend makes of
/// them nobody sees but here.
static LogicalResult checkWaits(StringRef hsaco, TargetModule &found) {
  llvm::Expected<std::vector<MissingWait>> missing = findMissingWaits(hsaco);
  if (!missing)
    // Inline assembly may hold bytes that are no instructions.
    return emitWarning(found.kernels.front().getLoc())
               << "the waits of this kernel's code cannot be checked: "
               << llvm::toString(missing.takeError()),
           success();
  for (const MissingWait &wait : *missing) {
    Operation *function = found.code.lookupSymbol(wait.function);
    emitError(function ? function->getLoc() : found.code.getLoc())
        << "the code of '" << wait.function
        << "' lacks a 's_waitcnt vmcnt(0)': " << wait.text;
  }
  llvm::Expected<std::vector<IsaHazard>> hazards = findHazards(hsaco);
  if (!hazards)
    return emitError(found.code.getLoc())
           << llvm::toString(hazards.takeError());
  // A table of states against what LLVM resolves by itself: where the two
  // differ the code may still be right, so that a person decides.
  for (const IsaHazard &hazard : *hazards) {
    Operation *function = found.code.lookupSymbol(hazard.function);
    emitWarning(function ? function->getLoc() : found.code.getLoc())
        << "the code of '" << hazard.function
        << "' does not wait for a result: " << hazard.text;
  }
  // Of a user's inline assembly, as LLVM selects none.
  llvm::Expected<std::vector<UnsafePair>> pairs = findUnsafePairs(hsaco);
  if (!pairs)
    return emitError(found.code.getLoc()) << llvm::toString(pairs.takeError());
  for (const UnsafePair &pair : *pairs) {
    Operation *function = found.code.lookupSymbol(pair.function);
    emitWarning(function ? function->getLoc() : found.code.getLoc())
        << "the code of '" << pair.function << "' may go wrong: " << pair.text;
  }
  return success(missing->empty());
}

LogicalResult kvbuf::addCode(Artifact &artifact, TargetModule &found,
                             const TargetInfo &target,
                             const CompileOptions &options,
                             MutableArrayRef<KernelResources> resources) {
  Location loc = found.kernels.front().getLoc();
  step(options, "llvm");
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated =
      translateToLLVM(found.code, target, context);
  if (!translated)
    return failure();
  step(options, "asm");
  bool nvidia = target.vendor == Vendor::NVIDIA;
  if (nvidia ? !options.linker.empty()
             : !options.ptxas.empty() && !isPtxasOff(options.ptxas))
    return emitError(loc) << "is for \"" << target.chip << "\"; '"
                          << (nvidia ? "linker" : "ptxas")
                          << "' is for chips of "
                          << (nvidia ? "AMD" : "NVIDIA");
  llvm::FailureOr<std::string> code = generateCode(
      *translated, target, nvidia ? CodeKind::Assembly : CodeKind::Object, loc);
  if (failed(code))
    return failure();
  if (!nvidia) {
    step(options, "ld.lld");
    llvm::FailureOr<std::string> hsaco =
        linkHsaco(*code, findLinker(options.linker), loc);
    if (failed(hsaco))
      return failure();
    if (failed(checkWaits(*hsaco, found)))
      return failure();
    addReport(readHsacoReport(*hsaco), "amdgpu", found, resources);
    artifact.sections.push_back({"hsaco", *hsaco});
    return success();
  }
  artifact.sections.push_back({"ptx", *code});
  std::string ptxas = findPtxas(options.ptxas);
  if (ptxas.empty()) {
    remark::missed(loc, remark::RemarkOpts::name("cubin").category("ptxas"))
        << remark::reason("ptxas {0}: the artifact holds PTX only, which the "
                          "driver assembles when it is loaded",
                          isPtxasOff(options.ptxas) ? "is switched off"
                                                    : "was not found");
    return success();
  }
  step(options, "ptxas");
  ResourceReport report;
  llvm::FailureOr<std::string> cubin =
      assemblePtx(*code, target.chip, ptxas, loc, report);
  if (failed(cubin))
    return failure();
  addReport(report, "ptxas", found, resources);
  artifact.sections.push_back({"cubin", *cubin});
  return success();
}
