//===- ProblemFunction.cpp - Functions that become kernels ----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemFunction.h"

using namespace mlir;
using namespace kvbuf;

/// Whether an attribute is one of this dialect, which no other tool reads.
static bool isOurs(NamedAttribute attr) {
  return isa_and_nonnull<KVBufferDialect>(attr.getNameDialect());
}

LogicalResult
kvbuf::verifyProblemFunction(func::FuncOp func, Operation *problem,
                             function_ref<bool(unsigned, StringRef)> reads) {
  auto module = func->getParentOfType<ModuleOp>();
  if (auto uses = SymbolTable::getSymbolUses(func, module);
      uses && !uses->empty())
    return uses->begin()->getUser()->emitOpError()
           << "refers to @" << func.getName()
           << ", which becomes a kernel: expected no reference to it";
  if (func.getNumResults())
    return func.emitOpError() << "expected a function without results, as a "
                                 "kernel has none";
  StringRef name = problem->getName().getStringRef();
  for (NamedAttribute attr : func->getDiscardableAttrs())
    if (isOurs(attr))
      return func.emitOpError()
             << "has the attribute '" << attr.getName().getValue()
             << "', which nothing reads on the function of a " << name
             << "; expected it on a kernel (gpu.func)";
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
    for (NamedAttribute attr : function_interface_impl::getArgAttrs(func, i))
      if (isOurs(attr) && !reads(i, attr.getName()))
        return func.emitOpError() << "argument " << i << " has the attribute '"
                                  << attr.getName().getValue()
                                  << "', which nothing reads there: the "
                                  << name << " says what it is";
  return success();
}

LogicalResult kvbuf::verifyAlone(func::FuncOp func, Operation *problem) {
  for (Operation &other : func.getBody().front())
    if (&other != problem && !isa<func::ReturnOp>(other))
      return other.emitOpError()
             << "is not supported beside " << problem->getName()
             << ": expected a function of one " << problem->getName()
             << " and a return";
  return success();
}

FailureOr<SmallVector<StringRef>>
kvbuf::nameArguments(func::FuncOp func, Operation *problem,
                     ArrayRef<NamedOperand> operands) {
  SmallVector<StringRef> names(func.getNumArguments());
  for (auto [value, name] : operands) {
    auto arg = dyn_cast_or_null<BlockArgument>(value);
    if (!value)
      continue;
    if (!arg || arg.getOwner() != &func.getBody().front())
      return problem->emitOpError()
             << "expected operand '" << name << "' to be an argument of @"
             << func.getName();
    StringRef &own = names[arg.getArgNumber()];
    if (!own.empty())
      return problem->emitOpError()
             << "operand '" << name << "' is the same argument as '" << own
             << "'; expected one argument for each operand";
    own = name;
  }
  for (auto [i, name] : llvm::enumerate(names))
    if (name.empty())
      return func.emitOpError()
             << "argument " << i << " is not used by " << problem->getName();
  return names;
}

gpu::GPUFuncOp kvbuf::createKernel(ImplicitLocOpBuilder &b, func::FuncOp func) {
  auto module = gpu::GPUModuleOp::create(b, (func.getName() + "_module").str());
  b.setInsertionPointToStart(module.getBody());
  auto kernel = gpu::GPUFuncOp::create(
      b, func.getName(), b.getFunctionType(func.getArgumentTypes(), {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  return kernel;
}

void kvbuf::endKernel(ImplicitLocOpBuilder &b, gpu::GPUFuncOp kernel,
                      Phase phase, func::FuncOp func) {
  b.setInsertionPointToEnd(&kernel.getBody().front());
  gpu::ReturnOp::create(b);
  kernel->setAttr(KVBufferDialect::kPhaseAttr,
                  PhaseAttr::get(b.getContext(), phase));
  func.erase();
}
