//===- LaneArguments.cpp - Kernel parameters --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"
#include "kvbuffer/Dialect/KVBuffer/IR/LdsMap.h"

using namespace mlir;
using namespace kvbuf;

/// The sizes that name a tensor's dimensions in the manifest; an empty name
/// stands for the static size.
static SmallVector<StringRef> dimensionNames(StringRef role, Type type,
                                             bool ragged) {
  if (auto cache = dyn_cast<CacheType>(type)) {
    switch (cache.getKind()) {
    case CacheKind::Dense:
      return {"batch", "seq_k", "", ""};
    case CacheKind::Ragged:
      return {"total_k", "", ""};
    case CacheKind::Continuous:
      return {"num_blocks", "max_seq", "", ""};
    case CacheKind::Paged:
      return {"num_blocks", "", "", ""};
    }
  }
  if (role == "lse")
    return ragged ? SmallVector<StringRef>{"", "total_q"}
                  : SmallVector<StringRef>{"batch", "", "seq_q"};
  return ragged ? SmallVector<StringRef>{"total_q", "", ""}
                : SmallVector<StringRef>{"batch", "seq_q", "", ""};
}

static StringRef typeName(Type type) {
  return type.isBF16()  ? "bf16"
         : type.isF16() ? "f16"
         : type.isF32() ? "f32"
                        : "i32";
}

/// Checks that an argument is what its role says: the manifest describes it so.
static LogicalResult checkRole(gpu::GPUFuncOp kernel, unsigned argument,
                               StringRef role, bool ragged) {
  Type type = kernel.getArgument(argument).getType();
  auto bad = [&](const Twine &expected) {
    return kernel.emitOpError()
           << "argument " << argument << " is '" << role << "' of type " << type
           << "; expected " << expected;
  };
  if ((role == "k" || role == "v") && isa<CacheType>(type))
    return success();
  int64_t rank = llvm::StringSwitch<int64_t>(role)
                     .Cases({"q", "k", "v", "o"}, ragged ? 3 : 4)
                     .Case("lse", ragged ? 2 : 3)
                     .Cases({"q_offsets", "sink"}, 1)
                     .Default(0);
  if (!rank)
    return bad("q, k, v, o, q_offsets, lse or sink");
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || memref.getRank() != rank)
    return bad("a memref of rank " + Twine(rank));
  if (rank > 2 && role != "lse" &&
      llvm::any_of(memref.getShape().take_back(2), ShapedType::isDynamic))
    return bad("static heads and head_size");
  return success();
}

/// Puts numbers for the sizes that types fix into the shapes of all tensors, so
/// that tensors of another size do not match.
static void fixShapes(MutableArrayRef<Attribute> tensors,
                      const llvm::StringMap<int64_t> &fixedSizes) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](StringAttr name) -> std::optional<Attribute> {
    auto it = fixedSizes.find(name.getValue());
    if (it == fixedSizes.end())
      return std::nullopt;
    return Builder(name.getContext()).getI64IntegerAttr(it->second);
  });
  for (Attribute &tensor : tensors) {
    NamedAttrList list(cast<DictionaryAttr>(tensor));
    list.set("shape", replacer.replace(list.get("shape")));
    tensor = list.getDictionary(tensor.getContext());
  }
}

StringRef LaneLowering::sizeNeededBy(Operation *op) {
  if (auto size = dyn_cast<LaunchSizeOp>(op))
    return size.getName();
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    auto argument = dyn_cast<BlockArgument>(dim.getSource());
    auto type = dyn_cast<MemRefType>(dim.getSource().getType());
    if (!argument || argument.getOwner() != &kernel.getBody().front() ||
        !type || type.getRank() != 3 || dim.getConstantIndex() != 0)
      return "";
    auto name = kernel.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                    "kvbuffer.name");
    return name && name.getValue() == "q" ? "total_q" : "";
  }
  CacheType cache;
  if (auto keys = dyn_cast<CacheNumKeysOp>(op))
    cache = keys.getCache().getType();
  if (auto tile = dyn_cast<CacheTileOp>(op);
      tile && tile.getCache().getType().getKind() == CacheKind::Ragged)
    cache = tile.getCache().getType();
  if (!cache)
    return "";
  switch (cache.getKind()) {
  case CacheKind::Dense:
    return "";
  case CacheKind::Ragged:
    return "total_k";
  case CacheKind::Continuous:
    return "max_seq";
  case CacheKind::Paged:
    return "pages_per_seq";
  }
  return "";
}

Value LaneLowering::launchSize(StringRef name) {
  auto fixed = fixedSizes.find(name);
  return fixed == fixedSizes.end() ? launchSizes[name] : index(fixed->second);
}

LogicalResult LaneLowering::expandArguments() {
  MLIRContext *context = b.getContext();
  // The schedule says how many threads a block has; what was launched otherwise
  // would be another kernel.
  SmallVector<int32_t> block{int32_t(blockThreads()), 1, 1};
  if (auto known = kernel.getKnownBlockSizeAttr();
      known && known.asArrayRef() != ArrayRef<int32_t>(block))
    return kernel.emitOpError()
           << "has known_block_size = " << known << ", but its schedule is for "
           << block.front() << " threads; expected "
           << b.getDenseI32ArrayAttr(block);
  auto str = [&](StringRef s) { return b.getStringAttr(s); };
  auto dict = [&](std::initializer_list<NamedAttribute> list) {
    return DictionaryAttr::get(context, list);
  };
  bool ragged = false;
  llvm::StringMap<Type> roles;
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i) {
    auto name = kernel.getArgAttrOfType<StringAttr>(i, "kvbuffer.name");
    if (!name)
      return kernel.emitOpError()
             << "argument " << i
             << " has no 'kvbuffer.name', the role of its tensor";
    ragged |= name.getValue() == "q_offsets";
    if (!roles.try_emplace(name.getValue(), kernel.getArgument(i).getType())
             .second)
      return kernel.emitOpError()
             << "has two arguments with 'kvbuffer.name' = \"" << name.getValue()
             << '"';
  }
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
    if (failed(checkRole(
            kernel, i,
            kernel.getArgAttrOfType<StringAttr>(i, "kvbuffer.name").getValue(),
            ragged)))
      return failure();
  if (kernel.getNumArguments() && !roles.contains("q"))
    return kernel.emitOpError()
           << "has no argument with 'kvbuffer.name' = \"q\"";
  if (!roles.contains("q") || !roles.contains("k"))
    return kernel.emitOpError() << "expected arguments named q and k";

  // The parameters in order; the values exist once the new kernel does.
  struct Slot {
    unsigned argument;
    std::function<void(TensorArg &, Value)> assign;
  };
  SmallVector<Slot> slots;
  auto parameter = [&](unsigned argument, Type type, DictionaryAttr description,
                       std::function<void(TensorArg &, Value)> assign) {
    parameterTypes.push_back(type);
    parameters.push_back(description);
    slots.push_back({argument, std::move(assign)});
  };
  auto pointer = [&](unsigned argument, Type element, const Twine &tensor,
                     std::function<void(TensorArg &, Value)> assign) {
    parameter(argument,
              MemRefType::get({}, element, MemRefLayoutAttrInterface(),
                              machine.dramSpace(context)),
              dict({{str("kind"), str("pointer")},
                    {str("tensor"), str(tensor.str())}}),
              std::move(assign));
  };
  // `limit`: the largest stride that the kernel takes, 0 for any.
  auto stride = [&](unsigned argument, const Twine &tensor, int64_t dim,
                    int64_t limit,
                    std::function<void(TensorArg &, Value)> assign) {
    NamedAttrList list;
    list.append("dim", b.getI64IntegerAttr(dim));
    list.append("kind", str("stride"));
    if (limit)
      list.append("limit", b.getI64IntegerAttr(limit));
    list.append("tensor", str(tensor.str()));
    parameter(argument, b.getIndexType(), list.getDictionary(context),
              std::move(assign));
  };
  auto tensor = [&](const Twine &name, Type element, ArrayRef<Attribute> shape,
                    bool write) {
    tensorList.push_back(dict({{str("access"), str(write ? "write" : "read")},
                               {str("dtype"), str(typeName(element))},
                               {str("name"), str(name.str())},
                               {str("shape"), b.getArrayAttr(shape)}}));
  };

  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i) {
    StringRef role =
        kernel.getArgAttrOfType<StringAttr>(i, "kvbuffer.name").getValue();
    Type type = kernel.getArgument(i).getType();
    auto cache = dyn_cast<CacheType>(type);
    auto memref = dyn_cast<MemRefType>(type);
    Type element = cache ? cache.getElementType() : memref.getElementType();
    if (memref && memref.getRank() == 1) {
      Attribute size =
          role == "sink"
              ? Attribute(b.getI64IntegerAttr(
                    cast<MemRefType>(roles["q"]).getShape().end()[-2]))
              : Attribute(b.getDictionaryAttr(b.getNamedAttr(
                    "sum",
                    b.getArrayAttr({str("batch"), b.getI64IntegerAttr(1)}))));
      tensor(role, element, size, false);
      pointer(i, element, role, [](TensorArg &t, Value v) { t.data = v; });
      continue;
    }
    SmallVector<int64_t> dims;
    if (cache) {
      if (cache.getKind() != CacheKind::Ragged)
        dims.push_back(ShapedType::kDynamic);
      dims.push_back(cache.getKind() == CacheKind::Paged
                         ? cache.getPageSize()
                         : ShapedType::kDynamic);
      dims.append({cache.getHeads(), cache.getCacheDepth()});
    } else {
      llvm::append_range(dims, memref.getShape());
    }
    SmallVector<StringRef> names = dimensionNames(role, type, ragged);
    SmallVector<Attribute> shape;
    for (auto [d, size] : llvm::enumerate(dims)) {
      bool isHeadOfLse = role == "lse" && names[d].empty();
      int64_t heads = cast<MemRefType>(roles["q"]).getShape().end()[-2];
      bool isNamed = !names[d].empty() && ShapedType::isDynamic(size);
      shape.push_back(
          isNamed ? Attribute(str(names[d]))
                  : Attribute(b.getI64IntegerAttr(isHeadOfLse ? heads : size)));
      // A size that the types fix is a number wherever it is asked for.
      if (isNamed || names[d].empty())
        continue;
      auto [it, isFirst] = fixedSizes.try_emplace(names[d], size);
      if (it->second != size)
        return kernel.emitOpError()
               << "argument " << i << " fixes " << names[d] << " at " << size
               << ", an argument before it at " << it->second;
    }
    tensor(role, element, shape, role == "o" || role == "lse");
    pointer(i, element, role, [](TensorArg &t, Value v) { t.data = v; });
    // Rows are the third dimension from the right of what is read by tiles.
    int64_t rows = cache         ? schedule.getBN()
                   : role == "q" ? schedule.getBM()
                                 : 0;
    for (int64_t d = 0, rank = dims.size(); d + 1 < rank; ++d)
      stride(
          i, role, d,
          rows && d == rank - 3
              ? machine.maxRowStride(rows, element.getIntOrFloatBitWidth() / 8)
              : 0,
          [](TensorArg &t, Value v) { t.strides.push_back(v); });
    // The sizes that a kernel asks for: the rows of dense queries and caches.
    bool needsRows = (role == "q" && !ragged && memref.isDynamicDim(1)) ||
                     (cache && cache.getKind() == CacheKind::Dense);
    if (needsRows)
      parameter(i, b.getI32Type(),
                dict({{str("kind"), str("size")},
                      {str("name"), str(role == "q" ? "seq_q" : "seq_k")}}),
                [](TensorArg &t, Value v) {
                  t.sizes = {Value(), v};
                });
    if (!cache)
      continue;
    Type word = b.getI32Type();
    Attribute batch = str("batch");
    Attribute batchPlus1 = b.getDictionaryAttr(b.getNamedAttr(
        "sum", b.getArrayAttr({str("batch"), b.getI64IntegerAttr(1)})));
    if (cache.getKind() == CacheKind::Ragged) {
      tensor(role + ".offsets", word, batchPlus1, false);
      pointer(i, word, role + ".offsets",
              [](TensorArg &t, Value v) { t.offsets = v; });
    }
    if (cache.hasTable()) {
      bool paged = cache.getKind() == CacheKind::Paged;
      SmallVector<Attribute> tableShape{batch};
      if (paged)
        tableShape.push_back(str("pages_per_seq"));
      tensor(role + ".table", word, tableShape, false);
      pointer(i, word, role + ".table",
              [](TensorArg &t, Value v) { t.table = v; });
      if (paged)
        stride(i, role + ".table", 0, /*limit=*/0,
               [](TensorArg &t, Value v) { t.tableStride = v; });
      tensor(role + ".lengths", word, batch, false);
      pointer(i, word, role + ".lengths",
              [](TensorArg &t, Value v) { t.lengths = v; });
    }
  }

  fixShapes(tensorList, fixedSizes);

  // Behind the tensors: what copy engines and shared counters need.
  unsigned ordinary = parameterTypes.size();
  bool counts = false;
  SmallVector<StringRef> launchNames;
  kernel.walk([&](Operation *op) {
    counts |= isa<NextTileOp>(op);
    // Sizes that the types fix are no parameters.
    if (StringRef name = sizeNeededBy(op);
        !name.empty() && !fixedSizes.contains(name) &&
        !llvm::is_contained(launchNames, name))
      launchNames.push_back(name);
    std::optional<TensorMapRequest> request = machine.tensorMapFor(*this, op);
    if (request &&
        !llvm::is_contained(llvm::make_first_range(tensorMaps), *request))
      tensorMaps.push_back({*request, Value()});
  });
  for (auto &[request, value] : tensorMaps) {
    parameterTypes.push_back(machine.tensorMapType(context));
    parameters.push_back(describeTensorMap(request));
  }
  for (StringRef name : launchNames) {
    parameterTypes.push_back(b.getI32Type());
    parameters.push_back(
        dict({{str("kind"), str("size")}, {str("name"), str(name)}}));
  }
  if (counts) {
    parameterTypes.push_back(MemRefType::get({}, b.getI32Type()));
    parameters.push_back(dict({{str("kind"), str("launch_counter")}}));
  }

  lowered = gpu::GPUFuncOp::create(b, kernel.getName(),
                                   b.getFunctionType(parameterTypes, {}));
  for (NamedAttribute attr : kernel->getAttrs())
    if (attr.getName() != "function_type" && attr.getName() != "arg_attrs" &&
        attr.getName() != KVBufferDialect::kPhaseAttr)
      lowered->setAttr(attr.getName(), attr.getValue());
  if (kernel.getKnownBlockSizeAttr())
    lowered.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(block));
  b.setInsertionPointToStart(&lowered.getBody().front());
  for (auto [i, map] : llvm::enumerate(tensorMaps))
    map.second = lowered.getArgument(ordinary + i);
  for (auto [i, name] : llvm::enumerate(launchNames))
    launchSizes[name] =
        toIndex(lowered.getArgument(ordinary + tensorMaps.size() + i));
  if (counts)
    counter = lowered.getArguments().back();
  for (auto [slot, value] :
       llvm::zip_equal(slots, lowered.getArguments().take_front(ordinary))) {
    // Sizes come as i32 and are indices in the program.
    Value v = value.getType().isInteger(32) ? toIndex(value) : Value(value);
    slot.assign(tensors[kernel.getArgument(slot.argument)], v);
  }
  return success();
}

DictionaryAttr
LaneLowering::describeTensorMap(const TensorMapRequest &request) {
  auto argument = cast<BlockArgument>(request.tensor);
  auto name = kernel.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                  "kvbuffer.name");
  // Innermost first: columns, rows, heads and, where there is one, the batch or
  // block; in the tensor they are [batch,] rows, heads, columns.
  SmallVector<int64_t> dims{2, 0, 1}, box{request.boxCols, request.boxRows, 1};
  auto cache = dyn_cast<CacheType>(argument.getType());
  bool outer = cache ? cache.getKind() != CacheKind::Ragged
                     : cast<MemRefType>(argument.getType()).getRank() > 3;
  if (outer) {
    dims = {3, 1, 2, 0};
    box.push_back(1);
  }
  Type element = cache ? cache.getElementType()
                       : cast<MemRefType>(argument.getType()).getElementType();
  // The swizzle spans a row of the box.
  int64_t bytes = request.boxCols * element.getIntOrFloatBitWidth() / 8;
  NamedAttrList list;
  list.append("kind", b.getStringAttr("tensor_map"));
  list.append("tensor", name);
  list.append("dims", b.getI64ArrayAttr(dims));
  list.append("box", b.getI64ArrayAttr(box));
  list.append("swizzle", b.getI64IntegerAttr(bytes >= 32 ? bytes : 0));
  // What lies beside the operand is outside of the map.
  if (cache && request.cols != cache.getCacheDepth())
    list.append("columns", b.getI64ArrayAttr({request.firstCol, request.cols}));
  return list.getDictionary(b.getContext());
}

Value LaneLowering::tensorMap(const TensorMapRequest &request) const {
  for (const auto &[known, value] : tensorMaps)
    if (known == request)
      return value;
  return nullptr;
}

void LaneLowering::finishKernel() {
  auto str = [&](StringRef s) { return b.getStringAttr(s); };
  auto problem =
      kernel->getAttrOfType<DictionaryAttr>(KVBufferDialect::kProblemAttr);
  Attribute heads = problem ? problem.get("heads") : Attribute();
  auto size = [&](StringRef name) -> Attribute {
    auto it = fixedSizes.find(name);
    return it == fixedSizes.end() ? Attribute(str(name))
                                  : b.getI64IntegerAttr(it->second);
  };
  Attribute tiles = b.getDictionaryAttr(b.getNamedAttr(
      "ceildiv",
      b.getArrayAttr({size("seq_q"), b.getI64IntegerAttr(schedule.getBM())})));
  NamedAttrList list;
  list.append("alignment", b.getI64IntegerAttr(alignment));
  list.append("args", b.getArrayAttr(parameters));
  list.append("block", b.getI64ArrayAttr({blockThreads(), 1, 1}));
  list.append("dynamic_shared_bytes", b.getI64IntegerAttr(ldsBytes));
  list.append("entry", str(kernel.getName()));
  if (Attribute grid = kernel->getAttr(KVBufferDialect::kGridAttr))
    list.append("grid", grid);
  else if (heads)
    list.append("grid", schedule.getXcds() > 1
                            ? b.getArrayAttr({heads, tiles, size("batch")})
                            : b.getArrayAttr({tiles, heads, size("batch")}));
  lowered->removeAttr(KVBufferDialect::kGridAttr);
  lowered->setAttr(KVBufferDialect::kKernelAttr,
                   list.getDictionary(b.getContext()));
  lowered->setAttr(KVBufferDialect::kTensorsAttr, b.getArrayAttr(tensorList));
  if (!ldsList.empty())
    lowered->setAttr(kLdsAttr, b.getArrayAttr(ldsList));
  kernel.erase();
  lowered->setAttr(KVBufferDialect::kPhaseAttr,
                   PhaseAttr::get(b.getContext(), Phase::Thread));
}
