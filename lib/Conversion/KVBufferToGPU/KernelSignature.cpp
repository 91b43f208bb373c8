//===- KernelSignature.cpp - What a kernel is launched with -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSignature.h"
#include "kvbuffer/Conversion/TileView.h"
#include "kvbuffer/Dialect/KVBuffer/IR/LdsMap.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ArgumentUses.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace kvbuf;

KernelSignature::KernelSignature(Lanes &lanes)
    : lanes(lanes),
      params(lanes.kernel,
             {/*byLanes=*/false, lanes.alignment,
              lanes.machine.dramSpace(lanes.b.getContext()),
              lanes.schedule.getBN(), [&](int64_t rows, int64_t bytes) {
                // Kernels for any addresses take any strides.
                return lanes.takesAnyTensor()
                           ? 0
                           : lanes.machine.maxRowStride(rows, bytes);
              }}) {}

Value KernelSignature::launchSize(StringRef name) {
  auto fixed = params.getFixedSizes().find(name);
  return fixed == params.getFixedSizes().end() ? launchSizes[name]
                                               : lanes.index(fixed->second);
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
  for (Attribute one : params.getTensors())
    for (Attribute size : cast<TensorAttr>(one).getShape())
      names.walk(size);
  // And what callers say besides.
  if (auto sizes = kernel->getAttrOfType<DictionaryAttr>(kSizesAttr))
    for (NamedAttribute size : sizes)
      sizeNames.insert(size.getName());
  WalkResult unknown = kernel.walk([&](LaunchSizeOp op) -> WalkResult {
    if (sizeNames.contains(op.getName()) ||
        params.getFixedSizes().contains(op.getName()))
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
  if (!name.empty() && !params.getFixedSizes().contains(name) &&
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
    if (auto tile = dyn_cast<CacheTileOp>(op);
        tile && listsKeys(tile.getTile()))
      needSize(sizeOfCache(tile.getCache(), kBlocksSize));
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
    if (auto load = dyn_cast<RingLoadOp>(op))
      if (Value cache = lanes.boxes().countedBy(lanes, load))
        needSize(sizeOfCache(cache, kBlocksSize));
    for (const TensorMapRequest &request :
         lanes.boxes().tensorMapsFor(lanes, op))
      if (!llvm::is_contained(llvm::make_first_range(tensorMaps), request))
        tensorMaps.push_back({request, Value()});
  }
}

void KernelSignature::describeNeeds() {
  ImplicitLocOpBuilder &b = lanes.b;
  MLIRContext *context = b.getContext();
  for (auto &[request, value] : tensorMaps)
    params.add(lanes.boxes().tensorMapType(context),
               describeTensorMap(request));
  for (StringRef name : launchNames)
    params.addSize(b.getStringAttr(name));
  for (auto &[expression, value] : launchValues)
    params.add(b.getI32Type(), ArgumentAttr::sizeOf(fixSizes(
                                   expression, params.getFixedSizes())));
  if (counts)
    params.add(MemRefType::get({}, b.getI32Type()),
               ArgumentAttr::launchCounter(context));
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

void KernelSignature::createFunction(ArrayRef<int32_t> block) {
  ImplicitLocOpBuilder &b = lanes.b;
  gpu::GPUFuncOp kernel = lanes.kernel;
  lowered = gpu::GPUFuncOp::create(b, kernel.getName(),
                                   b.getFunctionType(params.getTypes(), {}));
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

/// Where a stride of a tensor goes.
static Values &stridesOf(TensorArg &known, const ArgumentTensor &tensor,
                         size_t index) {
  return tensor.part == ArgumentTensor::Scales  ? known.scaleStrides
         : tensor.part == ArgumentTensor::Index ? known.indices[index].strides
                                                : known.strides;
}

void KernelSignature::bindTensor(TensorArg &known, const ArgumentTensor &tensor,
                                 size_t index) {
  for (const TensorParameter &parameter : tensor.parameters) {
    Value value = lowered.getArgument(parameter.number);
    switch (parameter.role) {
    case TensorParameter::Address:
      if (tensor.part == ArgumentTensor::Index)
        known.indices.push_back({value, {}});
      else
        (tensor.part == ArgumentTensor::Scales ? known.scales : known.data) =
            value;
      break;
    case TensorParameter::Stride: {
      // Memory that the runtime provides is dense: what types fix is a number.
      ArrayRef<int64_t> inner =
          ArrayRef(tensor.sizes).drop_front(parameter.dim + 1);
      bool isScratch = tensor.access == TensorAccess::Workspace ||
                       tensor.access == TensorAccess::Counter;
      if (isScratch && !ShapedType::isDynamicShape(inner))
        value = lanes.index(ShapedType::getNumElements(inner));
      stridesOf(known, tensor, index).push_back(value);
      break;
    }
    case TensorParameter::Size:
      // Sizes come as i32 and are indices in the program.
      known.sizes.resize(
          std::max<size_t>(known.sizes.size(), parameter.dim + 1));
      known.sizes[parameter.dim] = lanes.toIndex(value);
      break;
    }
  }
}

void KernelSignature::bindParameters(unsigned next) {
  for (auto &map : tensorMaps)
    map.second = lowered.getArgument(next++);
  for (StringRef name : launchNames)
    launchSizes[name] = lanes.toIndex(lowered.getArgument(next++));
  for (auto &entry : launchValues)
    entry.second = lanes.toIndex(lowered.getArgument(next++));
  if (counts)
    counter = lowered.getArguments().back();
  for (const KernelArgument &argument : arguments) {
    TensorArg &known = tensors[argument.value];
    for (auto [i, tensor] : llvm::enumerate(argument.tensors))
      // Indices come after the data.
      bindTensor(known, tensor, i - 1);
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
  if (failed(params.check()))
    return failure();
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i) {
    FailureOr<KernelArgument> argument = params.add(i);
    if (failed(argument))
      return failure();
    arguments.push_back(std::move(*argument));
  }
  unsigned next = params.getTypes().size();
  if (failed(checkSizes()))
    return failure();
  collectNeeds();
  describeNeeds();
  createFunction(block);
  bindParameters(next);
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
  // The swizzle spans a row of the box; longer rows lie as they are.
  constexpr int64_t least = 32, most = 128;
  int64_t bytes = request.boxCols * element.getIntOrFloatBitWidth() / 8;
  bool swizzles = bytes >= least && bytes <= most && llvm::isPowerOf2_64(bytes);
  NamedAttrList list;
  list.append("dims", b.getDenseI64ArrayAttr(dims));
  list.append("box", b.getDenseI64ArrayAttr(box));
  list.append("swizzle", b.getI64IntegerAttr(swizzles ? bytes : 0));
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
  describeLaunch(lowered,
                 {lanes.alignment, params.getDescriptions(),
                  params.getTensors(), block, lanes.lds.bytes()},
                 params.getFixedSizes());
  if (ArrayRef<Attribute> buffers = lanes.lds.described(); !buffers.empty())
    lowered->setAttr(kLdsAttr, lanes.b.getArrayAttr(buffers));
  kernel.erase();
  lowered->setAttr(KVBufferDialect::kPhaseAttr,
                   PhaseAttr::get(lowered.getContext(), Phase::Thread));
}
