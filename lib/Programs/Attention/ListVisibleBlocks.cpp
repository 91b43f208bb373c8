//===- ListVisibleBlocks.cpp - Lists of blocks from a visible region ------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Beside an attention with a `visible` region, a kernel by lanes that asks the
/// region about every row and key once and writes which blocks of keys a block
/// of queries sees, wholly or in part; the attention visits what these lists
/// name.
///
//===----------------------------------------------------------------------===//

#include "VisibleLists.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/PassNumbers.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemFunction.h"
#include "kvbuffer/Programs/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kvbuf {
#define GEN_PASS_DEF_LISTVISIBLEBLOCKS
#include "kvbuffer/Programs/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// What lists are called, as FlexAttention has them.
static constexpr StringLiteral kListNames[] = {
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"};

/// Whether lists can be made for a problem; an error at it if not.
static LogicalResult checkListable(AttentionOp op) {
  auto func = dyn_cast<func::FuncOp>(op->getParentOp());
  if (!func || !isa<ModuleOp>(func->getParentOp()))
    return op.emitOpError()
           << "stands where no lists are made for it; expected "
              "a function of one kvbuffer.attention and a "
              "return, at the top of the module";
  if (isa<TensorType>(op.getQ().getType()))
    return op.emitOpError(
        "is on tensors; expected memrefs: run one-shot-bufferize first");
  if (failed(verifyAlone(func, op)))
    return failure();
  if (op.isRagged())
    return op.emitOpError()
           << "has ragged queries, for which no lists are made: expected "
              "sequences of equally many rows (no offsets)";
  if (op.isLatent())
    return op.emitOpError() << "has values that are a part of its keys, whose "
                               "kernels read no lists of blocks";
  CacheType cache = op.getK().getType();
  if (!cache.getIndexTensors().empty())
    return op.emitOpError() << "has a cache " << cache
                            << " whose lengths the device alone knows, and "
                               "lists need room: expected a dense cache";
  if (auto schedule = op.getSchedule(); schedule && schedule->getSplitKeys())
    return op.emitOpError() << "has a schedule with split_keys = true, whose "
                               "kernels read no lists of blocks; expected "
                               "split_keys = false";
  for (Value value : op->getOperands()) {
    auto arg = dyn_cast<BlockArgument>(value);
    if (!arg || arg.getOwner() != &func.getBody().front())
      return op.emitOpError()
             << "expected its operands to be arguments of @" << func.getName();
  }
  return success();
}

/// Checks that names which the pass gives are free.
static LogicalResult checkListNames(VisibleLists lists, StringRef kernel) {
  func::FuncOp func = lists.func;
  auto module = func->getParentOfType<ModuleOp>();
  for (StringRef name : {kernel.str(), (kernel + "_module").str()})
    if (SymbolTable::lookupSymbolIn(module, name))
      return func.emitOpError()
             << "has lists that a function @" << kernel
             << " makes, and there is a symbol @" << name << " already";
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
    if (auto name =
            func.getArgAttrOfType<StringAttr>(i, KVBufferDialect::kNameAttr);
        name && llvm::is_contained(kListNames, name.getValue()))
      return func.emitOpError() << "argument " << i << " is called " << name
                                << ", as one of the lists is";
  return success();
}

namespace {

/// Makes the kernel's arguments one by one.
class ListArguments {
public:
  ListArguments(gpu::GPUFuncOp kernel)
      : kernel(kernel), b(kernel.getContext()) {}

  Value add(Type type, StringRef name, StringRef access,
            ArrayRef<Attribute> shape) {
    unsigned i = kernel.getNumArguments();
    (void)kernel.insertArgument(i, type, DictionaryAttr(), kernel.getLoc());
    kernel.setArgAttr(i, KVBufferDialect::kNameAttr, b.getStringAttr(name));
    kernel.setArgAttr(i, KVBufferDialect::kAccessAttr, b.getStringAttr(access));
    if (!shape.empty())
      kernel.setArgAttr(i, KVBufferDialect::kShapeAttr, b.getArrayAttr(shape));
    return kernel.getArgument(i);
  }

  /// The sizes of a type, `names` where they are open.
  SmallVector<Attribute> shape(MemRefType type,
                               function_ref<std::string(unsigned)> name) {
    SmallVector<Attribute> sizes;
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      sizes.push_back(ShapedType::isDynamic(size)
                          ? Attribute(b.getStringAttr(name(dim)))
                          : b.getI64IntegerAttr(size));
    return sizes;
  }

private:
  gpu::GPUFuncOp kernel;
  Builder b;
};

class ListVisibleBlocksPass
    : public kvbuf::impl::ListVisibleBlocksBase<ListVisibleBlocksPass> {
public:
  using Base::Base;

  void runOnOperation() final;

private:
  /// The argument of the kernel for a capture, as the region reads it.
  static Value addCapture(ImplicitLocOpBuilder &b, VisibleLists lists,
                          unsigned i, ListArguments &args);
  /// The kernel that makes the lists, of these types.
  static void makeKernel(VisibleLists lists, StringRef name,
                         ArrayRef<MemRefType> types);
  /// Gives the problem the lists.
  static void takeLists(VisibleLists lists, ArrayRef<MemRefType> types);
};

} // namespace

Value ListVisibleBlocksPass::addCapture(ImplicitLocOpBuilder &b,
                                        VisibleLists lists, unsigned i,
                                        ListArguments &args) {
  auto capture = cast<BlockArgument>(lists.op.getCaptures()[i]);
  unsigned number = capture.getArgNumber();
  // As the attention's kernel has it.
  std::string name = ("capture" + Twine(i)).str();
  func::FuncOp func = lists.func;
  if (auto own =
          func.getArgAttrOfType<StringAttr>(number, KVBufferDialect::kNameAttr))
    name = own.str();
  auto type = cast<MemRefType>(capture.getType());
  auto given = type;
  // A launch gives a scalar a dimension of one element.
  if (type.getRank() == 0)
    given = MemRefType::get({1}, type.getElementType(),
                            MemRefLayoutAttrInterface(), type.getMemorySpace());
  SmallVector<Attribute> shape = args.shape(
      given, [&](unsigned dim) { return (name + "_" + Twine(dim)).str(); });
  if (auto own =
          func.getArgAttrOfType<ArrayAttr>(number, KVBufferDialect::kShapeAttr);
      own && type.getRank())
    shape = llvm::to_vector(own.getValue());
  Value value = args.add(given, name, "read", shape);
  if (type.getRank() == 0)
    value = memref::ReinterpretCastOp::create(
        b, type, value, OpFoldResult(b.getIndexAttr(0)),
        ArrayRef<OpFoldResult>(), ArrayRef<OpFoldResult>());
  return value;
}

void ListVisibleBlocksPass::makeKernel(VisibleLists lists, StringRef name,
                                       ArrayRef<MemRefType> types) {
  AttentionOp op = lists.op;
  ImplicitLocOpBuilder b(op.getLoc(), lists.func);
  b.setInsertionPointAfter(lists.func);
  auto module = gpu::GPUModuleOp::create(b, (name + "_module").str());
  b.setInsertionPointToStart(module.getBody());
  auto kernel = gpu::GPUFuncOp::create(b, name, b.getFunctionType({}, {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({int32_t(kListThreads), 1, 1}));
  kernel->setAttr(KVBufferDialect::kPhaseAttr,
                  PhaseAttr::get(b.getContext(), Phase::Thread));
  b.setInsertionPointToStart(&kernel.getBody().front());

  ListArguments args(kernel);
  static constexpr StringLiteral sizes[] = {kBatchSize, kLongestQuerySize};
  Value q = args.add(op.getQ().getType(), "q", "read",
                     args.shape(lists.queries(), [&](unsigned dim) {
                       return sizes[dim].str();
                     }));
  Value k = args.add(op.getK().getType(), "k", "read", {});
  IRMapping captures;
  for (unsigned i = 0, e = op.getCaptures().size(); i < e; ++i)
    if (BlockArgument inside = lists.inside(i); !inside.use_empty())
      captures.map(inside, addCapture(b, lists, i, args));
  SmallVector<Value> outputs;
  for (auto [i, type] : llvm::enumerate(types))
    outputs.push_back(
        args.add(type, kListNames[i], "write", lists.shape(i % 2 == 0)));
  SmallVector<Attribute> blocks = lists.shape(/*isNumbers=*/true);
  kernel->setAttr(KVBufferDialect::kGridAttr,
                  b.getArrayAttr({blocks[2], blocks[1], blocks[0]}));
  Value words = kernel.addWorkgroupAttribution(
      MemRefType::get({kListWords}, b.getI32Type(), MemRefLayoutAttrInterface(),
                      gpu::AddressSpaceAttr::get(b.getContext(),
                                                 gpu::AddressSpace::Workgroup)),
      b.getLoc());
  buildVisibleLists(b, lists, {q, k, outputs, words, captures});
  gpu::ReturnOp::create(b);
}

void ListVisibleBlocksPass::takeLists(VisibleLists lists,
                                      ArrayRef<MemRefType> types) {
  AttentionOp op = lists.op;
  func::FuncOp func = lists.func;
  Builder b(op.getContext());
  SmallVector<int64_t> numbers;
  for (auto [i, type] : llvm::enumerate(types)) {
    unsigned at = func.getNumArguments();
    (void)func.insertArgument(at, type, DictionaryAttr(), op.getLoc());
    func.setArgAttr(at, KVBufferDialect::kNameAttr,
                    b.getStringAttr(kListNames[i]));
    numbers.push_back(op.getCaptures().size());
    op.getCapturesMutable().append(func.getArgument(at));
    for (Region *region : {&op.getScore(), &op.getVisible()})
      if (!region->empty())
        region->addArgument(type, op.getLoc());
  }
  op.setBlockMaskAttr(
      BlockMaskAttr::get(op.getContext(), lists.rows, lists.keys, numbers));
}

void ListVisibleBlocksPass::runOnOperation() {
  ModuleOp module = getOperation();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (failed(checkPassNumber(module, "rows", rows, 1, kMost)) ||
      failed(checkPassNumber(module, "keys", keys, 1, kMost)))
    return signalPassFailure();
  SmallVector<AttentionOp> ops;
  module.walk([&](AttentionOp op) {
    if (!op.getVisible().empty() && !op.getBlockMaskAttr())
      ops.push_back(op);
  });
  if (ops.empty())
    module.emitWarning() << "has no kvbuffer.attention with a visible region "
                            "and without a block_mask: no lists are made";
  for (AttentionOp op : ops) {
    if (failed(checkListable(op)))
      return signalPassFailure();
    VisibleLists lists{op, cast<func::FuncOp>(op->getParentOp()), rows, keys};
    std::string name = (lists.func.getName() + "_lists").str();
    if (failed(checkListNames(lists, name)))
      return signalPassFailure();
    SmallVector<MemRefType> types;
    for (int i = 0; i < 4; ++i) {
      SmallVector<int64_t> shape;
      for (Attribute size : lists.shape(i % 2 == 0)) {
        auto number = dyn_cast<IntegerAttr>(size);
        shape.push_back(number ? number.getInt() : ShapedType::kDynamic);
      }
      types.push_back(
          MemRefType::get(shape, IntegerType::get(&getContext(), 32)));
    }
    makeKernel(lists, name, types);
    takeLists(lists, types);
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    UnitAttr::get(&getContext()));
  }
}
