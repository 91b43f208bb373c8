//===- OutlineKernels.cpp - Problems into launches ------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Each problem, wherever it stands in a function, is copied into a module of
/// its own, lowered there as kvbuf-compile lowers it, and moved as a kernel
/// into the one gpu.module; in its place the kernel is launched.
///
//===----------------------------------------------------------------------===//

#include "EmitLaunch.h"
#include "kvbuffer/Conversion/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/PassNumbers.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Pipelines/Alternatives.h"
#include "kvbuffer/Pipelines/Passes.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "kvbuffer/Target/DefaultChips.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"

namespace kvbuf {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "kvbuffer/Pipelines/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

static SmallVector<NamedOperand> operandsOf(Operation *op) {
  return cast<ProblemInterface>(op).getNamedOperands();
}

/// The type of a kernel's argument for a memref: where it begins does not
/// matter.
static MemRefType withoutOffset(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || offset == 0)
    return type;
  return MemRefType::get(type.getShape(), type.getElementType(),
                         StridedLayoutAttr::get(type.getContext(), 0, strides),
                         type.getMemorySpace());
}

/// The op that makes a cache; null, with an error at the problem, if it is not
/// there.
static MakeCacheOp makerOf(Operation *problem, const NamedOperand &operand) {
  auto maker = operand.value.getDefiningOp<MakeCacheOp>();
  if (!maker)
    problem->emitOpError() << "has a cache '" << operand.name
                           << "' that no kvbuffer.make_cache makes in this "
                              "function; the launch needs its memrefs";
  else if (maker.isOnTensors()) {
    maker.emitOpError(
        "is on tensors; expected memrefs: run one-shot-bufferize first");
    return nullptr;
  }
  return maker;
}

/// The type of the entries of a cache's tables, which a kernel takes one of.
static FailureOr<Type> indexTypeOf(Operation *problem, MakeCacheOp maker) {
  Type type;
  for (Value table : maker.getIndices()) {
    Type own = cast<MemRefType>(table.getType()).getElementType();
    if (type && own != type) {
      InFlightDiagnostic diag =
          problem->emitOpError()
          << "has a cache with tables of " << type << " and " << own
          << "; kernels take caches whose tables, lengths and offsets have one "
             "type";
      diag.attachNote(maker.getLoc()) << "the cache is made here";
      return failure();
    }
    type = own;
  }
  return type;
}

/// The argument of the problem's function that is the stream of its launches;
/// null without one.
static FailureOr<Value> streamOf(Operation *problem) {
  auto function = problem->getParentOfType<FunctionOpInterface>();
  Value stream;
  for (auto [i, arg] : llvm::enumerate(function.getArguments())) {
    if (!function.getArgAttr(i, KVBufferDialect::kStreamAttr))
      continue;
    if (stream || !isa<LLVM::LLVMPointerType>(arg.getType()))
      return function.emitOpError()
             << "argument " << i << " is "
             << (stream ? "a second stream; expected one"
                        : "no stream; expected an '!llvm.ptr'");
    stream = arg;
  }
  return stream;
}

namespace {

class OutlineKernelsPass
    : public kvbuf::impl::OutlineKernelsBase<OutlineKernelsPass> {
public:
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const final {
    Base::getDependentDialects(registry);
    for (Vendor vendor : {Vendor::NVIDIA, Vendor::AMD}) {
      OpPassManager pm(ModuleOp::getOperationName());
      buildPipeline(pm, vendor, LoweringOptions());
      pm.getDependentDialects(registry);
    }
  }

  void runOnOperation() final;

private:
  /// From a problem to what gpu-module-to-binary takes.
  static void buildPipeline(OpPassManager &pm, Vendor vendor,
                            const LoweringOptions &options);
  /// Lowers a copy of a problem with `schedule` and `alignment`; its module
  /// is nested in this one, with one gpu.module and one kernel.
  /// `alternative`: what it becomes, if not the first kernel; `otherByLaunch`:
  /// launches may choose another kernel (ScheduleRequest).
  FailureOr<ModuleOp> lower(Operation *problem, StringRef name,
                            StringRef schedule, int64_t alignment,
                            const KernelAlternative *alternative,
                            bool otherByLaunch = false);
  /// The kernels of a problem, the preferred one first.
  FailureOr<SmallVector<LaunchableKernel>> kernelsOf(Operation *problem);
  /// Moves the kernel of a lowered module into the one gpu.module.
  LaunchableKernel take(ModuleOp lowered);
  LogicalResult launch(Operation *problem, ArrayRef<LaunchableKernel> kernels);
  gpu::GPUModuleOp codeModule();

  std::optional<TargetInfo> target;
  gpu::GPUModuleOp code;
  /// Of problems that are the same but for the values of their operands.
  llvm::StringMap<SmallVector<LaunchableKernel>> known;
  llvm::StringMap<unsigned> names;
};

} // namespace

void OutlineKernelsPass::buildPipeline(OpPassManager &pm, Vendor vendor,
                                       const LoweringOptions &lowering) {
  buildTilePipeline(pm, lowering);
  buildScheduledPipeline(pm, lowering);
  buildThreadPipeline(pm, lowering);
  buildTargetPipeline(pm, vendor, lowering);
  OpPassManager &module = pm.nest<gpu::GPUModuleOp>();
  module.addPass(createVerifyTarget());
  module.addPass(createConvertKVBufferToInlineAsm());
  if (vendor == Vendor::NVIDIA)
    module.addPass(createConvertNVVMToLLVMPass());
}

FailureOr<ModuleOp> OutlineKernelsPass::lower(
    Operation *problem, StringRef name, StringRef schedule, int64_t alignment,
    const KernelAlternative *alternative, bool otherByLaunch) {
  OpBuilder b(&getContext());
  b.setInsertionPointToEnd(getOperation().getBody());
  Location loc = problem->getLoc();
  auto module = ModuleOp::create(b, loc);
  module->setAttr(KVBufferDialect::kTargetAttr, b.getStringAttr(target->chip));
  b.setInsertionPointToStart(module.getBody());
  // Every operand has an argument of its own.
  SmallVector<Type> types;
  for (Value operand : problem->getOperands()) {
    auto memref = dyn_cast<MemRefType>(operand.getType());
    types.push_back(memref ? Type(withoutOffset(memref)) : operand.getType());
  }
  auto func = func::FuncOp::create(b, loc, name, b.getFunctionType(types, {}));
  for (OpOperand &operand : problem->getOpOperands())
    if (auto maker = operand.get().getDefiningOp<MakeCacheOp>()) {
      FailureOr<Type> word = indexTypeOf(problem, maker);
      if (failed(word)) {
        module.erase();
        return failure();
      }
      if (*word)
        func.setArgAttr(operand.getOperandNumber(), kIndexAttr,
                        TypeAttr::get(*word));
    }
  b.setInsertionPointToStart(func.addEntryBlock());
  Operation *copy = cloneProblem(b, problem, func.getArguments());
  if (alternative)
    cast<ProblemInterface>(copy).become(*alternative);
  func::ReturnOp::create(b, loc);
  OpPassManager pm(ModuleOp::getOperationName());
  LoweringOptions lowering;
  lowering.schedule = schedule.str();
  lowering.alignment = alignment;
  lowering.otherByLaunch = otherByLaunch;
  buildPipeline(pm, target->vendor, lowering);
  if (succeeded(runPipeline(pm, module)))
    return module;
  module.erase();
  return failure();
}

/// The kernel of a lowered problem.
static LLVM::LLVMFuncOp kernelOf(ModuleOp lowered) {
  auto code = *lowered.getOps<gpu::GPUModuleOp>().begin();
  for (auto function : code.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(KVBufferDialect::kKernelAttr))
      return function;
  return nullptr;
}

gpu::GPUModuleOp OutlineKernelsPass::codeModule() {
  if (code)
    return code;
  OpBuilder b(&getContext());
  b.setInsertionPointToEnd(getOperation().getBody());
  SymbolTable symbols(getOperation());
  code = gpu::GPUModuleOp::create(b, getOperation().getLoc(), "kvbuf_kernels");
  symbols.insert(code);
  getOperation()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                          b.getUnitAttr());
  if (!targets)
    return code;
  Attribute attr;
  if (target->vendor == Vendor::NVIDIA)
    attr =
        NVVM::NVVMTargetAttr::get(&getContext(), /*optLevel=*/3, target->triple,
                                  target->chip, target->features);
  else
    attr = ROCDL::ROCDLTargetAttr::get(&getContext(), /*optLevel=*/3,
                                       target->triple, target->chip);
  code.setTargetsAttr(b.getArrayAttr({attr}));
  return code;
}

LaunchableKernel OutlineKernelsPass::take(ModuleOp lowered) {
  LLVM::LLVMFuncOp kernel = kernelOf(lowered);
  auto other = cast<gpu::GPUModuleOp>(kernel->getParentOp());
  LaunchableKernel result;
  result.launch = LaunchAttr::of(kernel);
  result.tensors =
      kernel->getAttrOfType<ArrayAttr>(KVBufferDialect::kTensorsAttr);
  if (auto cluster = kernel->getAttrOfType<DenseI32ArrayAttr>(
          NVVM::NVVMDialect::getClusterDimAttrName()))
    result.cluster = cluster[0];
  // Nobody reads our attributes from here on, and tools without the dialect
  // cannot.
  other->walk([](Operation *op) {
    for (NamedAttribute attr : llvm::to_vector(op->getDiscardableAttrs()))
      if (isa_and_nonnull<KVBufferDialect>(attr.getNameDialect()))
        op->removeDiscardableAttr(attr.getName());
  });
  gpu::GPUModuleOp into = codeModule();
  moveKernel(into, other, kernel, kernel.getName());
  result.symbol = SymbolRefAttr::get(
      into.getNameAttr(), {FlatSymbolRefAttr::get(kernel.getNameAttr())});
  lowered.erase();
  return result;
}

FailureOr<SmallVector<LaunchableKernel>>
OutlineKernelsPass::kernelsOf(Operation *problem) {
  // What decides over the kernel: attributes, regions and types.
  std::string key;
  llvm::raw_string_ostream stream(key);
  stream << problem->getName() << problem->getRawDictionaryAttrs()
         << problem->getPropertiesAsAttribute();
  for (Value operand : problem->getOperands()) {
    stream << ";" << operand.getType();
    if (auto maker = operand.getDefiningOp<MakeCacheOp>()) {
      FailureOr<Type> word = indexTypeOf(problem, maker);
      if (failed(word))
        return failure();
      stream << *word;
    }
  }
  // Regions are not compared: each has its kernel.
  if (llvm::any_of(problem->getRegions(),
                   [](Region &region) { return !region.empty(); }))
    stream << static_cast<const void *>(problem);
  if (auto it = known.find(key); it != known.end())
    return it->second;

  auto function = problem->getParentOfType<FunctionOpInterface>();
  std::string stem =
      (function.getName() + "_" + problem->getName().stripDialect()).str();
  if (unsigned number = names[stem]++)
    stem += "_" + std::to_string(number);
  SmallVector<LaunchableKernel> kernels;
  auto interface = cast<ProblemInterface>(problem);
  // Programs by lanes have no schedule.
  StringRef own =
      interface.isByLanes() ? StringRef() : StringRef(schedule.getValue());
  FailureOr<ModuleOp> lowered =
      lower(problem, stem, own, /*alignment=*/16, /*alternative=*/nullptr,
            /*otherByLaunch=*/alternatives);
  if (failed(lowered))
    return failure();
  SmallVector<KernelAlternative> others;
  if (alternatives)
    others = alternativesOf(kernelOf(*lowered), interface, *target, own).list;
  for (const KernelAlternative &other : others) {
    if (other.launchIf)
      setLaunchIf(kernelOf(*lowered), other.launchIf);
    kernels.push_back(take(*lowered));
    lowered = lower(problem, other.name, other.schedule.value_or(own.str()),
                    other.alignment, &other);
    if (failed(lowered))
      return failure();
  }
  kernels.push_back(take(*lowered));
  // As addBeside has them.
  for (size_t i = others.size(); i > 0; --i)
    if (others[i - 1].sharedRows)
      kernels.front().beside.push_back(i);
  known[key] = kernels;
  return kernels;
}

LogicalResult OutlineKernelsPass::launch(Operation *problem,
                                         ArrayRef<LaunchableKernel> kernels) {
  ImplicitLocOpBuilder b(problem->getLoc(), problem);
  LaunchOptions how;
  how.multiprocessors = multiprocessors > 0 ? int64_t(multiprocessors)
                                            : int64_t(target->multiprocessors);
  how.checks = checks;
  how.registerHost = registerHost;
  FailureOr<Value> stream = streamOf(problem);
  if (failed(stream))
    return failure();
  how.stream = *stream;
  if (how.stream && registerHost)
    return problem->emitOpError(
        "goes to a stream, which nobody waits for here; expected "
        "register-host=false: its memory has to stay registered until the "
        "launch is over");
  LaunchEmitter emitter(b, problem, how);
  for (const NamedOperand &operand : operandsOf(problem)) {
    if (!operand.value)
      continue;
    if (isa<MemRefType>(operand.value.getType())) {
      emitter.addTensor(operand.name, operand.value);
      continue;
    }
    MakeCacheOp maker = makerOf(problem, operand);
    if (!maker)
      return failure();
    auto layout = cast<CacheLayout>(maker.getCache().getType());
    emitter.addTensor(operand.name, maker.getData());
    for (auto [table, value] :
         llvm::zip_equal(layout.getIndexTensors(), maker.getIndices()))
      emitter.addTensor((operand.name + "." + table.name).str(), value);
    if (maker.getScales())
      emitter.addTensor((operand.name + ".scales").str(), maker.getScales());
    if (maker.getMaxPrompt())
      emitter.addSize("max_prompt_length", maker.getMaxPrompt());
  }
  return emitter.emit(kernels);
}

void OutlineKernelsPass::runOnOperation() {
  code = nullptr;
  known.clear();
  names.clear();
  ModuleOp module = getOperation();
  SmallVector<Operation *> problems;
  WalkResult places = module.walk([&](Operation *op) -> WalkResult {
    auto problem = dyn_cast<ProblemInterface>(op);
    if (!problem)
      return WalkResult::advance();
    if (op->getParentOfType<ModuleOp>() != module ||
        op->getParentOfType<gpu::GPUModuleOp>() ||
        !op->getParentOfType<FunctionOpInterface>())
      return op->emitOpError()
             << "stands where it is not outlined; expected it in a function "
                "of this module, not in a nested one";
    if (failed(verifyOnMemrefs(problem)))
      return WalkResult::interrupt();
    problems.push_back(op);
    return WalkResult::advance();
  });
  if (places.wasInterrupted())
    return signalPassFailure();
  if (problems.empty())
    return;
  FailureOr<TargetInfo> chosen = chooseTarget(module, chip, kDefaultChip);
  if (failed(chosen))
    return signalPassFailure();
  target = *chosen;
  if (failed(checkPassNumber(problems.front(), "multiprocessors",
                             multiprocessors, 0,
                             std::numeric_limits<int32_t>::max())))
    return signalPassFailure();
  for (Operation *problem : problems) {
    for (const NamedOperand &operand : operandsOf(problem))
      if (operand.value && isa<CacheLayout>(operand.value.getType()) &&
          !makerOf(problem, operand))
        return signalPassFailure();
    FailureOr<SmallVector<LaunchableKernel>> kernels = kernelsOf(problem);
    if (failed(kernels) || failed(launch(problem, *kernels)))
      return signalPassFailure();
    SmallVector<MakeCacheOp> makers;
    for (Value operand : problem->getOperands())
      if (auto maker = operand.getDefiningOp<MakeCacheOp>();
          maker && !llvm::is_contained(makers, maker))
        makers.push_back(maker);
    problem->erase();
    for (MakeCacheOp maker : makers)
      if (maker->use_empty())
        maker->erase();
  }
  module->removeAttr(KVBufferDialect::kTargetAttr);
  module.walk([](FunctionOpInterface function) {
    for (unsigned i : llvm::seq(function.getNumArguments()))
      function.removeArgAttr(i, KVBufferDialect::kStreamAttr);
  });
}
