//===- LowerAttention.cpp - Turn attention into a tile program ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "LowerDecode.h"
#include "ProblemLimits.h"
#include "TileProgram.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemFunction.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

llvm::StringMap<int64_t> kvbuf::fixedSizesOf(Operation *kernel) {
  llvm::StringMap<ArrayRef<Attribute>> shapes;
  if (auto list =
          kernel->getAttrOfType<ArrayAttr>(KVBufferDialect::kTensorsAttr))
    for (auto tensor : list.getAsRange<TensorAttr>())
      shapes[tensor.getName().getValue()] = tensor.getShape();
  llvm::StringMap<int64_t> fixed;
  auto note = [&](StringRef name, StringRef tensor, size_t dim) {
    ArrayRef<Attribute> shape = shapes.lookup(tensor);
    if (dim >= shape.size())
      return;
    Attribute size = shape[dim];
    // Offsets have one more than there are sequences.
    if (auto sum = dyn_cast<SizeAttr>(size);
        sum && sum.getOperation() == SizeOperator::Sum)
      size = sum.getOperands()[0];
    if (auto number = dyn_cast<IntegerAttr>(size))
      fixed[name] = number.getInt();
  };
  if (shapes.contains("q_offsets")) {
    note(kBatchSize, "q_offsets", 0);
  } else {
    note(kBatchSize, "q", 0);
    note(kLongestQuerySize, "q", 1);
  }
  note(kTableRowSize, "k.table", 1);
  if (!shapes.contains("k.table") && !shapes.contains("k.offsets"))
    note(kKeysSize, "k", 1);
  return fixed;
}

SmallVector<NamedOperand> kvbuf::namedOperands(AttentionOp op) {
  SmallVector<NamedOperand> list{
      {op.getQ(), "q"},
      {op.getKeys(), "k"},
      {op.isLatent() ? Value() : op.getValues(), "v"},
      {op.getOut(), "o"},
      {op.getOffsets(), "q_offsets"},
      {op.getLse(), "lse"},
      {op.getSink(), "sink"}};
  Builder b(op.getContext());
  for (auto [i, capture] : llvm::enumerate(op.getCaptures()))
    list.push_back({capture, b.getStringAttr("capture" + Twine(i)).getValue()});
  return list;
}

namespace {

/// How rows are packed, as the manifest states it.
DictionaryAttr describeRow(RowAttr row, Builder &b) {
  NamedAttrList list;
  auto number = [&](NamedAttrList &to, StringRef name, int64_t value) {
    to.append(name, b.getI64IntegerAttr(value));
  };
  number(list, "bytes", row.getBytes());
  if (row.getTail()) {
    number(list, "tail", row.getTail());
    number(list, "rows", row.getTailRows());
    number(list, "stride", row.getTailStride());
  }
  SmallVector<Attribute> parts;
  for (RowPartAttr part : row.getParts()) {
    NamedAttrList one;
    number(one, "count", part.getCount());
    one.append("element", b.getStringAttr(elementName(part.getElement())));
    number(one, "at", part.getAt());
    if (Type scale = part.getScale()) {
      one.append("scale", b.getStringAttr(elementName(scale)));
      number(one, "granularity", part.getGranularity());
      number(one, "scale_at", part.getScaleAt());
    }
    parts.push_back(one.getDictionary(b.getContext()));
  }
  list.append("parts", b.getArrayAttr(parts));
  return list.getDictionary(b.getContext());
}

/// The problem, as the manifest states it.
DictionaryAttr describeProblem(AttentionOp op, CacheAppendOp append,
                               Builder &b) {
  MaskAttr mask = op.getMaskValue();
  CacheType cache = op.getK().getType();
  NamedAttrList list;
  auto add = [&](StringRef name, Attribute value) { list.append(name, value); };
  // Nothing but the program knows its own functions, and what captures are for:
  // no reference is there.
  bool own = op.hasOwnScores() || !op.getCaptures().empty();
  add("op", b.getStringAttr(own      ? "attention_of_own_scores"
                            : append ? "attention_after_append"
                                     : "attention"));
  add("dtype", b.getStringAttr(elementName(op.getElementType())));
  add("heads", b.getI64IntegerAttr(op.getHeads()));
  add("kv_heads", b.getI64IntegerAttr(op.getKVHeads()));
  add("head_size", b.getI64IntegerAttr(op.getHeadSize()));
  if (op.getValueHeadSize() != op.getHeadSize())
    add("v_head_size", b.getI64IntegerAttr(op.getValueHeadSize()));
  if (op.isLatent())
    add("latent", b.getBoolAttr(true));
  if (op.getOutElementType() != op.getElementType())
    add("o_dtype", b.getStringAttr(elementName(op.getOutElementType())));
  add("query", b.getStringAttr(op.isRagged() ? "ragged" : "dense"));
  add("cache", b.getStringAttr(stringifyCacheKind(cache.getKind())));
  if (cache.getRun())
    add("page_size", b.getI64IntegerAttr(cache.getPageSize()));
  if (lengthsCountNew(op))
    add("lengths", b.getStringAttr("all"));
  add("causal", b.getBoolAttr(mask.getCausal()));
  add("window_left", b.getI64IntegerAttr(mask.getLeft()));
  add("window_right", b.getI64IntegerAttr(mask.getRight()));
  add("softcap", b.getF64FloatAttr(op.getSoftcapValue()));
  add("sink", b.getBoolAttr(bool(op.getSink())));
  add("lse", b.getBoolAttr(bool(op.getLse())));
  add("scale", b.getF64FloatAttr(op.getScaleValue()));
  for (auto [name, type] : {std::pair<StringRef, CacheType>{"k", cache},
                            {"v", op.getV().getType()}}) {
    if (type.getCacheDepth() != type.getHeadSize())
      add((name + "_cache_depth").str(),
          b.getI64IntegerAttr(type.getCacheDepth()));
    if (type.getHeadDimOffset())
      add((name + "_head_dim_offset").str(),
          b.getI64IntegerAttr(type.getHeadDimOffset()));
    if (type.getRow()) {
      // Both are one cache.
      if (name == "k")
        add("k_row", describeRow(type.getRow(), b));
      add((name + "_dtype").str(),
          b.getStringAttr(elementName(type.getStoredType())));
      continue;
    }
    if (type.getElementType() != op.getElementType())
      add((name + "_dtype").str(),
          b.getStringAttr(elementName(type.getElementType())));
    if (type.getScaleType())
      add((name + "_granularity").str(),
          b.getI64IntegerAttr(type.getGranularity()));
  }
  if (op.getBatchInvariant())
    add("batch_invariant", b.getBoolAttr(true));
  return list.getDictionary(b.getContext());
}

/// What the manifest says of a tensor of the problem: its access and, unless it
/// is a cache, its shape.
NamedAttrList describeTensor(AttentionOp op, CacheAppendOp append,
                             StringRef role, Builder &b) {
  auto str = [&](StringRef text) -> Attribute { return b.getStringAttr(text); };
  auto number = [&](int64_t value) -> Attribute {
    return b.getI64IntegerAttr(value);
  };
  NamedAttrList list;
  list.append(KVBufferDialect::kNameAttr, str(role));
  bool isOutput = role == "o" || role == "lse";
  bool isStoredTo = append && (role == "k" || role == "v");
  list.append(KVBufferDialect::kAccessAttr, str(isOutput     ? "write"
                                                : isStoredTo ? "read_write"
                                                             : "read"));
  bool ragged = op.isRagged();
  SmallVector<Attribute> shape;
  if (role == "q" || role == "o") {
    if (ragged)
      shape = {str(kAllQueriesSize)};
    else
      shape = {str(kBatchSize), str(kLongestQuerySize)};
    shape.append(
        {number(op.getHeads()),
         number(role == "q" ? op.getHeadSize() : op.getValueHeadSize())});
  } else if (role == "lse") {
    if (ragged)
      shape = {number(op.getHeads()), str(kAllQueriesSize)};
    else
      shape = {str(kBatchSize), number(op.getHeads()), str(kLongestQuerySize)};
  } else if (role == "q_offsets") {
    shape = {SizeAttr::of(b.getContext(), "sum", {str(kBatchSize), number(1)})};
  } else if (role == "sink") {
    shape = {number(op.getHeads())};
  } else if (role == "k_new" || role == "v_new") {
    // A token for each query row.
    shape = {
        str(kBatchSize), str(kLongestQuerySize), number(op.getKVHeads()),
        number(role == "k_new" ? op.getHeadSize() : op.getValueHeadSize())};
  } else if (role == "cos" || role == "sin") {
    shape = {str(kPositionsSize),
             number(cast<ShapedType>(append.getCos().getType()).getDimSize(1))};
  }
  if (!shape.empty())
    list.append(KVBufferDialect::kShapeAttr, b.getArrayAttr(shape));
  return list;
}

/// The sizes of a list of a block mask; null for other captures.
ArrayAttr shapeOfList(AttentionOp op, Value capture, Builder &b) {
  BlockMaskAttr mask = op.getBlockMaskAttr();
  if (!mask)
    return nullptr;
  // A launch checks that sizes of one name are one.
  static constexpr StringLiteral sizes[] = {"list_batch", "list_heads",
                                            "list_rows", "list_keys"};
  for (auto [i, number] : llvm::enumerate(mask.getLists())) {
    if (op.getCaptures()[number] != capture)
      continue;
    SmallVector<Attribute> shape;
    auto type = cast<MemRefType>(capture.getType());
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      shape.push_back(ShapedType::isDynamic(size)
                          ? Attribute(b.getStringAttr(sizes[dim]))
                          : b.getI64IntegerAttr(size));
    return b.getArrayAttr(shape);
  }
  return nullptr;
}

/// The same of a tensor that the problem's regions read: of `shape`, or of
/// sizes that have names of their own.
NamedAttrList describeCapture(Value value, StringRef name, ArrayAttr shape,
                              Builder &b) {
  NamedAttrList list;
  list.append(KVBufferDialect::kNameAttr, b.getStringAttr(name));
  list.append(KVBufferDialect::kAccessAttr, b.getStringAttr("read"));
  if (!shape) {
    SmallVector<Attribute> sizes;
    for (auto [dim, size] :
         llvm::enumerate(cast<MemRefType>(value.getType()).getShape()))
      sizes.push_back(ShapedType::isDynamic(size)
                          ? Attribute(b.getStringAttr(name + "_" + Twine(dim)))
                          : b.getI64IntegerAttr(size));
    shape = b.getArrayAttr(sizes);
  }
  list.append(KVBufferDialect::kShapeAttr, shape);
  return list;
}

/// The role of each function argument in the problem, for the thread stage,
/// which splits arguments into kernel parameters.
LogicalResult nameArguments(AttentionOp op, CacheAppendOp append,
                            func::FuncOp func,
                            SmallVectorImpl<Attribute> &names, Builder &b) {
  ScheduleAttr schedule = op.getScheduleAttr();
  if (schedule && failed(checkLatent(op, schedule)))
    return failure();
  names.assign(func.getNumArguments(), Attribute());
  SmallVector<NamedOperand> operands = namedOperands(op);
  // Its caches are the attention's.
  if (append)
    llvm::copy_if(namedOperands(append), std::back_inserter(operands),
                  [](const NamedOperand &operand) {
                    return !isa<CacheType>(operand.value.getType());
                  });
  for (auto [value, role] : operands) {
    if (!value)
      continue;
    auto arg = dyn_cast<BlockArgument>(value);
    if (!arg || arg.getOwner() != &func.getBody().front())
      return op.emitOpError() << "expected operand '" << role
                              << "' to be an argument of @" << func.getName();
    if (names[arg.getArgNumber()])
      return op.emitOpError()
             << "operand '" << role << "' is the same argument as '"
             << cast<StringAttr>(names[arg.getArgNumber()]).getValue()
             << "'; expected one argument for each operand";
    names[arg.getArgNumber()] = b.getStringAttr(role);
    // Captures keep the names that the program has given them.
    if (auto own = func.getArgAttrOfType<StringAttr>(
            arg.getArgNumber(), KVBufferDialect::kNameAttr);
        own && llvm::is_contained(op.getCaptures(), value))
      names[arg.getArgNumber()] = own;
  }
  for (auto [i, name] : llvm::enumerate(names))
    if (!name)
      return func.emitOpError()
             << "argument " << i << " is not used by kvbuffer.attention";
  return success();
}

/// What the shapes of a ragged batch do not tell: how long the longest sequence
/// is. Nobody has to say; no shorter bound than all rows covers it.
DictionaryAttr sizesOf(AttentionOp op, Builder &b) {
  auto q = cast<MemRefType>(op.getQ().getType());
  Attribute rows = q.isDynamicDim(0)
                       ? Attribute(b.getStringAttr(kAllQueriesSize))
                       : b.getI64IntegerAttr(q.getDimSize(0));
  return b.getDictionaryAttr(b.getNamedAttr(kLongestQuerySize, rows));
}

/// The loads of a region's argument and the casts before them, these first;
/// nothing where other ops use it.
std::optional<SmallVector<Operation *>> loadsOf(Value memref) {
  SmallVector<Operation *> ops(memref.getUsers());
  for (size_t i = 0; i < ops.size(); ++i)
    if (isa<memref::CastOp>(ops[i]))
      llvm::append_range(ops, ops[i]->getUsers());
    else if (!isa<memref::LoadOp>(ops[i]))
      return std::nullopt;
  return ops;
}

/// Gives captures of rank 0 a dimension of one element: what a launch is given
/// has one.
void expandScalarCaptures(AttentionOp op, func::FuncOp func) {
  Builder b(op.getContext());
  unsigned count = op.getCaptures().size();
  for (auto [i, capture] : llvm::enumerate(op.getCaptures())) {
    auto type = cast<MemRefType>(capture.getType());
    if (type.getRank() != 0)
      continue;
    SmallVector<std::pair<Value, SmallVector<Operation *>>> regions;
    for (Region *region : {&op.getScore(), &op.getVisible()}) {
      if (region->empty())
        continue;
      Value inside = region->getArguments().take_back(count)[i];
      if (auto loads = loadsOf(inside))
        regions.push_back({inside, *loads});
      else
        return; // the kernel refuses it
    }
    auto arg = cast<BlockArgument>(capture);
    arg.setType(MemRefType::get({1}, type.getElementType(),
                                MemRefLayoutAttrInterface(),
                                type.getMemorySpace()));
    if (func.getArgAttr(arg.getArgNumber(), KVBufferDialect::kShapeAttr))
      func.setArgAttr(arg.getArgNumber(), KVBufferDialect::kShapeAttr,
                      b.getI64ArrayAttr({1}));
    for (auto &[inside, loads] : regions) {
      inside.setType(arg.getType());
      for (Operation *user : llvm::reverse(loads)) {
        if (auto load = dyn_cast<memref::LoadOp>(user)) {
          OpBuilder at(load);
          Value zero = arith::ConstantIndexOp::create(at, load.getLoc(), 0);
          auto element = memref::LoadOp::create(at, load.getLoc(), inside,
                                                ValueRange{zero});
          load.replaceAllUsesWith(element.getResult());
        }
        user->erase();
      }
    }
  }
  func.setFunctionType(
      b.getFunctionType(func.getBody().getArgumentTypes(), {}));
}

/// Says of rows that a team of the kernel widens how they are packed: elements
/// of 8 bits that are one part are those of any described row from here on.
void describeRows(AttentionOp op, func::FuncOp func, gpu::GPUFuncOp kernel) {
  CacheType cache = op.getKCacheType();
  RowAttr row = rowOfTeams(op);
  if (!row || cache.getRow() || !op.getSchedule()->getMovingTeam())
    return;
  auto arg = cast<BlockArgument>(op.getK());
  BlockArgument own = kernel.getArgument(arg.getArgNumber());
  for (BlockArgument some : {arg, own})
    some.setType(CacheType::get(
        op.getContext(), cache.getKind(), op.getElementType(), cache.getHeads(),
        cache.getHeadSize(), cache.getPageSize(), row.getReach(),
        /*headDimOffset=*/0, cache.getScaleType(), cache.getGranularity(),
        row));
  Builder b(op.getContext());
  func.setFunctionType(
      b.getFunctionType(func.getBody().getArgumentTypes(), {}));
  kernel.setFunctionType(
      b.getFunctionType(kernel.getBody().getArgumentTypes(), {}));
}

/// The kernel of a function of one problem.
struct AttentionKernel {
  AttentionOp op;

  LogicalResult lower(func::FuncOp func, const TargetInfo &target) {
    CacheAppendOp append = appendOf(op);
    for (Operation &other : func.getBody().front())
      if (&other != op && &other != append && !isa<func::ReturnOp>(other))
        return other.emitOpError()
               << "is not supported beside kvbuffer.attention: expected a "
                  "function of one kvbuffer.attention, perhaps with a "
                  "kvbuffer.cache_append before it, and a return";
    auto reads = [&](unsigned i, StringRef name) {
      Value argument = func.getArgument(i);
      if (llvm::is_contained(op.getCaptures(), argument))
        return name == KVBufferDialect::kNameAttr ||
               name == KVBufferDialect::kShapeAttr || name == kRisingAttr;
      return name == kIndexAttr && isa<CacheType>(argument.getType());
    };
    if (failed(verifyProblemFunction(func, op.getOperation(), reads)))
      return failure();
    if (!op.getSchedule())
      return op.emitOpError()
             << "has no schedule; run kvbuf-choose-schedule first";
    SmallVector<Attribute> names;
    Builder attrs(op.getContext());
    if (append && (failed(verifyOnMemrefs(append)) ||
                   failed(checkAppend(op, append, target))))
      return failure();
    if (failed(nameArguments(op, append, func, names, attrs)))
      return failure();
    expandScalarCaptures(op, func);

    ImplicitLocOpBuilder b(op.getLoc(), func);
    gpu::GPUFuncOp kernel = createKernel(b, func);
    ScheduleAttr schedule = *op.getSchedule();
    int32_t threads = schedule.getWarps() * target.waveSize;
    kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({threads, 1, 1}));
    kernel->setAttr(KVBufferDialect::kScheduleAttr, schedule);
    kernel->setAttr(
        KVBufferDialect::kProblemAttr,
        ProblemAttr::get(b.getContext(), describeProblem(op, append, attrs)));
    if (Attribute rows = op->getAttr(kSharedRowsAttr))
      kernel->setAttr(kSharedRowsAttr, rows);
    if (op.isRagged())
      kernel->setAttr(kSizesAttr, sizesOf(op, attrs));
    for (auto [i, name] : llvm::enumerate(names)) {
      Value arg = func.getArgument(i);
      StringRef role = cast<StringAttr>(name).getValue();
      auto shape =
          func.getArgAttrOfType<ArrayAttr>(i, KVBufferDialect::kShapeAttr);
      if (!shape)
        shape = shapeOfList(op, arg, attrs);
      NamedAttrList list = llvm::is_contained(op.getCaptures(), arg)
                               ? describeCapture(arg, role, shape, attrs)
                               : describeTensor(op, append, role, attrs);
      for (NamedAttribute attr : list)
        kernel.setArgAttr(i, attr.getName(), attr.getValue());
    }
    for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
      if (Attribute index = func.getArgAttr(i, kIndexAttr))
        kernel.setArgAttr(i, kIndexAttr, index);
    describeRows(op, func, kernel);
    b.setInsertionPointToStart(&kernel.getBody().front());
    IRMapping args;
    args.map(func.getArguments(), kernel.getArguments());
    if (schedule.getSplitKeys())
      buildDecode(b, op, target, args, kernel, append);
    else
      buildTiles(b, op, target, args);
    endKernel(b, kernel, Phase::Tile, func);
    return success();
  }
};

} // namespace

LogicalResult kvbuf::buildTile(AttentionOp op, func::FuncOp func,
                               const TargetInfo &target) {
  // A schedule that the op brings has not passed kvbuf-choose-schedule.
  if (failed(verifyOnMemrefs(op)) ||
      failed(verifyElements(op, op.getElementType(), target)))
    return failure();
  return AttentionKernel{op}.lower(func, target);
}
