//===- CopyKernels.cpp - Kernels that copy tensors of launches ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A tensor at an odd address, which no tensor map and no copy of 16 bytes
/// takes, is copied to memory of the launch. Lanes read one element at a time:
/// any address will do. A lane reads a few side by side, which have one address
/// in its registers, and stores them at once; many are on their way at a time,
/// as a copy waits for memory alone. Out of the launch's memory lanes side by
/// side move elements side by side: of one line's elements that several
/// instructions store, L2 gets each by itself.
///
//===----------------------------------------------------------------------===//

#include "kvbuffer/Pipelines/CopyKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace kvbuf;

/// Threads of a block, and elements that each has on their way, or half of them
/// where each element has an address of its own.
static constexpr int64_t kThreads = 256, kElements = 16;
/// Elements of a lane side by side; heads have a multiple of 8.
static constexpr int64_t kRun = 4;
/// Blocks for batches: the second dimension of a grid takes 65535.
static constexpr int64_t kMostBatches = 32768;

static bool isNumber(Attribute size) { return isa<IntegerAttr>(size); }

static int64_t numberOf(Attribute size) {
  return cast<IntegerAttr>(size).getInt();
}

SmallVector<TensorAttr> kvbuf::copiedTensors(LLVM::LLVMFuncOp kernel,
                                             ArrayRef<std::string> names) {
  SmallVector<TensorAttr> copied;
  auto list = kernel->getAttrOfType<ArrayAttr>(KVBufferDialect::kTensorsAttr);
  for (auto tensor : list.getAsRange<TensorAttr>()) {
    ArrayRef<Attribute> shape = tensor.getShape();
    if (llvm::is_contained(names, tensor.getName().getValue()) &&
        tensor.getElementBytes() == 2 &&
        (shape.size() == 3 || shape.size() == 4) &&
        llvm::all_of(shape.take_back(2), isNumber) &&
        numberOf(shape.back()) > 0 && numberOf(shape.back()) % kRun == 0 &&
        numberOf(shape.drop_back().back()) > 0 &&
        (tensor.getAccess() == TensorAccess::Read ||
         tensor.getAccess() == TensorAccess::Write))
      copied.push_back(tensor);
  }
  return copied;
}

namespace {
/// Writes the body of one kernel.
class CopyProgram {
public:
  CopyProgram(ImplicitLocOpBuilder &b, TensorAttr tensor, Value from, Value to)
      : b(b), from(from), to(to), rank(tensor.getShape().size()),
        run(tensor.getAccess() == TensorAccess::Read ? kRun : 1),
        runs(numberOf(tensor.getShape().back()) / run),
        heads(numberOf(tensor.getShape()[rank - 2])) {}

  /// Tokens of a block.
  static int64_t tokensOf(TensorAttr tensor) {
    ArrayRef<Attribute> shape = tensor.getShape().take_back(2);
    return std::max<int64_t>(1, kThreads * kElements / numberOf(shape[0]) /
                                    numberOf(shape[1]));
  }
  void build();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value number(int64_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  Value wide(Value x) {
    return arith::IndexCastUIOp::create(b, b.getIndexType(), x);
  }
  /// The place of a run's first element, counted from the block's first run.
  SmallVector<Value> placeOf(Value number);
  /// What a run has.
  Value read(ArrayRef<Value> place);
  void write(Value values, ArrayRef<Value> place);
  /// Moves `count` runs of each thread, from a number on; those behind the
  /// tensor's last token, or behind `limit`, stay where they are.
  void move(Value first, int64_t count, std::optional<int64_t> limit,
            bool isWhole);
  /// Moves a block's elements of a sequence.
  void moveAll(bool isWhole);

  ImplicitLocOpBuilder &b;
  Value from, to;
  size_t rank;
  /// Elements of a run, runs of a head.
  int64_t run, runs, heads, tokens = 1;
  Value lane, token, count, batch;
};
} // namespace

Value CopyProgram::read(ArrayRef<Value> place) {
  if (run == 1)
    return memref::LoadOp::create(b, from, place);
  SmallVector<Value> at(place), values;
  for (int64_t i = 0; i < run; ++i) {
    at.back() = arith::AddIOp::create(b, place.back(), constant(i));
    values.push_back(memref::LoadOp::create(b, from, at));
  }
  return vector::FromElementsOp::create(
      b, VectorType::get(run, values[0].getType()), values);
}

void CopyProgram::write(Value values, ArrayRef<Value> place) {
  if (run == 1)
    memref::StoreOp::create(b, values, to, place);
  else
    vector::StoreOp::create(b, values, to, place, /*nontemporal=*/false,
                            llvm::Align(2 * run));
}

SmallVector<Value> CopyProgram::placeOf(Value element) {
  // Of numbers below 2^31, where a division is a fraction of one of 64 bits.
  auto divide = [&](Value x, int64_t by) {
    return std::pair<Value, Value>(arith::DivUIOp::create(b, x, number(by)),
                                   arith::RemUIOp::create(b, x, number(by)));
  };
  SmallVector<Value> place;
  if (batch)
    place.push_back(batch);
  Value at = token;
  if (tokens > 1) {
    auto [own, rest] = divide(element, heads * runs);
    at = arith::AddIOp::create(b, token, wide(own));
    element = rest;
  }
  auto [head, column] = divide(element, runs);
  place.append(
      {at, wide(head), arith::MulIOp::create(b, wide(column), constant(run))});
  return place;
}

void CopyProgram::move(Value first, int64_t count, std::optional<int64_t> limit,
                       bool isWhole) {
  SmallVector<SmallVector<Value>> places;
  SmallVector<Value> values, counts;
  Value last = arith::SubIOp::create(b, this->count, constant(1));
  for (int64_t i = 0; i < count; ++i) {
    Value element =
        arith::AddIOp::create(b, first, number(i * kThreads)).getResult();
    Value isThere;
    if (limit) {
      isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, element,
                                      number(*limit));
      element = arith::SelectOp::create(b, isThere, element, number(0));
    }
    SmallVector<Value> place = placeOf(element);
    if (!isWhole) {
      Value &at = place[rank - 3];
      Value isToken =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sle, at, last);
      isThere = isThere ? arith::AndIOp::create(b, isThere, isToken).getResult()
                        : isToken;
      at = arith::MinSIOp::create(b, at, last);
    }
    values.push_back(read(place));
    places.push_back(place);
    counts.push_back(isThere);
  }
  for (auto [value, place, isThere] : llvm::zip_equal(values, places, counts)) {
    OpBuilder::InsertionGuard guard(b);
    if (isThere) {
      auto ifOp = scf::IfOp::create(b, isThere, /*withElseRegion=*/false);
      b.setInsertionPointToStart(ifOp.thenBlock());
    }
    write(value, place);
  }
}

void CopyProgram::moveAll(bool isWhole) {
  int64_t each = kElements / (run > 1 ? run : 2);
  int64_t all = tokens * heads * runs, step = kThreads * each;
  if (int64_t whole = all / step) {
    auto loop = scf::ForOp::create(b, constant(0), constant(whole * step),
                                   constant(step));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value first =
        arith::AddIOp::create(b, lane,
                              arith::IndexCastUIOp::create(
                                  b, b.getI32Type(), loop.getInductionVar()));
    move(first, each, std::nullopt, isWhole);
  }
  int64_t rest = all % step;
  if (rest)
    move(arith::AddIOp::create(b, lane, number(all - rest)),
         llvm::divideCeil(rest, kThreads),
         rest % kThreads ? std::optional<int64_t>(all) : std::nullopt, isWhole);
}

void CopyProgram::build() {
  tokens = std::max<int64_t>(1, kThreads * kElements / heads / runs / run);
  lane = arith::IndexCastUIOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  token = arith::MulIOp::create(b, gpu::BlockIdOp::create(b, gpu::Dimension::x),
                                constant(tokens));
  count = memref::DimOp::create(b, from, rank - 3);
  auto ofSequence = [&] {
    if (tokens == 1)
      return moveAll(/*isWhole=*/true);
    Value behind = arith::AddIOp::create(b, token, constant(tokens));
    Value isWhole =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sle, behind, count);
    auto ifOp = scf::IfOp::create(b, isWhole, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    moveAll(/*isWhole=*/true);
    b.setInsertionPointToStart(ifOp.elseBlock());
    moveAll(/*isWhole=*/false);
  };
  if (rank == 3)
    return ofSequence();
  auto loop =
      scf::ForOp::create(b, gpu::BlockIdOp::create(b, gpu::Dimension::y),
                         memref::DimOp::create(b, from, 0),
                         gpu::GridDimOp::create(b, gpu::Dimension::y));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  batch = loop.getInductionVar();
  ofSequence();
}

/// Writes one kernel at the builder's place.
static void buildCopyKernel(ImplicitLocOpBuilder &b, StringRef name,
                            TensorAttr tensor) {
  MLIRContext *context = b.getContext();
  ArrayRef<Attribute> shape = tensor.getShape();
  SmallVector<int64_t> sizes, strides(shape.size(), ShapedType::kDynamic);
  for (Attribute size : shape)
    sizes.push_back(isNumber(size) ? numberOf(size) : ShapedType::kDynamic);
  strides.back() = 1;
  auto given =
      MemRefType::get(sizes, tensor.getElementType(),
                      StridedLayoutAttr::get(context, /*offset=*/0, strides));
  auto own = MemRefType::get(sizes, tensor.getElementType());
  auto kernel =
      gpu::GPUFuncOp::create(b, name, b.getFunctionType({given, own}, {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({int32_t(kThreads), 1, 1}));
  kernel->setAttr(KVBufferDialect::kPhaseAttr,
                  PhaseAttr::get(context, Phase::Thread));
  auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  auto size = [&](StringRef name, ArrayRef<Attribute> operands) -> Attribute {
    return SizeAttr::of(context, name, operands);
  };
  Attribute blocks = size("ceildiv", {shape[shape.size() - 3],
                                      number(CopyProgram::tokensOf(tensor))});
  Attribute batches = shape.size() == 3
                          ? Attribute(number(1))
                          : size("min", {shape[0], number(kMostBatches)});
  kernel->setAttr(KVBufferDialect::kGridAttr,
                  b.getArrayAttr({blocks, batches, number(1)}));
  bool reads = tensor.getAccess() == TensorAccess::Read;
  StringRef access[] = {reads ? "read" : "write", "workspace"};
  std::string called = tensor.getName().getValue().str();
  std::string names[] = {called, called + ".copy"};
  for (unsigned i = 0; i < 2; ++i) {
    kernel.setArgAttr(i, KVBufferDialect::kNameAttr, b.getStringAttr(names[i]));
    kernel.setArgAttr(i, KVBufferDialect::kAccessAttr,
                      b.getStringAttr(access[i]));
    kernel.setArgAttr(i, KVBufferDialect::kShapeAttr, b.getArrayAttr(shape));
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  Value outer = kernel.getArgument(0), inner = kernel.getArgument(1);
  CopyProgram(b, tensor, reads ? outer : inner, reads ? inner : outer).build();
  b.setInsertionPointToEnd(&kernel.getBody().front());
  gpu::ReturnOp::create(b);
}

OwningOpRef<ModuleOp> kvbuf::buildCopyKernels(Location loc, StringRef stem,
                                              ArrayRef<TensorAttr> tensors) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  ImplicitLocOpBuilder b(loc, module->getBodyRegion());
  (*module)->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                     b.getUnitAttr());
  auto code = gpu::GPUModuleOp::create(b, (stem + "_copies").str());
  b.setInsertionPointToStart(code.getBody());
  for (TensorAttr tensor : tensors)
    buildCopyKernel(b, (stem + "_copies_" + tensor.getName().getValue()).str(),
                    tensor);
  return module;
}

/// Replaces a field of the kernel's launch.
static void setLaunchField(LLVM::LLVMFuncOp kernel, StringRef name,
                           Attribute value) {
  kernel->setAttr(KVBufferDialect::kKernelAttr,
                  LaunchAttr::of(kernel).with(name, value));
}

void kvbuf::markCopyKernel(LLVM::LLVMFuncOp copy, TensorAttr tensor) {
  setLaunchField(copy, "copies", tensor.getName());
  SmallVector<Attribute> tensors;
  for (auto known :
       copy->getAttrOfType<ArrayAttr>(KVBufferDialect::kTensorsAttr)
           .getAsRange<TensorAttr>())
    tensors.push_back(known.getName() == tensor.getName() ? tensor : known);
  copy->setAttr(KVBufferDialect::kTensorsAttr,
                ArrayAttr::get(copy.getContext(), tensors));
}

void kvbuf::setCopiesIf(LLVM::LLVMFuncOp kernel, Attribute condition) {
  setLaunchField(kernel, "copies_if", condition);
}
