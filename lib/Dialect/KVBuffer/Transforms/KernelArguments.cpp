//===- KernelArguments.cpp - What a kernel's arguments become -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/KernelArguments.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

StringRef kvbuf::nameOf(gpu::GPUFuncOp kernel, unsigned argument) {
  return kernel
      .getArgAttrOfType<StringAttr>(argument, KVBufferDialect::kNameAttr)
      .getValue();
}

LogicalResult kvbuf::checkArgumentName(gpu::GPUFuncOp kernel, unsigned argument,
                                       llvm::StringSet<> &names) {
  auto name =
      kernel.getArgAttrOfType<StringAttr>(argument, KVBufferDialect::kNameAttr);
  if (!name)
    return kernel.emitOpError()
           << "argument " << argument << " has no '"
           << KVBufferDialect::kNameAttr << "', the name of its tensor";
  if (!names.insert(name.getValue()).second)
    return kernel.emitOpError() << "has two arguments with '"
                                << KVBufferDialect::kNameAttr << "' = " << name;
  return success();
}

FailureOr<SmallVector<Attribute>> kvbuf::shapeOf(gpu::GPUFuncOp kernel,
                                                 unsigned argument) {
  auto type = cast<MemRefType>(kernel.getArgument(argument).getType());
  Builder b(kernel.getContext());
  SmallVector<Attribute> shape;
  Attribute attr = kernel.getArgAttr(argument, KVBufferDialect::kShapeAttr);
  if (!attr) {
    for (auto [d, size] : llvm::enumerate(type.getShape()))
      shape.push_back(ShapedType::isDynamic(size)
                          ? Attribute(b.getStringAttr(nameOf(kernel, argument) +
                                                      "." + Twine(d)))
                          : b.getI64IntegerAttr(size));
    return shape;
  }
  auto list = dyn_cast<ArrayAttr>(attr);
  if (!list || int64_t(list.size()) != type.getRank() ||
      !llvm::all_of(list, SizeAttr::isSize))
    return kernel.emitOpError()
           << "argument " << argument << " has '" << KVBufferDialect::kShapeAttr
           << "' = " << attr << "; expected an array of " << type.getRank()
           << " names, numbers or expressions";
  for (auto [d, entry] : llvm::enumerate(list)) {
    auto number = dyn_cast<IntegerAttr>(entry);
    if (number && !type.isDynamicDim(d) &&
        number.getInt() != type.getDimSize(d))
      return kernel.emitOpError()
             << "argument " << argument << " has '"
             << KVBufferDialect::kShapeAttr << "' = " << attr
             << ", whose dimension " << d << " differs from that of " << type;
    shape.push_back(number ? b.getI64IntegerAttr(number.getInt()) : entry);
  }
  return shape;
}

TensorAttr KernelTensor::describe(TensorAccess access, bool holdsRows) const {
  MLIRContext *context = element.getContext();
  return TensorAttr::get(context, StringAttr::get(context, name), element,
                         shape, access, holdsRows);
}

KernelCache kvbuf::tensorsOf(gpu::GPUFuncOp kernel, unsigned argument,
                             CacheLayout layout) {
  Builder b(kernel.getContext());
  Value value = kernel.getArgument(argument);
  std::string name = nameOf(kernel, argument).str();
  auto addNumber = [&](KernelTensor &tensor, int64_t size) {
    tensor.sizes.push_back(size);
    tensor.shape.push_back(b.getI64IntegerAttr(size));
  };
  auto add = [&](KernelTensor &tensor, ArrayRef<CacheDim> dims) {
    for (const CacheDim &dim : dims) {
      if (!ShapedType::isDynamic(dim.size)) {
        addNumber(tensor, dim.size);
        continue;
      }
      Attribute size = b.getStringAttr(sizeOfCache(value, dim.name));
      if (dim.plus)
        size = SizeAttr::of(b.getContext(), "sum",
                            {size, b.getI64IntegerAttr(dim.plus)});
      tensor.sizes.push_back(dim.size);
      tensor.shape.push_back(size);
    }
  };
  KernelCache cache;
  cache.data.name = name;
  cache.data.element = layout.getElementType();
  add(cache.data, layout.getLeadingDims());
  addNumber(cache.data, layout.getHeads());
  addNumber(cache.data, layout.getCacheDepth());
  for (const CacheTensor &table : layout.getIndexTensors()) {
    KernelTensor &tensor = cache.indices.emplace_back();
    tensor.name = name + "." + table.name.str();
    tensor.element = indexTypeOf(kernel, argument);
    add(tensor, table.dims);
  }
  Type scale = layout.getScaleType();
  if (!scale)
    return cache;
  // Those of groups of elements lie as the elements do.
  KernelTensor &scales = cache.scales.emplace();
  scales.name = name + ".scales";
  scales.element = scale;
  bool byToken = layout.getGranularity() > 0;
  if (byToken)
    add(scales, layout.getLeadingDims());
  if (layout.getGranularity() != kPerTensor)
    addNumber(scales, layout.getHeads());
  if (byToken)
    addNumber(scales, llvm::divideCeilSigned(layout.getHeadSize(),
                                             layout.getGranularity()));
  if (scales.sizes.empty())
    addNumber(scales, 1);
  return cache;
}

void kvbuf::describeLaunch(gpu::GPUFuncOp kernel, const LaunchParts &parts,
                           const llvm::StringMap<int64_t> &fixedSizes) {
  Builder b(kernel.getContext());
  NamedAttrList list;
  list.append("alignment", b.getI64IntegerAttr(parts.alignment));
  list.append("args", b.getArrayAttr(parts.args));
  list.append("block", b.getDenseI64ArrayAttr(parts.block));
  list.append("dynamic_shared_bytes",
              b.getI64IntegerAttr(parts.dynamicSharedBytes));
  list.append("entry", b.getStringAttr(kernel.getName()));
  if (Attribute grid = kernel->removeAttr(KVBufferDialect::kGridAttr))
    list.append("grid", fixSizes(grid, fixedSizes));
  if (auto sizes =
          cast_or_null<DictionaryAttr>(kernel->removeAttr(kSizesAttr))) {
    SmallVector<NamedAttribute> defaults;
    for (NamedAttribute size : sizes)
      if (!fixedSizes.contains(size.getName()))
        defaults.push_back(
            {size.getName(), fixSizes(size.getValue(), fixedSizes)});
    list.append("defaults", b.getDictionaryAttr(defaults));
  }
  kernel->setAttr(
      KVBufferDialect::kKernelAttr,
      LaunchAttr::get(b.getContext(), list.getDictionary(b.getContext())));
  kernel->setAttr(KVBufferDialect::kTensorsAttr, b.getArrayAttr(parts.tensors));
}
