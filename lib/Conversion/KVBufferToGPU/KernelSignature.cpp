//===- KernelSignature.cpp - What a kernel is launched with -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSignature.h"
#include "ArgumentUses.h"
#include "kvbuffer/Dialect/KVBuffer/IR/LdsMap.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace kvbuf;

/// The dimensions of a cache's data; an empty name stands for the static size.
static SmallVector<CacheDim> cacheDimensions(CacheLayout cache) {
  SmallVector<CacheDim> dims = cache.getLeadingDims();
  dims.push_back({cache.getHeads(), ""});
  dims.push_back({cache.getCacheDepth(), ""});
  return dims;
}

/// Puts numbers for the sizes that types fix into the shapes of all tensors, so
/// that tensors of another size do not match.
static void fixShapes(MutableArrayRef<Attribute> tensors,
                      const llvm::StringMap<int64_t> &fixedSizes) {
  for (Attribute &entry : tensors) {
    auto tensor = cast<TensorAttr>(entry);
    entry = tensor.withShape(
        llvm::map_to_vector(tensor.getShape(), [&](Attribute size) {
          return fixSizes(size, fixedSizes);
        }));
  }
}

Value KernelSignature::launchSize(StringRef name) {
  auto fixed = fixedSizes.find(name);
  return fixed == fixedSizes.end() ? launchSizes[name]
                                   : lanes.index(fixed->second);
}

LogicalResult KernelSignature::expand() {
  ImplicitLocOpBuilder &b = lanes.b;
  gpu::GPUFuncOp kernel = lanes.kernel;
  MLIRContext *context = b.getContext();
  // The schedule says how many threads a block has; what was launched otherwise
  // would be another kernel.
  SmallVector<int32_t> block{int32_t(lanes.blockThreads()), 1, 1};
  if (auto known = kernel.getKnownBlockSizeAttr();
      known && known.asArrayRef() != ArrayRef<int32_t>(block))
    return kernel.emitOpError()
           << "has known_block_size = " << known << ", but its schedule is for "
           << block.front() << " threads; expected "
           << b.getDenseI32ArrayAttr(block);
  auto str = [&](StringRef s) { return b.getStringAttr(s); };
  llvm::StringSet<> argumentNames;
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
    if (failed(checkArgument(kernel, i, argumentNames)))
      return failure();

  // The parameters in order; the values exist once the new kernel does.
  struct Slot {
    unsigned argument;
    std::function<void(TensorArg &, Value)> assign;
  };
  SmallVector<Slot> slots;
  auto parameter = [&](unsigned argument, Type type, ArgumentAttr description,
                       std::function<void(TensorArg &, Value)> assign) {
    parameterTypes.push_back(type);
    parameters.push_back(description);
    slots.push_back({argument, std::move(assign)});
  };
  // `alignment`: bytes that the address and the strides have to be multiples of
  // in place of the kernel's.
  auto pointer = [&](unsigned argument, Type element, const Twine &tensor,
                     std::function<void(TensorArg &, Value)> assign,
                     std::optional<int64_t> alignment = {}) {
    parameter(argument,
              MemRefType::get({}, element, MemRefLayoutAttrInterface(),
                              lanes.machine.dramSpace(context)),
              ArgumentAttr::pointer(str(tensor.str()), alignment),
              std::move(assign));
  };
  // `limit`: the largest stride that the kernel takes, 0 for any.
  auto stride = [&](unsigned argument, const Twine &tensor, int64_t dim,
                    int64_t limit,
                    std::function<void(TensorArg &, Value)> assign) {
    parameter(argument, b.getIndexType(),
              ArgumentAttr::stride(str(tensor.str()), dim, limit),
              std::move(assign));
  };
  auto tensor = [&](const Twine &name, Type element, ArrayRef<Attribute> shape,
                    StringRef access, bool holdsRows = false) {
    tensorList.push_back(TensorAttr::get(context, str(name.str()), element,
                                         shape, *symbolizeTensorAccess(access),
                                         holdsRows));
  };

  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i) {
    StringRef name = nameOf(kernel, i);
    Type type = kernel.getArgument(i).getType();
    auto cache = dyn_cast<CacheLayout>(type);
    auto memref = dyn_cast<MemRefType>(type);
    Type element = cache ? cache.getElementType() : memref.getElementType();
    StringRef access = accessOf(kernel, i);
    SmallVector<int64_t> dims;
    SmallVector<Attribute> shape;
    if (cache) {
      for (const CacheDim &dim : cacheDimensions(cache)) {
        dims.push_back(dim.size);
        shape.push_back(
            dim.name.empty()
                ? Attribute(b.getI64IntegerAttr(dim.size))
                : str(sizeOfCache(kernel.getArgument(i), dim.name)));
      }
    } else {
      llvm::append_range(dims, memref.getShape());
      FailureOr<SmallVector<Attribute>> given = shapeOf(kernel, i);
      if (failed(given))
        return failure();
      shape = *given;
    }
    // A size that the types fix is a number wherever it is asked for.
    for (auto [size, entry] : llvm::zip_equal(dims, shape)) {
      auto sizeName = dyn_cast<StringAttr>(entry);
      if (!sizeName)
        continue;
      auto [it, isFirst] = fixedSizes.try_emplace(sizeName, size);
      if (ShapedType::isDynamic(it->second))
        it->second = size;
      if (!ShapedType::isDynamic(size) && it->second != size)
        return kernel.emitOpError()
               << "argument " << i << " fixes " << sizeName.getValue() << " at "
               << size << ", an argument before it at " << it->second;
    }
    tensor(name, element, shape, access, holdsCacheRows(kernel.getArgument(i)));
    pointer(
        i, element, name, [](TensorArg &t, Value v) { t.data = v; },
        ownAlignment(kernel.getArgument(i), lanes.alignment));
    // Rows of a cache are the third dimension from the right.
    int64_t rank = dims.size();
    bool groups = hasGroups(kernel.getArgument(i));
    for (int64_t d = 0; d + 1 < rank; ++d) {
      // With groups of heads the rows of a tile run along these, too.
      int64_t along = groups && d == rank - 2 ? rank - 3 : d;
      bool ofCache = cache || llvm::any_of(kernel.getArgument(i).getUsers(),
                                           llvm::IsaPred<MakeCacheOp>);
      int64_t rows = !ofCache        ? loadedRows(kernel.getArgument(i), along)
                     : d == rank - 3 ? lanes.schedule.getBN()
                                     : 0;
      // Memory that the runtime provides is dense: what types fix is a number.
      ArrayRef<int64_t> inner = ArrayRef(dims).drop_front(d + 1);
      std::optional<int64_t> known;
      if ((access == "workspace" || access == "counter") &&
          !ShapedType::isDynamicShape(inner))
        known = ShapedType::getNumElements(inner);
      stride(i, name, d,
             rows ? lanes.machine.maxRowStride(
                        rows, element.getIntOrFloatBitWidth() / 8)
                  : 0,
             [this, known](TensorArg &t, Value v) {
               t.strides.push_back(known ? lanes.index(*known) : v);
             });
    }
    // The sizes that the program asks for, and those that dense caches need.
    llvm::BitVector needed(rank);
    if (cache && cache.getRows().endWithData())
      needed.set(cache.getLeadingDims().size() - 1);
    for (const auto &sizes : {sizesOfMade(kernel.getArgument(i)),
                              sizesOfTokens(kernel.getArgument(i))})
      for (unsigned d : sizes)
        if (ShapedType::isDynamic(dims[d]))
          needed.set(d);
    for (Operation *user : kernel.getArgument(i).getUsers())
      if (auto dim = dyn_cast<memref::DimOp>(user))
        if (std::optional<int64_t> d = dim.getConstantIndex();
            d && *d < rank && ShapedType::isDynamic(dims[*d]))
          needed.set(*d);
    for (unsigned d : needed.set_bits()) {
      auto sizeName = dyn_cast<StringAttr>(shape[d]);
      if (!sizeName)
        return kernel.emitOpError() << "asks for size " << d << " of argument "
                                    << i << ", which has no name in its '"
                                    << KVBufferDialect::kShapeAttr << "'";
      parameter(i, b.getI32Type(), ArgumentAttr::sizeOf(sizeName),
                [d](TensorArg &t, Value v) {
                  t.sizes.resize(std::max<size_t>(t.sizes.size(), d + 1));
                  t.sizes[d] = v;
                });
    }
    if (!cache)
      continue;
    Type word = indexTypeOf(kernel, i);
    // Tables, lengths and offsets.
    SmallVector<CacheTensor> indices = cache.getIndexTensors();
    for (auto [n, index] : llvm::enumerate(indices)) {
      std::string label = (name + "." + index.name).str();
      SmallVector<Attribute> sizes;
      for (const CacheDim &dim : index.dims) {
        Attribute size = b.getI64IntegerAttr(dim.size);
        if (ShapedType::isDynamic(dim.size))
          size = str(sizeOfCache(kernel.getArgument(i), dim.name));
        if (dim.plus)
          size = SizeAttr::of(context, "sum",
                              {size, b.getI64IntegerAttr(dim.plus)});
        sizes.push_back(size);
      }
      tensor(label, word, sizes, "read");
      pointer(i, word, label,
              [n, count = indices.size()](TensorArg &t, Value v) {
                t.indices.resize(count);
                t.indices[n].data = v;
              });
      for (size_t d = 0; d + 1 < sizes.size(); ++d)
        stride(i, label, d, /*limit=*/0, [n](TensorArg &t, Value v) {
          t.indices[n].strides.push_back(v);
        });
    }
    Type scale = cache.getScaleType();
    if (!scale)
      continue;
    // Those of groups of elements lie as the elements do.
    SmallVector<Attribute> scaleShape;
    auto number = [&](int64_t size) -> Attribute {
      return b.getI64IntegerAttr(size);
    };
    bool byToken = cache.getGranularity() > 0;
    if (byToken)
      scaleShape.append(shape.begin(), shape.end() - 2);
    if (cache.getGranularity() != kPerTensor)
      scaleShape.push_back(number(cache.getHeads()));
    if (byToken)
      scaleShape.push_back(number(
          llvm::divideCeilSigned(cache.getHeadSize(), cache.getGranularity())));
    if (scaleShape.empty())
      scaleShape.push_back(number(1));
    tensor(name + ".scales", scale, scaleShape,
           storesScales(kernel.getArgument(i)) ? "read_write" : "read");
    pointer(i, scale, name + ".scales",
            [](TensorArg &t, Value v) { t.scales = v; });
    for (size_t d = 0; d + 1 < scaleShape.size(); ++d)
      stride(i, name + ".scales", d, /*limit=*/0,
             [](TensorArg &t, Value v) { t.scaleStrides.push_back(v); });
  }

  for (auto it = fixedSizes.begin(), e = fixedSizes.end(); it != e;) {
    auto next = std::next(it);
    if (ShapedType::isDynamic(it->second))
      fixedSizes.erase(it);
    it = next;
  }
  fixShapes(tensorList, fixedSizes);

  // Sizes of the launch are what shapes name.
  llvm::StringSet<> sizeNames;
  AttrTypeWalker names;
  names.addWalk([&](StringAttr name) { sizeNames.insert(name.getValue()); });
  for (Attribute one : tensorList)
    for (Attribute size : cast<TensorAttr>(one).getShape())
      names.walk(size);
  // And what callers say besides.
  if (auto sizes = kernel->getAttrOfType<DictionaryAttr>(kSizesAttr))
    for (NamedAttribute size : sizes)
      sizeNames.insert(size.getName());
  WalkResult unknown = kernel.walk([&](LaunchSizeOp op) -> WalkResult {
    if (sizeNames.contains(op.getName()) || fixedSizes.contains(op.getName()))
      return WalkResult::advance();
    return op.emitOpError() << "asks for '" << op.getName()
                            << "', which neither an argument's shape nor '"
                            << kSizesAttr << "' names";
  });
  if (unknown.wasInterrupted())
    return failure();

  // After the tensors: what copy engines and shared counters need.
  unsigned ordinary = parameterTypes.size();
  bool counts = false;
  SmallVector<StringRef> launchNames;
  // Beside rings, what is loaded comes before what is stored, in whatever order
  // the teams are.
  SmallVector<Operation *> ops, ofOthers;
  llvm::SmallPtrSet<Operation *, 4> others;
  kernel.walk([&](TeamOp team) {
    if (lanes.machine.hasRings() && !team.isMover())
      others.insert(team);
  });
  kernel.walk([&](Operation *op) {
    bool isOfOther = others.contains(op->getParentOfType<TeamOp>());
    (isOfOther ? ofOthers : ops).push_back(op);
  });
  llvm::append_range(ops, ofOthers);
  for (Operation *op : ops) {
    if (auto value = dyn_cast<LaunchValueOp>(op);
        value && !llvm::is_contained(llvm::make_first_range(launchValues),
                                     value.getExpression()))
      launchValues.push_back({value.getExpression(), Value()});
    counts |= isa<NextTileOp>(op);
    // Sizes that the types fix are no parameters.
    auto need = [&](StringRef name) {
      if (!fixedSizes.contains(name) && !llvm::is_contained(launchNames, name))
        launchNames.push_back(name);
    };
    llvm::for_each(sizesNeededBy(op), need);
    if (auto append = dyn_cast<AppendTokensOp>(op)) {
      for (Value cache : {Value(append.getKCache()), Value(append.getVCache())})
        if (cache) {
          auto layout = cast<CacheLayout>(cache.getType());
          need(sizeOfCache(cache, kBlocksSize));
          need(sizeOfCache(cache,
                           layout.getRun() ? kTableRowSize : kSlotRowsSize));
        }
    }
    if (!lanes.machine.hasRings())
      continue;
    for (const TensorMapRequest &request :
         lanes.boxes().tensorMapsFor(lanes, op))
      if (!llvm::is_contained(llvm::make_first_range(tensorMaps), request))
        tensorMaps.push_back({request, Value()});
  }
  for (auto &[request, value] : tensorMaps) {
    parameterTypes.push_back(lanes.boxes().tensorMapType(context));
    parameters.push_back(describeTensorMap(request));
  }
  for (StringRef name : launchNames) {
    parameterTypes.push_back(b.getI32Type());
    parameters.push_back(ArgumentAttr::sizeOf(str(name)));
  }
  for (auto &[expression, value] : launchValues) {
    parameterTypes.push_back(b.getI32Type());
    parameters.push_back(
        ArgumentAttr::sizeOf(fixSizes(expression, fixedSizes)));
  }
  if (counts) {
    parameterTypes.push_back(MemRefType::get({}, b.getI32Type()));
    parameters.push_back(ArgumentAttr::launchCounter(context));
  }

  lowered = gpu::GPUFuncOp::create(b, kernel.getName(),
                                   b.getFunctionType(parameterTypes, {}));
  for (NamedAttribute attr : kernel->getAttrs())
    if (attr.getName() != "function_type" && attr.getName() != "arg_attrs" &&
        attr.getName() != KVBufferDialect::kPhaseAttr)
      lowered->setAttr(attr.getName(), attr.getValue());
  // By its schedule, what comes later knows that some of its warps only move,
  // also where the program has divided them by itself.
  ScheduleParameters divided = lanes.blockSchedule.getStructure().list();
  if (lanes.machine.hasRings() && !divided.producers) {
    kernel.walk([&](TeamOp team) {
      if (team.isMover())
        divided.producers += int64_t(team.getWarps());
    });
    lowered->setAttr(KVBufferDialect::kScheduleAttr,
                     ScheduleAttr::get(context, Schedule::of(divided)));
  }
  // What registers there are to hand out follows from it.
  if (kernel.getKnownBlockSizeAttr() || lanes.machine.hasRings())
    lowered.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(block));
  b.setInsertionPointToStart(&lowered.getBody().front());
  for (auto [i, map] : llvm::enumerate(tensorMaps))
    map.second = lowered.getArgument(ordinary + i);
  for (auto [i, name] : llvm::enumerate(launchNames))
    launchSizes[name] =
        lanes.toIndex(lowered.getArgument(ordinary + tensorMaps.size() + i));
  for (auto [i, entry] : llvm::enumerate(launchValues))
    entry.second = lanes.toIndex(lowered.getArgument(
        ordinary + tensorMaps.size() + launchNames.size() + i));
  if (counts)
    counter = lowered.getArguments().back();
  for (auto [slot, value] :
       llvm::zip_equal(slots, lowered.getArguments().take_front(ordinary))) {
    // Sizes come as i32 and are indices in the program.
    Value v =
        value.getType().isInteger(32) ? lanes.toIndex(value) : Value(value);
    slot.assign(tensors[kernel.getArgument(slot.argument)], v);
  }
  return success();
}

const TensorArg *KernelSignature::findTensor(Value value) const {
  auto it = tensors.find(value);
  return it == tensors.end() ? nullptr : &it->second;
}

Value KernelSignature::offsetOf(Value tensor, OperandRange indices) {
  ImplicitLocOpBuilder &b = lanes.b;
  const TensorArg &argument = tensors[tensor];
  Value offset;
  for (auto [i, position] : llvm::enumerate(indices)) {
    Value term = lanes.single(position);
    if (i < argument.strides.size())
      term = arith::MulIOp::create(b, term, argument.strides[i]);
    offset = offset ? arith::AddIOp::create(b, offset, term).getResult() : term;
  }
  return offset ? offset : lanes.index(0);
}

Value KernelSignature::roomOf(Value cache, Operation *op) {
  if (Value room = tensors[cache].room)
    return room;
  return launchSize(sizesNeededBy(op).front());
}

Value KernelSignature::launchValue(Attribute expression) const {
  for (const auto &[known, value] : launchValues)
    if (known == expression)
      return value;
  return nullptr;
}

ArgumentAttr
KernelSignature::describeTensorMap(const TensorMapRequest &request) {
  ImplicitLocOpBuilder &b = lanes.b;
  auto make = request.tensor.getDefiningOp<MakeCacheOp>();
  auto argument = cast<BlockArgument>(make ? make.getData() : request.tensor);
  auto name = lanes.kernel.getArgAttrOfType<StringAttr>(
      argument.getArgNumber(), KVBufferDialect::kNameAttr);
  // Columns, rows, and the other dimensions from the innermost on: heads and,
  // where there is one, the batch or block.
  auto cache = dyn_cast<CacheLayout>(request.tensor.getType());
  int64_t rank = cache ? cacheDimensions(cache).size()
                       : cast<MemRefType>(argument.getType()).getRank();
  SmallVector<int64_t> dims{rank - 1, request.rowDimension},
      box{request.boxCols, request.boxRows};
  for (int64_t d = rank - 2; d >= 0; --d)
    if (d != request.rowDimension) {
      dims.push_back(d);
      box.push_back(1);
    }
  Type element = cache ? cache.getElementType()
                       : cast<MemRefType>(argument.getType()).getElementType();
  // The swizzle spans a row of the box.
  int64_t bytes = request.boxCols * element.getIntOrFloatBitWidth() / 8;
  NamedAttrList list;
  list.append("dims", b.getDenseI64ArrayAttr(dims));
  list.append("box", b.getDenseI64ArrayAttr(box));
  list.append("swizzle", b.getI64IntegerAttr(bytes >= 32 ? bytes : 0));
  // What lies beside the operand is outside of the map.
  if (cache && request.cols != cache.getCacheDepth())
    list.append("columns",
                b.getDenseI64ArrayAttr({request.firstCol, request.cols}));
  // A part of a tensor's rows may be a window, which begins where the tile
  // says.
  if (int64_t first = request.firstCol; !cache && first) {
    int64_t width = cast<MemRefType>(argument.getType()).getShape().back();
    bool isKnown = !ShapedType::isDynamic(width);
    list.append("columns",
                b.getDenseI64ArrayAttr(
                    {first, isKnown ? width - first : request.cols}));
  }
  return ArgumentAttr::get(b.getContext(), ArgumentKind::TensorMap, name,
                           /*size=*/Attribute(),
                           list.getDictionary(b.getContext()));
}

Value KernelSignature::tensorMap(const TensorMapRequest &request) const {
  for (const auto &[known, value] : tensorMaps)
    if (known == request)
      return value;
  return nullptr;
}

void KernelSignature::finish() {
  ImplicitLocOpBuilder &b = lanes.b;
  gpu::GPUFuncOp kernel = lanes.kernel;
  auto str = [&](StringRef s) { return b.getStringAttr(s); };
  NamedAttrList list;
  list.append("alignment", b.getI64IntegerAttr(lanes.alignment));
  list.append("args", b.getArrayAttr(parameters));
  list.append("block", b.getDenseI64ArrayAttr({lanes.blockThreads(), 1, 1}));
  if (auto sizes = kernel->getAttrOfType<DictionaryAttr>(kSizesAttr)) {
    SmallVector<NamedAttribute> defaults;
    for (NamedAttribute size : sizes)
      if (!fixedSizes.contains(size.getName()))
        defaults.push_back(
            {size.getName(), fixSizes(size.getValue(), fixedSizes)});
    list.append("defaults", b.getDictionaryAttr(defaults));
  }
  list.append("dynamic_shared_bytes", b.getI64IntegerAttr(lanes.lds.bytes()));
  list.append("entry", str(kernel.getName()));
  if (Attribute grid = kernel->getAttr(KVBufferDialect::kGridAttr))
    list.append("grid", fixSizes(grid, fixedSizes));
  lowered->removeAttr(KVBufferDialect::kGridAttr);
  lowered->removeAttr(kSizesAttr);
  lowered->setAttr(
      KVBufferDialect::kKernelAttr,
      LaunchAttr::get(b.getContext(), list.getDictionary(b.getContext())));
  lowered->setAttr(KVBufferDialect::kTensorsAttr, b.getArrayAttr(tensorList));
  if (ArrayRef<Attribute> buffers = lanes.lds.described(); !buffers.empty())
    lowered->setAttr(kLdsAttr, b.getArrayAttr(buffers));
  kernel.erase();
  lowered->setAttr(KVBufferDialect::kPhaseAttr,
                   PhaseAttr::get(b.getContext(), Phase::Thread));
}
