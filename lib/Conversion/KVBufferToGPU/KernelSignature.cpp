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

/// Puts numbers for the sizes that types fix into the shapes of all tensors, so
/// that tensors of another size do not match.
static void fixShapes(MutableArrayRef<Attribute> tensors,
                      const llvm::StringMap<int64_t> &fixedSizes) {
  for (Attribute &entry : tensors) {
    auto tensor = cast<TensorAttr>(entry);
    entry = tensor.withShape(
        llvm::map_to_vector(tensor.getShape(), [&](Attribute size) {
          return kvbuf::fixSizes(size, fixedSizes);
        }));
  }
}

Value KernelSignature::launchSize(StringRef name) {
  auto fixed = fixedSizes.find(name);
  return fixed == fixedSizes.end() ? launchSizes[name]
                                   : lanes.index(fixed->second);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// What parameters are made for.
struct KernelSignature::Argument {
  unsigned number;
  Value value;
  /// Null for memrefs.
  CacheLayout cache;
  /// The argument itself, or the cache's elements.
  KernelTensor tensor;
  TensorAccess access;
};

void KernelSignature::addParameter(const Argument &argument, Type type,
                                   ArgumentAttr description, Assign assign) {
  parameterTypes.push_back(type);
  parameters.push_back(description);
  slots.push_back({argument.value, std::move(assign)});
}

void KernelSignature::addPointer(const Argument &argument, Type element,
                                 const Twine &tensor, Assign assign,
                                 std::optional<int64_t> alignment) {
  addParameter(argument,
               MemRefType::get({}, element, MemRefLayoutAttrInterface(),
                               lanes.machine.dramSpace(lanes.b.getContext())),
               ArgumentAttr::pointer(lanes.b.getStringAttr(tensor), alignment),
               std::move(assign));
}

void KernelSignature::addStride(const Argument &argument, const Twine &tensor,
                                int64_t dim, int64_t limit, Assign assign) {
  addParameter(argument, lanes.b.getIndexType(),
               ArgumentAttr::stride(lanes.b.getStringAttr(tensor), dim, limit),
               std::move(assign));
}

LogicalResult KernelSignature::fixSizes(const Argument &argument) {
  for (auto [size, entry] :
       llvm::zip_equal(argument.tensor.sizes, argument.tensor.shape)) {
    auto name = dyn_cast<StringAttr>(entry);
    if (!name)
      continue;
    auto [it, isFirst] = fixedSizes.try_emplace(name, size);
    if (ShapedType::isDynamic(it->second))
      it->second = size;
    if (!ShapedType::isDynamic(size) && it->second != size)
      return lanes.kernel.emitOpError()
             << "argument " << argument.number << " fixes " << name.getValue()
             << " at " << size << ", an argument before it at " << it->second;
  }
  return success();
}

void KernelSignature::describeStrides(const Argument &argument) {
  ArrayRef<int64_t> dims = argument.tensor.sizes;
  bool isScratch = argument.access == TensorAccess::Workspace ||
                   argument.access == TensorAccess::Counter;
  bool ofCache = argument.cache || llvm::any_of(argument.value.getUsers(),
                                                llvm::IsaPred<MakeCacheOp>);
  // Rows of a cache are the third dimension from the right.
  int64_t rank = dims.size();
  bool groups = hasGroups(argument.value);
  for (int64_t d = 0; d + 1 < rank; ++d) {
    // With groups of heads the rows of a tile run along these, too.
    int64_t along = groups && d == rank - 2 ? rank - 3 : d;
    int64_t rows = !ofCache        ? loadedRows(argument.value, along)
                   : d == rank - 3 ? lanes.schedule.getBN()
                                   : 0;
    int64_t bytes = argument.tensor.element.getIntOrFloatBitWidth() / 8;
    // Memory that the runtime provides is dense: what types fix is a number.
    ArrayRef<int64_t> inner = dims.drop_front(d + 1);
    std::optional<int64_t> known;
    if (isScratch && !ShapedType::isDynamicShape(inner))
      known = ShapedType::getNumElements(inner);
    addStride(argument, argument.tensor.name, d,
              rows ? lanes.machine.maxRowStride(rows, bytes) : 0,
              [this, known](TensorArg &t, Value v) {
                t.strides.push_back(known ? lanes.index(*known) : v);
              });
  }
}

LogicalResult KernelSignature::describeSizes(const Argument &argument) {
  ArrayRef<int64_t> dims = argument.tensor.sizes;
  int64_t rank = dims.size();
  llvm::BitVector needed(rank);
  // Where the data's size is that of the sequences.
  if (argument.cache && argument.cache.getRows().endWithData())
    needed.set(argument.cache.getLeadingDims().size() - 1);
  for (const auto &sizes :
       {sizesOfMade(argument.value), sizesOfTokens(argument.value)})
    for (unsigned d : sizes)
      if (ShapedType::isDynamic(dims[d]))
        needed.set(d);
  for (Operation *user : argument.value.getUsers())
    if (auto dim = dyn_cast<memref::DimOp>(user))
      if (std::optional<int64_t> d = dim.getConstantIndex();
          d && *d < rank && ShapedType::isDynamic(dims[*d]))
        needed.set(*d);
  for (unsigned d : needed.set_bits()) {
    auto name = dyn_cast<StringAttr>(argument.tensor.shape[d]);
    if (!name)
      return lanes.kernel.emitOpError()
             << "asks for size " << d << " of argument " << argument.number
             << ", which has no name in its '" << KVBufferDialect::kShapeAttr
             << "'";
    addParameter(argument, lanes.b.getI32Type(), ArgumentAttr::sizeOf(name),
                 [d](TensorArg &t, Value v) {
                   t.sizes.resize(std::max<size_t>(t.sizes.size(), d + 1));
                   t.sizes[d] = v;
                 });
  }
  return success();
}

void KernelSignature::describeIndices(const Argument &argument, size_t number,
                                      const KernelTensor &tensor) {
  tensorList.push_back(tensor.describe(TensorAccess::Read));
  addPointer(argument, tensor.element, tensor.name,
             [number](TensorArg &t, Value v) {
               t.indices.resize(std::max(t.indices.size(), number + 1));
               t.indices[number].data = v;
             });
  for (size_t d = 0; d + 1 < tensor.sizes.size(); ++d)
    addStride(argument, tensor.name, d, /*limit=*/0,
              [number](TensorArg &t, Value v) {
                t.indices[number].strides.push_back(v);
              });
}

void KernelSignature::describeScales(const Argument &argument,
                                     const KernelTensor &tensor) {
  tensorList.push_back(tensor.describe(storesScales(argument.value)
                                           ? TensorAccess::ReadWrite
                                           : TensorAccess::Read));
  addPointer(argument, tensor.element, tensor.name,
             [](TensorArg &t, Value v) { t.scales = v; });
  for (size_t d = 0; d + 1 < tensor.sizes.size(); ++d)
    addStride(argument, tensor.name, d, /*limit=*/0,
              [](TensorArg &t, Value v) { t.scaleStrides.push_back(v); });
}

LogicalResult KernelSignature::describe(unsigned number) {
  gpu::GPUFuncOp kernel = lanes.kernel;
  Argument argument{number, kernel.getArgument(number),
                    dyn_cast<CacheLayout>(kernel.getArgument(number).getType()),
                    KernelTensor(),
                    *symbolizeTensorAccess(accessOf(kernel, number))};
  KernelTensor &tensor = argument.tensor;
  KernelCache cache;
  if (argument.cache) {
    cache = tensorsOf(kernel, number, argument.cache);
    tensor = cache.data;
  } else {
    auto memref = cast<MemRefType>(argument.value.getType());
    FailureOr<SmallVector<Attribute>> shape = shapeOf(kernel, number);
    if (failed(shape))
      return failure();
    tensor.name = nameOf(kernel, number).str();
    tensor.element = memref.getElementType();
    llvm::append_range(tensor.sizes, memref.getShape());
    tensor.shape = *shape;
  }
  if (failed(fixSizes(argument)))
    return failure();
  tensorList.push_back(
      tensor.describe(argument.access, holdsCacheRows(argument.value)));
  addPointer(
      argument, tensor.element, tensor.name,
      [](TensorArg &t, Value v) { t.data = v; },
      ownAlignment(argument.value, lanes.alignment));
  describeStrides(argument);
  if (failed(describeSizes(argument)))
    return failure();
  for (auto [n, table] : llvm::enumerate(cache.indices))
    describeIndices(argument, n, table);
  if (cache.scales)
    describeScales(argument, *cache.scales);
  return success();
}

//===----------------------------------------------------------------------===//
// What the program asks for besides
//===----------------------------------------------------------------------===//

LogicalResult KernelSignature::checkSizes() {
  gpu::GPUFuncOp kernel = lanes.kernel;
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
  return failure(unknown.wasInterrupted());
}

/// The ops of a kernel. Beside rings, what is loaded comes before what is
/// stored, in whatever order the teams are.
static SmallVector<Operation *> opsInOrder(gpu::GPUFuncOp kernel,
                                           bool hasRings) {
  SmallVector<Operation *> ops, ofOthers;
  llvm::SmallPtrSet<Operation *, 4> others;
  kernel.walk([&](TeamOp team) {
    if (hasRings && !team.isMover())
      others.insert(team);
  });
  kernel.walk([&](Operation *op) {
    bool isOfOther = others.contains(op->getParentOfType<TeamOp>());
    (isOfOther ? ofOthers : ops).push_back(op);
  });
  llvm::append_range(ops, ofOthers);
  return ops;
}

void KernelSignature::needSize(StringRef name) {
  // Sizes that the types fix are no parameters.
  if (!name.empty() && !fixedSizes.contains(name) &&
      !llvm::is_contained(launchNames, name))
    launchNames.push_back(name);
}

void KernelSignature::collectNeeds() {
  bool hasRings = lanes.machine.hasRings();
  for (Operation *op : opsInOrder(lanes.kernel, hasRings)) {
    if (auto value = dyn_cast<LaunchValueOp>(op);
        value && !llvm::is_contained(llvm::make_first_range(launchValues),
                                     value.getExpression()))
      launchValues.push_back({value.getExpression(), Value()});
    counts |= isa<NextTileOp>(op);
    llvm::for_each(sizesNeededBy(op), [&](StringRef name) { needSize(name); });
    if (auto append = dyn_cast<AppendTokensOp>(op)) {
      for (Value cache : {Value(append.getKCache()), Value(append.getVCache())})
        if (cache) {
          auto layout = cast<CacheLayout>(cache.getType());
          needSize(sizeOfCache(cache, kBlocksSize));
          needSize(sizeOfCache(cache, layout.getRun() ? kTableRowSize
                                                      : kSlotRowsSize));
        }
    }
    if (!hasRings)
      continue;
    for (const TensorMapRequest &request :
         lanes.boxes().tensorMapsFor(lanes, op))
      if (!llvm::is_contained(llvm::make_first_range(tensorMaps), request))
        tensorMaps.push_back({request, Value()});
  }
}

void KernelSignature::describeNeeds() {
  ImplicitLocOpBuilder &b = lanes.b;
  MLIRContext *context = b.getContext();
  auto add = [&](Type type, ArgumentAttr description) {
    parameterTypes.push_back(type);
    parameters.push_back(description);
  };
  for (auto &[request, value] : tensorMaps)
    add(lanes.boxes().tensorMapType(context), describeTensorMap(request));
  for (StringRef name : launchNames)
    add(b.getI32Type(), ArgumentAttr::sizeOf(b.getStringAttr(name)));
  for (auto &[expression, value] : launchValues)
    add(b.getI32Type(),
        ArgumentAttr::sizeOf(kvbuf::fixSizes(expression, fixedSizes)));
  if (counts)
    add(MemRefType::get({}, b.getI32Type()),
        ArgumentAttr::launchCounter(context));
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

void KernelSignature::createFunction(ArrayRef<int32_t> block) {
  ImplicitLocOpBuilder &b = lanes.b;
  gpu::GPUFuncOp kernel = lanes.kernel;
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
                     ScheduleAttr::get(b.getContext(), Schedule::of(divided)));
  }
  // What registers there are to hand out follows from it.
  if (kernel.getKnownBlockSizeAttr() || lanes.machine.hasRings())
    lowered.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(block));
  b.setInsertionPointToStart(&lowered.getBody().front());
}

void KernelSignature::bindParameters() {
  // Those of arguments, then what describeNeeds adds.
  auto next = lowered.getArguments().begin() + slots.size();
  for (auto &map : tensorMaps)
    map.second = *next++;
  for (StringRef name : launchNames)
    launchSizes[name] = lanes.toIndex(*next++);
  for (auto &entry : launchValues)
    entry.second = lanes.toIndex(*next++);
  if (counts)
    counter = lowered.getArguments().back();
  for (auto [slot, value] : llvm::zip_equal(
           slots, lowered.getArguments().take_front(slots.size()))) {
    // Sizes come as i32 and are indices in the program.
    Value v =
        value.getType().isInteger(32) ? lanes.toIndex(value) : Value(value);
    slot.assign(tensors[slot.argument], v);
  }
}

LogicalResult KernelSignature::expand() {
  gpu::GPUFuncOp kernel = lanes.kernel;
  // The schedule says how many threads a block has; what was launched otherwise
  // would be another kernel.
  SmallVector<int32_t> block{int32_t(lanes.blockThreads()), 1, 1};
  if (auto known = kernel.getKnownBlockSizeAttr();
      known && known.asArrayRef() != ArrayRef<int32_t>(block))
    return kernel.emitOpError()
           << "has known_block_size = " << known << ", but its schedule is for "
           << block.front() << " threads; expected "
           << lanes.b.getDenseI32ArrayAttr(block);
  llvm::StringSet<> names;
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
    if (failed(checkArgument(kernel, i, names)))
      return failure();
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
    if (failed(describe(i)))
      return failure();
  for (auto it = fixedSizes.begin(), e = fixedSizes.end(); it != e;) {
    auto next = std::next(it);
    if (ShapedType::isDynamic(it->second))
      fixedSizes.erase(it);
    it = next;
  }
  fixShapes(tensorList, fixedSizes);
  if (failed(checkSizes()))
    return failure();
  collectNeeds();
  describeNeeds();
  createFunction(block);
  bindParameters();
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
  int64_t rank = cache ? int64_t(cache.getLeadingDims().size()) + 2
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
  gpu::GPUFuncOp kernel = lanes.kernel;
  int64_t block[] = {lanes.blockThreads(), 1, 1};
  describeLaunch(
      lowered,
      {lanes.alignment, parameters, tensorList, block, lanes.lds.bytes()},
      fixedSizes);
  if (ArrayRef<Attribute> buffers = lanes.lds.described(); !buffers.empty())
    lowered->setAttr(kLdsAttr, lanes.b.getArrayAttr(buffers));
  kernel.erase();
  lowered->setAttr(KVBufferDialect::kPhaseAttr,
                   PhaseAttr::get(lowered.getContext(), Phase::Thread));
}
