//===- EmitLaunch.cpp - Launches in upstream dialects ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitLaunch.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// Small things
//===----------------------------------------------------------------------===//

Value LaunchEmitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}
Value LaunchEmitter::add(Value x, Value y) {
  return b.createOrFold<arith::AddIOp>(x, y);
}
Value LaunchEmitter::sub(Value x, Value y) {
  return b.createOrFold<arith::SubIOp>(x, y);
}
Value LaunchEmitter::mul(Value x, Value y) {
  return b.createOrFold<arith::MulIOp>(x, y);
}
Value LaunchEmitter::less(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, x, y);
}
Value LaunchEmitter::equal(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, x, y);
}
Value LaunchEmitter::both(Value x, Value y) {
  return x ? b.createOrFold<arith::AndIOp>(x, y) : y;
}
Value LaunchEmitter::select(Value c, Value x, Value y) {
  return b.createOrFold<arith::SelectOp>(c, x, y);
}
Value LaunchEmitter::pointer(Value address) {
  Value word = arith::IndexCastOp::create(b, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(b, LLVM::LLVMPointerType::get(b.getContext()),
                                  word);
}

SmallVector<Value> LaunchEmitter::dependencies() {
  if (!options.stream)
    return {};
  // The stream is what upstream's conversion makes of a token.
  return {UnrealizedConversionCastOp::create(b, tokenType(), options.stream)
              .getResult(0)};
}
Type LaunchEmitter::tokenType() {
  return options.stream ? gpu::AsyncTokenType::get(b.getContext()) : Type();
}

void LaunchEmitter::check(Value condition, const Twine &message) {
  if (options.checks && !matchPattern(condition, m_One()))
    cf::AssertOp::create(b, condition, message.str());
}

void LaunchEmitter::addTensor(StringRef name, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  Tensor t;
  t.memref = memref;
  t.elementBytes = std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1);
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
  auto values = [&](ArrayRef<OpFoldResult> list) {
    return llvm::map_to_vector(list, [&](OpFoldResult x) {
      return getValueOrCreateConstantIndexOp(b, b.getLoc(), x);
    });
  };
  t.sizes = values(metadata.getConstifiedMixedSizes());
  t.strides = values(metadata.getConstifiedMixedStrides());
  // Kernels take a scalar as a dimension of one element.
  if (t.sizes.empty()) {
    t.sizes.push_back(index(1));
    t.strides.push_back(index(1));
  }
  Value offset = getValueOrCreateConstantIndexOp(
      b, b.getLoc(), metadata.getConstifiedMixedOffset());
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  t.address = add(base, mul(offset, index(t.elementBytes)));
  tensors[b.getStringAttr(name)] = std::move(t);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

LogicalResult LaunchEmitter::bindSizes(ArrayAttr list) {
  for (auto entry : list.getAsRange<TensorAttr>()) {
    if (entry.isScratch())
      continue;
    auto it = tensors.find(entry.getName());
    ArrayRef<Attribute> shape = entry.getShape();
    if (it == tensors.end() || it->second.sizes.size() != shape.size())
      return problem->emitOpError()
             << "has no tensor for the kernel's " << entry;
    for (auto [d, extent] : llvm::enumerate(shape)) {
      Value value = it->second.sizes[d];
      // A name, or a name and what is added to it: the first to tell it says
      // what it is, the others have to agree.
      auto name = dyn_cast<StringAttr>(extent);
      if (auto sum = dyn_cast<SizeAttr>(extent);
          sum && sum.getOperation() == SizeOperator::Sum) {
        ArrayRef<Attribute> terms = sum.getOperands();
        if (terms.size() == 2 && isa<StringAttr>(terms[0]) &&
            isa<IntegerAttr>(terms[1])) {
          name = cast<StringAttr>(terms[0]);
          value = sub(value, index(cast<IntegerAttr>(terms[1]).getInt()));
        }
      }
      if (name && !sizes.contains(name.getValue())) {
        sizes[name.getValue()] = value;
        continue;
      }
      FailureOr<Value> expected = size(extent);
      if (failed(expected))
        return failure();
      if (name)
        expected = sizes[name.getValue()];
      if (value == *expected ||
          (getConstantIntValue(value) &&
           getConstantIntValue(value) == getConstantIntValue(*expected)))
        continue;
      check(equal(value, *expected),
            "tensor '" + entry.getName().getValue() + "' of a " +
                problem->getName().getStringRef() + ": dimension " + Twine(d) +
                " is not what other tensors or the kernel say");
    }
  }
  return success();
}

FailureOr<Value> LaunchEmitter::size(Attribute expression) {
  StringAttr missing;
  Value value = emitSizeExpression(
      b, b.getLoc(), expression, [&](StringAttr name) -> Value {
        if (name.getValue() == kMultiprocessorsSize)
          return index(options.multiprocessors);
        Value known = sizes.lookup(name.getValue());
        if (!known)
          missing = name;
        return known;
      });
  if (value)
    return value;
  if (missing)
    return problem->emitOpError()
           << "does not tell the size '" << missing.getValue()
           << "', which its launch needs";
  return problem->emitOpError() << "has a kernel with the size " << expression
                                << ", which is no expression";
}

//===----------------------------------------------------------------------===//
// What a kernel can take
//===----------------------------------------------------------------------===//

Value LaunchEmitter::isNotEmpty(const Tensor &tensor) {
  Value result, zero = index(0);
  for (Value extent : tensor.sizes)
    result = both(result, less(zero, extent));
  return result;
}

/// Whether a type's copies are of 16 bytes: floats of 16 and 8 bits.
static bool isCopied(Type element) {
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 16;
}

Value LaunchEmitter::emitAligned(const LaunchableKernel &kernel) {
  int64_t alignment = kernel.launch.getAlignment().value_or(16);
  // What is asked of each tensor: its own alignment, or the kernel's.
  llvm::MapVector<StringAttr, int64_t> asked;
  for (auto entry : kernel.tensors.getAsRange<TensorAttr>())
    if (!entry.isScratch() && isCopied(entry.getElementType()))
      asked[entry.getName()] = alignment;
  for (auto arg : kernel.launch.getArgs().getAsRange<ArgumentAttr>())
    if (std::optional<int64_t> own = arg.getNumber("alignment");
        own && tensors.contains(arg.getTensor()))
      asked[arg.getTensor()] = *own;
  Value all;
  Value zero = index(0), one = index(1);
  for (auto [name, bytes] : asked) {
    auto it = tensors.find(name);
    if (it == tensors.end() || bytes <= it->second.elementBytes)
      continue;
    const Tensor &t = it->second;
    // The stride of one element moves nothing, and of none neither.
    Value steps = zero;
    for (size_t d = 0; d + 1 < t.sizes.size(); ++d)
      steps = b.createOrFold<arith::OrIOp>(
          steps, select(less(one, t.sizes[d]),
                        mul(t.strides[d], index(t.elementBytes)), zero));
    steps = select(isNotEmpty(t), steps, zero);
    Value bits = b.createOrFold<arith::OrIOp>(t.address, steps);
    bits = b.createOrFold<arith::AndIOp>(bits, index(bytes - 1));
    all = both(all, equal(bits, zero));
  }
  return all;
}

Value LaunchEmitter::isWithin(const Tensor &tensor, int64_t dim,
                              int64_t limit) {
  // The stride of one element moves nothing.
  return b.createOrFold<arith::OrIOp>(
      less(tensor.strides[dim], index(limit + 1)),
      less(tensor.sizes[dim], index(2)));
}

Value LaunchEmitter::emitNear(const LaunchableKernel &kernel) {
  Value all;
  for (auto arg : kernel.launch.getArgs().getAsRange<ArgumentAttr>()) {
    std::optional<int64_t> limit = arg.getNumber("limit");
    auto tensor = limit ? tensors.find(arg.getTensor()) : tensors.end();
    if (tensor != tensors.end())
      all = both(all, isWithin(tensor->second, arg.getNumber("dim").value_or(0),
                               *limit));
  }
  return all;
}

/// The maps that a kernel takes.
static SmallVector<ArgumentAttr> mapsOf(const LaunchableKernel &kernel) {
  SmallVector<ArgumentAttr> maps;
  for (auto arg : kernel.launch.getArgs().getAsRange<ArgumentAttr>())
    if (arg.getKind() == ArgumentKind::TensorMap)
      maps.push_back(arg);
  return maps;
}

Value LaunchEmitter::emitMappable(const LaunchableKernel &kernel) {
  // Limits of cuTensorMapEncodeTiled: lib/Runtime/TensorMaps.cpp.
  constexpr int64_t kMostElements = int64_t(1) << 32;
  constexpr int64_t kStrideLimit = int64_t(1) << 40;
  Value all;
  Value zero = index(0);
  llvm::SmallDenseSet<Attribute> done;
  for (ArgumentAttr map : mapsOf(kernel)) {
    StringAttr name = map.getTensor();
    if (!done.insert(name).second)
      continue;
    const Tensor &t = tensors[name];
    Value good, empty = arith::XOrIOp::create(
                    b, isNotEmpty(t), arith::ConstantIntOp::create(b, 1, 1));
    for (int64_t d = 0, rank = t.sizes.size(); d < rank; ++d) {
      good = both(good, less(t.sizes[d], index(kMostElements + 1)));
      if (d + 1 == rank)
        continue;
      Value bytes = mul(t.strides[d], index(t.elementBytes));
      Value fits = both(less(zero, bytes), less(bytes, index(kStrideLimit)));
      Value single = less(t.sizes[d], index(2));
      good = both(good, arith::OrIOp::create(b, fits, single));
    }
    // A map of a tensor without elements is of one.
    good = arith::OrIOp::create(b, good, empty);
    all = both(all, good);
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Value LaunchEmitter::emitScratch(Value bytes, bool zeroed) {
  // Words, as gpu.memset takes them; an allocation of nothing has no address.
  Value words = arith::CeilDivUIOp::create(b, bytes, index(4));
  words = arith::MaxSIOp::create(b, words, index(1));
  auto type = MemRefType::get({ShapedType::kDynamic}, b.getI32Type());
  Value memory = gpu::AllocOp::create(b, type, tokenType(), dependencies(),
                                      /*dynamicSizes=*/ValueRange{words},
                                      /*symbolOperands=*/ValueRange())
                     .getMemref();
  if (zeroed)
    gpu::MemsetOp::create(b, tokenType(), dependencies(), memory,
                          arith::ConstantIntOp::create(b, 0, 32));
  scratch.push_back(memory);
  return memref::ExtractAlignedPointerAsIndexOp::create(b, memory);
}

Value LaunchEmitter::emitTensorMap(ArgumentAttr recipe) {
  StringAttr name = recipe.getTensor();
  const Tensor &t = tensors[name];
  ArrayRef<int64_t> dims = recipe.getNumbers("dims"),
                    box = recipe.getNumbers("box"),
                    columns = recipe.getNumbers("columns");
  int64_t rank = dims.size();
  auto module = problem->getParentOfType<ModuleOp>();
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  constexpr llvm::StringLiteral kEncode = "mgpuTensorMapEncodeTiled";
  auto encode = module.lookupSymbol<func::FuncOp>(kEncode);
  if (!encode) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module.getBody());
    encode = func::FuncOp::create(
        b, kEncode,
        b.getFunctionType(
            {ptr, i32, i32, ptr, ptr, ptr, ptr, ptr, i32, i32, i32, i32}, {}));
    encode.setPrivate();
  }
  // Memory of the function, not of each time that it comes by here.
  auto array = [&](int64_t count, Type type, int64_t alignment) -> Value {
    OpBuilder::InsertionGuard guard(b);
    auto function = problem->getParentOfType<FunctionOpInterface>();
    b.setInsertionPointToStart(&function.getFunctionBody().front());
    return memref::AllocaOp::create(b, MemRefType::get({count}, type),
                                    b.getI64IntegerAttr(alignment));
  };
  auto address = [&](Value memory) {
    return pointer(memref::ExtractAlignedPointerAsIndexOp::create(b, memory));
  };
  auto fill = [&](Value memory, Type type, ArrayRef<Value> values) {
    for (auto [i, value] : llvm::enumerate(values))
      memref::StoreOp::create(b, arith::IndexCastOp::create(b, type, value),
                              memory, ValueRange{index(i)});
    return address(memory);
  };
  Value nonEmpty = isNotEmpty(t), one = index(1);
  SmallVector<Value> extents, steps, boxes, ones;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    Value extent =
        i == 0 && columns.size() == 2 ? index(columns[1]) : t.sizes[dim];
    extents.push_back(select(nonEmpty, extent, one));
    boxes.push_back(index(box[i]));
    ones.push_back(one);
    if (i == 0)
      continue;
    // The stride of one element moves nothing; any legal one will do.
    Value last = i == 1 ? mul(extents[0], index(t.elementBytes))
                        : mul(steps.back(), extents[i - 1]);
    Value whole =
        mul(arith::CeilDivUIOp::create(b, last, index(16)), index(16));
    whole = arith::MinSIOp::create(b, whole, index((int64_t(1) << 40) - 16));
    Value step = mul(t.strides[dim], index(t.elementBytes));
    steps.push_back(select(less(one, extents[i]), step, whole));
  }
  Value begin = t.address;
  if (columns.size() == 2)
    begin = add(begin, index(columns[0] * t.elementBytes));
  Value map = array(16, i64, 64);
  Value mapAddress = address(map);
  Value extentsAt = fill(array(rank, i64, 8), i64, extents);
  Value stepsAt =
      fill(array(std::max<int64_t>(rank - 1, 1), i64, 8), i64, steps);
  Value boxAt = fill(array(rank, i32, 4), i32, boxes);
  Value onesAt = fill(array(rank, i32, 4), i32, ones);
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  // CUtensorMapDataType and its neighbours.
  Type element = cast<MemRefType>(t.memref.getType()).getElementType();
  int64_t type = element.isBF16()  ? 9
                 : element.isF16() ? 6
                 : element.isF32() ? 7
                                   : 0;
  int64_t span = recipe.getNumber("swizzle").value_or(0);
  int64_t swizzle = span == 128 ? 3 : span == 64 ? 2 : span == 32 ? 1 : 0;
  constexpr int64_t kNoInterleave = 0, kPromote128 = 2, kFillZero = 0;
  func::CallOp::create(
      b, encode,
      ValueRange{mapAddress, number(type), number(rank), pointer(begin),
                 extentsAt, stepsAt, boxAt, onesAt, number(kNoInterleave),
                 number(swizzle), number(kPromote128), number(kFillZero)});
  // The kernel takes its bytes.
  return LLVM::LoadOp::create(b, LLVM::LLVMArrayType::get(i64, 16), mapAddress,
                              /*alignment=*/64);
}

LogicalResult
LaunchEmitter::emitScratchTensors(const LaunchableKernel &kernel) {
  scratch.clear();
  scratchTensors.clear();
  for (auto entry : kernel.tensors.getAsRange<TensorAttr>()) {
    if (!entry.isScratch())
      continue;
    Tensor t;
    t.elementBytes = entry.getElementBytes();
    for (Attribute extent : entry.getShape()) {
      FailureOr<Value> value = size(extent);
      if (failed(value))
        return failure();
      t.sizes.push_back(*value);
    }
    // Without gaps.
    Value elements = index(1);
    for (Value extent : llvm::reverse(t.sizes)) {
      t.strides.insert(t.strides.begin(), elements);
      elements = mul(elements, extent);
    }
    bool zeroed = entry.getAccess() == TensorAccess::Counter;
    t.address = emitScratch(mul(elements, index(t.elementBytes)), zeroed);
    scratchTensors[entry.getName()] = std::move(t);
  }
  return success();
}

FailureOr<Value> LaunchEmitter::emitArgument(ArgumentAttr argument) {
  if (argument.getKind() == ArgumentKind::LaunchCounter)
    return pointer(emitScratch(index(4), /*zeroed=*/true));
  if (argument.getKind() == ArgumentKind::Size) {
    FailureOr<Value> value = size(argument.getSize());
    if (failed(value))
      return failure();
    check(less(*value, index(int64_t(1) << 31)),
          "a " + problem->getName().getStringRef() +
              ": a size is more than 2147483647");
    return arith::IndexCastOp::create(b, b.getI32Type(), *value).getResult();
  }
  StringAttr name = argument.getTensor();
  const Tensor *tensor = nullptr;
  if (auto it = scratchTensors.find(name); it != scratchTensors.end())
    tensor = &it->second;
  else if (auto known = tensors.find(name); known != tensors.end())
    tensor = &known->second;
  if (!tensor)
    return problem->emitOpError()
           << "has no tensor for the kernel's " << argument;
  if (argument.getKind() == ArgumentKind::Pointer)
    return pointer(tensor->address);
  if (argument.getKind() == ArgumentKind::TensorMap)
    return emitTensorMap(argument);
  int64_t d = argument.getNumber("dim").value_or(0);
  if (std::optional<int64_t> limit = argument.getNumber("limit"))
    check(isWithin(*tensor, d, *limit),
          "tensor '" + name.getValue() + "' of a " +
              problem->getName().getStringRef() + ": stride of dimension " +
              Twine(d) + " is more than " + Twine(*limit));
  return arith::IndexCastOp::create(b, b.getI64Type(), tensor->strides[d])
      .getResult();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

LogicalResult LaunchEmitter::emitOne(const LaunchableKernel &kernel) {
  SmallVector<Value> grid;
  Value some;
  for (auto [d, extent] : llvm::enumerate(kernel.launch.getGrid())) {
    FailureOr<Value> value = size(extent);
    if (failed(value))
      return failure();
    grid.push_back(*value);
    if (isa<IntegerAttr>(extent))
      continue;
    some = both(some, less(index(0), *value));
    // Limits of CUDA and HIP alike.
    int64_t limit = d == 0 ? std::numeric_limits<int32_t>::max() : 65535;
    check(less(*value, index(limit + 1)),
          "a " + problem->getName().getStringRef() + ": grid dimension " +
              Twine(d) + " is more than " + Twine(limit));
  }
  // A grid without blocks cannot be launched, and there is nothing to do.
  OpBuilder::InsertionGuard guard(b);
  if (some) {
    auto ifOp = scf::IfOp::create(b, some, /*withElseRegion=*/false);
    b.setInsertionPointToStart(ifOp.thenBlock());
  }

  if (failed(emitScratchTensors(kernel)))
    return failure();
  SmallVector<Value> operands;
  for (auto argument : kernel.launch.getArgs().getAsRange<ArgumentAttr>()) {
    FailureOr<Value> value = emitArgument(argument);
    if (failed(value))
      return failure();
    operands.push_back(*value);
  }
  ArrayRef<int64_t> block = kernel.launch.getBlock();
  gpu::KernelDim3 blocks{grid[0], grid[1], grid[2]};
  gpu::KernelDim3 threads{index(block[0]), index(block[1]), index(block[2])};
  std::optional<gpu::KernelDim3> clusters;
  if (kernel.cluster > 1)
    clusters = gpu::KernelDim3{index(kernel.cluster), index(1), index(1)};
  int64_t lds = kernel.launch.getDynamicSharedBytes();
  Value shared = lds ? arith::ConstantIntOp::create(b, lds, 32) : Value();
  gpu::LaunchFuncOp::create(b, kernel.symbol, blocks, threads, shared, operands,
                            tokenType(), dependencies(), clusters);
  for (Value memory : scratch)
    gpu::DeallocOp::create(b, tokenType(), dependencies(), memory);
  return success();
}

LogicalResult LaunchEmitter::emitFrom(ArrayRef<LaunchableKernel> kernels) {
  const LaunchableKernel &first = kernels.front();
  SmallVector<LaunchableKernel> together{first};
  for (size_t other : first.beside)
    together.push_back(kernels[other]);
  Value suits;
  for (const LaunchableKernel &kernel : together)
    for (Value takes : {emitAligned(kernel), emitMappable(kernel)})
      if (takes)
        suits = both(suits, takes);
  // What no other kernel takes is told of by its argument.
  if (kernels.size() > 1)
    for (const LaunchableKernel &kernel : together)
      if (Value near = emitNear(kernel))
        suits = both(suits, near);
  if (Attribute condition = first.launch.getField("launch_if")) {
    FailureOr<Value> gain = size(condition);
    if (failed(gain))
      return failure();
    suits = both(suits, less(index(0), *gain));
  }
  auto emitAll = [&]() -> LogicalResult {
    for (const LaunchableKernel &kernel : together) {
      // A kernel may stand in a branch of its own.
      OpBuilder::InsertionGuard guard(b);
      if (failed(emitOne(kernel)))
        return failure();
    }
    return success();
  };
  if (!suits)
    return emitAll();
  if (kernels.size() == 1) {
    check(suits, "a " + problem->getName().getStringRef() +
                     ": addresses and strides of tensors are no multiples of " +
                     Twine(first.launch.getAlignment().value_or(16)) +
                     " bytes, which the kernel needs");
    return emitOne(first);
  }
  auto ifOp = scf::IfOp::create(b, suits, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  if (failed(emitAll()))
    return failure();
  b.setInsertionPointToStart(ifOp.elseBlock());
  return emitFrom(kernels.drop_front());
}

LogicalResult LaunchEmitter::emit(ArrayRef<LaunchableKernel> kernels) {
  if (failed(bindSizes(kernels.front().tensors)))
    return failure();
  // Nobody says the sizes that no shape tells.
  for (const LaunchableKernel &kernel : kernels)
    if (Attribute defaults = kernel.launch.getField("defaults"))
      for (NamedAttribute entry : cast<DictionaryAttr>(defaults)) {
        if (sizes.contains(entry.getName()))
          continue;
        FailureOr<Value> value = size(entry.getValue());
        if (failed(value))
          return failure();
        sizes[entry.getName()] = *value;
      }
  // Memory that two operands share is registered once: with the first of those
  // that begin at an address.
  SmallVector<std::pair<Value, Value>> registered;
  auto ifFirst = [&](Value isFirst, function_ref<void()> make) {
    OpBuilder::InsertionGuard guard(b);
    if (isFirst)
      b.setInsertionPointToStart(
          scf::IfOp::create(b, isFirst, /*withElseRegion=*/false).thenBlock());
    make();
  };
  if (options.registerHost)
    for (auto it = tensors.begin(), e = tensors.end(); it != e; ++it) {
      Value memref = it->second.memref, isFirst;
      auto others = llvm::make_range(tensors.begin(), it);
      if (llvm::any_of(others,
                       [&](auto &o) { return o.second.memref == memref; }))
        continue;
      for (auto &[name, other] : others)
        isFirst = both(isFirst, b.createOrFold<arith::CmpIOp>(
                                    arith::CmpIPredicate::ne,
                                    it->second.address, other.address));
      auto type = cast<MemRefType>(memref.getType());
      Value unranked = memref::CastOp::create(
          b,
          UnrankedMemRefType::get(type.getElementType(), type.getMemorySpace()),
          memref);
      registered.push_back({unranked, isFirst});
      ifFirst(isFirst, [&] { gpu::HostRegisterOp::create(b, unranked); });
    }
  if (failed(emitFrom(kernels)))
    return failure();
  for (auto [memory, isFirst] : registered)
    ifFirst(isFirst, [&] { gpu::HostUnregisterOp::create(b, memory); });
  return success();
}
