//===- Manifest.cpp - Writes an artifact's manifest -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Manifest.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Target/DevicePeaks.h"
#include "kvbuffer/Target/IssuePipes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include <charconv>
#include <cmath>

using namespace mlir;
using namespace kvbuf;

/// The shortest decimal that reads back as this number: of a float if it is
/// one, so that 0.088388346 does not grow digits that nobody wrote.
static std::string shortestDecimal(const APFloat &value) {
  char buffer[64];
  std::to_chars_result end =
      &value.getSemantics() == &APFloat::IEEEdouble()
          ? std::to_chars(buffer, buffer + sizeof(buffer),
                          value.convertToDouble())
          : std::to_chars(buffer, buffer + sizeof(buffer),
                          value.convertToFloat());
  std::string text(buffer, end.ptr);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text;
}

/// Writes an attribute as JSON; false if it has no JSON form.
static bool writeAttribute(llvm::json::OStream &os, Attribute attr) {
  if (auto boolean = dyn_cast<BoolAttr>(attr)) {
    os.value(boolean.getValue());
    return true;
  }
  if (auto integer = dyn_cast<IntegerAttr>(attr)) {
    std::optional<int64_t> value = integer.getValue().trySExtValue();
    if (!value)
      return false;
    os.value(*value);
    return true;
  }
  if (auto number = dyn_cast<FloatAttr>(attr)) {
    if (!number.getValue().isFinite())
      return false;
    os.rawValue(shortestDecimal(number.getValue()));
    return true;
  }
  if (auto string = dyn_cast<StringAttr>(attr)) {
    if (!llvm::json::isUTF8(string.getValue()))
      return false;
    os.value(string.getValue());
    return true;
  }
  if (auto array = dyn_cast<ArrayAttr>(attr)) {
    bool ok = true;
    os.array([&] {
      for (Attribute element : array)
        ok = ok && writeAttribute(os, element);
    });
    return ok;
  }
  if (auto argument = dyn_cast<ArgumentAttr>(attr))
    return writeAttribute(os, argument.getEntry());
  if (auto size = dyn_cast<SizeAttr>(attr)) {
    bool ok = true;
    std::string_view name = keywordOf(size.getOperation());
    os.object([&] {
      os.attributeArray(StringRef(name.data(), name.size()), [&] {
        for (Attribute operand : size.getOperands())
          ok = ok && writeAttribute(os, operand);
      });
    });
    return ok;
  }
  auto writeIntegers = [&](auto integers) {
    os.array([&] {
      for (auto integer : integers.asArrayRef())
        os.value(static_cast<int64_t>(integer));
    });
    return true;
  };
  if (auto integers = dyn_cast<DenseI64ArrayAttr>(attr))
    return writeIntegers(integers);
  if (auto integers = dyn_cast<DenseI32ArrayAttr>(attr))
    return writeIntegers(integers);
  if (auto dictionary = dyn_cast<DictionaryAttr>(attr)) {
    bool ok = true;
    os.object([&] {
      for (NamedAttribute entry : dictionary) {
        if (!ok)
          return;
        os.attributeBegin(entry.getName());
        ok = writeAttribute(os, entry.getValue());
        if (!ok)
          os.value(nullptr);
        os.attributeEnd();
      }
    });
    return ok;
  }
  return false;
}

/// An error at the op for an attribute without a JSON form.
static LogicalResult refuse(Operation *op, StringRef name, Attribute attr) {
  return op->emitOpError() << "attribute '" << name
                           << "' has a part that JSON cannot express: expected "
                              "booleans, integers, finite numbers, strings, "
                              "arrays and dictionaries in "
                           << attr;
}

/// As writeAttribute, with a diagnostic on the op if there is no JSON form.
static LogicalResult writeOrFail(llvm::json::OStream &os, Operation *op,
                                 StringRef name, Attribute attr) {
  return writeAttribute(os, attr) ? success() : refuse(op, name, attr);
}

KernelResources kvbuf::resourcesOf(LLVM::LLVMFuncOp kernel) {
  KernelResources resources;
  resources.entry = kernel.getName().str();
  LaunchAttr launch = LaunchAttr::of(kernel);
  if (!launch)
    return resources;
  resources.dynamicSharedBytes = launch.getDynamicSharedBytes();
  if (!launch.getBlock().empty())
    resources.threads = launch.getThreads();
  return resources;
}

/// Writes one entry of "kernels".
static LogicalResult writeKernel(llvm::json::OStream &os,
                                 LLVM::LLVMFuncOp kernel,
                                 const KernelResources &resources) {
  LaunchAttr launch = LaunchAttr::of(kernel);
  if (!launch)
    return kernel.emitOpError()
           << "kernel lacks the attribute '" << KVBufferDialect::kKernelAttr
           << "', which says how to launch it";
  for (StringRef field : {"block", "grid", "dynamic_shared_bytes", "args"})
    if (!launch.getField(field))
      return kernel.emitOpError()
             << "attribute '" << KVBufferDialect::kKernelAttr << "' lacks '"
             << field << "'";
  if (launch.getArgs().size() != kernel.getNumArguments())
    return kernel.emitOpError() << "attribute '" << KVBufferDialect::kKernelAttr
                                << "' describes " << launch.getArgs().size()
                                << " arguments of " << kernel.getNumArguments();
  LogicalResult result = success();
  os.object([&] {
    os.attribute("entry", kernel.getName());
    for (NamedAttribute field : launch.getFields()) {
      if (failed(result))
        return;
      os.attributeBegin(field.getName());
      result = writeOrFail(os, kernel, KVBufferDialect::kKernelAttr,
                           field.getValue());
      os.attributeEnd();
    }
    auto known = [&](StringRef key, int64_t value) {
      if (value >= 0)
        os.attribute(key, value);
    };
    // For people: no launch depends on it.
    if (Attribute schedule = kernel->getAttr(KVBufferDialect::kScheduleAttr)) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      schedule.print(stream);
      os.attribute("schedule", text);
    }
    if (auto cluster = kernel->getAttrOfType<DenseI32ArrayAttr>(
            NVVM::NVVMDialect::getClusterDimAttrName()))
      os.attributeArray("cluster", [&] {
        for (int32_t size : cluster.asArrayRef())
          os.value(size);
      });
    bool waits = false;
    kernel.walk([&](NVVM::GriddepcontrolOp op) {
      waits |= op.getKind() == NVVM::GridDepActionKind::wait;
    });
    // Who shares launches waits at its end, and only for what it runs beside.
    if (waits)
      os.attribute(kernel->hasAttr(kSharedRowsAttr) ? "dependent_beside"
                                                    : "dependent_launch",
                   true);
    known("registers", resources.registers);
    known("spill_bytes", resources.spillBytes);
    known("static_shared_bytes", resources.staticSharedBytes);
  });
  return result;
}

/// Writes one entry of "tensors"; false if JSON has no form for its names.
static bool writeTensor(llvm::json::OStream &os, TensorAttr tensor) {
  bool ok = true;
  os.object([&] {
    os.attribute("access", stringifyTensorAccess(tensor.getAccess()));
    if (tensor.getCache())
      os.attribute("cache", true);
    os.attribute("dtype", tensor.getDType());
    os.attributeBegin("name");
    ok = writeAttribute(os, tensor.getName());
    if (!ok)
      os.value(nullptr);
    os.attributeEnd();
    os.attributeArray("shape", [&] {
      for (Attribute size : tensor.getShape())
        ok = ok && writeAttribute(os, size);
    });
  });
  return ok;
}

/// What kernels that share a tensor do with it together: what one of them
/// writes and another reads is read and written. Null where the descriptions
/// differ in anything else.
static TensorAttr joinUses(TensorAttr one, TensorAttr other) {
  if (one == other)
    return one;
  if (one.isScratch() || other.isScratch() ||
      one != other.withAccess(one.getAccess()))
    return nullptr;
  return one.withAccess(TensorAccess::ReadWrite);
}

namespace {
/// What the kernels of a module have together.
struct KernelsTogether {
  /// The one that solves a problem: one problem may take several kernels, which
  /// run one after the other; a function computes one. Null: none does.
  LLVM::LLVMFuncOp withProblem;
  /// Kernels of one problem share tensors.
  llvm::MapVector<StringAttr, TensorAttr> tensors;

  /// The fields of its problem, or nothing.
  ProblemAttr problem() {
    return withProblem ? ProblemAttr::of(withProblem) : ProblemAttr();
  }
  LogicalResult add(LLVM::LLVMFuncOp kernel, bool isAlternative);
};
} // namespace

LogicalResult KernelsTogether::add(LLVM::LLVMFuncOp kernel,
                                   bool isAlternative) {
  if (kernel->hasAttr(KVBufferDialect::kProblemAttr) && !isAlternative) {
    if (withProblem) {
      InFlightDiagnostic diag = kernel.emitOpError()
                                << "solves a second problem of its "
                                   "gpu.module, whose kernels run one after "
                                   "the other: write each in a gpu.module of "
                                   "its own";
      diag.attachNote(withProblem.getLoc()) << "the first one is here";
      return failure();
    }
    withProblem = kernel;
  }
  auto list = kernel->getAttrOfType<ArrayAttr>(KVBufferDialect::kTensorsAttr);
  if (!list)
    return kernel.emitOpError() << "kernel lacks the attribute '"
                                << KVBufferDialect::kTensorsAttr << "'";
  for (auto tensor : list.getAsRange<TensorAttr>()) {
    auto [known, isNew] = tensors.insert({tensor.getName(), tensor});
    if (isNew)
      continue;
    TensorAttr joined = joinUses(known->second, tensor);
    if (!joined)
      return kernel.emitOpError()
             << "describes tensor " << tensor.getName() << " as " << tensor
             << ", another kernel of the module as " << known->second
             << "; expected one element type and shape, and either memory that "
                "all their launches get or a tensor of the caller's, or a "
                "gpu.module for each kernel that is launched by itself";
    known->second = joined;
  }
  return success();
}

/// Describes the chip. `element`: what the problem's products are of, as far as
/// a peak goes.
static void writeTarget(llvm::json::OStream &os, const TargetInfo &target,
                        StringRef element) {
  os.attributeObject("target", [&] {
    os.attribute("vendor", vendorName(target.vendor));
    os.attribute("chip", target.chip);
    os.attribute("wave", target.waveSize);
    os.attribute("multiprocessors", target.multiprocessors);
    if (llvm::ArrayRef<DevicePeak> peaks = devicePeaks(target.chip);
        !peaks.empty())
      os.attributeArray("peaks", [&] {
        for (const DevicePeak &peak : peaks)
          os.object([&] {
            os.attribute("device", peak.device);
            os.attribute("matrix_flops", peak.matrixFlopsFor(element));
            os.attribute("memory_bytes", peak.memoryBytes);
          });
      });
    if (std::vector<IssuePipe> pipes = issuePipes(target.chip); !pipes.empty())
      os.attributeObject("issue_cycles", [&] {
        for (const IssuePipe &pipe : pipes)
          os.attributeObject(pipe.name, [&] {
            for (const auto &[what, cycles] : pipe.cycles)
              os.attribute(what, cycles);
          });
      });
  });
}

/// Writes the kernels, but for those that copy what others get, and then these
/// by themselves: a runtime that knows nothing of them launches none.
static LogicalResult writeKernels(llvm::json::OStream &os,
                                  ArrayRef<LLVM::LLVMFuncOp> kernels,
                                  ArrayRef<KernelResources> resources) {
  LogicalResult result = success();
  auto isCopy = [](LLVM::LLVMFuncOp kernel) {
    LaunchAttr launch = LaunchAttr::of(kernel);
    return launch && launch.getField("copies");
  };
  auto write = [&](StringRef key, bool copies) {
    os.attributeArray(key, [&] {
      for (auto [kernel, use] : llvm::zip_equal(kernels, resources))
        if (isCopy(kernel) == copies && failed(writeKernel(os, kernel, use)))
          result = failure();
    });
  };
  write("kernels", /*copies=*/false);
  if (llvm::any_of(kernels, isCopy))
    write("copies", /*copies=*/true);
  return result;
}

/// Writes tensors that users give, and then memory that the runtime does.
static LogicalResult
writeTensors(llvm::json::OStream &os,
             const llvm::MapVector<StringAttr, TensorAttr> &tensors,
             LLVM::LLVMFuncOp kernel) {
  LogicalResult result = success();
  auto write = [&](StringRef key, bool ofRuntime) {
    os.attributeArray(key, [&] {
      for (auto [id, tensor] : tensors)
        if (tensor.isScratch() == ofRuntime && !writeTensor(os, tensor) &&
            failed(refuse(kernel, KVBufferDialect::kTensorsAttr, tensor)))
          result = failure();
    });
  };
  write("tensors", false);
  if (llvm::any_of(tensors,
                   [](const auto &entry) { return entry.second.isScratch(); }))
    write("scratch", true);
  return result;
}

llvm::FailureOr<std::string> kvbuf::writeManifest(
    ArrayRef<LLVM::LLVMFuncOp> kernels, ArrayRef<KernelResources> resources,
    const TargetInfo &target, StringRef name, bool machineCode) {
  // What runs in another kernel's place solves that one's problem.
  llvm::StringSet<> alternatives;
  for (LLVM::LLVMFuncOp kernel : kernels)
    if (LaunchAttr launch = LaunchAttr::of(kernel))
      if (Attribute instead = launch.getField("instead"))
        alternatives.insert(cast<StringAttr>(instead).getValue());
  KernelsTogether all;
  for (LLVM::LLVMFuncOp kernel : kernels)
    if (failed(all.add(kernel, alternatives.contains(kernel.getName()))))
      return failure();

  LogicalResult result = success();
  auto keep = [&](LogicalResult next) {
    if (failed(next))
      result = failure();
  };
  // A runtime that knows version 1 alone would launch one kernel of those that
  // share a launch.
  bool shares = llvm::any_of(kernels, [](LLVM::LLVMFuncOp kernel) {
    LaunchAttr launch = LaunchAttr::of(kernel);
    return launch && (launch.getField("beside") || launch.getField("ahead"));
  });
  ProblemAttr problem = all.problem();
  auto dtype = problem ? problem.getField<StringAttr>("dtype") : nullptr;
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream os(stream, /*IndentSize=*/2);
  os.object([&] {
    os.attribute("kvbuf", shares ? 2 : 1);
    os.attribute("producer", "kvbuf " KVBUF_VERSION);
    os.attribute("name", name);
    if (!machineCode)
      os.attribute("code", "none");
    writeTarget(os, target, dtype ? dtype.getValue() : "");
    if (all.withProblem) {
      os.attributeBegin("problem");
      keep(writeOrFail(os, all.withProblem, KVBufferDialect::kProblemAttr,
                       problem.getFields()));
      os.attributeEnd();
    }
    keep(writeKernels(os, kernels, resources));
    keep(writeTensors(os, all.tensors, kernels.front()));
  });
  if (failed(result))
    return failure();
  return text;
}
