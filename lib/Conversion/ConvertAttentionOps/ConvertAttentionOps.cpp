//===- ConvertAttentionOps.cpp - Attention out of other dialects ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GivenAttention.h"
#include "RaiseAttention/AttentionBuilder.h"
#include "kvbuffer/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "kvbuf-convert-attention-ops"

namespace kvbuf {
#define GEN_PASS_DEF_CONVERTATTENTIONOPS
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::named;

/// The string attribute of an op; empty without it.
static StringRef stringOf(Operation *op, StringRef name) {
  auto attr = dyn_cast_or_null<StringAttr>(op->getAttr(name));
  return attr ? attr.getValue() : StringRef();
}

/// What reads an op; null for those that are no attention.
static Reader findReader(Operation *op) {
  if (op->getNumResults() == 0)
    return nullptr;
  StringRef name = op->getName().getStringRef();
  if (name == "stablehlo.custom_call" || name == "mhlo.custom_call")
    return stringOf(op, "call_target_name").starts_with("__cudnn$fmha")
               ? readCudnnCall
               : nullptr;
  if (name == "stablehlo.composite")
    return stringOf(op, "name").contains_insensitive("attention")
               ? readComposite
               : nullptr;
  if (name == "torch.operator")
    return stringOf(op, "name") == "onnx.Attention" ? readONNX : nullptr;
  // Other domains have other ops of this name.
  if (name == "onnx.Custom")
    return stringOf(op, "function_name") == "Attention" &&
                   stringOf(op, "domain_name").empty()
               ? readONNX
               : nullptr;
  return llvm::StringSwitch<Reader>(name)
      .Case("torch.aten.scaled_dot_product_attention", readTorchSDPA)
      .Case("tm_tensor.attention", readTMTensor)
      .Case("iree_linalg_ext.attention", readIREEAttention)
      .Case("iree_linalg_ext.online_attention", readIREEOnlineAttention)
      .Case("onnx.Attention", readONNX)
      .Default(nullptr);
}

/// Whether an op may go when nothing uses it: constants of torch's and casts of
/// its tensors, registered or not, and what is dead in any case.
static bool isDead(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (!op->use_empty())
    return false;
  return isOpTriviallyDead(op) || name.starts_with("torch.constant.") ||
         name == "onnx.NoValue" || name == "torch_c.from_builtin_tensor" ||
         name == "torch_c.to_builtin_tensor";
}

static void eraseDead(ArrayRef<Operation *> ops) {
  SmallVector<Operation *> worklist(ops);
  llvm::SmallPtrSet<Operation *, 8> erased;
  while (!worklist.empty()) {
    Operation *next = worklist.pop_back_val();
    if (erased.contains(next) || !isDead(next))
      continue;
    SmallVector<Operation *> definitions;
    for (Value operand : next->getOperands())
      if (Operation *def = operand.getDefiningOp())
        definitions.push_back(def);
    erased.insert(next);
    next->erase();
    llvm::append_range(worklist, definitions);
  }
}

/// Puts a builtin tensor in the place of a result, which may be torch's.
static void replaceResult(Value result, Value tensor) {
  if (result.getType() == tensor.getType()) {
    result.replaceAllUsesWith(tensor);
    return;
  }
  // Casts back to this type go, too.
  for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
    if (user->getName().getStringRef() == "torch_c.to_builtin_tensor" &&
        user->getResult(0).getType() == tensor.getType()) {
      user->getResult(0).replaceAllUsesWith(tensor);
      user->erase();
    }
  if (result.use_empty())
    return;
  OperationState state(tensor.getLoc(), "torch_c.from_builtin_tensor");
  state.addOperands(tensor);
  state.addTypes(result.getType());
  OpBuilder b(tensor.getContext());
  b.setInsertionPointAfterValue(tensor);
  result.replaceAllUsesWith(b.create(state)->getResult(0));
}

/// Whether each result that has users has something to take its place.
static LogicalResult checkResults(GivenAttention &given) {
  for (OpResult result : given.op->getResults()) {
    unsigned number = result.getResultNumber();
    bool isKnown = number == given.out || given.lse == number ||
                   llvm::any_of(given.others, [&](auto &other) {
                     return other.first == number;
                   });
    if (!isKnown && !result.use_empty())
      return given.refuse(llvm::formatv("its result {0} has users", number));
  }
  return success();
}

namespace {

struct ConvertAttentionOpsPass
    : kvbuf::impl::ConvertAttentionOpsBase<ConvertAttentionOpsPass> {
  using Base::Base;

  Type roundTo;

  LogicalResult initialize(MLIRContext *context) override {
    FailureOr<Type> type = raise::parseRound(context, round);
    if (failed(type))
      return failure();
    roundTo = *type;
    return success();
  }

  /// Puts `kvbuffer.attention` in the place of an op, or says why not.
  void convert(Operation *op, Reader reader) {
    GivenAttention given(op, roundTo, rowsSeeKeys);
    SmallVector<Operation *> operands;
    if (failed(reader(given)) || failed(checkResults(given)) ||
        given.match.matchGiven() != raise::Outcome::Found) {
      remark::missed(op->getLoc(), options("converted"))
          << ("'" + op->getName().getStringRef() +
              "' stays: " + given.match.why)
                 .str();
      // Casts that the reader made go again.
      SmallVector<Operation *> before;
      for (Operation *it = op->getPrevNode();
           it && it->getName().getStringRef() == "torch_c.to_builtin_tensor";
           it = it->getPrevNode())
        before.push_back(it);
      return eraseDead(before);
    }
    if (caches)
      given.match.matchCaches();
    // Without the log-sum-exp's users the op does not compute it.
    if (given.lse && op->getResult(*given.lse).use_empty())
      given.match.lseCoords.reset();
    Location loc = op->getLoc();
    std::string name = op->getName().getStringRef().str();
    raise::AttentionBuilder::Results built =
        raise::AttentionBuilder(given.match, op).build();
    OpBuilder b(op);
    for (auto &[number, make] : given.others)
      if (!op->getResult(number).use_empty())
        op->getResult(number).replaceAllUsesWith(make(b));
    if (built.lse)
      replaceResult(op->getResult(*given.lse), built.lse);
    replaceResult(op->getResult(given.out), built.out);
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp())
        operands.push_back(def);
    op->erase();
    eraseDead(operands);
    remark::passed(loc, options("converted"))
        << "'" + name + "' is kvbuffer.attention now";
  }

  static remark::RemarkOpts options(StringRef name) {
    return remark::RemarkOpts::name(name).category(DEBUG_TYPE);
  }

  void runOnOperation() override {
    SmallVector<std::pair<Operation *, Reader>> found;
    getOperation()->walk([&](Operation *op) {
      if (Reader reader = findReader(op))
        found.push_back({op, reader});
    });
    for (auto [op, reader] : found)
      convert(op, reader);
  }
};

} // namespace
