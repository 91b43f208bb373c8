//===- Arrays.cpp - Tile programs on arrays from files --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Emulator/TileInterpreter.h"
#include "kvbuffer/Runtime/Artifact.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Npy.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::tilerun;

namespace {

/// What the kernel calls a tensor.
struct Tensor {
  std::string name;
  rt::DType dtype = rt::DType::F32;
  emu::TileAccess access = emu::TileAccess::Read;
  std::vector<int64_t> shape;
  std::string data;
};

} // namespace

static rt::DType typeOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return rt::parseDType(text);
}

/// The tensors that are to be bound: not those that the interpreter makes.
static std::vector<Tensor> tensorsOf(gpu::GPUFuncOp kernel) {
  std::vector<Tensor> tensors;
  for (BlockArgument arg : kernel.getArguments()) {
    unsigned n = arg.getArgNumber();
    auto name =
        kernel.getArgAttrOfType<StringAttr>(n, KVBufferDialect::kNameAttr);
    if (!name)
      continue;
    auto access =
        kernel.getArgAttrOfType<StringAttr>(n, KVBufferDialect::kAccessAttr);
    StringRef how = access ? access.getValue() : "read";
    if (how == "workspace" || how == "counter")
      continue;
    auto add = [&](const std::string &label, rt::DType dtype) {
      Tensor &tensor = tensors.emplace_back();
      tensor.name = label;
      tensor.dtype = dtype;
      tensor.access = how == "read"         ? emu::TileAccess::Read
                      : how == "read_write" ? emu::TileAccess::ReadWrite
                                            : emu::TileAccess::Write;
    };
    std::string label = name.getValue().str();
    if (auto memref = dyn_cast<MemRefType>(arg.getType())) {
      add(label, typeOf(memref.getElementType()));
      continue;
    }
    auto cache = dyn_cast<CacheLayout>(arg.getType());
    if (!cache)
      continue;
    add(label, typeOf(cache.getElementType()));
    rt::DType index = typeOf(indexTypeOf(kernel, n));
    for (const CacheTensor &of : cache.getIndexTensors())
      add(label + "." + of.name.str(), index);
    if (Type scale = cache.getScaleType())
      add(label + ".scales", typeOf(scale));
  }
  return tensors;
}

/// Element `i` as a number.
static double valueOf(const std::string &data, rt::DType type, size_t i) {
  auto read = [&](auto value) {
    std::memcpy(&value, data.data() + i * sizeof(value), sizeof(value));
    return value;
  };
  switch (type) {
  case rt::DType::F32:
    return read(float());
  case rt::DType::I32:
    return read(int32_t());
  case rt::DType::I64:
    return static_cast<double>(read(int64_t()));
  case rt::DType::F16:
  case rt::DType::BF16:
    return rt::decode16(type, read(uint16_t()));
  default:
    // Raw bytes are compared as such.
    return read(uint8_t());
  }
}

/// "[2, 3, 0]" of an element's number.
static std::string placeOf(int64_t i, const std::vector<int64_t> &shape) {
  std::vector<std::string> at;
  for (int64_t extent : llvm::reverse(shape)) {
    at.insert(at.begin(), std::to_string(i % extent));
    i /= extent;
  }
  return "[" + llvm::join(at, ", ") + "]";
}

/// Compares an output; prints the largest difference.
static bool compare(const Tensor &tensor, const rt::NpyArray &expected,
                    double tolerance, raw_ostream &os) {
  double largest = 0, magnitude = 0;
  int64_t at = 0, count = tensor.data.size() / rt::sizeOf(tensor.dtype);
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    double x = valueOf(tensor.data, tensor.dtype, i),
           y = valueOf(expected.data, tensor.dtype, i);
    if (std::isfinite(y))
      magnitude = std::max(magnitude, std::abs(y));
    // Infinities and what is no number have to be the same.
    if (!std::isfinite(x) || !std::isfinite(y)) {
      bool same = x == y || (std::isnan(x) && std::isnan(y));
      if (!same && finite) {
        finite = false;
        at = i;
      }
      continue;
    }
    if (finite && std::abs(x - y) > largest) {
      largest = std::abs(x - y);
      at = i;
    }
  }
  double limit = tolerance * magnitude;
  bool good = finite && largest <= limit;
  os << "  " << tensor.name << ": largest difference "
     << llvm::format("%.3e (limit %.3e)", finite ? largest : NAN, limit)
     << " at " << placeOf(at, tensor.shape) << ", "
     << llvm::format("%.6g for %.6g", valueOf(tensor.data, tensor.dtype, at),
                     valueOf(expected.data, tensor.dtype, at))
     << (good ? "" : "  EXCEEDED") << '\n';
  return good;
}

bool kvbuf::tilerun::runOnArrays(gpu::GPUFuncOp kernel, const ArrayRun &run,
                                 raw_ostream &os) {
  std::vector<Tensor> tensors = tensorsOf(kernel);
  std::vector<std::string> names;
  for (const Tensor &tensor : tensors)
    names.push_back(tensor.name);
  for (auto [option, given] :
       {std::pair("--input", &run.inputs), std::pair("--expect", &run.expected),
        std::pair("--output", &run.outputs)})
    for (const auto &[name, path] : *given)
      if (!llvm::is_contained(names, name))
        throw rt::Error(std::string(option) + " " + name +
                        ": the kernel has no such tensor; it has " +
                        llvm::join(names, ", "));
  auto interpreter = emu::TileInterpreter::create(kernel);
  if (failed(interpreter))
    throw rt::Error("the kernel cannot be executed");
  std::map<std::string, rt::NpyArray> expected;
  for (Tensor &tensor : tensors) {
    auto input = run.inputs.find(tensor.name);
    auto wanted = run.expected.find(tensor.name);
    // Kernels need not say what they write.
    if (wanted != run.expected.end() &&
        tensor.access != emu::TileAccess::ReadWrite)
      tensor.access = emu::TileAccess::Write;
    if (wanted != run.expected.end())
      expected[tensor.name] = rt::readNpy(wanted->second, tensor.dtype);
    if (input != run.inputs.end()) {
      rt::NpyArray array = rt::readNpy(input->second, tensor.dtype);
      tensor.shape = array.shape;
      tensor.data = array.data;
    } else if (wanted != run.expected.end()) {
      // Nothing is known of an output: no number where nobody writes.
      tensor.shape = expected[tensor.name].shape;
      tensor.data.assign(expected[tensor.name].data.size(), '\xff');
    } else {
      throw rt::Error("the tensor '" + tensor.name + "' needs --input " +
                      tensor.name + "=FILE.npy" +
                      (tensor.access == emu::TileAccess::Write
                           ? " or --expect " + tensor.name + "=FILE.npy"
                           : ""));
    }
    if (wanted != run.expected.end() &&
        expected[tensor.name].shape != tensor.shape)
      throw rt::Error("--expect " + tensor.name +
                      ": its shape is not that of --input");
    std::vector<int64_t> strides(tensor.shape.size(), 1);
    for (size_t d = strides.size(); d-- > 1;)
      strides[d - 1] = strides[d] * tensor.shape[d];
    if (failed((*interpreter)
                   ->bind(tensor.name, tensor.data.data(), tensor.shape,
                          strides, tensor.access)))
      throw rt::Error("the tensor '" + tensor.name + "' does not fit");
  }
  for (const auto &[name, value] : run.sizes)
    (*interpreter)->bindSize(name, value);
  std::array<int64_t, 3> grid;
  if (run.grid) {
    grid = *run.grid;
  } else {
    FailureOr<std::array<int64_t, 3>> own = (*interpreter)->grid();
    if (failed(own))
      throw rt::Error("give --grid X,Y,Z: the kernel's own is not known");
    grid = *own;
  }
  FailureOr<emu::TileReport> report = (*interpreter)->run(grid, run.order);
  if (failed(report))
    return false;
  os << kernel.getName() << ": blocks " << report->blocks << ", loads "
     << report->loads << ", bytes " << report->bytesLoaded << ", multiply-adds "
     << report->multiplyAdds << ", stored " << report->stored << '\n';
  bool good = true;
  for (const Tensor &tensor : tensors) {
    if (auto output = run.outputs.find(tensor.name);
        output != run.outputs.end()) {
      std::string error;
      if (!writeWholeFile(
              output->second,
              rt::formatNpy(tensor.dtype, tensor.shape, tensor.data), error))
        throw rt::Error(error);
    }
    if (auto wanted = expected.find(tensor.name); wanted != expected.end())
      good &= compare(tensor, wanted->second, run.tolerance, os);
  }
  os << (good ? "PASS" : "FAIL") << '\n';
  return good;
}
