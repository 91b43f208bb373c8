//===- Compiler.cpp - From a problem to an artifact -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Compiler/Compiler.h"
#include "Functions.h"
#include "Manifest.h"
#include "TargetModule.h"
#include "kvbuffer/Compiler/Codegen.h"
#include "kvbuffer/Compiler/ExternalTools.h"
#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"
#include "kvbuffer/Pipelines/Alternatives.h"
#include "kvbuffer/Pipelines/CopyKernels.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace kvbuf;

static constexpr llvm::StringLiteral kStageNames[] = {
    "problem", "tile", "scheduled", "thread",
    "target",  "llvm", "asm",       "artifact"};

std::optional<Stage> kvbuf::parseStage(StringRef name) {
  for (auto [index, known] : llvm::enumerate(kStageNames))
    if (name == known)
      return static_cast<Stage>(index);
  return std::nullopt;
}

StringRef kvbuf::stageName(Stage stage) {
  return kStageNames[static_cast<unsigned>(stage)];
}

/// The stage that the kernels of a module are at: that of their phase, or
/// `Problem` if there is work to lower and no kernel yet.
static llvm::FailureOr<Stage> currentStage(ModuleOp module) {
  Operation *first = nullptr, *problem = nullptr;
  std::optional<Phase> phase;
  WalkResult walk = module.walk([&](Operation *op) {
    if (isa<ProblemInterface>(op))
      problem = op;
    auto attr = op->getAttrOfType<PhaseAttr>(KVBufferDialect::kPhaseAttr);
    if (!attr)
      return WalkResult::advance();
    if (phase && *phase != attr.getValue()) {
      InFlightDiagnostic diag = op->emitOpError()
                                << "is in phase '"
                                << stringifyPhase(attr.getValue())
                                << "', but another kernel of this module is "
                                   "in phase '"
                                << stringifyPhase(*phase) << "'";
      diag.attachNote(first->getLoc()) << "the other kernel is here";
      return WalkResult::interrupt();
    }
    phase = attr.getValue();
    first = op;
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  if (phase && problem) {
    InFlightDiagnostic diag =
        problem->emitOpError("stands beside a kernel that is lowered already; "
                             "a module is at one stage");
    diag.attachNote(first->getLoc()) << "the kernel is here";
    return failure();
  }
  if (problem)
    return Stage::Problem;
  if (!phase)
    return module.emitError("there is nothing to compile: expected a "
                            "kvbuffer.attention or kvbuffer.cache_append in a "
                            "func.func, or a kernel with a kvbuffer.phase"),
           failure();
  switch (*phase) {
  case Phase::Tile:
    return Stage::Tile;
  case Phase::Scheduled:
    return Stage::Scheduled;
  case Phase::Thread:
    return Stage::Thread;
  case Phase::Target:
    return Stage::Target;
  }
  llvm_unreachable("unknown phase");
}

/// Checks a module at the target stage, which may be hand-written, against the
/// chip: some of what a chip lacks would end the process in the backend.
static LogicalResult verifyForTarget(ModuleOp module) {
  PassManager pm(module->getContext(), ModuleOp::getOperationName());
  pm.nest<gpu::GPUModuleOp>().addPass(createVerifyTarget());
  pm.enableVerifier(false);
  return pm.run(module);
}

/// The chip that a module is compiled for.
static llvm::FailureOr<TargetInfo> targetFor(ModuleOp module,
                                             const CompileOptions &options) {
  return chooseTarget(module, options.target,
                      options.defaultTarget.empty() ? StringRef(kDefaultChip)
                                                    : options.defaultTarget);
}

/// Runs the pipelines that lead from the module's stage to `goal`, at most the
/// target stage, for tensors with addresses and strides that are multiples of
/// `alignment` bytes. Returns the chip.
/// `otherByLaunch`: see `ScheduleRequest`.
static llvm::FailureOr<TargetInfo> lowerTo(ModuleOp module, Stage goal,
                                           const CompileOptions &options,
                                           int64_t alignment = 16,
                                           bool otherByLaunch = false) {
  llvm::FailureOr<Stage> stage = currentStage(module);
  if (failed(stage))
    return failure();
  llvm::FailureOr<TargetInfo> target = targetFor(module, options);
  if (failed(target))
    return failure();
  // Which was said, if it overruled the module's.
  module->setAttr(KVBufferDialect::kTargetAttr,
                  StringAttr::get(module.getContext(), target->chip));
  if (*stage > goal)
    return module.emitError()
               << "is at stage '" << stageName(*stage)
               << "' already; it cannot go back to '" << stageName(goal) << "'",
           failure();

  LoweringOptions lowering;
  lowering.chip = target->chip;
  lowering.schedule = options.schedule;
  lowering.alignment = alignment;
  lowering.otherByLaunch = otherByLaunch;
  lowering.prefetch = options.prefetch;
  lowering.splitLoops = options.splitLoops;
  using Build = void (*)(OpPassManager &, const LoweringOptions &);
  static constexpr std::pair<Stage, Build> steps[] = {
      {Stage::Tile, buildTilePipeline},
      {Stage::Scheduled, buildScheduledPipeline},
      {Stage::Thread, buildThreadPipeline},
      {Stage::Target, buildTargetPipeline}};
  // A program that comes at the tile stage may still leave choices to the chip.
  if (*stage == Stage::Tile) {
    PassManager pm(module->getContext(), ModuleOp::getOperationName());
    pm.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>().addPass(
        createCompleteProgram());
    if (failed(pm.run(module)))
      return failure();
  }
  for (auto [next, build] : steps) {
    if (next <= *stage || next > goal)
      continue;
    step(options, stageName(next));
    PassManager pm(module->getContext(), ModuleOp::getOperationName());
    build(pm, lowering);
    // Each stage is verified, phase contract and all; kvbuf-opt verifies after
    // each pass.
    pm.enableVerifier(false);
    if (failed(pm.run(module)) || failed(verify(module)))
      return failure();
  }
  if (goal == Stage::Target && failed(verifyForTarget(module)))
    return failure();
  return target;
}

/// Prepares a problem that is lowered once more, as what `name` is made of.
static void prepareAgain(ModuleOp problem, const Twine &name,
                         const TargetInfo &target) {
  // Remarks on this kernel have the same places in the source as those on the
  // other one; the name tells them apart.
  auto attr = StringAttr::get(problem.getContext(), name);
  problem.walk(
      [&](Operation *op) { op->setLoc(NameLoc::get(attr, op->getLoc())); });
  // It was said what this overrules, if anything.
  problem->setAttr(KVBufferDialect::kTargetAttr,
                   StringAttr::get(problem.getContext(), target.chip));
}

/// Adds kernels that copy tensors which other kernels cannot take.
static LogicalResult addCopies(const KernelVariants &variants,
                               const TargetInfo &target,
                               const CompileOptions &options,
                               TargetModule &found) {
  LLVM::LLVMFuncOp first = found.kernels.front();
  SmallVector<TensorAttr> tensors = copiedTensors(first, variants.copied);
  bool used = false;
  for (LLVM::LLVMFuncOp kernel : found.kernels) {
    auto schedule =
        kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
    auto alignment =
        cast<IntegerAttr>(LaunchAttr::of(kernel).getField("alignment"));
    Attribute when = variants.copiesPay;
    auto never = dyn_cast_or_null<IntegerAttr>(when);
    if (tensors.empty() || !schedule || alignment.getInt() < 16 || !when ||
        (never && never.getInt() <= 0) || schedule.getSplitKeys())
      continue;
    setCopiesIf(kernel, when);
    used = true;
  }
  if (!used)
    return success();
  OwningOpRef<ModuleOp> module =
      buildCopyKernels(first.getLoc(), first.getName(), tensors);
  prepareAgain(*module, first.getName() + "_copies", target);
  CompileOptions plain = options;
  plain.onStep = nullptr;
  if (failed(lowerTo(*module, Stage::Target, plain, /*alignment=*/2)))
    return failure();
  llvm::FailureOr<TargetModule> copies = findKernels(*module);
  if (failed(copies))
    return failure();
  for (auto [kernel, tensor] : llvm::zip_equal(copies->kernels, tensors))
    markCopyKernel(kernel, tensor);
  found.kernels.append(copies->kernels);
  moveKernel(found.code, copies->code, copies->kernels.front(),
             copies->kernels.front().getName());
  return success();
}

/// Adds the kernel that launches of `kernel` run ahead of it.
static LogicalResult addAhead(const KernelAlternative &alternative,
                              LLVM::LLVMFuncOp kernel, const TargetInfo &target,
                              const CompileOptions &options,
                              TargetModule &found) {
  std::string name = (kernel.getName() + "_ahead").str();
  OwningOpRef<ModuleOp> module = alternative.ahead(name);
  prepareAgain(*module, name, target);
  if (failed(lowerTo(*module, Stage::Target, options)))
    return failure();
  llvm::FailureOr<TargetModule> other = findKernels(*module);
  if (failed(other))
    return failure();
  LLVM::LLVMFuncOp ahead = other->kernels.front();
  // What launches provide is the second one's.
  describeAlike(ahead, found.kernels.front());
  describeAlike(ahead, kernel);
  // Its lanes copy as many bytes at a time as the second one's.
  ahead->setAttr(
      KVBufferDialect::kKernelAttr,
      LaunchAttr::of(ahead).with("alignment",
                                 LaunchAttr::of(kernel).getField("alignment")));
  found.kernels.push_back(ahead);
  moveKernel(found.code, other->code, ahead, name);
  addAhead(kernel, ahead.getName());
  return success();
}

/// Adds the kernels that launches choose between besides `found`'s one, which
/// comes from `problem`.
static LogicalResult addAlternatives(ModuleOp problem, const TargetInfo &target,
                                     const CompileOptions &options,
                                     TargetModule &found) {
  // Others before it are parts of it.
  ProblemInterface last;
  problem.walk([&](ProblemInterface op) { last = op; });
  KernelVariants variants =
      alternativesOf(found.kernels.front(), last, target, options.schedule,
                     /*runsAhead=*/true);
  LLVM::LLVMFuncOp kernel = found.kernels.back();
  for (const KernelAlternative &alternative : variants.list) {
    OwningOpRef<ModuleOp> again = problem.clone();
    prepareAgain(*again, alternative.name, target);
    CompileOptions plain = options;
    plain.onStep = nullptr;
    if (alternative.schedule)
      plain.schedule = *alternative.schedule;
    again->walk([&](ProblemInterface op) { op.become(alternative); });
    if (failed(lowerTo(*again, Stage::Target, plain, alternative.alignment,
                       /*otherByLaunch=*/bool(alternative.ahead))))
      return failure();
    llvm::FailureOr<TargetModule> other = findKernels(*again);
    if (failed(other))
      return failure();
    if (alternative.launchIf)
      setLaunchIf(kernel, alternative.launchIf);
    LLVM::LLVMFuncOp added =
        addAlternative(found.code, kernel, other->code, other->kernels.front(),
                       alternative.name);
    found.kernels.push_back(added);
    if (alternative.sharedRows)
      addBeside(found.kernels.front(), added.getName());
    remark::passed(
        kernel.getLoc(),
        remark::RemarkOpts::name("alternative").category("kvbuf-compile"))
        << "added '" << added.getName().str() << "', " << alternative.when;
    kernel = added;
    if (alternative.ahead &&
        failed(addAhead(alternative, kernel, target, plain, found)))
      return failure();
  }
  return addCopies(variants, target, options, found);
}

/// Checks that no problem is given as one that reads what a kernel ahead of its
/// own writes: only who adds that kernel may say so (addAlternatives).
static LogicalResult checkAheads(ModuleOp module) {
  WalkResult walk = module.walk([](ProblemInterface op) {
    if (!op->hasAttr(kWidenedAttr))
      return WalkResult::advance();
    op->emitOpError() << "has the attribute '" << kWidenedAttr
                      << "', but no kernel ahead of its own writes what it "
                         "would read; expected none, as kernels of this kind "
                         "are added where they pay";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Makes the artifact of a module with one function.
static llvm::FailureOr<Artifact>
compileFunction(ModuleOp module, const CompileOptions &options,
                SmallVectorImpl<KernelResources> *resources) {
  llvm::FailureOr<Stage> stage = currentStage(module);
  if (failed(stage) || failed(checkAheads(module)))
    return failure();
  OwningOpRef<ModuleOp> problem;
  if (options.alternatives && *stage <= Stage::Tile)
    problem = module.clone();
  llvm::FailureOr<TargetInfo> target =
      lowerTo(module, Stage::Target, options, /*alignment=*/16,
              /*otherByLaunch=*/static_cast<bool>(problem));
  if (failed(target))
    return failure();
  llvm::FailureOr<TargetModule> found = findKernels(module);
  if (failed(found))
    return failure();
  if (problem && found->kernels.size() == 1 &&
      failed(addAlternatives(*problem, *target, options, *found)))
    return failure();
  SmallVector<KernelResources> use =
      llvm::map_to_vector(found->kernels, resourcesOf);
  Artifact artifact;
  if (options.machineCode &&
      failed(addCode(artifact, *found, *target, options, use)))
    return failure();
  step(options, "artifact");
  std::string name = options.name;
  if (name.empty())
    name = found->kernels.front().getName().str();
  llvm::FailureOr<std::string> manifest =
      writeManifest(found->kernels, use, *target, name, options.machineCode);
  if (failed(manifest))
    return failure();
  artifact.manifest = *manifest;
  artifact.sections.push_back({"mlir", writeBytecodeString(module, *found)});
  step(options, "");
  if (resources)
    resources->append(use.begin(), use.end());
  return artifact;
}

/// Whether a function takes the schedule of an option.
static bool takesSchedule(Operation *function) {
  return function
      ->walk([](ProblemInterface op) {
        return op.isByLanes() ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Says which functions do not take the option `schedule`; it is an error if
/// none does.
static LogicalResult checkSchedule(ArrayRef<ModuleFunction> functions,
                                   StringRef schedule) {
  if (schedule.empty() || functions.empty())
    return success();
  bool taken = llvm::any_of(functions, [](const ModuleFunction &function) {
    return takesSchedule(function.op);
  });
  for (const ModuleFunction &function : functions) {
    if (takesSchedule(function.op))
      continue;
    InFlightDiagnostic diag =
        taken ? function.named->emitWarning() : function.named->emitOpError();
    diag << "does not take the schedule '" << schedule
         << "', which is for a problem that has tiles; the schedule of a "
            "kernel is its attribute '"
         << KVBufferDialect::kScheduleAttr << "'";
    if (!taken)
      return diag;
  }
  return success();
}

/// Whether the order of a function's kernels is still to be chosen.
static bool isToBeScheduled(const ModuleFunction &function) {
  return !function.op
              ->walk([](Operation *op) {
                auto phase =
                    op->getAttrOfType<PhaseAttr>(KVBufferDialect::kPhaseAttr);
                return phase && phase.getValue() != Phase::Tile
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

/// Says which pass is switched off that no function is still to go through.
/// Alternatives are none of these: kernels that are scheduled have none, as
/// asked.
static LogicalResult checkSwitches(ArrayRef<ModuleFunction> functions,
                                   const CompileOptions &options) {
  if (functions.empty() || llvm::any_of(functions, isToBeScheduled))
    return success();
  for (auto [on, name] : {std::pair(options.prefetch, "no-prefetch"),
                          std::pair(options.splitLoops, "no-split-loops")})
    if (!on)
      return functions.front().named->emitOpError()
             << "is scheduled already; '" << name
             << "' is for problems and kernels at stage 'tile'";
  return success();
}

/// The functions of a module, of which the one that is asked for is left.
static llvm::FailureOr<SmallVector<ModuleFunction>>
chooseFunctions(ModuleOp module, const CompileOptions &options) {
  llvm::FailureOr<SmallVector<ModuleFunction>> functions =
      findFunctions(module);
  if (failed(functions))
    return failure();
  if (!options.function.empty()) {
    if (failed(keepFunction(module, *functions, options.function)))
      return failure();
    llvm::erase_if(*functions, [&](const ModuleFunction &function) {
      return function.name != options.function;
    });
  }
  if (failed(checkSchedule(*functions, options.schedule)) ||
      failed(checkSwitches(*functions, options)))
    return failure();
  return functions;
}

LogicalResult kvbuf::keepOneFunction(ModuleOp module,
                                     const CompileOptions &options,
                                     const Twine &what) {
  llvm::FailureOr<SmallVector<ModuleFunction>> functions =
      chooseFunctions(module, options);
  if (failed(functions))
    return failure();
  return functions->size() > 1 ? failForSeveral(*functions, what) : success();
}

/// One chip for all functions of a module, which it names from here on.
static LogicalResult agreeOnTarget(ModuleOp module,
                                   ArrayRef<ModuleFunction> functions,
                                   const CompileOptions &options) {
  llvm::FailureOr<TargetInfo> target = targetFor(module, options);
  if (failed(target))
    return failure();
  for (const ModuleFunction &function : functions) {
    auto own =
        function.op->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr);
    std::optional<TargetInfo> other =
        own ? lookupTarget(own.getValue()) : target;
    if (!other || other->chip != target->chip)
      return function.op->emitOpError()
             << "is for " << own << ", but the module's functions for \""
             << target->chip << "\"; an artifact is for one chip";
  }
  module->setAttr(KVBufferDialect::kTargetAttr,
                  StringAttr::get(module.getContext(), target->chip));
  return success();
}

llvm::FailureOr<Artifact>
kvbuf::compile(ModuleOp module, const CompileOptions &options,
               SmallVectorImpl<KernelResources> *resources) {
  llvm::FailureOr<SmallVector<ModuleFunction>> functions =
      chooseFunctions(module, options);
  if (failed(functions))
    return failure();
  if (resources)
    resources->clear();
  if (functions->size() < 2)
    return compileFunction(module, options, resources);
  if (failed(agreeOnTarget(module, *functions, options)))
    return failure();
  std::vector<Artifact> artifacts;
  for (const ModuleFunction &function : *functions) {
    CompileOptions own = options;
    own.name = function.name;
    if (!takesSchedule(function.op))
      own.schedule.clear();
    OwningOpRef<ModuleOp> alone = extractFunction(module, function);
    llvm::FailureOr<Artifact> artifact =
        compileFunction(*alone, own, resources);
    if (failed(artifact))
      return failure();
    artifacts.push_back(std::move(*artifact));
  }
  return joinArtifacts(artifacts, options.name.empty() ? functions->front().name
                                                       : options.name);
}

LogicalResult kvbuf::emitStage(ModuleOp module, Stage stage,
                               const CompileOptions &options,
                               llvm::raw_ostream &os) {
  if (stage == Stage::Artifact) {
    llvm::FailureOr<Artifact> artifact = compile(module, options);
    if (failed(artifact))
      return failure();
    os << serializeArtifact(*artifact);
    return success();
  }
  // LLVM IR is of one gpu.module; what is MLIR has all functions.
  if (stage > Stage::Target
          ? failed(keepOneFunction(module, options,
                                   "the stage '" + stageName(stage) + "'"))
          : failed(chooseFunctions(module, options)))
    return failure();
  llvm::FailureOr<TargetInfo> target =
      lowerTo(module, std::min(stage, Stage::Target), options);
  if (failed(target))
    return failure();
  if (stage <= Stage::Target) {
    step(options, "");
    module.print(os);
    os << '\n';
    return success();
  }
  llvm::FailureOr<TargetModule> found = findKernels(module);
  if (failed(found))
    return failure();
  step(options, "llvm");
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated =
      translateToLLVM(found->code, *target, context);
  if (!translated)
    return failure();
  if (stage == Stage::LLVM) {
    step(options, "");
    translated->print(os, nullptr);
    return success();
  }
  step(options, "asm");
  llvm::FailureOr<std::string> code =
      generateCode(*translated, *target, CodeKind::Assembly,
                   found->kernels.front().getLoc());
  if (failed(code))
    return failure();
  step(options, "");
  os << *code;
  return success();
}

void kvbuf::printResources(ArrayRef<KernelResources> resources,
                           llvm::raw_ostream &os) {
  size_t width = StringRef("kernel").size();
  for (const KernelResources &use : resources)
    width = std::max(width, use.entry.size());
  auto cell = [](int64_t value) {
    return value < 0 ? std::string("-") : std::to_string(value);
  };
  constexpr llvm::StringLiteral row =
      "{0}  {1,7}  {2,9}  {3,12}  {4,15}  {5,16}\n";
  auto name = [&](StringRef text) { return llvm::left_justify(text, width); };
  os << llvm::formatv(row.data(), name("kernel"), "threads", "registers",
                      "spilled (B)", "static smem (B)", "dynamic smem (B)");
  for (const KernelResources &use : resources)
    os << llvm::formatv(row.data(), name(use.entry), cell(use.threads),
                        cell(use.registers), cell(use.spillBytes),
                        cell(use.staticSharedBytes),
                        cell(use.dynamicSharedBytes));
}

llvm::json::Object kvbuf::resourcesToJSON(const KernelResources &use) {
  llvm::json::Object kernel{{"name", use.entry}};
  for (auto [key, value] :
       {std::pair("threads", use.threads),
        std::pair("registers", use.registers),
        std::pair("spill_bytes", use.spillBytes),
        std::pair("static_shared_bytes", use.staticSharedBytes),
        std::pair("dynamic_shared_bytes", use.dynamicSharedBytes)})
    if (value >= 0)
      kernel[key] = value;
  return kernel;
}
