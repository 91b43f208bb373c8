//===- Alternatives.cpp - Kernels for any tensors -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Pipelines/Alternatives.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace kvbuf;

/// Replaces some fields of the kernel's launch.
static void setLaunchFields(LLVM::LLVMFuncOp kernel,
                            ArrayRef<NamedAttribute> fields) {
  LaunchAttr launch = LaunchAttr::of(kernel);
  for (NamedAttribute field : fields)
    launch = launch.with(field.getName(), field.getValue());
  kernel->setAttr(KVBufferDialect::kKernelAttr, launch);
}

/// Dynamic shared memory is the same for every name that it has, so one name
/// serves both kernels: where `second` is one, `first` gets the stricter
/// alignment. (With two, the assembler pads one of them to the other's.)
static bool mergeDynamicShared(Operation *first, Operation *second) {
  auto a = dyn_cast<LLVM::GlobalOp>(first),
       b = dyn_cast<LLVM::GlobalOp>(second);
  auto isDynamic = [](LLVM::GlobalOp global) {
    auto array = dyn_cast<LLVM::LLVMArrayType>(global.getGlobalType());
    return array && array.getNumElements() == 0;
  };
  if (!a || !b || a.getAddrSpace() != b.getAddrSpace() ||
      a.getGlobalType() != b.getGlobalType() || !isDynamic(a))
    return false;
  if (b.getAlignment().value_or(1) > a.getAlignment().value_or(1))
    a.setAlignment(b.getAlignment());
  return true;
}

bool kvbuf::takesTensorMaps(LLVM::LLVMFuncOp kernel) {
  LaunchAttr launch = LaunchAttr::of(kernel);
  return launch && launch.takesTensorMaps();
}

void kvbuf::moveKernel(gpu::GPUModuleOp code, gpu::GPUModuleOp other,
                       LLVM::LLVMFuncOp kernel, StringRef stem) {
  SymbolTable symbols(code), others(other);
  for (Operation &op : llvm::make_early_inc_range(*other.getBody())) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (!symbol) {
      op.moveBefore(code.getBody(), code.getBody()->end());
      continue;
    }
    if (Operation *same = symbols.lookup(symbol.getName())) {
      if (mergeDynamicShared(same, &op)) {
        others.erase(&op);
        continue;
      }
      // The same declaration serves both.
      if (OperationEquivalence::isEquivalentTo(
              same, &op, OperationEquivalence::IgnoreLocations)) {
        others.erase(&op);
        continue;
      }
      StringRef wanted = &op == kernel ? stem : symbol.getName();
      std::string name = wanted.str();
      for (unsigned i = 1; symbols.lookup(name) || others.lookup(name); ++i)
        name = (wanted + "_" + Twine(i)).str();
      // Nothing but the module's own ops refers to it.
      (void)others.rename(&op, StringAttr::get(code.getContext(), name));
    }
    others.remove(&op);
    op.remove();
    symbols.insert(&op);
  }
}

/// Gives the workspaces and counters of `alternative` names of their own among
/// those of the other kernels of `code`. Kernels that share a name share the
/// memory, which has the size that the first of them needs; and an alternative
/// may run beside them.
static void separateScratch(gpu::GPUModuleOp code,
                            LLVM::LLVMFuncOp alternative) {
  auto tensorsOf = [](LLVM::LLVMFuncOp kernel) {
    auto list = kernel->getAttrOfType<ArrayAttr>(KVBufferDialect::kTensorsAttr);
    return list ? llvm::to_vector(list.getAsRange<TensorAttr>())
                : SmallVector<TensorAttr>();
  };
  llvm::StringSet<llvm::MallocAllocator> taken;
  for (auto kernel : code.getOps<LLVM::LLVMFuncOp>())
    if (kernel != alternative)
      for (TensorAttr tensor : tensorsOf(kernel))
        taken.insert(tensor.getName().getValue());

  Builder b(code.getContext());
  llvm::StringMap<StringAttr> renamed;
  SmallVector<Attribute> tensors;
  for (TensorAttr tensor : tensorsOf(alternative)) {
    StringRef name = tensor.getName().getValue();
    if (tensor.isScratch() && taken.contains(name)) {
      std::string own;
      for (unsigned i = 2; own.empty() || taken.contains(own); ++i)
        own = (name + "_" + Twine(i)).str();
      renamed[name] = b.getStringAttr(own);
      tensor = tensor.withName(renamed[name]);
    }
    tensors.push_back(tensor);
  }
  if (renamed.empty())
    return;
  alternative->setAttr(KVBufferDialect::kTensorsAttr, b.getArrayAttr(tensors));
  SmallVector<Attribute> args;
  for (auto arg :
       LaunchAttr::of(alternative).getArgs().getAsRange<ArgumentAttr>()) {
    StringAttr name = arg.getTensor();
    StringAttr other = name ? renamed.lookup(name.getValue()) : nullptr;
    args.push_back(other ? arg.withTensor(other) : arg);
  }
  setLaunchFields(alternative, b.getNamedAttr("args", b.getArrayAttr(args)));
}

LLVM::LLVMFuncOp kvbuf::addAlternative(gpu::GPUModuleOp code,
                                       LLVM::LLVMFuncOp kernel,
                                       gpu::GPUModuleOp other,
                                       LLVM::LLVMFuncOp alternative,
                                       StringRef stem) {
  bool maps = takesTensorMaps(kernel);
  moveKernel(code, other, alternative, stem);
  separateScratch(code, alternative);
  auto string = [&](StringRef name, StringRef value) {
    Builder b(code.getContext());
    return b.getNamedAttr(name, b.getStringAttr(value));
  };
  setLaunchFields(alternative, string("entry", alternative.getName()));
  setLaunchFields(kernel, string("instead", alternative.getName()));
  if (maps)
    setLaunchFields(kernel, string("requires", "tensor_maps"));
  return alternative;
}

void kvbuf::setLaunchIf(LLVM::LLVMFuncOp kernel, Attribute condition) {
  Builder b(kernel.getContext());
  setLaunchFields(kernel, b.getNamedAttr("launch_if", condition));
}

void kvbuf::describeAlike(LLVM::LLVMFuncOp kernel, LLVM::LLVMFuncOp other) {
  auto listOf = [](LLVM::LLVMFuncOp of) {
    return of->getAttrOfType<ArrayAttr>(KVBufferDialect::kTensorsAttr)
        .getAsRange<TensorAttr>();
  };
  SmallVector<Attribute> tensors;
  for (TensorAttr tensor : listOf(kernel)) {
    auto known = llvm::find_if(listOf(other), [&](TensorAttr one) {
      return one.getName() == tensor.getName();
    });
    tensors.push_back(known == listOf(other).end() ? tensor : *known);
  }
  kernel->setAttr(KVBufferDialect::kTensorsAttr,
                  ArrayAttr::get(kernel.getContext(), tensors));
}

void kvbuf::addAhead(LLVM::LLVMFuncOp kernel, StringRef other) {
  Builder b(kernel.getContext());
  setLaunchFields(kernel, b.getNamedAttr("ahead", b.getStrArrayAttr({other})));
}

void kvbuf::addBeside(LLVM::LLVMFuncOp kernel, StringRef other) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> names{b.getStringAttr(other)};
  if (Attribute added = LaunchAttr::of(kernel).getField("beside"))
    llvm::append_range(names, cast<ArrayAttr>(added));
  setLaunchFields(kernel, b.getNamedAttr("beside", b.getArrayAttr(names)));
}

KernelVariants kvbuf::alternativesOf(LLVM::LLVMFuncOp kernel,
                                     ProblemInterface problem,
                                     const TargetInfo &target,
                                     StringRef schedule, bool runsAhead) {
  KernelVariants variants;
  if (problem)
    variants = problem.getVariants({kernel, target, schedule, runsAhead});
  auto chosen =
      kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
  // Kernels by lanes keep to the alignment of their accesses.
  if (variants.complete || !chosen)
    return variants;
  bool maps = takesTensorMaps(kernel);
  // The teams of a program of the tile stage are its author's.
  if (chosen.getMovingTeam() && !problem)
    return variants;
  KernelAlternative &any = variants.list.emplace_back();
  any.launchIf = variants.launchIf;
  any.name = (kernel.getName() + (maps ? "_without_maps" : "_unaligned")).str();
  any.alignment = 2;
  // The caller's schedule, and the problem's, are for a kernel whose tiles a
  // team moves.
  if (chosen.getMovingTeam())
    any.schedule = "producers=0";
  any.when = "which runs for tensors";
  if (maps)
    any.when += " that no tensor map can describe";
  any.when += std::string(maps ? ", or" : "") +
              " whose addresses or strides are no multiples of 16 bytes";
  return variants;
}
