//===- KernelArguments.cpp - What a kernel's arguments become -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/KernelArguments.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ArgumentUses.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

StringRef kvbuf::nameOf(gpu::GPUFuncOp kernel, unsigned argument) {
  return kernel
      .getArgAttrOfType<StringAttr>(argument, KVBufferDialect::kNameAttr)
      .getValue();
}

/// Checks that an argument has a name, none of `names`; adds it.
static LogicalResult checkName(gpu::GPUFuncOp kernel, unsigned argument,
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
  cache.data.element = layout.getStoredType();
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

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult KernelParameters::checkType(unsigned argument) {
  Attribute name = kernel.getArgAttr(argument, KVBufferDialect::kNameAttr);
  auto access = kernel.getArgAttrOfType<StringAttr>(
      argument, KVBufferDialect::kAccessAttr);
  bool isScratch = access && (access == "workspace" || access == "counter");
  Type type = kernel.getArgument(argument).getType();
  if (isa<CacheLayout>(type) && isScratch)
    return kernel.emitOpError()
           << "argument " << argument << " is a cache and a "
           << access.getValue()
           << ", which the launch provides; expected a memref";
  if (isa<CacheLayout>(type))
    return success();
  auto memref = dyn_cast<MemRefType>(type);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!memref || memref.getRank() == 0 ||
      failed(memref.getStridesAndOffset(strides, offset)))
    return kernel.emitOpError()
           << "argument " << argument << " is " << name << " of type " << type
           << "; expected a cache or a strided memref of rank 1 or more";
  if (strides.back() != 1)
    return kernel.emitOpError()
           << "argument " << argument << " is " << name << " of type " << type
           << "; expected elements of the last dimension side by side, a "
              "stride of 1";
  if (offset != 0)
    return kernel.emitOpError()
           << "argument " << argument << " is " << name << " of type " << type
           << "; expected no offset: the address is that of the first element";
  Type element = memref.getElementType();
  bool isKnown = element.isBF16() || element.isF16() || element.isF32() ||
                 element.isSignlessInteger(32) ||
                 element.isSignlessInteger(64) ||
                 isa<Float8E4M3FNType, Float8E5M2Type, Float8E4M3FNUZType,
                     Float8E5M2FNUZType>(element);
  if (!isKnown && !(rules.byLanes && element.isSignlessInteger(8)))
    return kernel.emitOpError()
           << "argument " << argument << " is " << name << " with elements "
           << element << "; expected bf16, f16, f32, an 8-bit float, "
           << (rules.byLanes ? "i8, " : "") << "i32 or i64";
  if (access && access == "counter" && !element.isInteger(32))
    return kernel.emitOpError()
           << "argument " << argument << " is a counter of type " << type
           << "; expected elements i32";
  return success();
}

LogicalResult KernelParameters::noteFixedSizes(unsigned argument) {
  FailureOr<KernelArgument> described = tensorsOfArgument(argument);
  if (failed(described))
    return failure();
  const ArgumentTensor &data = described->tensors.front();
  for (auto [size, entry] : llvm::zip_equal(data.sizes, data.shape)) {
    auto name = dyn_cast<StringAttr>(entry);
    if (!name)
      continue;
    auto [it, isFirst] = fixedSizes.try_emplace(name, size);
    if (ShapedType::isDynamic(it->second))
      it->second = size;
    if (!ShapedType::isDynamic(size) && it->second != size)
      return kernel.emitOpError()
             << "argument " << argument << " fixes " << name.getValue()
             << " at " << size << ", an argument before it at " << it->second;
  }
  return success();
}

LogicalResult KernelParameters::check() {
  llvm::StringSet<> names;
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
    if (failed(checkName(kernel, i, names)) || failed(checkType(i)))
      return failure();
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
    if (failed(noteFixedSizes(i)))
      return failure();
  for (auto it = fixedSizes.begin(), e = fixedSizes.end(); it != e;) {
    auto next = std::next(it);
    if (ShapedType::isDynamic(it->second))
      fixedSizes.erase(it);
    it = next;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// What an argument becomes
//===----------------------------------------------------------------------===//

/// A memref of these sizes with strides of its own.
static MemRefType stridedType(ArrayRef<int64_t> sizes, Type element) {
  SmallVector<int64_t> strides(sizes.size(), ShapedType::kDynamic);
  strides.back() = 1;
  return MemRefType::get(
      sizes, element, StridedLayoutAttr::get(element.getContext(), 0, strides));
}

FailureOr<KernelArgument> KernelParameters::tensorsOfArgument(unsigned number) {
  Value value = kernel.getArgument(number);
  KernelArgument argument{
      number, value, dyn_cast<CacheLayout>(value.getType()), {}};
  auto add = [&](const KernelTensor &tensor, ArgumentTensor::Part part) {
    ArgumentTensor &added = argument.tensors.emplace_back();
    static_cast<KernelTensor &>(added) = tensor;
    added.part = part;
    added.type = stridedType(tensor.sizes, tensor.element);
    if (part != ArgumentTensor::Index)
      added.access = accessOf(kernel, number, part == ArgumentTensor::Scales);
  };
  if (argument.cache) {
    KernelCache cache = tensorsOf(kernel, number, argument.cache);
    add(cache.data, ArgumentTensor::Data);
    for (const KernelTensor &index : cache.indices)
      add(index, ArgumentTensor::Index);
    if (cache.scales)
      add(*cache.scales, ArgumentTensor::Scales);
    return argument;
  }
  auto type = cast<MemRefType>(value.getType());
  FailureOr<SmallVector<Attribute>> shape = shapeOf(kernel, number);
  if (failed(shape))
    return failure();
  add({nameOf(kernel, number).str(), type.getElementType(),
       llvm::to_vector(type.getShape()), *shape},
      ArgumentTensor::Data);
  argument.tensors.front().type = type;
  return argument;
}

std::optional<int64_t>
KernelParameters::alignmentOf(const KernelArgument &argument,
                              const ArgumentTensor &tensor) const {
  bool isData = tensor.part == ArgumentTensor::Data;
  if (!rules.byLanes)
    return isData ? ownAlignment(argument.value, rules.alignment)
                  : std::nullopt;
  // What the kernel says for tensors that say nothing is of 16-bit elements.
  int64_t bytes = isData ? statedAlignment(argument.value) : 1;
  unsigned bits = tensor.element.getIntOrFloatBitWidth();
  if (bytes > bits / 8 || (isa<FloatType>(tensor.element) && bits == 8))
    return bytes;
  return std::nullopt;
}

unsigned KernelParameters::add(Type type, ArgumentAttr description) {
  types.push_back(type);
  descriptions.push_back(description);
  return types.size() - 1;
}

std::optional<unsigned> KernelParameters::addSize(StringAttr name) {
  if (fixedSizes.contains(name))
    return std::nullopt;
  auto [it, isNew] = sizes.try_emplace(name, types.size());
  if (isNew)
    add(IntegerType::get(kernel.getContext(), 32), ArgumentAttr::sizeOf(name));
  return it->second;
}

void KernelParameters::addAddress(ArgumentTensor &tensor,
                                  std::optional<int64_t> alignment) {
  unsigned number =
      add(MemRefType::get({}, tensor.element, MemRefLayoutAttrInterface(),
                          rules.space),
          ArgumentAttr::pointer(
              StringAttr::get(kernel.getContext(), tensor.name), alignment));
  tensor.parameters.push_back({TensorParameter::Address, 0, number});
}

void KernelParameters::addStride(ArgumentTensor &tensor, int64_t dim,
                                 int64_t limit) {
  MLIRContext *context = kernel.getContext();
  unsigned number = add(
      IndexType::get(context),
      ArgumentAttr::stride(StringAttr::get(context, tensor.name), dim, limit));
  tensor.parameters.push_back({TensorParameter::Stride, dim, number});
}

void KernelParameters::addStrides(const KernelArgument &argument,
                                  ArgumentTensor &tensor) {
  if (rules.byLanes) {
    // Sizes say the strides of a type that says none. Of types that fix strides
    // the caller's tensors are to have them.
    if (tensor.type.getLayout().isIdentity())
      return;
    for (auto [d, stride] :
         llvm::enumerate(tensor.type.getStridesAndOffset().first))
      if (ShapedType::isDynamic(stride))
        addStride(tensor, d, /*limit=*/0);
    return;
  }
  int64_t rank = tensor.sizes.size();
  bool isData = tensor.part == ArgumentTensor::Data;
  bool ofCache = argument.cache || llvm::any_of(argument.value.getUsers(),
                                                llvm::IsaPred<MakeCacheOp>);
  bool groups = isData && hasGroups(argument.value);
  int64_t bytes = tensor.element.getIntOrFloatBitWidth() / 8;
  for (int64_t d = 0; d + 1 < rank; ++d) {
    // With groups of heads the rows of a tile run along these, too.
    int64_t along = groups && d == rank - 2 ? rank - 3 : d;
    // Rows of a cache are the third dimension from the right.
    int64_t rows = !isData         ? 0
                   : !ofCache      ? loadedRows(argument.value, along)
                   : d == rank - 3 ? rules.cacheRows
                                   : 0;
    addStride(tensor, d, rows ? rules.maxRowStride(rows, bytes) : 0);
  }
}

void KernelParameters::addAllSizes(ArgumentTensor &tensor) {
  for (auto [size, entry] : llvm::zip_equal(tensor.sizes, tensor.shape))
    if (ShapedType::isDynamic(size))
      entry.walk([&](StringAttr name) { addSize(name); });
}

LogicalResult KernelParameters::addNeededSizes(const KernelArgument &argument,
                                               ArgumentTensor &data) {
  ArrayRef<int64_t> dims = data.sizes;
  llvm::BitVector needed(dims.size());
  // Where the data's size is that of the sequences.
  if (argument.cache && argument.cache.getRows().endWithData())
    needed.set(argument.cache.getLeadingDims().size() - 1);
  auto need = [&](size_t d) {
    if (d < dims.size() && ShapedType::isDynamic(dims[d]))
      needed.set(d);
  };
  llvm::for_each(sizesOfMade(argument.value), need);
  llvm::for_each(sizesOfTokens(argument.value), need);
  for (Operation *user : argument.value.getUsers())
    if (auto dim = dyn_cast<memref::DimOp>(user))
      if (std::optional<int64_t> d = dim.getConstantIndex())
        need(*d);
  for (unsigned d : needed.set_bits()) {
    if (!isa<StringAttr, SizeAttr>(data.shape[d]))
      return kernel.emitOpError()
             << "asks for size " << d << " of argument " << argument.number
             << ", which has no name in its '" << KVBufferDialect::kShapeAttr
             << "'";
    unsigned number =
        add(IntegerType::get(kernel.getContext(), 32),
            ArgumentAttr::sizeOf(fixSizes(data.shape[d], getFixedSizes())));
    data.parameters.push_back({TensorParameter::Size, d, number});
  }
  return success();
}

FailureOr<KernelArgument> KernelParameters::add(unsigned number) {
  FailureOr<KernelArgument> argument = tensorsOfArgument(number);
  if (failed(argument))
    return failure();
  for (ArgumentTensor &tensor : argument->tensors) {
    bool isData = tensor.part == ArgumentTensor::Data;
    // Of another dialect's cache no runtime knows what its tensors mean.
    bool holdsRows =
        isData && (argument->cache ? isa<CacheType>(argument->cache)
                                   : holdsCacheRows(argument->value));
    // Lanes know a size that a type fixes, whatever its expression.
    for (auto [size, entry] : llvm::zip_equal(tensor.sizes, tensor.shape))
      if (rules.byLanes && !ShapedType::isDynamic(size))
        entry = Builder(kernel.getContext()).getI64IntegerAttr(size);
    tensors.push_back(tensor.describe(tensor.access, holdsRows));
    addAddress(tensor, alignmentOf(*argument, tensor));
    if (rules.byLanes)
      addAllSizes(tensor);
    addStrides(*argument, tensor);
    if (!rules.byLanes && isData && failed(addNeededSizes(*argument, tensor)))
      return failure();
  }
  return argument;
}

SmallVector<Attribute> KernelParameters::getTensors() const {
  return llvm::map_to_vector(tensors, [&](Attribute entry) -> Attribute {
    auto tensor = cast<TensorAttr>(entry);
    return tensor.withShape(
        llvm::map_to_vector(tensor.getShape(), [&](Attribute size) {
          return fixSizes(size, fixedSizes);
        }));
  });
}
