//===- Mutator.cpp - Damages modules at the target stage ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutator.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <algorithm>

using namespace mlir;
using namespace kvbuf::fuzz;

/// Numbers at which something ends.
static constexpr int64_t edges[] = {
    0,   1,     -1,     2,       3,         7,          8,         16,
    31,  32,    33,     63,      64,        65,         255,       256,
    512, 65535, 100000, 1 << 20, 536870912, 2147483647, 4294967296};

//===----------------------------------------------------------------------===//
// Pool
//===----------------------------------------------------------------------===//

void Pool::collect(ModuleOp module) {
  auto add = [](auto &list, auto item) {
    if (!llvm::is_contained(list, item))
      list.push_back(item);
  };
  module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      add(types, type);
    for (NamedAttribute attr : op->getAttrs())
      if (!isa<LocationAttr>(attr.getValue()))
        add(attributes, attr.getValue());
    if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
      add(intrinsics, call.getIntrin().str());
    if (op->getParentOfType<LLVM::LLVMFuncOp>() && !op->getNumRegions() &&
        !op->getNumSuccessors() && !op->hasTrait<OpTrait::IsTerminator>())
      operations.push_back(op);
  });
}

void Pool::addHostile(MLIRContext *context) {
  Builder b(context);
  auto pointer = [&](unsigned space) {
    return LLVM::LLVMPointerType::get(context, space);
  };
  auto array = [](Type of, uint64_t n) {
    return LLVM::LLVMArrayType::get(of, n);
  };
  auto record = [&](ArrayRef<Type> fields) {
    return LLVM::LLVMStructType::getLiteral(context, fields);
  };
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  for (unsigned bits : {1, 2, 7, 8, 16, 24, 32, 33, 48, 64, 65, 128})
    types.push_back(b.getIntegerType(bits));
  for (Type type : {Type(b.getF16Type()), Type(b.getBF16Type()), Type(f32),
                    Type(b.getF64Type()), Type(b.getF80Type())})
    types.push_back(type);
  for (unsigned space : {0, 1, 3, 4, 5, 6, 7, 8, 9})
    types.push_back(pointer(space));
  for (int64_t n : {1, 2, 3, 5, 64, 1000000000})
    for (Type type : {i32, f32, Type(b.getI8Type()), Type(b.getF16Type()),
                      Type(b.getI1Type()), Type(b.getI64Type())})
      types.push_back(VectorType::get({n}, type));
  types.push_back(VectorType::get({2, 2}, i32));
  types.push_back(VectorType::get({4}, i32, {true}));
  types.push_back(VectorType::get({2}, pointer(7)));
  for (uint64_t n :
       {uint64_t(0), uint64_t(2), uint64_t(1) << 32, ~uint64_t(0)}) {
    types.push_back(array(i32, n));
    types.push_back(array(array(i32, n), n));
    types.push_back(record({array(b.getI8Type(), n), i32}));
  }
  Type nested = i32, doubled = i32;
  for (unsigned i = 0; i < 40; ++i) {
    nested = array(nested, 2);
    doubled = record({doubled, doubled});
  }
  for (Type type :
       {nested, doubled, Type(record({})), Type(record({i32, i32})),
        Type(record({i32, b.getI1Type()})), Type(record({f32, f32, f32, f32})),
        Type(LLVM::LLVMX86AMXType::get(context)),
        Type(LLVM::LLVMTokenType::get(context)),
        Type(LLVM::LLVMMetadataType::get(context)),
        Type(LLVM::LLVMPPCFP128Type::get(context)),
        Type(LLVM::LLVMVoidType::get(context))})
    types.push_back(type);
  for (int64_t n : edges) {
    attributes.push_back(b.getI64IntegerAttr(n));
    attributes.push_back(b.getI32IntegerAttr(static_cast<int32_t>(n)));
    attributes.push_back(b.getDenseI64ArrayAttr({n}));
    attributes.push_back(b.getDenseI32ArrayAttr({static_cast<int32_t>(n)}));
  }
  attributes.push_back(b.getUnitAttr());
  attributes.push_back(b.getStringAttr("x"));
  attributes.push_back(b.getF32FloatAttr(1));
  attributes.push_back(b.getArrayAttr({}));
  attributes.push_back(b.getDictionaryAttr({}));
  attributes.push_back(TypeAttr::get(i32));
  for (const char *name : {"llvm.nvvm.fma.rn.f",
                           "llvm.nvvm.ex2.approx.f",
                           "llvm.nvvm.fmax.f",
                           "llvm.amdgcn.exp2",
                           "llvm.amdgcn.readlane",
                           "llvm.amdgcn.readfirstlane",
                           "llvm.amdgcn.perm",
                           "llvm.amdgcn.ds.bpermute",
                           "llvm.amdgcn.ds.swizzle",
                           "llvm.amdgcn.update.dpp",
                           "llvm.amdgcn.mov.dpp",
                           "llvm.amdgcn.ballot",
                           "llvm.amdgcn.mbcnt.lo",
                           "llvm.amdgcn.fdot2",
                           "llvm.amdgcn.cvt.pkrtz",
                           "llvm.amdgcn.fmed3",
                           "llvm.amdgcn.permlane16.swap",
                           "llvm.amdgcn.s.waitcnt",
                           "llvm.amdgcn.workitem.id.x",
                           "llvm.amdgcn.mfma.f32.32x32x8f16",
                           "llvm.amdgcn.mfma.f32.16x16x32.fp8.fp8",
                           "llvm.amdgcn.s.barrier"})
    intrinsics.push_back(name);
}

//===----------------------------------------------------------------------===//
// Mutator
//===----------------------------------------------------------------------===//

// A value that is there before `op`, in its block or an argument; mostly one of
// the type `like`, if there is one.
Value Mutator::valueBefore(Operation *op, Type like) {
  std::vector<Value> all, same;
  auto add = [&](Value v) {
    all.push_back(v);
    if (v.getType() == like)
      same.push_back(v);
  };
  for (Value v : op->getBlock()->getArguments())
    add(v);
  for (Value v : op->getParentRegion()->front().getArguments())
    add(v);
  for (Operation &other : *op->getBlock()) {
    if (&other == op)
      break;
    for (Value v : other.getResults())
      add(v);
  }
  if (!same.empty() && below(8))
    return pick(same);
  return all.empty() ? Value() : pick(all);
}

Attribute Mutator::change(Attribute attr) {
  if (below(4) == 0)
    return pick(pool.attributes);
  Builder b(attr.getContext());
  int64_t edge = edges[below(std::size(edges))];
  auto list = [&](auto values, auto get) {
    auto copy = llvm::to_vector(values);
    using T = typename decltype(copy)::value_type;
    if (copy.empty() || below(4) == 0)
      copy.push_back(static_cast<T>(edge));
    else if (below(4) == 0)
      copy.pop_back();
    else
      copy[below(copy.size())] = static_cast<T>(edge);
    return get(copy);
  };
  if (auto x = dyn_cast<IntegerAttr>(attr)) {
    if (!x.getType().isIntOrIndex())
      return attr;
    unsigned bits = x.getValue().getBitWidth();
    APInt value(64, below(2) ? edge : static_cast<uint64_t>(random()));
    return IntegerAttr::get(x.getType(), value.sextOrTrunc(bits));
  }
  if (auto x = dyn_cast<DenseI64ArrayAttr>(attr))
    return list(x.asArrayRef(), [&](ArrayRef<int64_t> v) -> Attribute {
      return b.getDenseI64ArrayAttr(v);
    });
  if (auto x = dyn_cast<DenseI32ArrayAttr>(attr))
    return list(x.asArrayRef(), [&](ArrayRef<int32_t> v) -> Attribute {
      return b.getDenseI32ArrayAttr(v);
    });
  if (isa<TypeAttr>(attr))
    return TypeAttr::get(pick(pool.types));
  return pick(pool.attributes);
}

bool Mutator::changeOperands(Operation *op) {
  unsigned n = op->getNumOperands();
  switch (below(8)) {
  case 0:
    if (!n)
      return false;
    op->eraseOperand(below(n));
    return true;
  case 1:
    if (Value v = valueBefore(op, {})) {
      op->insertOperands(below(n + 1), v);
      return true;
    }
    return false;
  default: {
    if (!n)
      return false;
    unsigned which = below(n);
    Value v = valueBefore(op, op->getOperand(which).getType());
    if (!v)
      return false;
    op->setOperand(which, v);
    return true;
  }
  }
}

bool Mutator::changeAttribute(Operation *op) {
  auto attrs = llvm::to_vector(op->getAttrs());
  // Sizes of segments belong to the operands.
  llvm::erase_if(attrs, [](NamedAttribute a) {
    return a.getName().getValue().contains("egment");
  });
  if (attrs.empty())
    return false;
  NamedAttribute attr = attrs[below(attrs.size())];
  // MLIR's verifiers crash where an operation's own attribute is missing in
  // memory, which no text or bytecode brings about: the parser refuses it, or
  // has a default.
  bool own =
      op->getInherentAttr(attr.getName()).value_or(Attribute()) != nullptr;
  if (!own && below(8) == 0) {
    op->removeAttr(attr.getName());
    return true;
  }
  Attribute changed = change(attr.getValue());
  op->setAttr(attr.getName(), changed);
  if (op->getAttr(attr.getName()) == changed)
    return true;
  op->setAttr(attr.getName(), attr.getValue());
  return false;
}

bool Mutator::changeIntrinsic(Operation *op) {
  auto call = dyn_cast<LLVM::CallIntrinsicOp>(op);
  if (!call || pool.intrinsics.empty())
    return false;
  call.setIntrin(pick(pool.intrinsics));
  return true;
}

bool Mutator::changeTypes(Operation *op) {
  if (below(8) == 0) {
    auto arguments = op->getBlock()->getArguments();
    if (arguments.empty())
      return false;
    arguments[below(arguments.size())].setType(pick(pool.types));
    return true;
  }
  if (!op->getNumResults())
    return false;
  Value result = op->getResult(below(op->getNumResults()));
  Type type = pick(pool.types);
  result.setType(type);
  // The operation's own notion of the type follows.
  if (auto attr = op->getAttrOfType<TypeAttr>("elem_type"))
    if (below(2))
      op->setAttr("elem_type", TypeAttr::get(type));
  // What reads it would mostly be refused for its own sake; some goes on with
  // the new type.
  if (below(2))
    for (Operation *user : result.getUsers())
      if (user->getNumResults() == 1 && user->getBlock() == op->getBlock())
        user->getResult(0).setType(type);
  return true;
}

// A copy of some operation, here or elsewhere, with values that are there.
bool Mutator::insertForeign(Operation *op) {
  Operation *foreign = pick(pool.operations);
  IRMapping mapping;
  for (Value v : foreign->getOperands()) {
    Value here = valueBefore(op, v.getType());
    if (!here)
      return false;
    mapping.map(v, here);
  }
  OpBuilder b(op);
  Operation *copy = b.clone(*foreign, mapping);
  // Its results replace others of their types, so that they matter.
  for (Value v : copy->getResults())
    for (OpOperand &use : op->getOpOperands())
      if (use.get().getType() == v.getType() && below(2))
        use.set(v);
  return true;
}

bool Mutator::remove(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return false;
  for (Value result : op->getResults()) {
    Value v = valueBefore(op, result.getType());
    if (!v && !result.use_empty())
      return false;
    if (v)
      result.replaceAllUsesWith(v);
  }
  op->erase();
  return true;
}

bool Mutator::mutate(ModuleOp module) {
  std::vector<Operation *> all;
  module.walk([&](Operation *op) {
    if (op != module.getOperation())
      all.push_back(op);
  });
  if (all.empty())
    return false;
  Operation *op = pick(all);
  bool inside = op->getParentOfType<LLVM::LLVMFuncOp>() != nullptr;
  if (!inside) // functions, variables
    return changeAttribute(op);
  switch (below(16)) {
  case 0:
  case 1:
  case 2:
  case 3:
    return changeOperands(op);
  case 4:
  case 5:
  case 6:
    return changeAttribute(op);
  case 7:
  case 8:
    return changeIntrinsic(op);
  case 9:
  case 10:
  case 11:
    return changeTypes(op);
  case 12:
  case 13:
  case 14:
    return insertForeign(op);
  default:
    return remove(op);
  }
}
