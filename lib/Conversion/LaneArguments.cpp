//===- LaneArguments.cpp - Kernel parameters --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneLowering.h"

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

LogicalResult LaneLowering::expandArguments() {
  MLIRContext *context = b.getContext();
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
    roles[name.getValue()] = kernel.getArgument(i).getType();
  }
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
    parameter(argument, MemRefType::get({}, element),
              dict({{str("kind"), str("pointer")},
                    {str("tensor"), str(tensor.str())}}),
              std::move(assign));
  };
  auto stride = [&](unsigned argument, const Twine &tensor, int64_t dim,
                    std::function<void(TensorArg &, Value)> assign) {
    parameter(argument, b.getIndexType(),
              dict({{str("dim"), b.getI64IntegerAttr(dim)},
                    {str("kind"), str("stride")},
                    {str("tensor"), str(tensor.str())}}),
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
    if (!cache && !memref) {
      // Scalars pass through.
      return kernel.emitOpError() << "argument " << i << " of type " << type
                                  << " is neither a tensor nor a cache";
    }
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
      dims.append({cache.getHeads(), cache.getHeadSize()});
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
      if (!isNamed && !names[d].empty())
        fixedSizes[names[d]] = size;
    }
    tensor(role, element, shape, role == "o" || role == "lse");
    pointer(i, element, role, [](TensorArg &t, Value v) { t.data = v; });
    for (int64_t d = 0, rank = dims.size(); d + 1 < rank; ++d)
      stride(i, role, d, [](TensorArg &t, Value v) { t.strides.push_back(v); });
    // The sizes that a kernel asks for: the rows of dense queries and caches.
    bool needsRows = (role == "q" && !ragged && memref.isDynamicDim(1)) ||
                     (cache && cache.getKind() == CacheKind::Dense);
    if (needsRows)
      parameter(i, b.getI32Type(),
                dict({{str("kind"), str("size")},
                      {str("name"), str(role == "q" ? "seq_q" : "seq_k")}}),
                [](TensorArg &t, Value v) { t.sizes = {Value(), v}; });
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
        stride(i, role + ".table", 0,
               [](TensorArg &t, Value v) { t.tableStride = v; });
      tensor(role + ".lengths", word, batch, false);
      pointer(i, word, role + ".lengths",
              [](TensorArg &t, Value v) { t.lengths = v; });
    }
  }

  lowered = gpu::GPUFuncOp::create(b, kernel.getName(),
                                   b.getFunctionType(parameterTypes, {}));
  for (NamedAttribute attr : kernel->getAttrs())
    if (attr.getName() != "function_type" && attr.getName() != "arg_attrs" &&
        attr.getName() != KVBufferDialect::kPhaseAttr)
      lowered->setAttr(attr.getName(), attr.getValue());
  if (auto size = kernel.getKnownBlockSizeAttr())
    lowered.setKnownBlockSizeAttr(size);
  b.setInsertionPointToStart(&lowered.getBody().front());
  for (auto [slot, value] : llvm::zip_equal(slots, lowered.getArguments())) {
    // Sizes come as i32 and are indices in the program.
    Value v = value.getType().isInteger(32) ? toIndex(value) : Value(value);
    slot.assign(tensors[kernel.getArgument(slot.argument)], v);
  }
  return success();
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
  int64_t threads = schedule.getWarps() * target.waveSize;
  NamedAttrList list;
  list.append("args", b.getArrayAttr(parameters));
  list.append("block", b.getI64ArrayAttr({threads, 1, 1}));
  list.append("dynamic_shared_bytes", b.getI64IntegerAttr(ldsBytes));
  list.append("entry", str(kernel.getName()));
  if (heads)
    list.append("grid", b.getArrayAttr({tiles, heads, size("batch")}));
  lowered->setAttr(KVBufferDialect::kKernelAttr,
                   list.getDictionary(b.getContext()));
  lowered->setAttr(KVBufferDialect::kTensorsAttr, b.getArrayAttr(tensorList));
  kernel.erase();
  lowered->setAttr(KVBufferDialect::kPhaseAttr,
                   PhaseAttr::get(b.getContext(), Phase::Thread));
}
