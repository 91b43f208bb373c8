//===- DecodeOrder.cpp - Atomic operations, fences, their scopes ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's orderings and scopes for NVIDIA's and AMD's GPUs ("NVPTX User Guide",
// "Memory Scopes"; "User Guide for AMDGPU Backend", "Memory Scopes"), and the
// fences that only one of them has.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

static uint8_t orderBits(LLVM::AtomicOrdering ordering) {
  switch (ordering) {
  case LLVM::AtomicOrdering::not_atomic:
    return 0;
  case LLVM::AtomicOrdering::unordered:
  case LLVM::AtomicOrdering::monotonic:
    return atomicAccess;
  case LLVM::AtomicOrdering::acquire:
    return atomicAccess | acquires;
  case LLVM::AtomicOrdering::release:
    return atomicAccess | releases;
  case LLVM::AtomicOrdering::acq_rel:
  case LLVM::AtomicOrdering::seq_cst:
    return atomicAccess | acquires | releases;
  }
  return 0;
}

LogicalResult Decoder::decodeScope(Operation *op, std::optional<StringRef> name,
                                   Scope &scope) {
  StringRef text = name.value_or("");
  text.consume_back("-one-as");
  auto found = program.chip.isAMD
                   ? llvm::StringSwitch<std::optional<Scope>>(text)
                         .Cases({"", "one-as"}, Scope::System)
                         .Case("agent", Scope::Device)
                         .Case("cluster", Scope::Cluster)
                         .Case("workgroup", Scope::Block)
                         .Case("wavefront", Scope::Warp)
                         .Case("singlethread", Scope::Lane)
                         .Default(std::nullopt)
                   : llvm::StringSwitch<std::optional<Scope>>(text)
                         .Case("", Scope::System)
                         .Case("device", Scope::Device)
                         .Case("cluster", Scope::Cluster)
                         .Case("block", Scope::Block)
                         .Case("singlethread", Scope::Lane)
                         .Default(std::nullopt);
  if (!found)
    return unsupported(op, "scope '" + *name + "'");
  scope = *found;
  return success();
}

LogicalResult Decoder::decodeOrder(Operation *op, LLVM::AtomicOrdering ordering,
                                   std::optional<StringRef> scopeName,
                                   bool isVolatile, bool isInvariant,
                                   uint8_t &order, Scope &scope) {
  order = orderBits(ordering);
  scope = Scope::System;
  // PTX ISA, "ld.volatile": as a relaxed one with the scope of the system. To
  // LLVM's AMDGPU backend it is no more than a plain access.
  if (!order && isVolatile && !program.chip.isAMD)
    order = atomicAccess;
  if (!order && isInvariant)
    order = invariantAccess;
  return decodeScope(op, scopeName, scope);
}

LogicalResult Decoder::decodeFence(LLVM::FenceOp op) {
  uint8_t order;
  Scope scope;
  if (failed(decodeOrder(op, op.getOrdering(), op.getSyncscope(),
                         /*isVolatile=*/false, /*isInvariant=*/false, order,
                         scope)))
    return failure();
  emitFence(order, scope);
  return success();
}

void Decoder::emitFence(uint8_t order, Scope scope) {
  if (scope <= Scope::Warp)
    return;
  Inst &inst = emit(Code::Fence);
  inst.order = order;
  inst.scope = scope;
}

LogicalResult Decoder::decodeCompareExchange(LLVM::AtomicCmpXchgOp op) {
  unsigned space =
      cast<LLVM::LLVMPointerType>(op.getPtr().getType()).getAddressSpace();
  Type type = op.getVal().getType();
  if ((space != 0 && space != 1 && space != 3) ||
      !llvm::is_contained({8u, 16u, 32u, 64u}, bitsOf(type)) ||
      isa<VectorType>(type))
    return unsupported(op, "on " + describe(type));
  uint8_t order, onFailure;
  Scope scope;
  if (failed(decodeOrder(op, op.getSuccessOrdering(), op.getSyncscope(), false,
                         false, order, scope)) ||
      failed(decodeOrder(op, op.getFailureOrdering(), op.getSyncscope(), false,
                         false, onFailure, scope)))
    return failure();
  unsigned bits = bitsOf(type);
  bool wide = bits == 64;
  Comp compare = getScalar(op.getCmp()), operand = getScalar(op.getVal()),
       old = allocate(wide);
  auto [base, offset] = getAddress(op.getPtr());
  Inst &inst = emit(space == 3 ? Code::AtomicShared : Code::AtomicGlobal);
  inst.dst = old.slot;
  inst.a = base.slot;
  inst.b = operand.slot;
  inst.c = compare.slot;
  inst.offset = offset;
  inst.imm = inst.align = bits / 8;
  inst.flags = static_cast<uint8_t>(AtomicKind::CompareExchange);
  inst.order = order | onFailure;
  inst.scope = scope;
  inst.stat = program.numStats++;
  Comp same =
      emitFree(wide ? Code::CmpEq64 : Code::CmpEq32, false, old, compare);
  set(op.getRes(), {old, same});
  return success();
}

/// The pointer and the offsets of an address that is computed in one step.
static bool isSameAddress(Value a, Value b) {
  auto x = a.getDefiningOp<LLVM::GEPOp>(), y = b.getDefiningOp<LLVM::GEPOp>();
  return a == b || (x && y &&
                    OperationEquivalence::isEquivalentTo(
                        x, y, OperationEquivalence::IgnoreLocations));
}

bool Decoder::isFirstGuess(LLVM::LoadOp load) {
  Type type = load.getType();
  if (load.getOrdering() != LLVM::AtomicOrdering::not_atomic ||
      isa<VectorType>(type) ||
      !llvm::is_contained({8u, 16u, 32u, 64u}, bitsOf(type)))
    return false;
  // The loaded value is what a block expects to find at the address, in its
  // own type or as an integer.
  for (OpOperand &use : load.getResult().getUses()) {
    auto branch = dyn_cast<BranchOpInterface>(use.getOwner());
    std::optional<BlockArgument> arg;
    if (branch)
      arg = branch.getSuccessorBlockArgument(use.getOperandNumber());
    if (!arg)
      continue;
    SmallVector<Value> names{*arg};
    for (Operation *user : arg->getUsers())
      if (auto cast = dyn_cast<LLVM::BitcastOp>(user))
        names.push_back(cast.getResult());
    for (Value name : names)
      for (Operation *user : name.getUsers())
        if (auto exchange = dyn_cast<LLVM::AtomicCmpXchgOp>(user))
          if (exchange.getCmp() == name &&
              isSameAddress(exchange.getPtr(), load.getAddr()))
            return true;
  }
  return false;
}

static std::optional<Scope> ptxScope(StringRef name) {
  return llvm::StringSwitch<std::optional<Scope>>(name)
      .Case("cta", Scope::Block)
      .Case("cluster", Scope::Cluster)
      .Cases({"gpu", "gl"}, Scope::Device)
      .Case("sys", Scope::System)
      .Default(std::nullopt);
}

bool Decoder::decodeFenceText(StringRef text) {
  text = text.trim();
  if (program.chip.isAMD) {
    // CDNA3 ISA, "Memory Scopes and Temporal Hints": sc1 with or without sc0.
    bool inverts = text.consume_front("buffer_inv");
    if (!inverts && !text.consume_front("buffer_wbl2"))
      return false;
    text = text.trim();
    if (text != "sc1" && text != "sc0 sc1")
      return false;
    emitFence(inverts ? acquires : releases | writesBack,
              text == "sc1" ? Scope::Device : Scope::System);
    return true;
  }
  if (!text.consume_back(";"))
    return false;
  uint8_t order = acquires | releases;
  if (!text.consume_front("membar.") && !text.consume_front("fence.sc.") &&
      !text.consume_front("fence.acq_rel.")) {
    if (text.consume_front("fence.acquire."))
      order = acquires;
    else if (text.consume_front("fence.release."))
      order = releases;
    else
      return false;
  }
  std::optional<Scope> scope = ptxScope(text);
  if (scope)
    emitFence(order, *scope);
  return scope.has_value();
}

bool Decoder::decodeFenceOp(Operation *op) {
  if (auto x = dyn_cast<NVVM::MembarOp>(op)) {
    Scope scope = Scope::System;
    switch (x.getScope()) {
    case NVVM::MemScopeKind::CTA:
      scope = Scope::Block;
      break;
    case NVVM::MemScopeKind::CLUSTER:
      scope = Scope::Cluster;
      break;
    case NVVM::MemScopeKind::GPU:
      scope = Scope::Device;
      break;
    case NVVM::MemScopeKind::SYS:
      break;
    }
    emitFence(acquires | releases, scope);
    return true;
  }
  if (isa<NVVM::FenceScClusterOp>(op)) {
    emitFence(acquires | releases, Scope::Cluster);
    return true;
  }
  auto call = dyn_cast<LLVM::CallIntrinsicOp>(op);
  StringRef name = call ? call.getIntrin() : StringRef();
  if (!name.consume_front("llvm.nvvm.membar."))
    return false;
  std::optional<Scope> scope = ptxScope(name);
  if (scope)
    emitFence(acquires | releases, *scope);
  return scope.has_value();
}
