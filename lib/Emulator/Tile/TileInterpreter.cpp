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
#include "llvm/ADT/StringMap.h"

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
  const Cache *addCache(StringRef name, CacheType type, Type word);
  LogicalResult addArgument(BlockArgument argument);
};

const Cache *TileInterpreter::Impl::addCache(StringRef name, CacheType type,
                                             Type word) {
  constexpr int64_t any = ShapedType::kDynamic;
  auto cache = std::make_unique<Cache>();
  cache->type = type;
  auto data = [&](std::initializer_list<int64_t> leading) {
    SmallVector<int64_t> shape(leading);
    shape.append({type.getHeads(), type.getCacheDepth()});
    cache->data = add(name, type.getElementType(), shape);
  };
  switch (type.getKind()) {
  case CacheKind::Dense:
    data({any, any});
    break;
  case CacheKind::Ragged:
    data({any});
    cache->offsets = add(name + ".offsets", word, {any});
    break;
  case CacheKind::Continuous:
    data({any, any});
    cache->table = add(name + ".table", word, {any});
    break;
  case CacheKind::Paged:
    data({any, type.getPageSize()});
    cache->table = add(name + ".table", word, {any, any});
    break;
  }
  if (type.hasTable())
    cache->lengths = add(name + ".lengths", word, {any});
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
  if (auto cache = dyn_cast<CacheType>(argument.getType())) {
    Type element = cache.getElementType();
    if (!element.isBF16() && !element.isF16())
      return kernel.emitOpError()
             << "argument " << name << " must have elements bf16 or f16";
    arguments.push_back(addCache(name.getValue(), cache,
                                 indexTypeOf(kernel, argument.getArgNumber())));
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
  if (!element.isBF16() && !element.isF16() && !element.isF32() &&
      !element.isSignlessInteger(32) && !element.isSignlessInteger(64))
    return kernel.emitOpError()
           << "argument " << name
           << " must have elements bf16, f16, f32, i32 or i64";
  arguments.push_back(
      add(name.getValue(), element, memref.getShape(), strides));
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
  if (it == impl->parameters.end())
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

FailureOr<TileReport> TileInterpreter::run(std::array<int64_t, 3> grid) {
  for (auto &entry : impl->parameters) {
    if (!entry.second->bound) {
      impl->kernel.emitOpError()
          << "nothing is bound to '" << entry.getKey() << "'";
      return failure();
    }
    entry.second->tensor.writers.clear();
  }
  TileReport report;
  for (int64_t z = 0; z < grid[2]; ++z)
    for (int64_t y = 0; y < grid[1]; ++y)
      for (int64_t x = 0; x < grid[0]; ++x) {
        if (failed(BlockRun(impl->kernel, impl->arguments, {x, y, z}, grid,
                            impl->sizes, report)
                       .run()))
          return failure();
        ++report.blocks;
      }
  return report;
}
