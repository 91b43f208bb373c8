//===- DecodeFunctions.cpp - Calls of a module's own functions ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions are inlined. A function has an address as well, at which there is
// no memory: a call through a pointer compares it with the addresses of those
// functions that it could mean, and goes on in the one that it means. Lanes of
// a warp may mean different ones, as they may take different branches.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Spaces.h"

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Demangle/Demangle.h"

using namespace mlir;
using namespace kvbuf::emu;

/// Whether a function is of a vendor's library of device code.
static bool isOfLibrary(StringRef name) {
  return name.starts_with("__nv_") || name.starts_with("__ocml_") ||
         name.starts_with("__ockl_");
}

/// Whether a function starts kernels from a kernel.
static bool isDeviceLaunch(StringRef name) {
  return name.starts_with("cudaLaunchDevice") ||
         name.starts_with("cudaGetParameterBuffer") ||
         name == "cudaDeviceSynchronize" || name == "hipLaunchKernel";
}

LogicalResult Decoder::inlineCall(LLVM::CallOp op, LLVM::LLVMFuncOp callee,
                                  ArrayRef<Comps> arguments, Comps &result) {
  if (callStack.size() > options.maxCallDepth)
    return unsupported(op, "calls are nested more than " +
                               Twine(options.maxCallDepth) +
                               " deep ('max_call_depth')");
  // The continuation carries the results in slots of its own when there is
  // more than one return.
  SmallVector<Comps> results;
  if (op.getNumResults())
    results.push_back(allocate(op.getResult().getType()));
  uint32_t after = newBlock(), saved = origin;
  callStack.push_back(callee);
  LogicalResult done = decodeBody(callee.getBody(), arguments, after, &results);
  callStack.pop_back();
  origin = saved;
  current = after;
  here = op;
  if (op.getNumResults())
    result = results.front();
  return done;
}

LogicalResult Decoder::decodeCall(LLVM::CallOp op) {
  auto name = op.getCallee();
  if (!name)
    return decodeIndirectCall(op);
  auto callee = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
      op, op.getCalleeAttr());
  if (!callee || callee.isExternal()) {
    bool known = false;
    // Other toolchains link their kernels with libraries. This one does not: no
    // driver would load the kernel.
    bool isMissing =
        kernel->hasAttr(KVBufferDialect::kPhaseAttr) && isOfLibrary(*name);
    if (callee && !isMissing && failed(decodeExternalCall(op, *name, known)))
      return failure();
    if (known)
      return success();
    if (isDeviceLaunch(*name))
      return unsupported(op, "'" + llvm::demangle(*name) +
                                 "' starts a kernel from a kernel, which is "
                                 "not modelled; run that kernel by itself");
    return unsupported(op, "function '" + llvm::demangle(*name) +
                               "' has no body here");
  }
  if (llvm::is_contained(callStack, callee.getOperation()))
    return unsupported(op, "'" + *name + "' calls itself");
  if (op.getArgOperands().getTypes() != callee.getArgumentTypes() ||
      op.getNumResults() !=
          (isa<LLVM::LLVMVoidType>(callee.getFunctionType().getReturnType())
               ? 0u
               : 1u))
    return unsupported(op, "'" + *name + "' has other arguments or results");
  SmallVector<Comps> arguments;
  for (Value v : op.getArgOperands())
    arguments.push_back(get(v));
  Comps result;
  if (failed(inlineCall(op, callee, arguments, result)))
    return failure();
  if (op.getNumResults())
    set(op.getResult(), result);
  return success();
}

//===----------------------------------------------------------------------===//
// Calls through pointers
//===----------------------------------------------------------------------===//

uint64_t Decoder::functionAddress(LLVM::LLVMFuncOp function) {
  if (functions.empty())
    function->getParentOp()->walk([&](LLVM::LLVMFuncOp f) {
      functions.try_emplace(f.getOperation(), functions.size() + 1);
    });
  return codeWindow + 16 * functions.lookup(function.getOperation());
}

/// The functions of a module whose addresses something takes.
static SmallVector<LLVM::LLVMFuncOp> takenFunctions(Operation *module) {
  llvm::SetVector<Operation *> taken;
  module->walk([&](LLVM::AddressOfOp op) {
    if (auto f = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
            op, op.getGlobalNameAttr());
        f && !f.isExternal())
      taken.insert(f);
  });
  SmallVector<LLVM::LLVMFuncOp> result;
  for (Operation *f : taken)
    result.push_back(cast<LLVM::LLVMFuncOp>(f));
  return result;
}

/// A call of a function, or of one that it calls, that has no body and that is
/// not known by its name; null where there is none. A virtual destructor has
/// one of `operator delete`, and every call of such a type might mean it.
static LLVM::CallOp bodilessCall(LLVM::LLVMFuncOp function,
                                 const llvm::StringSet<> &known,
                                 llvm::SmallPtrSetImpl<Operation *> &seen) {
  LLVM::CallOp found;
  function.walk([&](LLVM::CallOp call) {
    auto callee = call.getCallee()
                      ? SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
                            call, call.getCalleeAttr())
                      : LLVM::LLVMFuncOp();
    if (!callee || !seen.insert(callee).second)
      return WalkResult::advance();
    if (!callee.isExternal())
      found = bodilessCall(callee, known, seen);
    else if (!known.contains(callee.getName()))
      found = call;
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

LogicalResult Decoder::decodeIndirectCall(LLVM::CallOp op) {
  if (op->getNumOperands() == 0)
    return unsupported(op, "a call of nothing");
  Value pointer = op->getOperand(0);
  auto type = dyn_cast<LLVM::LLVMPointerType>(pointer.getType());
  if (!type || type.getAddressSpace() > 1)
    return unsupported(op, "a function in this address space");
  Comp address = getWide(pointer);
  SmallVector<Comps> arguments;
  for (Value v : op.getArgOperands())
    arguments.push_back(get(v));
  Comps all;
  if (op.getNumResults())
    all = allocate(op.getResult().getType());
  llvm::StringSet<> known;
  for (const std::string &name : libraryFunctions())
    known.insert(name);
  uint32_t after = newBlock();
  for (LLVM::LLVMFuncOp f : takenFunctions(kernel->getParentOp())) {
    Type returned = f.getFunctionType().getReturnType();
    bool fits = op.getArgOperands().getTypes() == f.getArgumentTypes() &&
                (op.getNumResults() ? op.getResult().getType() == returned
                                    : isa<LLVM::LLVMVoidType>(returned));
    if (!fits)
      continue;
    Comp isMeant =
        emit(Code::CmpEq64, false, address, constant(functionAddress(f), true));
    uint32_t yes = newBlock(), next = newBlock();
    Inst &branch = emit(Code::Branch);
    branch.a = isMeant.slot;
    list(branch, {Comp{yes}, Comp{next}});
    current = yes;
    // One that is being called can be meant only by a call of itself.
    if (llvm::is_contained(callStack, f.getOperation())) {
      emit(Code::Trap).flags = trapOfSelf;
      current = next;
      continue;
    }
    llvm::SmallPtrSet<Operation *, 8> seen;
    if (LLVM::CallOp call = bodilessCall(f, known, seen)) {
      program.origins.push_back(
          {"llvm.call", describeLocation(call.getLoc()), ""});
      originOps.push_back(call);
      Inst &trap = emit(Code::Trap);
      trap.origin = program.origins.size() - 1;
      trap.flags = trapOfBody;
      current = next;
      continue;
    }
    Comps result;
    if (failed(inlineCall(op, f, arguments, result)))
      return failure();
    moves(all, result);
    Inst &jump = emit(Code::Jump);
    jump.cls = Class::None;
    jump.imm = after;
    current = next;
  }
  Inst &trap = emit(Code::Trap);
  trap.flags = trapOfCall;
  current = after;
  if (op.getNumResults())
    set(op.getResult(), all);
  return success();
}
