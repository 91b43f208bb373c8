//===- TileInterpreter.cpp - Executes the tile stage ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Emulator/TileInterpreter.h"
#include "BlockRun.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>
#include <numeric>
#include <random>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

namespace {
/// A tensor that a kernel has, and what its type says of it.
struct Parameter {
  Tensor tensor;
  /// Sizes and strides; kDynamic where any will do.
  SmallVector<int64_t> shape, strides;
  bool bound = false;
  /// What is made for each run: "workspace", "counter" or nothing, its shape as
  /// expressions over sizes, and its memory.
  StringRef made;
  SmallVector<Attribute> sizes;
  std::vector<uint32_t> words;
};
} // namespace

struct TileInterpreter::Impl {
  gpu::GPUFuncOp kernel;
  llvm::StringMap<std::unique_ptr<Parameter>> parameters;
  std::vector<std::unique_ptr<Cache>> caches;
  SmallVector<RuntimeValue> arguments;
  llvm::StringMap<int64_t> sizes;

  Tensor *add(const Twine &name, Type elementType, ArrayRef<int64_t> shape,
              ArrayRef<int64_t> strides = {}) {
    auto parameter = std::make_unique<Parameter>();
    parameter->tensor.name = name.str();
    parameter->tensor.elementType = elementType;
    parameter->shape.assign(shape.begin(), shape.end());
    parameter->strides.assign(strides.begin(), strides.end());
    // Rows are contiguous, whatever the type says.
    if (strides.empty())
      parameter->strides.assign(shape.size(), ShapedType::kDynamic);
    Tensor *tensor = &parameter->tensor;
    parameters[tensor->name] = std::move(parameter);
    return tensor;
  }
  Cache *addCache(StringRef name, CacheLayout layout, Type word);
  LogicalResult addArgument(BlockArgument argument);
  /// The sizes, and those that the shapes of bound tensors tell.
  llvm::StringMap<int64_t> allSizes() const;
  /// Makes the memory of workspaces and counters.
  LogicalResult makeScratch(const llvm::StringMap<int64_t> &sizes);
  /// Whether the kernel has left all counters at 0.
  LogicalResult checkCounters();
};

llvm::StringMap<int64_t> TileInterpreter::Impl::allSizes() const {
  llvm::StringMap<int64_t> all = sizes;
  for (const auto &entry : parameters)
    if (entry.second->bound)
      for (auto [size, extent] :
           llvm::zip(entry.second->sizes, entry.second->tensor.shape))
        if (auto name = dyn_cast<StringAttr>(size))
          all.try_emplace(name.getValue(), extent);
  // As the emulator says.
  all.try_emplace(kMultiprocessorsSize, 4);
  return all;
}

LogicalResult
TileInterpreter::Impl::makeScratch(const llvm::StringMap<int64_t> &sizes) {
  for (auto &entry : parameters) {
    Parameter &parameter = *entry.second;
    if (parameter.made.empty())
      continue;
    Tensor &tensor = parameter.tensor;
    tensor.shape.clear();
    for (Attribute size : parameter.sizes) {
      FailureOr<int64_t> extent = evaluateSize(size, sizes, [&] {
        return kernel.emitOpError() << "tensor '" << tensor.name << "' ";
      });
      if (failed(extent))
        return failure();
      tensor.shape.push_back(*extent);
    }
    int64_t count = 1;
    tensor.strides.assign(tensor.shape.size(), 1);
    for (size_t d = tensor.shape.size(); d-- > 0;) {
      tensor.strides[d] = count;
      count *= tensor.shape[d];
    }
    bool counter = parameter.made == "counter";
    parameter.words.assign(count, counter ? 0 : 0x7fc00000);
    tensor.data = parameter.words.data();
    tensor.access = counter ? TileAccess::Counter : TileAccess::Workspace;
    parameter.bound = true;
  }
  return success();
}

LogicalResult TileInterpreter::Impl::checkCounters() {
  for (auto &entry : parameters)
    if (entry.second->made == "counter")
      for (auto [i, word] : llvm::enumerate(entry.second->words))
        if (word)
          return kernel.emitOpError()
                 << "leaves element " << i << " of the counters '"
                 << entry.getKey() << "' at " << word
                 << "; expected that as many blocks arrive as are expected";
  return success();
}

Cache *TileInterpreter::Impl::addCache(StringRef name, CacheLayout layout,
                                       Type word) {
  auto cache = std::make_unique<Cache>(layout);
  auto sizesOf = [](ArrayRef<CacheDim> dims) {
    return llvm::map_to_vector(dims, [](const CacheDim &d) { return d.size; });
  };
  SmallVector<int64_t> leading = sizesOf(layout.getLeadingDims()),
                       shape = leading;
  shape.append({layout.getHeads(), layout.getCacheDepth()});
  cache->data = add(name, layout.getStoredType(), shape);
  for (const CacheTensor &tensor : layout.getIndexTensors())
    cache->indices.push_back(
        add(name + "." + tensor.name, word, sizesOf(tensor.dims)));
  if (Type scale = layout.getScaleType()) {
    int64_t group = layout.getGranularity();
    SmallVector<int64_t> shape{group == kPerTensor ? 1 : layout.getHeads()};
    if (group > 0) {
      shape.insert(shape.begin(), leading.begin(), leading.end());
      shape.push_back(llvm::divideCeilSigned(layout.getHeadSize(), group));
    }
    cache->scales = add(name + ".scales", scale, shape);
  }
  caches.push_back(std::move(cache));
  return caches.back().get();
}

LogicalResult TileInterpreter::Impl::addArgument(BlockArgument argument) {
  auto name = kernel.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                  KVBufferDialect::kNameAttr);
  if (!name)
    return kernel.emitOpError() << "argument " << argument.getArgNumber()
                                << " has no 'kvbuffer.name'";
  if (parameters.count(name.getValue()))
    return kernel.emitOpError() << "has two arguments named " << name;
  if (auto cache = dyn_cast<CacheLayout>(argument.getType())) {
    Type element = cache.getElementType();
    bool isFloat8 =
        isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
    if (!element.isBF16() && !element.isF16() && !isFloat8)
      return kernel.emitOpError() << "argument " << name
                                  << " must have elements bf16, f16 or 8-bit "
                                     "floats";
    Cache *made = addCache(name.getValue(), cache,
                           indexTypeOf(kernel, argument.getArgNumber()));
    // It outlives all blocks.
    arguments.push_back(
        Object{TypeID::get<Cache>(),
               std::shared_ptr<void>(std::shared_ptr<void>(), made)});
    return success();
  }
  auto memref = dyn_cast<MemRefType>(argument.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!memref || failed(memref.getStridesAndOffset(strides, offset)))
    return kernel.emitOpError() << "argument " << name
                                << " must be a cache or a strided memref, got "
                                << argument.getType();
  Type element = memref.getElementType();
  bool isFloat8 =
      isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
  if (!element.isBF16() && !element.isF16() && !element.isF32() && !isFloat8 &&
      !element.isSignlessInteger(32) && !element.isSignlessInteger(64))
    return kernel.emitOpError() << "argument " << name
                                << " must have elements bf16, f16, f32, 8-bit "
                                   "floats, i32 or i64";
  arguments.push_back(
      add(name.getValue(), element, memref.getShape(), strides));
  Parameter &parameter = *parameters[name.getValue()];
  if (auto shape = kernel.getArgAttrOfType<ArrayAttr>(
          argument.getArgNumber(), KVBufferDialect::kShapeAttr))
    parameter.sizes.assign(shape.begin(), shape.end());
  auto access = kernel.getArgAttrOfType<StringAttr>(
      argument.getArgNumber(), KVBufferDialect::kAccessAttr);
  if (!access || (access != "workspace" && access != "counter"))
    return success();
  parameter.made = access.getValue();
  if (parameter.sizes.empty())
    for (int64_t size : memref.getShape())
      parameter.sizes.push_back(
          IntegerAttr::get(IndexType::get(kernel.getContext()), size));
  if (int64_t(parameter.sizes.size()) != memref.getRank() ||
      element.getIntOrFloatBitWidth() != 32)
    return kernel.emitOpError()
           << "argument " << name << " must have elements of 32 bits and a "
           << "size for each dimension";
  return success();
}

TileInterpreter::TileInterpreter(std::unique_ptr<Impl> impl)
    : impl(std::move(impl)) {}
TileInterpreter::~TileInterpreter() = default;

FailureOr<std::unique_ptr<TileInterpreter>>
TileInterpreter::create(gpu::GPUFuncOp kernel) {
  auto phase = kernel->getAttrOfType<PhaseAttr>(KVBufferDialect::kPhaseAttr);
  if (!phase || (phase.getValue() != Phase::Tile &&
                 phase.getValue() != Phase::Scheduled)) {
    kernel.emitOpError() << "expected '" << KVBufferDialect::kPhaseAttr
                         << "' tile or scheduled";
    return failure();
  }
  DialectRegistry models;
  registerTileExecutionModels(models);
  kernel->getContext()->appendDialectRegistry(models);
  auto impl = std::make_unique<Impl>();
  impl->kernel = kernel;
  for (BlockArgument argument : kernel.getArguments())
    if (failed(impl->addArgument(argument)))
      return failure();
  return std::unique_ptr<TileInterpreter>(new TileInterpreter(std::move(impl)));
}

LogicalResult TileInterpreter::bind(StringRef name, void *data,
                                    ArrayRef<int64_t> shape,
                                    ArrayRef<int64_t> strides,
                                    TileAccess access) {
  auto it = impl->parameters.find(name);
  if (it == impl->parameters.end() || !it->second->made.empty())
    return success();
  Parameter &parameter = *it->second;
  auto fits = [](ArrayRef<int64_t> expected, ArrayRef<int64_t> got) {
    return expected.size() == got.size() &&
           llvm::all_of(llvm::zip_equal(expected, got), [](auto pair) {
             auto [e, g] = pair;
             return ShapedType::isDynamic(e) || e == g;
           });
  };
  auto mismatch = [&](StringRef what, ArrayRef<int64_t> expected,
                      ArrayRef<int64_t> got) -> LogicalResult {
    InFlightDiagnostic diag = impl->kernel.emitOpError()
                              << "tensor '" << name << "' has " << what << " [";
    llvm::interleaveComma(got, diag);
    diag << "], expected [";
    llvm::interleave(
        expected, diag,
        [&](int64_t d) {
          if (ShapedType::isDynamic(d))
            diag << "?";
          else
            diag << d;
        },
        ", ");
    return diag << "]";
  };
  if (!fits(parameter.shape, shape))
    return mismatch("shape", parameter.shape, shape);
  // Strides of a packed memref follow from its sizes; a dimension of one
  // element can have any.
  SmallVector<int64_t> expected(parameter.strides);
  for (auto [e, size, got] : llvm::zip_equal(expected, shape, strides))
    if (size <= 1)
      e = got;
  if (!fits(expected, strides))
    return mismatch("strides", parameter.strides, strides);
  Tensor &tensor = parameter.tensor;
  tensor.data = data;
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.strides.assign(strides.begin(), strides.end());
  tensor.access = access;
  parameter.bound = true;
  return success();
}

void TileInterpreter::bindSize(StringRef name, int64_t value) {
  impl->sizes[name] = value;
}

FailureOr<std::array<int64_t, 3>> TileInterpreter::grid() {
  auto list =
      impl->kernel->getAttrOfType<ArrayAttr>(KVBufferDialect::kGridAttr);
  if (WorkItemOp item = WorkItemOp::of(impl->kernel))
    list = item.getGridOfItems();
  if (!list || list.size() != 3) {
    impl->kernel.emitOpError()
        << "has no '" << KVBufferDialect::kGridAttr << "' of three sizes";
    return failure();
  }
  llvm::StringMap<int64_t> sizes = impl->allSizes();
  std::array<int64_t, 3> grid;
  for (auto [extent, size] : llvm::zip_equal(grid, list)) {
    FailureOr<int64_t> value = evaluateSize(size, sizes, [&] {
      return impl->kernel.emitOpError()
             << "'" << KVBufferDialect::kGridAttr << "' ";
    });
    if (failed(value))
      return failure();
    extent = *value;
  }
  return grid;
}

FailureOr<TileReport> TileInterpreter::run(std::array<int64_t, 3> grid,
                                           uint64_t order) {
  llvm::StringMap<int64_t> sizes = impl->allSizes();
  if (failed(impl->makeScratch(sizes)))
    return failure();
  for (auto &entry : impl->parameters) {
    if (!entry.second->bound) {
      impl->kernel.emitOpError()
          << "nothing is bound to '" << entry.getKey() << "'";
      return failure();
    }
    entry.second->tensor.writers.clear();
  }
  TileReport report;
  std::vector<int64_t> numbers(grid[0] * grid[1] * grid[2]);
  std::iota(numbers.begin(), numbers.end(), 0);
  if (order)
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(order));
  for (int64_t number : numbers) {
    int64_t x = number % grid[0], y = number / grid[0] % grid[1],
            z = number / grid[0] / grid[1];
    if (failed(BlockRun(impl->kernel, impl->arguments, {x, y, z}, grid, sizes,
                        report)
                   .run()))
      return failure();
    ++report.blocks;
  }
  if (failed(impl->checkCounters()))
    return failure();
  return report;
}
